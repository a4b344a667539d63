//! A saved cluster as `doctor --from` reads it.

use std::fs;

use tiphys_doctor::{Case, diagnose};

use crate::input::{files, text};

/// A saved cluster is read and diagnosed, whatever is in it. The input: a line `-- path --` begins a file, what
/// follows is its content.
pub fn dump(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let Ok(folder) = tempfile::tempdir() else { return };
    for (path, content) in files(text) {
        let path = folder.path().join(path);
        if path.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok()) {
            let _ = fs::write(path, content);
        }
    }
    if let Ok(case) = Case::read(&[folder.path().to_owned()]) {
        let _ = diagnose(&case);
    }
}
