//! A folder of a tree as a tree of its own.

use std::sync::Arc;

use crate::{DirEntry, EntryKind, FileTree, VfsError, VfsErrorKind, join, normalize};

/// A folder of another tree, seen as a tree whose root it is. Links may lead anywhere in the folder,
/// not out of it, even where the tree around it would allow that.
#[derive(Clone)]
pub struct SubTree {
    tree: Arc<dyn FileTree>,
    folder: String,
}

impl SubTree {
    /// Narrows a tree to one of its folders.
    ///
    /// # Errors
    /// Not found, not a folder, or outside the tree.
    pub fn new(tree: Arc<dyn FileTree>, folder: &str) -> Result<Self, VfsError> {
        let folder = tree.canonical(folder)?;
        match tree.kind(&folder)? {
            EntryKind::Dir => Ok(Self { tree, folder }),
            EntryKind::File => Err(VfsError::new(&folder, VfsErrorKind::NotDir)),
        }
    }

    /// The path in the outer tree, once it is known to lie in the folder.
    fn resolve(&self, path: &str) -> Result<String, VfsError> {
        let outer = self.tree.canonical(&join(&self.folder, &normalize(path)?)?)?;
        self.inner(&outer)
            .map(|_| outer.clone())
            .ok_or_else(|| VfsError::new(path, VfsErrorKind::OutsideTree))
    }

    /// The path relative to the folder, if it lies in it.
    fn inner<'a>(&self, outer: &'a str) -> Option<&'a str> {
        if self.folder.is_empty() || outer == self.folder {
            return Some(outer.strip_prefix(&self.folder).unwrap_or(outer));
        }
        outer.strip_prefix(&self.folder)?.strip_prefix('/')
    }
}

impl FileTree for SubTree {
    fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
        self.tree.kind(&self.resolve(path)?)
    }

    fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
        self.tree.read(&self.resolve(path)?)
    }

    fn read_with(&self, path: &str, taker: &mut dyn FnMut(&[u8])) -> Result<(), VfsError> {
        self.tree.read_with(&self.resolve(path)?, taker)
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
        let mut entries = self.tree.list(&self.resolve(path)?)?;
        let is_inside = |entry: &DirEntry| self.exists(&format!("{path}/{}", entry.name));
        entries.retain(|entry| !entry.is_symlink || entry.broken.is_some() || is_inside(entry));
        Ok(entries)
    }

    fn canonical(&self, path: &str) -> Result<String, VfsError> {
        let outer = self.resolve(path)?;
        Ok(self.inner(&outer).unwrap_or_default().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemTree;

    #[test]
    fn narrows_and_jails() {
        let mut tree = MemTree::from_files([("chart/values.yaml", "a"), ("other", "b")]);
        tree.insert_symlink("chart/out", "../other").unwrap();
        let chart = SubTree::new(Arc::new(tree), "chart").unwrap();
        assert_eq!(&*chart.read("values.yaml").unwrap(), b"a");
        assert!(matches!(chart.read("out").unwrap_err().kind, VfsErrorKind::OutsideTree));
        assert!(chart.read("../other").is_err());
        assert_eq!(chart.read_dir("").unwrap().len(), 1);
    }
}
