//! A repository as `check` reads it.

use std::sync::Arc;

use tiphys_check::{Context, check, rules};
use tiphys_graph::{Input, Survey};
use tiphys_vfs::MemTree;

use crate::input::{files, text};

/// A repository of a few files is surveyed and checked, whatever is in them, and what is found can be shown.
/// The input: a line `-- path --` begins a file, what follows is its content.
pub fn repository(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let files = files(text);
    let tree = Arc::new(MemTree::from_files(files.iter().map(|(path, content)| (*path, content.as_str()))));
    let survey = Survey::read(&Input { is_given: &|url| url.contains("example.com"), ..Input::alone(tree) });
    let checked = check(&Context::new(&survey, None), rules::ALL);
    let map = survey.files.source_map();
    for finding in &checked.findings {
        tiphys_diag::render::full(&finding.diagnostic, &map, false);
    }
}
