//! A commit as a file tree.

use std::{collections::VecDeque, fmt::Display, sync::Arc};

use gix::{
    ObjectId, ThreadSafeRepository,
    bstr::{BStr, ByteSlice},
    object::tree::EntryKind as GitKind,
};
use tiphys_diag::catch_panic;
use tiphys_vfs::{Contents, Entry, ListedTree, MAX_FILE_BYTES, VfsErrorKind};

use crate::{SourceError, git_objects};

/// Files and folders that a commit may have. A few objects are enough for more than any memory holds, because
/// a folder may stand in another many times.
const MAX_ENTRIES: usize = 1_000_000;
/// Folders of these: each takes four times as much memory as a file.
const MAX_FOLDERS: usize = 200_000;
/// Bytes that their paths may have in all.
const MAX_PATH_BYTES: usize = 128 * 1024 * 1024;
/// Longer paths no disk takes (`PATH_MAX` of Linux).
const MAX_PATH: usize = 4095;

/// What to do if a file of a partial clone is not here.
const PARTIAL: &str =
    "; the checkout is a partial clone (`--filter`), and nothing is fetched into it: clone it whole";

/// The blobs of a repository.
pub(crate) struct Blobs(ThreadSafeRepository);

/// The files of a commit. Names are read at once, contents when they are asked for.
pub(crate) type GitTree = ListedTree<Blobs>;

impl Contents for Blobs {
    type Id = ObjectId;

    fn size(&self, id: &ObjectId) -> Result<u64, VfsErrorKind> {
        let local = self.0.to_thread_local();
        let find = || local.find_header(*id);
        let header = catch_panic(OBJECT, find).map_err(|panicked| unreadable(&panicked))?.map_err(|e| {
            let is_partial = git_objects::is_partial(&local);
            unreadable(&format_args!("{e}{}", if is_partial { PARTIAL } else { "" }))
        })?;
        Ok(header.size())
    }

    fn read(&self, id: &ObjectId) -> Result<Arc<[u8]>, VfsErrorKind> {
        let size = self.size(id)?;
        if size > MAX_FILE_BYTES {
            return Err(VfsErrorKind::TooLarge { size, limit: MAX_FILE_BYTES });
        }
        let local = self.0.to_thread_local();
        // Packs of a repository are made by anybody.
        let find = || local.find_object(*id).map(gix::Object::detach).map_err(|e| unreadable(&e));
        let object = catch_panic(OBJECT, find).map_err(|panicked| unreadable(&panicked))??;
        Ok(object.data.into())
    }
}

/// What errors call an object at which the library fails.
const OBJECT: &str = "the Git object";

fn unreadable(error: &dyn Display) -> VfsErrorKind {
    VfsErrorKind::Io(Arc::new(std::io::Error::other(error.to_string())))
}

/// What a commit consists of.
pub(crate) struct Commit {
    /// Its files. Submodules are empty folders, for others to be mounted there.
    pub tree: GitTree,
    /// Where submodules stand, and the commits that belong there.
    pub submodules: Vec<(String, ObjectId)>,
}

/// Lists a commit. What has no path that a disk could give it (`..`, too long, or not UTF-8) is left out.
pub(crate) fn open(
    repository: ThreadSafeRepository,
    commit: ObjectId,
    url: &str,
) -> Result<Commit, SourceError> {
    let fail = |error: &dyn Display| SourceError::Read { url: url.to_owned(), reason: error.to_string() };
    let local = repository.to_thread_local();
    let root = catch_panic(OBJECT, || git_objects::tree_of(&local, commit));
    let root = root.map_err(|panicked| fail(&panicked))?.map_err(|e| fail(&e))?;
    let mut listed = Commit { tree: GitTree::new(Blobs(repository)), submodules: Vec::new() };
    // Level by level: too many are noticed before all the small folders at the bottom were read.
    let mut folders = VecDeque::from([(String::new(), root.id)]);
    let (mut entries, mut inner, mut bytes) = (0, 0, 0);
    while let Some((folder, id)) = folders.pop_front() {
        for entry in local.find_tree(id).map_err(|e| fail(&e))?.iter() {
            let entry = entry.map_err(|e| fail(&e))?;
            let Some(path) = path_in(&folder, entry.filename()) else { continue };
            (entries, bytes) = (entries + 1, bytes + path.len());
            inner += usize::from(entry.mode().is_tree());
            if entries > MAX_ENTRIES || inner > MAX_FOLDERS || bytes > MAX_PATH_BYTES {
                return Err(SourceError::TooMany { url: url.to_owned() });
            }
            let found = match entry.mode().kind() {
                GitKind::Blob | GitKind::BlobExecutable => Entry::File(entry.object_id()),
                GitKind::Link => Entry::Link(entry.object_id()),
                GitKind::Tree | GitKind::Commit => Entry::Folder(Vec::new()),
            };
            listed.tree.insert_entry(&path, found).map_err(|e| fail(&e))?;
            match entry.mode().kind() {
                GitKind::Tree => folders.push_back((path, entry.object_id())),
                GitKind::Commit => listed.submodules.push((path, entry.object_id())),
                _ => {}
            }
        }
    }
    Ok(listed)
}

fn path_in(folder: &str, name: &BStr) -> Option<String> {
    let name = name.to_str().ok().filter(|name| !matches!(*name, "" | "." | "..") && !name.contains('/'))?;
    let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    (path.len() <= MAX_PATH).then_some(path)
}
