//! `cargo xtask layout`: which functions of the binary lie side by side.
//!
//! The system maps a binary's pages when they are first touched, and of 55 MB of code a rendering touches 1 MB, here and
//! there. What is touched together is put together by a linker script, by names without the compiler's hashes, so that the
//! script outlives most changes; what it does not name is linked as ever.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};

use crate::{
    bench::{write_chart, write_overlay},
    oracles::workspace_root,
};

/// Whose functions are found.
#[derive(clap::Args)]
pub struct Args {
    /// Folders of further charts to render, such as kube-prometheus-stack.
    #[arg(long)]
    chart: Vec<PathBuf>,
}

const SCRIPT: &str = "crates/cli/data/layout.ld";

/// Links the binary, runs it under valgrind, and writes the script.
///
/// # Errors
/// valgrind is missing, or a program fails.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let map = folder.path().join("map");
    let binary = link(&map)?;
    let mut runs: Vec<Vec<PathBuf>> = Vec::new();
    let (tiny, forty) = (folder.path().join("tiny"), folder.path().join("forty"));
    for chart in [write_chart(&tiny, 1)?, write_chart(&forty, 40)?].iter().chain(&args.chart) {
        runs.push(
            ["render", "helm", "release-name"]
                .map(PathBuf::from)
                .into_iter()
                .chain([chart.clone()])
                .collect(),
        );
    }
    for objects in [1, 100] {
        let overlay = folder.path().join(objects.to_string());
        write_overlay(&overlay, objects)?;
        runs.push(vec!["render".into(), "kustomize".into(), overlay.join("overlay")]);
    }
    let mut stages = Vec::new();
    let mut known = HashSet::new();
    for run in runs {
        let mut touched = touched(&binary, &run, folder.path())?;
        touched.retain(|function| known.insert(function.clone()));
        stages.push(touched);
    }
    let map = fs::read_to_string(&map).context("cannot read the linker's map")?;
    let script = script(&stages, &map);
    let path = workspace_root().join(SCRIPT);
    fs::write(&path, script).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{SCRIPT}: {} functions of {} runs", known.len(), stages.len());
    Ok(())
}

/// Links the optimised binary, and has the linker say what lies where.
fn link(map: &Path) -> anyhow::Result<PathBuf> {
    let status = Command::new("cargo")
        .current_dir(workspace_root())
        .args(["rustc", "--release", "--package", "tiphys-cli", "--bin", "tiphys", "--", "-C"])
        .arg(format!("link-arg=-Wl,-Map={}", map.display()))
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the binary could not be linked");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace_root().join("target"), PathBuf::from);
    Ok(target.join("release/tiphys"))
}

/// The mangled names of the functions that a run of the binary executes.
fn touched(binary: &Path, arguments: &[PathBuf], folder: &Path) -> anyhow::Result<BTreeSet<String>> {
    let profile = folder.join("profile");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--demangle=no"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(binary)
        .args(arguments)
        .output()
        .context("cannot run valgrind: install the operating system's package valgrind")?;
    ensure!(
        output.status.success(),
        "{} {arguments:?} failed: {}",
        binary.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    let profile = fs::read_to_string(&profile).context("cannot read what valgrind found")?;
    Ok(profile.lines().filter_map(function).map(str::to_owned).collect())
}

/// The function that a line of a profile names: `fn=(7) name`, where recursion adds `'2`.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix('c').unwrap_or(line).strip_prefix("fn=(")?;
    let (_, name) = line.split_once(") ")?;
    name.split('\'').next()
}

/// The script: for each stage, what its functions are called in which library.
fn script(stages: &[BTreeSet<String>], map: &str) -> String {
    let mut text = String::from(
        "/* Functions that renderings touch, side by side. Made by `cargo xtask layout`; see there. */\n\
         SECTIONS {\n  .text.rendering : {\n",
    );
    let placed: Vec<(String, &str)> = map.lines().filter_map(placed).collect();
    for stage in stages {
        let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (library, section) in &placed {
            let name = section.trim_start_matches(".text.").trim_start_matches("unlikely.");
            if stage.contains(name) {
                let stem = &section[..section.len() - HASH_END];
                found.entry(library).or_default().insert(format!("{stem}*"));
            }
        }
        for (library, sections) in found {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "    *{library}:*(");
            sections.iter().for_each(|section| text.extend(["      ", section, "\n"]));
            text.push_str("    )\n");
        }
    }
    text.push_str("  }\n}\nINSERT BEFORE .text;\n");
    text
}

/// The length of the hash with which a mangled name ends, and of the letter behind it.
const HASH_END: usize = 17;

/// The library and the section of a Rust function that a line of the map places, the library with `*` for its hash:
/// `13d4640 13d4640 18 4 /…/libname-0123456789abcdef.rlib(object.o):(.text._ZN…17h0123456789abcdefE)`.
fn placed(line: &str) -> Option<(String, &str)> {
    let (place, section) = line.trim_end().strip_suffix(')')?.rsplit_once(":(")?;
    let hash = section.len().checked_sub(HASH_END + "17h".len())?;
    if !section.starts_with(".text.") || !section.get(hash..)?.starts_with("17h") {
        return None;
    }
    let (path, _object) = place.split_once(".rlib(")?;
    let (name, _hash) = path.rsplit_once('/')?.1.rsplit_once('-')?;
    Some((format!("{name}-*.rlib"), section))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_hashes_are_taken_from_profile_and_map() {
        let profile = "fl=(1) x.rs\nfn=(12) _ZN1a1b17h0123456789abcdefE'2\ncfn=(3) memcpy\ncalls=1 0\n";
        let touched: BTreeSet<_> = profile.lines().filter_map(function).map(str::to_owned).collect();
        assert_eq!(touched.iter().collect::<Vec<_>>(), ["_ZN1a1b17h0123456789abcdefE", "memcpy"]);
        let map = "  13d4640  13d4640  18  4  /t/deps/liba_b-0011223344556677.rlib(a_b.o):(.text._ZN1a1b17h0123456789abcdefE)\n  \
                   13d4660  13d4660  18  4  /t/deps/liba_b-0011223344556677.rlib(a_b.o):(.text.unlikely._ZN1a1c17h0123456789abcdefE)\n  \
                   13d4680  13d4680  18  4  /usr/lib/libc.a(memcpy.o):(.text)\n";
        let script = script(&[touched], map);
        assert!(script.contains("    *liba_b-*.rlib:*(\n      .text._ZN1a1b17h*\n    )\n"), "{script}");
        assert!(!script.contains("1a1c") && !script.contains("libc"), "{script}");
    }
}
