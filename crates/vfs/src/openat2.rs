//! Opening below a folder with the kernel's own jail, `openat2(2)` with `RESOLVE_BENEATH`: one system call
//! where resolving a path step by step takes one for each step.
//!
//! Every function answers `None` where the kernel cannot tell or refuses (another system, a link that leaves
//! the folder, an absolute link): the caller then resolves the path itself, and says why it fails.

use std::{fs::File, io, path::Path};

/// Opens a file by its whole path; a pipe without waiting for who writes to it.
pub(crate) fn open_at(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    options.open(path)
}

/// A folder to open files below.
#[derive(Clone, Debug)]
pub(crate) struct Folder(imp::Handle);

impl Folder {
    /// Opens a folder; without a jail in the kernel, one that never answers.
    pub(crate) fn open(path: &Path) -> Self {
        Self(imp::open_folder(path))
    }

    /// Opens a file or folder for reading.
    pub(crate) fn read(&self, path: &str) -> Option<io::Result<File>> {
        imp::open(&self.0, path, imp::Access::Read)
    }

    /// Opens what stands at a path for asking about it.
    pub(crate) fn open_for_metadata(&self, path: &str) -> Option<io::Result<File>> {
        imp::open(&self.0, path, imp::Access::Look)
    }

    /// The entries of a folder, but `.` and `..`: name and, if the folder itself tells, the type.
    pub(crate) fn list(&self, path: &str) -> Option<io::Result<Vec<Listed>>> {
        imp::list(&self.0, path)
    }

    /// Whether the path leads through no symbolic link.
    pub(crate) fn is_plain(&self, path: &str) -> Option<io::Result<()>> {
        imp::open(&self.0, path, imp::Access::LookPlain).map(|found| found.map(drop))
    }
}

/// An entry of a folder.
pub(crate) struct Listed {
    pub(crate) name: std::ffi::OsString,
    pub(crate) kind: ListedKind,
}

/// What a folder tells of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListedKind {
    File,
    Dir,
    Symlink,
    /// A pipe, socket or device: whoever opened it might wait for ever.
    Special,
    Unknown,
}

#[cfg(target_os = "linux")]
mod imp {
    use std::{
        ffi::OsStr,
        fs::File,
        io,
        os::{fd::OwnedFd, unix::ffi::OsStrExt},
        path::Path,
        sync::Arc,
    };

    use rustix::{
        fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2},
        io::Errno,
    };

    use super::{Listed, ListedKind};

    pub(super) type Handle = Option<Arc<OwnedFd>>;

    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(super) enum Access {
        Read,
        List,
        Look,
        LookPlain,
    }

    pub(super) fn open_folder(path: &Path) -> Handle {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, path, flags, Mode::empty()).ok().map(Arc::new)
    }

    pub(super) fn open(folder: &Handle, path: &str, access: Access) -> Option<io::Result<File>> {
        let path = if path.is_empty() { "." } else { path };
        let flags = match access {
            // A pipe is opened at once, to be refused.
            Access::Read => OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY,
            Access::List => OFlags::RDONLY | OFlags::DIRECTORY,
            Access::Look | Access::LookPlain => OFlags::PATH,
        };
        let mut resolve = ResolveFlags::BENEATH;
        resolve.set(ResolveFlags::NO_SYMLINKS, access == Access::LookPlain);
        match openat2(folder.as_ref()?, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Ok(file) => Some(Ok(File::from(file))),
            Err(error @ (Errno::NOENT | Errno::NOTDIR)) => Some(Err(error.into())),
            Err(_) => None,
        }
    }

    pub(super) fn list(folder: &Handle, path: &str) -> Option<io::Result<Vec<Listed>>> {
        match open(folder, path, Access::List)? {
            Ok(found) => entries(found).ok().map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    fn entries(found: File) -> Result<Vec<Listed>, Errno> {
        let mut all = Vec::new();
        for entry in Dir::new(found)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Directory => ListedKind::Dir,
                FileType::Symlink => ListedKind::Symlink,
                FileType::Unknown => ListedKind::Unknown,
                FileType::RegularFile => ListedKind::File,
                _ => ListedKind::Special,
            };
            all.push(Listed { name: OsStr::from_bytes(name).to_owned(), kind });
        }
        Ok(all)
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::{fs::File, io, path::Path};

    pub(super) type Handle = ();

    #[derive(Clone, Copy)]
    pub(super) enum Access {
        Read,
        Look,
        LookPlain,
    }

    pub(super) fn open_folder(_path: &Path) -> Handle {}

    pub(super) fn open(_folder: &Handle, _path: &str, _access: Access) -> Option<io::Result<File>> {
        None
    }

    pub(super) fn list(_folder: &Handle, _path: &str) -> Option<io::Result<Vec<super::Listed>>> {
        None
    }
}
