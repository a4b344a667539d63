//! A repository of a few files is surveyed and checked, whatever is in them; nothing panics, and it ends.
//! The input is text: a line `-- path --` begins a file, what follows is its content.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tiphys_check::{Context, check, rules};
use tiphys_graph::{Input, Survey};
use tiphys_vfs::MemTree;

const MAX_FILES: usize = 24;

fn files(text: &str) -> Vec<(&str, String)> {
    let mut files: Vec<(&str, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        let path = line.trim_end().strip_prefix("-- ").and_then(|line| line.strip_suffix(" --"));
        if let Some(path) = path.filter(|_| files.len() < MAX_FILES) {
            files.push((path, String::new()));
        } else if let Some((_, content)) = files.last_mut() {
            content.push_str(line);
        }
    }
    files.retain(|(path, _)| is_plain(path));
    files
}

/// Whether a path can stand in a repository, so that the tree of files takes it.
fn is_plain(path: &str) -> bool {
    path.split('/').all(|step| !matches!(step, "" | "." | "..")) && !path.contains('\0')
}

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
