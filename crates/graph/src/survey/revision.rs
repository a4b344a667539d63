//! Other states of the repository than the one at hand.

use std::sync::Arc;

use tiphys_vfs::FileTree;

/// What is known of a revision that an Application reads.
#[derive(Clone)]
pub enum Revision {
    /// A state of the repository of its own, with its files.
    Other(Arc<dyn FileTree>),
    /// The repository has no branch, tag or commit of this name. What it has instead, for people; may be
    /// empty.
    None(String),
}
