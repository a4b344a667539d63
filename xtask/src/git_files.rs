//! Files that Git knows, for what looks at all of them.

use std::{fs, io, process::Command};

use anyhow::{Context as _, ensure};

/// The files that fit a pattern of Git, by path from the root of the repository, with their texts. Those that
/// are gone from the working tree are left out.
///
/// # Errors
/// Git cannot be run, or a file cannot be read.
pub(crate) fn matching(pattern: &str) -> anyhow::Result<Vec<(String, String)>> {
    let output = Command::new("git").args(["ls-files", pattern]).output().context("cannot run git")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    let mut files = Vec::new();
    for path in String::from_utf8(output.stdout)?.lines() {
        match fs::read_to_string(path) {
            Ok(text) => files.push((path.to_owned(), text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).context(path.to_owned()),
        }
    }
    Ok(files)
}
