//! A commit as a file tree.

use std::{collections::BTreeMap, sync::Arc};

use gix::{ObjectId, ThreadSafeRepository, object::tree::EntryKind as GitKind};
use tiphys_vfs::{
    BrokenLink, DirEntry, EntryKind, FileTree, MAX_FILE_BYTES, VfsError, VfsErrorKind, follow_links,
    normalize, parent,
};

use crate::SourceError;

#[derive(Clone, Debug)]
enum Entry {
    File(ObjectId),
    Link(ObjectId),
    Folder(Vec<String>),
}

/// The files of a commit. Names are read at once, contents when they are asked for.
pub struct GitTree {
    repository: ThreadSafeRepository,
    entries: BTreeMap<String, Entry>,
}

impl GitTree {
    /// Lists a commit. Submodules appear as empty folders, for others to be mounted there.
    pub(crate) fn open(
        repository: ThreadSafeRepository,
        commit: ObjectId,
        url: &str,
    ) -> Result<Self, SourceError> {
        let fail = |error: &dyn std::fmt::Display| SourceError::Read {
            url: url.to_owned(),
            reason: error.to_string(),
        };
        let local = repository.to_thread_local();
        let tree = local.find_object(commit).map_err(|e| fail(&e))?.peel_to_tree().map_err(|e| fail(&e))?;
        let files = tree.traverse().breadthfirst.files().map_err(|e| fail(&e))?;
        let mut entries = BTreeMap::from([(String::new(), Entry::Folder(Vec::new()))]);
        for file in files {
            let Ok(path) = String::from_utf8(file.filepath.into()) else { continue };
            let entry = match file.mode.kind() {
                GitKind::Blob | GitKind::BlobExecutable => Entry::File(file.oid),
                GitKind::Link => Entry::Link(file.oid),
                GitKind::Tree | GitKind::Commit => Entry::Folder(Vec::new()),
            };
            entries.insert(path, entry);
        }
        fill_folders(&mut entries);
        Ok(Self { repository, entries })
    }

    fn blob(&self, id: ObjectId, path: &str) -> Result<Vec<u8>, VfsError> {
        let fail = |text: String| VfsError {
            path: path.to_owned(),
            kind: VfsErrorKind::Io(Arc::new(std::io::Error::other(text))),
        };
        let local = self.repository.to_thread_local();
        let header = local.find_header(id).map_err(|e| fail(e.to_string()))?;
        if header.size() > MAX_FILE_BYTES {
            let kind = VfsErrorKind::TooLarge { size: header.size(), limit: MAX_FILE_BYTES };
            return Err(VfsError { path: path.to_owned(), kind });
        }
        let mut object = local.find_object(id).map_err(|e| fail(e.to_string()))?;
        Ok(std::mem::take(&mut object.data))
    }

    fn resolve(&self, path: &str) -> Result<(String, &Entry), VfsError> {
        self.follow(&normalize(path)?).map_err(|(kind, _)| VfsError { path: path.to_owned(), kind })
    }

    /// Where the links in a path lead; fails with the path that was looked for last.
    fn led(&self, path: &str) -> Result<String, (VfsErrorKind, String)> {
        let link_at = |path: &str| match self.entries.get(path)? {
            Entry::Link(id) => {
                let target = self.blob(*id, path).map_err(|error| error.kind);
                Some(target.map(|target| String::from_utf8_lossy(&target).into_owned()))
            }
            Entry::Folder(_) | Entry::File(_) => None,
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
        BrokenLink::in_tree(wanted, error, |path| Some(matches!(self.entries.get(path)?, Entry::Folder(_))))
    }
}

/// Gives every folder the sorted names of its entries.
fn fill_folders(entries: &mut BTreeMap<String, Entry>) {
    let paths: Vec<String> = entries.keys().filter(|path| !path.is_empty()).cloned().collect();
    for path in paths {
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        let folder = parent(&path).unwrap_or_default().to_owned();
        if let Entry::Folder(names) = entries.entry(folder).or_insert(Entry::Folder(Vec::new())) {
            names.push(name);
        }
    }
    for entry in entries.values_mut() {
        if let Entry::Folder(names) = entry {
            names.sort();
            names.dedup();
        }
    }
}

impl FileTree for GitTree {
    fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
        Ok(match self.resolve(path)?.1 {
            Entry::Folder(_) => EntryKind::Dir,
            Entry::File(_) | Entry::Link(_) => EntryKind::File,
        })
    }

    fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
        match self.resolve(path)?.1 {
            Entry::File(id) => self.blob(*id, path).map(Arc::from),
            Entry::Link(_) | Entry::Folder(_) => {
                Err(VfsError { path: path.to_owned(), kind: VfsErrorKind::IsDir })
            }
        }
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
        let (folder, entry) = self.resolve(path)?;
        let Entry::Folder(names) = entry else {
            return Err(VfsError { path: path.to_owned(), kind: VfsErrorKind::NotDir });
        };
        Ok(names
            .iter()
            .map(|name| {
                let full = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                let is_symlink = matches!(self.entries.get(&full), Some(Entry::Link(_)));
                let (kind, broken) = match self.follow(&full) {
                    Ok((_, Entry::Folder(_))) => (EntryKind::Dir, None),
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
        self.led(&normalize(path)?).map_err(|(kind, _)| VfsError { path: path.to_owned(), kind })
    }
}
