//! A tree on disk.

use std::{
    cell::Cell,
    fs::{self, File},
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    DirEntry, EntryKind, FileTree, MAX_FILE_BYTES, VfsError, VfsErrorKind, broken_links, normalize,
    openat2::{self, Folder, Listed, ListedKind},
};

/// A folder on disk as a tree. Symbolic links that leave the folder are refused.
#[derive(Clone, Debug)]
pub struct DiskTree {
    place: OnDisk,
    folder: Folder,
}

/// Where a tree stands on this machine's disk.
#[derive(Clone, Debug)]
pub struct OnDisk {
    /// The folder as it was named, absolute.
    pub named: PathBuf,
    /// The folder, absolute and without symbolic links.
    pub resolved: PathBuf,
}

impl DiskTree {
    /// Opens a folder.
    ///
    /// # Errors
    /// Not found or not a folder.
    pub fn open(root: impl AsRef<Path>) -> Result<Self, VfsError> {
        let shown = root.as_ref().display().to_string();
        let resolved = root.as_ref().canonicalize().map_err(|error| io_error(&shown, error))?;
        if !resolved.is_dir() {
            return Err(VfsError::new(&shown, VfsErrorKind::NotDir));
        }
        let named = std::path::absolute(root).map_err(|error| io_error(&shown, error))?;
        let folder = Folder::open(&resolved);
        Ok(Self { place: OnDisk { named, resolved }, folder })
    }

    /// The folder, absolute and without symbolic links.
    pub fn root(&self) -> &Path {
        &self.place.resolved
    }

    /// A file opened for reading, and its size.
    fn open_file(&self, path: &str) -> Result<(File, u64), VfsError> {
        let file = match self.folder.read(&normalize(path)?) {
            Some(found) => found,
            None => openat2::open_at(&self.resolve(path)?),
        };
        let file = file.map_err(|error| io_error(path, error))?;
        let metadata = file.metadata().map_err(|error| io_error(path, error))?;
        if metadata.is_dir() {
            return Err(VfsError::new(path, VfsErrorKind::IsDir));
        }
        // Looked at after opening, so that nobody can put something else there in between.
        if !metadata.is_file() {
            return Err(VfsError::new(path, VfsErrorKind::Special));
        }
        if metadata.len() > MAX_FILE_BYTES {
            let kind = VfsErrorKind::TooLarge { size: metadata.len(), limit: MAX_FILE_BYTES };
            return Err(VfsError::new(path, kind));
        }
        Ok((file, metadata.len()))
    }

    /// The absolute path of an entry, links resolved step by step, once it is known to lie in the tree.
    fn resolve(&self, path: &str) -> Result<PathBuf, VfsError> {
        let relative = normalize(path)?;
        let resolved =
            self.place.resolved.join(&relative).canonicalize().map_err(|error| io_error(path, error))?;
        if !resolved.starts_with(&self.place.resolved) {
            return Err(VfsError::new(path, VfsErrorKind::OutsideTree));
        }
        Ok(resolved)
    }
}

