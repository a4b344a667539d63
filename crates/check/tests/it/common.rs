//! What the tests of the rules share.

use std::sync::Arc;

use tiphys_graph::{Input, Survey};
use tiphys_vfs::FileTree;

/// What is seen in a tree whose repository is known as git.example.com, with no other source in reach.
pub(crate) fn survey(tree: Arc<dyn FileTree>) -> Survey {
    Survey::read(&Input { is_given: &|url| url.contains("git.example.com"), ..Input::alone(tree) })
}
