//! Why a path could not be read.

use std::sync::Arc;

/// Why a path of a tree could not be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot read {path:?}: {kind}")]
pub struct VfsError {
    /// The path that was asked for, relative to the root of the tree.
    pub path: String,
    /// Why.
    pub kind: VfsErrorKind,
}

/// The reasons for a [`VfsError`].
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VfsErrorKind {
    /// Nothing stands at the path.
    #[error("no such file or directory")]
    NotFound,
    /// A folder stands where a file was asked for.
    #[error("is a directory")]
    IsDir,
    /// A file stands where a folder was asked for.
    #[error("not a directory")]
    NotDir,
    /// A pipe, a socket or a device stands where a file was asked for: reading it might wait for ever, or
    /// never end.
    #[error("it is a pipe, a socket or a device; only regular files are read")]
    Special,
    /// The path, or the target of a symbolic link on it, lies outside the tree.
    #[error("it leads outside the tree; files outside the repository are never read")]
    OutsideTree,
    /// More symbolic links than one path may lead through.
    #[error("too many levels of symbolic links")]
    TooManyLinks,
    /// The file is larger than allowed.
    #[error("the file has {size} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Size of the file in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The path leads through a symbolic link, and nothing is written through one.
    #[error("it is a symbolic link, or lies behind one; nothing is written through links")]
    WriteThroughLink,
    /// The operating system refused.
    #[error("{0}")]
    Io(Arc<std::io::Error>),
}

impl VfsError {
    pub(crate) fn new(path: &str, kind: VfsErrorKind) -> Self {
        Self { path: path.to_owned(), kind }
    }

    /// Whether nothing stands at the path (as against standing there and being unreadable).
    pub fn is_not_found(&self) -> bool {
        matches!(self.kind, VfsErrorKind::NotFound | VfsErrorKind::NotDir)
    }
}
