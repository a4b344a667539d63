//! What is read of a repository: its files at a revision.

use std::sync::Arc;

use tiphys_vfs::FileTree;

use crate::RecordingTree;

/// A repository at a revision.
#[derive(Clone)]
pub struct Checkout {
    /// Its files.
    pub tree: Arc<dyn FileTree>,
    /// The commit; for a working tree the commit that is checked out, or empty outside Git.
    pub revision: String,
    /// Whether it is the working tree, whose content is not (only) the revision's.
    pub is_working_tree: bool,
}

impl Checkout {
    /// The same checkout behind a recorder.
    pub fn recording(&self) -> Arc<RecordingTree> {
        Arc::new(RecordingTree::new(self.tree.clone()))
    }
}
