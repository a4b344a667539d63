//! Trees whose names are all known, whatever holds their contents.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    BrokenLink, DirEntry, EntryKind, FileTree, VfsError, VfsErrorKind, base_name,
    links::{Stopped, follow_links},
    normalize, parent,
};

/// Bytes that the target of a link may have, as Linux has it (`PATH_MAX`).
const MAX_LINK_BYTES: u64 = 4095;

/// What holds the contents of a tree's files.
pub trait Contents {
    /// What names a content there.
    type Id;

    /// How many bytes a content has.
    ///
    /// # Errors
    /// Not readable.
    fn size(&self, id: &Self::Id) -> Result<u64, VfsErrorKind>;

    /// The content of a file, or the target of a symbolic link.
    ///
    /// # Errors
    /// Larger than [`crate::MAX_FILE_BYTES`], or not readable.
    fn read(&self, id: &Self::Id) -> Result<Arc<[u8]>, VfsErrorKind>;
}

/// An entry of a [`ListedTree`].
#[derive(Clone, Debug)]
pub enum Entry<Id> {
    /// A regular file with its content.
    File(Id),
    /// A symbolic link, whose content is its target.
    Link(Id),
    /// A folder with the sorted names of what stands in it.
    Folder(Vec<String>),
}

/// A tree that keeps the names of its files and asks for their contents when they are read.
#[derive(Clone, Debug)]
pub struct ListedTree<C: Contents> {
    contents: C,
    entries: BTreeMap<String, Entry<C::Id>>,
}

impl<C: Contents> ListedTree<C> {
    /// A tree without files.
    pub fn new(contents: C) -> Self {
        Self { contents, entries: BTreeMap::from([(String::new(), Entry::Folder(Vec::new()))]) }
    }

    /// Adds or replaces an entry, and adds the folders above it. A folder that is there keeps what stands in
    /// it; the target of a link is judged when it is followed.
    ///
    /// # Errors
    /// The path climbs above the root, or leads through a file or a link.
    pub fn insert_entry(&mut self, path: &str, entry: Entry<C::Id>) -> Result<(), VfsError> {
        let path = normalize(path)?;
        let is_there = matches!(self.entries.get(&path), Some(Entry::Folder(_)));
        if !(is_there && matches!(entry, Entry::Folder(_))) {
            self.entries.insert(path.clone(), entry);
        }
        let mut below = path.as_str();
        while let Some(folder) = parent(below) {
            let above = self.entries.entry(folder.to_owned()).or_insert(Entry::Folder(Vec::new()));
            let Entry::Folder(names) = above else {
                return Err(VfsError::new(folder, VfsErrorKind::NotDir));
            };
            let name = base_name(below);
            match names.binary_search_by(|known| known.as_str().cmp(name)) {
                Ok(_) => break,
                Err(at) => names.insert(at, name.to_owned()),
            }
            below = folder;
        }
        Ok(())
    }

    fn resolve(&self, path: &str) -> Result<(String, &Entry<C::Id>), VfsError> {
        self.follow(&normalize(path)?).map_err(|(kind, _)| VfsError::new(path, kind))
    }

    /// Where the links in a path lead; fails with the path that was looked for last.
    fn led(&self, path: &str) -> Result<String, Stopped> {
        follow_links(path, |path| match self.entries.get(path)? {
            Entry::Link(id) => Some(self.link(id)),
            Entry::Folder(_) | Entry::File(_) => None,
        })
    }

    /// The target of a link.
    fn link(&self, id: &C::Id) -> Result<String, VfsErrorKind> {
        let size = self.contents.size(id)?;
        if size > MAX_LINK_BYTES {
            return Err(VfsErrorKind::TooLarge { size, limit: MAX_LINK_BYTES });
        }
        Ok(String::from_utf8_lossy(&self.contents.read(id)?).into_owned())
    }

    /// What stands where the links in a path lead; fails with the path that was looked for last.
    fn follow(&self, path: &str) -> Result<(String, &Entry<C::Id>), Stopped> {
        let led = self.led(path)?;
        match self.entries.get(&led) {
            Some(entry) => Ok((led, entry)),
            None => Err((VfsErrorKind::NotFound, led)),
        }
    }

    fn broken(&self, wanted: &str, error: &VfsErrorKind) -> BrokenLink {
        BrokenLink::in_tree(wanted, error, |path| Some(matches!(self.entries.get(path)?, Entry::Folder(_))))
    }

    fn entry(&self, folder: &str, name: &str) -> DirEntry {
        let full = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        let is_symlink = matches!(self.entries.get(&full), Some(Entry::Link(_)));
        let (kind, broken) = match self.follow(&full) {
            Ok((_, Entry::Folder(_))) => (EntryKind::Dir, None),
            Ok(_) | Err((VfsErrorKind::OutsideTree, _)) => (EntryKind::File, None),
            Err((error, wanted)) => (EntryKind::File, Some(self.broken(&wanted, &error))),
        };
        DirEntry { name: name.to_owned(), kind, is_symlink, broken }
    }
}

impl<C: Contents<Id: Send + Sync> + Send + Sync> FileTree for ListedTree<C> {
    fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
        Ok(match self.resolve(path)?.1 {
            Entry::Folder(_) => EntryKind::Dir,
            Entry::File(_) | Entry::Link(_) => EntryKind::File,
        })
    }

    fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
        match self.resolve(path)?.1 {
            Entry::File(id) => self.contents.read(id).map_err(|kind| VfsError::new(path, kind)),
            Entry::Folder(_) | Entry::Link(_) => Err(VfsError::new(path, VfsErrorKind::IsDir)),
        }
    }

    fn size(&self, path: &str) -> Result<u64, VfsError> {
        match self.resolve(path)?.1 {
            Entry::File(id) => self.contents.size(id).map_err(|kind| VfsError::new(path, kind)),
            Entry::Folder(_) | Entry::Link(_) => Err(VfsError::new(path, VfsErrorKind::IsDir)),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
        match self.resolve(path)? {
            (folder, Entry::Folder(names)) => {
                Ok(names.iter().map(|name| self.entry(&folder, name)).collect())
            }
            _ => Err(VfsError::new(path, VfsErrorKind::NotDir)),
        }
    }

    fn canonical(&self, path: &str) -> Result<String, VfsError> {
        Ok(self.resolve(path)?.0)
    }

    fn target(&self, path: &str) -> Result<String, VfsError> {
        self.led(&normalize(path)?).map_err(|(kind, _)| VfsError::new(path, kind))
    }
}