impl FileTree for DiskTree {
    fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
        let metadata = match self.folder.open_for_metadata(&normalize(path)?) {
            Some(found) => found.and_then(|file| file.metadata()),
            None => fs::metadata(self.resolve(path)?),
        };
        let metadata = metadata.map_err(|error| io_error(path, error))?;
        if !metadata.is_dir() && !metadata.is_file() {
            return Err(VfsError::new(path, VfsErrorKind::Special));
        }
        Ok(if metadata.is_dir() { EntryKind::Dir } else { EntryKind::File })
    }

    fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
        let (file, size) = self.open_file(path)?;
        let mut bytes: Arc<[u8]> =
            std::iter::repeat_n(0, usize::try_from(size).unwrap_or_default()).collect();
        let buffer = Arc::get_mut(&mut bytes).expect("nobody else holds what was made just now");
        match read_into(file, buffer).map_err(|error| io_error(path, error))? {
            None => Ok(bytes),
            Some(other) => Ok(Arc::from(other)),
        }
    }

    fn read_with(&self, path: &str, taker: &mut dyn FnMut(&[u8])) -> Result<(), VfsError> {
        let (file, size) = self.open_file(path)?;
        let size = usize::try_from(size).unwrap_or_default();
        // Taken out, since the taker may read another file.
        let mut buffer = BUFFER.take();
        if buffer.len() < size {
            buffer.resize(size, 0);
        }
        let other = read_into(file, &mut buffer[..size]).map_err(|error| io_error(path, error))?;
        taker(other.as_deref().unwrap_or(&buffer[..size]));
        if buffer.len() <= MAX_BUFFER {
            BUFFER.set(buffer);
        }
        Ok(())
    }

    fn size(&self, path: &str) -> Result<u64, VfsError> {
        Ok(self.open_file(path)?.1)
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
        let listed = match self.folder.list(&normalize(path)?) {
            Some(listed) => listed,
            None => list_folder(&self.resolve(path)?),
        };
        let mut entries = Vec::new();
        for entry in listed.map_err(|error| io_error(path, error))? {
            // A name that is no UTF-8 cannot be written in a manifest, so nothing can refer to it.
            let Ok(name) = entry.name.into_string() else { continue };
            let listed = match entry.kind {
                ListedKind::Unknown => {
                    let full = self.resolve(path)?.join(&name);
                    let metadata = fs::symlink_metadata(full).map_err(|error| io_error(path, error))?;
                    listed_kind(metadata.file_type())
                }
                kind => kind,
            };
            if listed == ListedKind::Special {
                continue;
            }
            let is_symlink = listed == ListedKind::Symlink;
            let mut broken = None;
            let kind = match (is_symlink, listed == ListedKind::Dir) {
                (true, _) => match self.kind(&format!("{path}/{name}")) {
                    Ok(kind) => kind,
                    // Listed, so that whoever reads it hears why it is refused.
                    Err(error) if matches!(error.kind, VfsErrorKind::OutsideTree) => EntryKind::File,
                    Err(_) => {
                        broken =
                            Some(broken_links::on_disk(&self.resolve(path)?, &name, &self.place.resolved));
                        EntryKind::File
                    }
                },
                (false, true) => EntryKind::Dir,
                (false, false) => EntryKind::File,
            };
            entries.push(DirEntry { name, kind, is_symlink, broken });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn canonical(&self, path: &str) -> Result<String, VfsError> {
        let plain = normalize(path)?;
        match self.folder.is_plain(&plain) {
            Some(Ok(())) => return Ok(plain),
            Some(Err(error)) => return Err(io_error(path, error)),
            None => {}
        }
        let resolved = self.resolve(path)?;
        let relative = resolved
            .strip_prefix(&self.place.resolved)
            .map_err(|_| VfsError::new(path, VfsErrorKind::OutsideTree))?;
        Ok(relative.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/"))
    }

    fn on_disk(&self) -> Option<&OnDisk> {
        Some(&self.place)
    }
}

/// The entries of a folder by its path.
fn list_folder(folder: &Path) -> std::io::Result<Vec<Listed>> {
    let listed = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok(Listed { name: entry.file_name(), kind: listed_kind(entry.file_type()?) })
    };
    fs::read_dir(folder)?.map(listed).collect()
}

fn listed_kind(file_type: fs::FileType) -> ListedKind {
    match (file_type.is_symlink(), file_type.is_dir(), file_type.is_file()) {
        (true, ..) => ListedKind::Symlink,
        (_, true, _) => ListedKind::Dir,
        (.., true) => ListedKind::File,
        _ => ListedKind::Special,
    }
}

/// Where files are read to that nobody keeps; larger ones have a place of their own.
const MAX_BUFFER: usize = 1 << 20;
thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Reads a file into a buffer of its size. If the file has not, or not only, so many bytes by now, all that
/// it has.
fn read_into(mut file: File, buffer: &mut [u8]) -> std::io::Result<Option<Vec<u8>>> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if filled == buffer.len() && filled > 0 {
        return Ok(None);
    }
    // It became shorter meanwhile, or is one of those whose size is only known by reading them.
    let mut read = buffer[..filled].to_vec();
    file.take(MAX_FILE_BYTES).read_to_end(&mut read)?;
    Ok(Some(read))
}

