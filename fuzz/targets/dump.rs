//! A saved cluster is read and diagnosed, whatever is in it; nothing panics, and it ends. The input is text:
//! a line `-- path --` begins a file, what follows is its content.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use tiphys_doctor::{Case, diagnose};
use tiphys_fuzz::files;

fuzz_target!(|text: &str| {
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
});
