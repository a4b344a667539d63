//! A tree in memory: for tests, unpacked archives and Git revisions.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    BrokenLink, DirEntry, EntryKind, FileTree, MAX_FILE_BYTES, VfsError, VfsErrorKind, base_name,
    follow_links, normalize, parent,
};

#[derive(Clone, Debug)]
enum Entry {
    File(Arc<[u8]>),
    Symlink(String),
    /// Folders exist because something stands below them; this set of names is what does.
    Dir(Vec<String>),
}

/// A tree whose files are all in memory.
#[derive(Clone, Debug)]
pub struct MemTree {
    entries: BTreeMap<String, Entry>,
}

impl Default for MemTree {
    fn default() -> Self {
        Self { entries: BTreeMap::from([(String::new(), Entry::Dir(Vec::new()))]) }
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
        self.insert_entry(path, Entry::Symlink(target.to_owned()))
    }

    fn insert_entry(&mut self, path: &str, entry: Entry) -> Result<(), VfsError> {
        let path = normalize(path)?;
        self.entries.insert(path.clone(), entry);
        let mut below = path.as_str();
        while let Some(folder) = parent(below) {
            let names = match self.entries.entry(folder.to_owned()).or_insert(Entry::Dir(Vec::new())) {
                Entry::Dir(names) => names,
                Entry::File(_) | Entry::Symlink(_) => {
                    return Err(VfsError::new(folder, VfsErrorKind::NotDir));
                }
            };
            let name = base_name(below).to_owned();
            match names.binary_search(&name) {
                Ok(_) => break,
                Err(at) => names.insert(at, name),
            }
            below = folder;
        }
        Ok(())
    }

    fn resolve(&self, path: &str) -> Result<(String, &Entry), VfsError> {
        self.follow(&normalize(path)?).map_err(|(kind, _)| VfsError::new(path, kind))
    }

    /// Where the links in a path lead; fails with the path that was looked for last.
    fn led(&self, path: &str) -> Result<String, (VfsErrorKind, String)> {
        let link_at = |path: &str| match self.entries.get(path)? {
            Entry::Symlink(target) => Some(Ok(target.clone())),
            Entry::Dir(_) | Entry::File(_) => None,
        };
        follow_links(path, link_at)
    }

    /// What stands where the links in a path lead; fails with the path that was looked for last.
    fn follow(&self, path: &str) -> Result<(String, &Entry), (VfsErrorKind, String)> {
        let led = self.led(path)?;
        match self.entries.get(&led) {
            Some(entry) => Ok((led, entry)),
            None => Err((VfsErrorKind::NotFound, led)),
        }
    }

    fn broken(&self, wanted: &str, error: &VfsErrorKind) -> BrokenLink {
        BrokenLink::in_tree(wanted, error, |path| Some(matches!(self.entries.get(path)?, Entry::Dir(_))))
    }
}

impl FileTree for MemTree {
    fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
        Ok(match self.resolve(path)?.1 {
            Entry::Dir(_) => EntryKind::Dir,
            Entry::File(_) | Entry::Symlink(_) => EntryKind::File,
        })
    }

    fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
        match self.resolve(path)?.1 {
            Entry::File(bytes) => Ok(bytes.clone()),
            Entry::Dir(_) | Entry::Symlink(_) => Err(VfsError::new(path, VfsErrorKind::IsDir)),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
        let (folder, entry) = self.resolve(path)?;
        let Entry::Dir(names) = entry else {
            return Err(VfsError::new(path, VfsErrorKind::NotDir));
        };
        Ok(names
            .iter()
            .map(|name| {
                let full = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                let is_symlink = matches!(self.entries.get(&full), Some(Entry::Symlink(_)));
                let (kind, broken) = match self.follow(&full) {
                    Ok((_, Entry::Dir(_))) => (EntryKind::Dir, None),
                    Ok(_) | Err((VfsErrorKind::OutsideTree, _)) => (EntryKind::File, None),
                    Err((error, wanted)) => (EntryKind::File, Some(self.broken(&wanted, &error))),
                };
                DirEntry { name: name.clone(), kind, is_symlink, broken }
            })
            .collect())
    }

    fn canonical(&self, path: &str) -> Result<String, VfsError> {
        Ok(self.resolve(path)?.0)
    }

    fn target(&self, path: &str) -> Result<String, VfsError> {
        self.led(&normalize(path)?).map_err(|(kind, _)| VfsError::new(path, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(tree.canonical("env/dir/f").unwrap(), "base/f");
        assert!(matches!(tree.read("env/out").unwrap_err().kind, VfsErrorKind::OutsideTree));
        assert!(matches!(tree.read("env/loop").unwrap_err().kind, VfsErrorKind::TooManyLinks));
    }
}
