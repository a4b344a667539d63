//! What was read of a tree, so that it is known whom a change concerns.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use sha1::{Digest, Sha1};
use tiphys_vfs::{DirEntry, EntryKind, FileTree, VfsError, normalize, parent};

/// What was found at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathRecord {
    /// A file, with the id that Git gives its content.
    File([u8; 20]),
    /// A folder, with the names in it.
    Folder(Vec<String>),
    /// It was only asked what stands there.
    Kind(EntryKind),
    /// Nothing, or something that cannot be read.
    Nothing,
}

/// The paths that somebody read of a tree and what stood there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    pub(crate) seen: BTreeMap<String, PathRecord>,
    /// The paths that led through links, with where they led.
    links: BTreeMap<String, String>,
}

impl Footprint {
    /// Whether a change at a path (relative to the root of the tree) may change what was read: the
    /// path was read itself, or it may be a new entry of a folder that was listed.
    pub fn concerns(&self, changed: &str) -> bool {
        if self.seen.contains_key(changed) {
            return true;
        }
        let above = parent(changed).unwrap_or_default();
        if matches!(self.seen.get(above), Some(PathRecord::Folder(_))) {
            return true;
        }
        // A file in a folder that is new below a listed one.
        let mut entry = above;
        while !entry.is_empty() {
            let folder = parent(entry).unwrap_or_default();
            if let Some(PathRecord::Folder(names)) = self.seen.get(folder) {
                let name = entry.rsplit('/').next().unwrap_or(entry);
                if !names.iter().any(|known| known == name) {
                    return true;
                }
            }
            entry = folder;
        }
        // A folder that came or went takes everything below it along.
        let below = format!("{changed}/");
        self.seen.range(below.clone()..).next().is_some_and(|(path, _)| path.starts_with(&below))
    }

    /// A short text that differs whenever what was read differs: eight hexadecimal digits.
    pub fn digest(&self) -> String {
        hexadecimal(&self.hash()[..4])
    }

    /// A text that no other footprint has.
    pub fn identity(&self) -> String {
        hexadecimal(&self.hash())
    }

    fn hash(&self) -> [u8; 20] {
        let mut hash = Sha1::new();
        for (path, seen) in &self.seen {
            hash.update(path.as_bytes());
            match seen {
                PathRecord::File(id) => hash.update(id),
                PathRecord::Folder(names) => names.iter().for_each(|name| hash.update(name.as_bytes())),
                PathRecord::Kind(kind) => hash.update(format!("{kind:?}")),
                PathRecord::Nothing => hash.update(b"-"),
            }
            hash.update([0]);
        }
        hash.finalize().into()
    }

    /// Adds what another footprint of the same tree saw.
    pub fn merge(&mut self, other: Self) {
        self.seen.extend(other.seen);
        self.links.extend(other.links);
    }

    /// Whether everything that was read stands in a tree as it was read: who reads that tree the same way
    /// comes to the same result.
    pub fn holds_in(&self, tree: &dyn FileTree) -> bool {
        let led = self.links.iter().all(|(path, to)| tree.canonical(path).is_ok_and(|now| now == *to));
        led && self.seen.iter().all(|(path, seen)| is_unchanged(tree, path, seen))
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_unchanged(tree: &dyn FileTree, path: &str, seen: &PathRecord) -> bool {
    match seen {
        PathRecord::File(id) => tree.read(path).is_ok_and(|bytes| blob_id(&bytes) == *id),
        PathRecord::Folder(names) => tree.list(path).is_ok_and(|entries| {
            entries.iter().map(|entry| entry.name.as_str()).eq(names.iter().map(String::as_str))
        }),
        PathRecord::Kind(kind) => tree.kind(path).is_ok_and(|now| now == *kind),
        // What was there and could not be read may be a folder that was read as a file, or a link outwards.
        PathRecord::Nothing => tree.kind(path).is_err(),
    }
}

/// A tree that notes what is read of it.
pub struct RecordingTree {
    tree: Arc<dyn FileTree>,
    read: Mutex<Footprint>,
}

impl RecordingTree {
    /// Starts with an empty footprint.
    pub fn new(tree: Arc<dyn FileTree>) -> Self {
        Self { tree, read: Mutex::default() }
    }

    /// What was read until now.
    pub fn footprint(&self) -> Footprint {
        self.noted().clone()
    }

    fn noted(&self) -> MutexGuard<'_, Footprint> {
        self.read.lock()
    }

    fn record(&self, path: &str, seen: PathRecord) {
        // A path that climbs out of the tree is nobody's file, and no change will name it.
        if let Ok(path) = normalize(path) {
            self.noted().seen.insert(path, seen);
        }
    }
}

/// The id that Git gives a file with this content.
pub(crate) fn blob_id(bytes: &[u8]) -> [u8; 20] {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", bytes.len()));
    hash.update(bytes);
    hash.finalize().into()
}

impl FileTree for RecordingTree {
    fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
        let kind = self.tree.kind(path);
        if let Ok(path) = normalize(path) {
            let seen = kind.as_ref().map_or(PathRecord::Nothing, |kind| PathRecord::Kind(*kind));
            // What was read of a file or folder says more.
            self.noted().seen.entry(path).or_insert(seen);
        }
        kind
    }

    fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
        let read = self.tree.read(path);
        self.record(
            path,
            read.as_ref().map_or(PathRecord::Nothing, |bytes| PathRecord::File(blob_id(bytes))),
        );
        read
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
        let entries = self.tree.list(path);
        let seen = entries.as_ref().map_or(PathRecord::Nothing, |entries| {
            PathRecord::Folder(entries.iter().map(|entry| entry.name.clone()).collect())
        });
        self.record(path, seen);
        entries
    }

    fn canonical(&self, path: &str) -> Result<String, VfsError> {
        let canonical = self.tree.canonical(path);
        match (&canonical, normalize(path)) {
            (Err(_), _) => self.record(path, PathRecord::Nothing),
            (Ok(to), Ok(path)) if *to != path => drop(self.noted().links.insert(path, to.clone())),
            (Ok(_), _) => {}
        }
        canonical
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_vfs::MemTree;

    fn read_some(tree: &MemTree) -> Footprint {
        let recording = RecordingTree::new(Arc::new(tree.clone()));
        let _ = (recording.read("app/a.yaml"), recording.read_dir("app"), recording.kind("app/Chart.yaml"));
        recording.footprint()
    }

    #[test]
    fn a_change_concerns_those_who_read_it() {
        let tree = MemTree::from_files([
            ("app/a.yaml", "1"),
            ("app/b.yaml", "2"),
            ("app/sub/d.yaml", "4"),
            ("other/c.yaml", "3"),
        ]);
        let footprint = read_some(&tree);
        for path in ["app/a.yaml", "app/new.yaml", "app/new/deep.yaml", "app/Chart.yaml", "app"] {
            assert!(footprint.concerns(path), "{path}");
        }
        for path in ["other/c.yaml", "other", "app/sub/deep.yaml", "README.md"] {
            assert!(!footprint.concerns(path), "{path}");
        }
    }

    #[test]
    fn the_digest_follows_the_content() {
        let mut tree = MemTree::from_files([("app/a.yaml", "1"), ("other/c.yaml", "3")]);
        let before = read_some(&tree).digest();
        tree.insert("other/c.yaml", b"4".as_slice()).expect("inside");
        assert_eq!(read_some(&tree).digest(), before);
        tree.insert("app/a.yaml", b"5".as_slice()).expect("inside");
        assert_ne!(read_some(&tree).digest(), before);
    }

    #[test]
    fn it_holds_where_everything_read_stands_as_it_was() {
        let tree = MemTree::from_files([("app/a.yaml", "1"), ("other/c.yaml", "3")]);
        let footprint = read_some(&tree);
        let with = |path: &str, text: &str| {
            let mut tree = tree.clone();
            tree.insert(path, text.as_bytes()).expect("inside");
            footprint.holds_in(&tree)
        };
        assert!(footprint.holds_in(&tree) && with("other/c.yaml", "4") && with("other/new.yaml", "5"));
        assert!(!with("app/a.yaml", "2") && !with("app/new.yaml", "6") && !with("app/Chart.yaml", "7"));
        assert!(!footprint.holds_in(&MemTree::from_files([("other/c.yaml", "3")])), "what was read is gone");
    }

    #[test]
    fn ids_are_those_of_git() {
        let hex: String = blob_id(b"hello\n").iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "ce013625030ba8dba906f756967f9e9ca394464a");
    }
}
