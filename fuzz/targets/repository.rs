//! A repository of a few files is surveyed and checked, whatever is in them; nothing panics, and it ends.
//! The input is text: a line `-- path --` begins a file, what follows is its content.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tiphys_check::{Context, check, rules};
use tiphys_fuzz::files;
use tiphys_graph::{Input, Survey};
use tiphys_vfs::MemTree;

fuzz_target!(|text: &str| {
    let files = files(text);
    let tree = Arc::new(MemTree::from_files(files.iter().map(|(path, content)| (*path, content.as_str()))));
    let survey = Survey::read(&Input { is_given: &|url| url.contains("example.com"), ..Input::alone(tree) });
    let checked = check(&Context::new(&survey, None), rules::ALL);
    let map = survey.files.source_map();
    for finding in &checked.findings {
        tiphys_diag::render::full(&finding.diagnostic, &map, false);
    }
});
