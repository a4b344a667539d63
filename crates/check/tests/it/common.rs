//! What the tests of the rules share.

use std::sync::Arc;

use tiphys_check::{Context, check, rules};
use tiphys_graph::{Input, Survey};
use tiphys_vfs::{FileTree, MemTree};

/// What is seen in a tree whose repository is known as git.example.com, with no other source in reach.
pub(crate) fn survey(tree: Arc<dyn FileTree>) -> Survey {
    Survey::read(&Input { is_given: &|url| url.contains("git.example.com"), ..Input::alone(tree) })
}

/// The messages of what one rule finds in files.
pub(crate) fn found(rule: &str, files: &[(&str, &str)]) -> Vec<String> {
    let survey = survey(Arc::new(MemTree::from_files(files.iter().copied())));
    let findings = check(&Context::new(&survey, None), rules::ALL).findings;
    let of_rule = findings.iter().filter(|it| it.diagnostic.rule == rule);
    of_rule.map(|it| it.diagnostic.message.clone()).collect()
}
