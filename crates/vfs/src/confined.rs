//! A folder of the disk whose paths are those of the whole disk: what lies in it may be named from the root,
//! and nothing else is read.

use std::{path::Path, sync::Arc};

use crate::{DirEntry, DiskTree, EntryKind, FileTree, OnDisk, VfsError, VfsErrorKind, normalize};

/// The whole disk, of which one folder is read. Links may lead anywhere in the folder, not out of it.
pub struct ConfinedTree {
    whole: DiskTree,
    inside: DiskTree,
    /// The folder without links, as a path of the whole disk.
    folder: String,
}

impl ConfinedTree {
    /// Confines the disk to a folder.
    ///
    /// # Errors
    /// Not found, not a folder, or a path that is no UTF-8.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, VfsError> {
        let inside = DiskTree::open(folder)?;
        let whole = DiskTree::open("/")?;
        let shown = inside
            .root()
            .to_str()
            .ok_or_else(|| VfsError::new(&inside.root().to_string_lossy(), VfsErrorKind::NotFound))?;
        let folder = shown.trim_start_matches('/').to_owned();
        Ok(Self { whole, inside, folder })
    }

    /// The path relative to the folder, if it lies in it.
    fn relative<'a>(&self, path: &'a str) -> Option<&'a str> {
        if self.folder.is_empty() || path == self.folder {
            return Some(path.strip_prefix(&self.folder).unwrap_or(path));
        }
        path.strip_prefix(&self.folder)?.strip_prefix('/')
    }

    /// The path relative to the folder, links resolved, once it is known to lie in it.
    fn resolve(&self, path: &str) -> Result<String, VfsError> {
        let outside = || VfsError::new(path, VfsErrorKind::OutsideTree);
        let is_inside = self.relative(&normalize(path)?).is_some();
        match self.whole.canonical(path) {
            Ok(found) => self.relative(&found).map(str::to_owned).ok_or_else(outside),
            Err(error) if is_inside => Err(error),
            Err(_) => Err(outside()),
        }
    }
}

impl FileTree for ConfinedTree {
    fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
        let path = normalize(path)?;
        let is_above =
            path.is_empty() || self.folder.strip_prefix(&path).is_some_and(|it| it.starts_with('/'));
        if is_above {
            return Ok(EntryKind::Dir);
        }
        self.inside.kind(&self.resolve(&path)?)
    }

    fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
        self.inside.read(&self.resolve(path)?)
    }

    fn read_with(&self, path: &str, taker: &mut dyn FnMut(&[u8])) -> Result<(), VfsError> {
        self.inside.read_with(&self.resolve(path)?, taker)
    }

    fn size(&self, path: &str) -> Result<u64, VfsError> {
        self.inside.size(&self.resolve(path)?)
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
        self.inside.list(&self.resolve(path)?)
    }

    fn canonical(&self, path: &str) -> Result<String, VfsError> {
        self.resolve(path)?;
        self.whole.canonical(path)
    }

    fn target(&self, path: &str) -> Result<String, VfsError> {
        let target = self.whole.target(path)?;
        match self.relative(&target) {
            Some(_) => Ok(target),
            None => Err(VfsError::new(path, VfsErrorKind::OutsideTree)),
        }
    }

    fn on_disk(&self) -> Option<&OnDisk> {
        self.whole.on_disk()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn nothing_outside_of_the_folder_is_read() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("repo/app")).unwrap();
        fs::create_dir_all(root.join("repository")).unwrap();
        fs::write(root.join("repo/app/a"), "a").unwrap();
        fs::write(root.join("repository/secret"), "s").unwrap();
        symlink("../../repository", root.join("repo/app/out")).unwrap();
        symlink("app/a", root.join("repo/in")).unwrap();
        let tree = ConfinedTree::open(root.join("repo")).unwrap();
        let at = |path: &str| format!("{}/{path}", root.to_str().unwrap().trim_start_matches('/'));
        let kind = |path: &str| tree.read(&at(path)).unwrap_err().kind;
        assert_eq!(&*tree.read(&at("repo/in")).unwrap(), b"a");
        assert_eq!(tree.canonical(&at("repo/in")).unwrap(), at("repo/app/a"));
        assert!(tree.is_dir(&at("repo")) && tree.is_dir("") && tree.is_dir(&at("")));
        assert!(matches!(kind("repo/none"), VfsErrorKind::NotFound));
        for path in
            ["repository/secret", "repository/none", "repo/app/out/secret", "repo/../repository/secret"]
        {
            assert!(matches!(kind(path), VfsErrorKind::OutsideTree), "{path}");
            assert!(!tree.exists(&at(path)) && tree.canonical(&at(path)).is_err(), "{path}");
        }
        assert!(tree.list(&at("")).is_err());
    }
}
