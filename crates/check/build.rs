//! Packs the tables of charts and kinds: as texts, they would be a twentieth of the program.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::DeflateEncoder};

/// Folders of tables below `data`. Each is packed into one file that bears its name.
const FOLDERS: [&str; 2] = ["chart-values", "custom-kinds"];

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=build.rs");
    for folder in FOLDERS {
        let source = Path::new("data").join(folder);
        println!("cargo::rerun-if-changed={}", source.display());
        fs::write(out.join(folder).with_extension("packed"), packed(&source)?)?;
    }
    Ok(())
}

/// The tables of a folder, each behind a zero byte and a line with its name, deflated.
fn packed(folder: &Path) -> io::Result<Vec<u8>> {
    let mut tables = tables(folder)?;
    tables.sort_by(|a, b| a.file_name().cmp(&b.file_name()).then_with(|| a.cmp(b)));
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::best());
    for table in tables {
        let name = table.file_stem().expect("is a file").to_string_lossy();
        write!(packer, "\0{name}\n{}", fs::read_to_string(&table)?)?;
    }
    packer.finish()
}

/// The tables in a folder and below it.
fn tables(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(tables(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            found.push(path);
        }
    }
    Ok(found)
}