pub(crate) fn io_error(path: &str, error: std::io::Error) -> VfsError {
    /// What opening a socket answers, and a device that nothing stands behind (`ENXIO`).
    const NO_DEVICE: i32 = 6;
    let kind = match error.kind() {
        _ if cfg!(unix) && error.raw_os_error() == Some(NO_DEVICE) => VfsErrorKind::Special,
        ErrorKind::NotFound => VfsErrorKind::NotFound,
        ErrorKind::NotADirectory => VfsErrorKind::NotDir,
        ErrorKind::IsADirectory => VfsErrorKind::IsDir,
        _ => VfsErrorKind::Io(Arc::new(error)),
    };
    VfsError::new(path, kind)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::BrokenLink;

    fn tree() -> (tempfile::TempDir, DiskTree) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/f.yaml"), "x: 1\n").unwrap();
        fs::write(dir.path().join("secret"), "s").unwrap();
        let tree = DiskTree::open(&root).unwrap();
        (dir, tree)
    }

    #[test]
    fn reads_lists_and_resolves_links_inside() {
        let (dir, tree) = tree();
        symlink("b/f.yaml", dir.path().join("root/a/link.yaml")).unwrap();
        assert_eq!(&*tree.read("a/link.yaml").unwrap(), b"x: 1\n");
        assert_eq!(tree.canonical("a/link.yaml").unwrap(), "a/b/f.yaml");
        let names: Vec<_> = tree.read_dir("a").unwrap().into_iter().map(|e| (e.name, e.kind)).collect();
        assert_eq!(names, [("b".to_owned(), EntryKind::Dir), ("link.yaml".to_owned(), EntryKind::File)]);
        assert_eq!(crate::walk(&tree, "").unwrap(), ["a/b/f.yaml", "a/link.yaml"]);
    }

    #[test]
    fn refuses_links_and_paths_that_leave_the_tree() {
        let (dir, tree) = tree();
        symlink("../../secret", dir.path().join("root/a/out")).unwrap();
        for path in ["a/out", "../secret"] {
            let error = tree.read(path).unwrap_err();
            assert!(matches!(error.kind, VfsErrorKind::OutsideTree), "{path}: {error}");
        }
        let listed: Vec<_> = tree.read_dir("a").unwrap().into_iter().map(|e| e.name).collect();
        assert!(listed.contains(&"out".to_owned()), "{listed:?}");
    }

    #[test]
    fn lists_broken_links_with_why_they_are() {
        let (dir, tree) = tree();
        let cases = [
            ("none", "b/../../none/x", BrokenLink::Missing("none".to_owned())),
            ("outside", "/no-such-folder/x", BrokenLink::Missing("/no-such-folder".to_owned())),
            ("through", "b/f.yaml/x", BrokenLink::NotDir),
            ("turn", "turn", BrokenLink::Circle),
        ];
        for (name, target, _) in &cases {
            symlink(target, dir.path().join("root/a").join(name)).unwrap();
        }
        let listed: Vec<_> = tree.list("a").unwrap().into_iter().map(|e| (e.name, e.broken)).collect();
        assert_eq!(listed.len(), cases.len() + 1);
        for (name, _, why) in cases {
            assert!(listed.contains(&(name.to_owned(), Some(why))), "{name}: {listed:?}");
        }
        assert_eq!(tree.read_dir("a").unwrap().len(), 1);
    }

    #[test]
    fn a_folder_below_too_many_links_is_too_deep() {
        let (dir, tree) = tree();
        symlink(".", dir.path().join("root/a/again")).unwrap();
        let deep = format!("a{}", "/again".repeat(crate::MAX_LINKS));
        let listed = tree.list(&deep).unwrap();
        let again = listed.iter().find(|entry| entry.name == "again").unwrap();
        assert_eq!(again.broken, Some(BrokenLink::TooDeep));
    }

    #[test]
    fn follows_absolute_links_that_stay_inside() {
        let (dir, tree) = tree();
        symlink(dir.path().join("root/a/b"), dir.path().join("root/c")).unwrap();
        assert_eq!(&*tree.read("c/f.yaml").unwrap(), b"x: 1\n");
        assert_eq!(tree.kind("c").unwrap(), EntryKind::Dir);
        assert_eq!(tree.canonical("c/f.yaml").unwrap(), "a/b/f.yaml");
    }

    #[test]
    fn tells_what_is_missing_from_what_is_no_folder() {
        let (_dir, tree) = tree();
        for (path, expected) in [("a/x", "no such file or directory"), ("a/b/f.yaml/x", "not a directory")] {
            for error in [tree.read(path).unwrap_err(), tree.kind(path).unwrap_err()] {
                assert!(error.is_not_found() && error.to_string().contains(expected), "{error}");
            }
            assert!(tree.canonical(path).unwrap_err().is_not_found());
        }
        assert!(matches!(tree.read("a").unwrap_err().kind, VfsErrorKind::IsDir));
    }

    #[test]
    fn reads_empty_files() {
        let (dir, tree) = tree();
        fs::write(dir.path().join("root/empty"), "").unwrap();
        assert!(tree.read("empty").unwrap().is_empty());
    }

    #[test]
    fn refuses_what_is_no_regular_file_without_waiting() {
        let (dir, tree) = tree();
        let root = dir.path().join("root");
        let made = std::process::Command::new("mkfifo").arg(root.join("a/pipe")).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo is there");
        let _socket = std::os::unix::net::UnixListener::bind(root.join("a/socket")).unwrap();
        symlink("pipe", root.join("a/link")).unwrap();
        symlink("/dev/zero", root.join("a/device")).unwrap();
        for path in ["a/pipe", "a/link", "a/socket"] {
            for error in [
                tree.read(path).unwrap_err(),
                tree.size(path).unwrap_err(),
                tree.read_with(path, &mut |_| ()).unwrap_err(),
                tree.kind(path).unwrap_err(),
            ] {
                assert!(matches!(error.kind, VfsErrorKind::Special), "{path}: {error}");
                assert!(error.to_string().contains("only regular files are read"), "{error}");
            }
        }
        assert!(matches!(tree.read("a/device").unwrap_err().kind, VfsErrorKind::OutsideTree));
        assert!(!tree.list("a").unwrap().iter().any(|entry| entry.name == "pipe"), "nor is it listed");
    }

    #[test]
    fn refuses_files_over_the_limit() {
        let (dir, tree) = tree();
        let file = fs::File::create(dir.path().join("root/big")).unwrap();
        file.set_len(MAX_FILE_BYTES + 1).unwrap();
        assert!(matches!(tree.read("big").unwrap_err().kind, VfsErrorKind::TooLarge { .. }));
    }
}
