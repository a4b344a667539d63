//! How the `tiphys` binary is linked.

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(static_libc)");
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("OS") != "linux" || target("ENV") != "gnu" {
        return;
    }
    // At a fixed address, as Go links its programs: a position-independent binary of this size has some 60,000 addresses
    // to correct before it starts, which takes longer than rendering a small chart.
    println!("cargo:rustc-link-arg-bins=-no-pie");
    // The unwinder from the archive that comes with the C compiler: loading its shared library, which asks the
    // processor for its features once more, takes longer than rendering a small chart.
    println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    if is_optimised_by_default_linker() {
        println!("cargo:rerun-if-changed={LAYOUT}");
        let manifest = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo:rustc-link-arg-bins=-T{}", Path::new(&manifest).join(LAYOUT).display());
        // What is written, and not mapped and filled, lies in large pieces in the system's page cache, of which a program
        // that was just linked starts in two thirds of the time.
        if has_lld() {
            println!("cargo:rustc-link-arg-bins=-Wl,--no-mmap-output-file");
        }
    }
    if let Some(folder) = static_libc() {
        println!("cargo:rustc-link-arg-bins=-static");
        println!("cargo:rustc-link-arg-bins=-L{}", folder.display());
        println!("cargo:rustc-cfg=static_libc");
    }
}

/// The linker script by which functions that a rendering touches lie side by side, written by `cargo xtask layout`: the
/// system has a fifth fewer pages to map.
const LAYOUT: &str = "data/layout.ld";

/// Whether an optimised binary is linked by the linker of Rust's own choice; mold reads no linker scripts.
fn is_optimised_by_default_linker() -> bool {
    println!("cargo:rerun-if-env-changed=MOLD_PATH");
    println!("cargo:rerun-if-env-changed=RUSTFLAGS");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let is_chosen = !variable("RUSTC_LINKER").is_empty()
        || !variable("MOLD_PATH").is_empty()
        || variable("CARGO_ENCODED_RUSTFLAGS").contains("link");
    let is_meant = variable("PROFILE") == "release" && variable("TARGET") == "x86_64-unknown-linux-gnu";
    is_meant && !is_chosen
}

/// Whether Rust's own choice is the LLD that comes with it; distributions that package Rust without it have GNU's.
fn has_lld() -> bool {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let sysroot = printed_path(&variable("RUSTC"), "--print=sysroot");
    let of_host = |sysroot: PathBuf| sysroot.join("lib/rustlib").join(variable("HOST"));
    sysroot.is_some_and(|sysroot| of_host(sysroot).join("bin/gcc-ld/ld.lld").exists())
}

/// The absolute path that a program prints if it is asked for one.
fn printed_path(program: &str, question: &str) -> Option<PathBuf> {
    let output = Command::new(program).arg(question).output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim())).filter(|path| path.is_absolute())
}

/// What the standard library asks the linker for by name, and the archives that have it: those of glibc and the C
/// compiler need each other.
const LIBRARIES: [(&str, &[&str]); 7] = [
    ("libgcc_s.a", &["libgcc_eh.a"]),
    ("libutil.a", &["libutil.a"]),
    ("librt.a", &["librt.a"]),
    ("libpthread.a", &["libpthread.a"]),
    ("libm.a", &["libm.a"]),
    ("libdl.a", &["libdl.a"]),
    ("libc.a", &["libc.a", "libgcc.a", "libgcc_eh.a"]),
];

/// A folder in which the linker finds glibc as archives, to be searched before the system's, where it would take shared
/// libraries. Such a binary starts in two thirds of the time, and runs on any distribution, as Helm and kubectl do. To
/// ask for it by `target-feature=+crt-static` would be to demand these archives, which not every distribution installs
/// with its C compiler.
fn static_libc() -> Option<PathBuf> {
    let compiler = env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    if !looks_names_up_itself(&compiler)? {
        return None;
    }
    let folder = Path::new(&env::var_os("OUT_DIR")?).join("static");
    fs::create_dir_all(&folder).ok()?;
    for (name, archives) in LIBRARIES {
        let found: Option<String> = archives.iter().map(|archive| found(&compiler, archive)).collect();
        fs::write(folder.join(name), format!("GROUP({})\n", found?)).ok()?;
    }
    Some(folder)
}

/// Whether this is glibc 2.34 or newer, which looks names up in files and by DNS itself; older ones load shared libraries
/// even for these.
fn looks_names_up_itself(compiler: &str) -> Option<bool> {
    const QUESTION: &[u8] = b"#include <features.h>\n#if !__GLIBC_PREREQ(2, 34)\n#error\n#endif\n";
    let mut child = Command::new(compiler)
        .args(["-E", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(QUESTION).ok()?;
    Some(child.wait().ok()?.success())
}

/// Where the C compiler has an archive, as a linker script names it.
fn found(compiler: &str, archive: &str) -> Option<String> {
    let path = printed_path(compiler, &format!("-print-file-name={archive}"))?;
    Some(format!(" \"{}\"", path.display()))
}
