//! A saved cluster is read and diagnosed, whatever is in it; nothing panics, and it ends. The input is text:
//! a line `-- path --` begins a file, what follows is its content.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use tiphys_doctor::{Case, diagnose};

const MAX_FILES: usize = 12;

fuzz_target!(|text: &str| {
    let Ok(folder) = tempfile::tempdir() else { return };
    let mut files = text.split("-- ").skip(1);
    for file in files.by_ref().take(MAX_FILES) {
        let Some((path, content)) = file.split_once(" --\n") else { continue };
        let is_plain = path.split('/').all(|step| !matches!(step, "" | "." | "..")) && !path.contains('\0');
        let path = folder.path().join(if is_plain { path } else { "objects.yaml" });
        if path.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok()) {
            let _ = fs::write(path, content);
        }
    }
    if let Ok(case) = Case::read(&[folder.path().to_owned()]) {
        let _ = diagnose(&case);
    }
});
