//! A read-only file tree in a jail: everything that renders reads its files through [`FileTree`],
//! so that nothing outside the tree is reachable and the same code runs on a working tree, on a Git
//! revision or on files in memory.
//!
//! Paths are relative to the root of the tree, separated by `/`, without leading slash; the empty
//! path is the root. Every method takes a path as [`normalize`] returns it or normalises it itself.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

#[allow(clippy::disallowed_methods, reason = "the one tree that is on a disk")]
mod broken_links;
mod confined;
#[allow(clippy::disallowed_methods, reason = "the one tree that is on a disk")]
mod disk;
mod error;
mod links;
mod listed_tree;
mod memory;
#[allow(clippy::disallowed_methods, reason = "the one tree that is on a disk")]
mod openat2;
mod path;
mod subtree;
#[allow(clippy::disallowed_methods, reason = "what a fix writes")]
mod write;

use std::sync::Arc;

pub use broken_links::BrokenLink;
pub use confined::ConfinedTree;
pub use disk::{DiskTree, OnDisk};
pub use error::{VfsError, VfsErrorKind};
pub use listed_tree::{Contents, Entry, ListedTree};
pub use memory::{InMemory, MemTree};
pub use path::{base_name, is_below, join, normalize, parent, shown_path, walk};
pub use subtree::SubTree;
pub use write::write_file;

/// The largest file that any tree hands out, in bytes (32 MiB): larger than any manifest, chart or
/// values file that makes sense, small enough that one file cannot exhaust memory.
pub const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// Whether a file is a pointer of Git LFS, which keeps its content elsewhere: what every pointer begins with
/// (Git LFS specification, "The Pointer").
pub fn is_lfs_pointer(bytes: &[u8]) -> bool {
    bytes.starts_with(b"version https://git-lfs.github.com/spec/")
}

/// How many symbolic links one path may lead through, as Linux has it (`path_resolution(7)`).
pub(crate) const MAX_LINKS: usize = 40;

/// What stands at a path once symbolic links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Dir,
}

/// One entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// File name, without the folder.
    pub name: String,
    /// What it is, links followed; of a broken link, a file.
    pub kind: EntryKind,
    /// Whether the entry itself is a symbolic link.
    pub is_symlink: bool,
    /// Why the entry is a symbolic link that leads nowhere.
    pub broken: Option<BrokenLink>,
}

/// A read-only tree of files. Symbolic links are followed as long as they stay inside the tree; one
/// that leaves it is [`VfsErrorKind::OutsideTree`].
pub trait FileTree: Send + Sync {
    /// What stands at a path.
    ///
    /// # Errors
    /// [`VfsErrorKind::NotFound`] if nothing does; errors of following links.
    fn kind(&self, path: &str) -> Result<EntryKind, VfsError>;

    /// The bytes of a file.
    ///
    /// # Errors
    /// Not found, a folder, larger than [`MAX_FILE_BYTES`], outside the tree, or not readable.
    fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError>;

    /// Hands the bytes of a file to somebody who does not keep them: where it can be, they are in memory
    /// once, in a place that is used again.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn read_with(&self, path: &str, taker: &mut dyn FnMut(&[u8])) -> Result<(), VfsError> {
        taker(&self.read(path)?);
        Ok(())
    }

    /// How many bytes a file has that can be read.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn size(&self, path: &str) -> Result<u64, VfsError> {
        Ok(self.read(path)?.len() as u64)
    }

    /// All entries of a folder, broken links among them, sorted by name. Links that leave the tree are listed
    /// as files, and reading them says why they are refused.
    ///
    /// # Errors
    /// Not found, not a folder, or not readable.
    fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError>;

    /// As [`Self::list`], without broken links.
    ///
    /// # Errors
    /// As [`Self::list`].
    fn read_dir(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
        let mut entries = self.list(path)?;
        entries.retain(|entry| entry.broken.is_none());
        Ok(entries)
    }

    /// The path with every symbolic link resolved, relative to the root of the tree.
    ///
    /// # Errors
    /// Not found, or outside the tree.
    fn canonical(&self, path: &str) -> Result<String, VfsError>;

    /// As [`Self::canonical`], but nothing has to stand where the links lead to.
    ///
    /// # Errors
    /// Too many links, outside the tree; not found, if the tree cannot tell where a link to nothing leads.
    fn target(&self, path: &str) -> Result<String, VfsError> {
        self.canonical(path)
    }

    /// Where the tree stands on this machine's disk, for texts that name files as other tools do.
    fn on_disk(&self) -> Option<&OnDisk> {
        None
    }

    /// The number by which another process knows this tree, if it is one that another process reads.
    fn remote_handle(&self) -> Option<u64> {
        None
    }

    /// Whether a file or folder stands at a path.
    fn exists(&self, path: &str) -> bool {
        self.kind(path).is_ok()
    }

    /// Whether a regular file stands at a path.
    fn is_file(&self, path: &str) -> bool {
        matches!(self.kind(path), Ok(EntryKind::File))
    }

    /// Whether a folder stands at a path.
    fn is_dir(&self, path: &str) -> bool {
        matches!(self.kind(path), Ok(EntryKind::Dir))
    }
}

impl<T: FileTree + ?Sized> FileTree for Arc<T> {
    fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
        (**self).kind(path)
    }

    fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
        (**self).read(path)
    }

    fn read_with(&self, path: &str, taker: &mut dyn FnMut(&[u8])) -> Result<(), VfsError> {
        (**self).read_with(path, taker)
    }

    fn size(&self, path: &str) -> Result<u64, VfsError> {
        (**self).size(path)
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
        (**self).list(path)
    }

    fn canonical(&self, path: &str) -> Result<String, VfsError> {
        (**self).canonical(path)
    }

    fn target(&self, path: &str) -> Result<String, VfsError> {
        (**self).target(path)
    }

    fn on_disk(&self) -> Option<&OnDisk> {
        (**self).on_disk()
    }

    fn remote_handle(&self) -> Option<u64> {
        (**self).remote_handle()
    }
}
