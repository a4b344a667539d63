//! A tree in memory: for tests, unpacked archives and files that are made up.

use std::sync::Arc;

use crate::{
    MAX_FILE_BYTES, VfsError, VfsErrorKind,
    listed_tree::{Contents, Entry, ListedTree},
};

/// Contents that are in memory, and are their own names.
#[derive(Clone, Copy, Debug, Default)]
pub struct InMemory;

impl Contents for InMemory {
    type Id = Arc<[u8]>;

    fn size(&self, bytes: &Self::Id) -> Result<u64, VfsErrorKind> {
        Ok(bytes.len() as u64)
    }

    fn read(&self, bytes: &Self::Id) -> Result<Arc<[u8]>, VfsErrorKind> {
        Ok(bytes.clone())
    }
}

/// A tree whose files are all in memory.
pub type MemTree = ListedTree<InMemory>;

impl Default for MemTree {
    fn default() -> Self {
        Self::new(InMemory)
    }
}

impl MemTree {
    /// A tree of text files, for tests.
    ///
    /// # Panics
    /// If a path climbs above the root.
    pub fn from_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.insert(path, text.as_bytes()).expect("test paths stay inside the tree");
        }
        tree
    }

    /// Adds or replaces a file, and the folders above it.
    ///
    /// # Errors
    /// The path climbs above the root, or the file is over [`MAX_FILE_BYTES`].
    pub fn insert(&mut self, path: &str, bytes: impl Into<Arc<[u8]>>) -> Result<(), VfsError> {
        let bytes = bytes.into();
        let size = bytes.len() as u64;
        if size > MAX_FILE_BYTES {
            return Err(VfsError::new(path, VfsErrorKind::TooLarge { size, limit: MAX_FILE_BYTES }));
        }
        self.insert_entry(path, Entry::File(bytes))
    }

    /// Adds or replaces a symbolic link; its target is judged when it is followed.
    ///
    /// # Errors
    /// The path climbs above the root.
    pub fn insert_symlink(&mut self, path: &str, target: &str) -> Result<(), VfsError> {
        self.insert_entry(path, Entry::Link(target.as_bytes().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileTree;

    #[test]
    fn lists_folders_in_name_order() {
        let tree = MemTree::from_files([("b/x", "1"), ("a", "2"), ("b/c/y", "3")]);
        let names: Vec<_> = tree.read_dir("").unwrap().into_iter().map(|e| e.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(crate::walk(&tree, "b").unwrap(), ["b/c/y", "b/x"]);
        assert!(tree.read("nope").unwrap_err().is_not_found());
    }

    #[test]
    fn follows_links_inside_and_refuses_those_that_leave() {
        let mut tree = MemTree::from_files([("base/f", "1")]);
        tree.insert_symlink("env/dir", "../base").unwrap();
        tree.insert_symlink("env/out", "../../etc/passwd").unwrap();
        tree.insert_symlink("env/loop", "loop").unwrap();
        tree.insert_symlink("env/long", &"../env/".repeat(700)).unwrap();
        assert_eq!(tree.canonical("env/dir/f").unwrap(), "base/f");
        assert!(matches!(tree.read("env/out").unwrap_err().kind, VfsErrorKind::OutsideTree));
        assert!(matches!(tree.kind("env/long").unwrap_err().kind, VfsErrorKind::TooLarge { .. }));
        assert!(matches!(tree.read("env/loop").unwrap_err().kind, VfsErrorKind::TooManyLinks));
    }
    #[test]
    fn a_folder_that_is_there_keeps_what_stands_in_it() {
        let mut tree = MemTree::from_files([("a/f", "1")]);
        tree.insert_entry("a", Entry::Folder(Vec::new())).unwrap();
        tree.insert_entry("empty", Entry::Folder(Vec::new())).unwrap();
        assert!(tree.is_file("a/f") && tree.read_dir("empty").unwrap().is_empty());
        assert!(matches!(tree.insert("a/f/g", *b"2").unwrap_err().kind, VfsErrorKind::NotDir));
    }
}
