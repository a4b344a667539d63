//! Unpacks an archive of a saved state into a folder that goes again.

use std::{
    cell::Cell,
    fs::File,
    io::{self, Read},
    path::{Component, Path, PathBuf},
    rc::Rc,
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

use anyhow::{Context as _, bail};

use super::private_files::{new_file, new_folder};

/// How many files, and how many bytes of them, are unpacked.
const LIMITS: (usize, u64) = (200_000, 2 * 1024 * 1024 * 1024);
/// How much may stand before a file that is no part of it: names and padding. Long names are read into
/// memory.
const MAX_BETWEEN: u64 = 1024 * 1024;
/// How much one that is left out may hold.
const MAX_LEFT_OUT: u64 = 64 * 1024 * 1024;

/// A folder for this process alone, removed with what is in it when this goes.
pub(crate) struct Unpacked {
    folder: PathBuf,
}

impl Unpacked {
    /// Unpacks the files of an archive; links and devices are left out.
    ///
    /// # Errors
    /// It is no archive, is larger than a state may be, or there is no place for it.
    pub(crate) fn from_archive(archive: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot unpack {}", archive.display());
        // Files that were written to see that they are too many would have to go again.
        each_file(archive, |_, _| Ok(()))?;
        let unpacked = Self { folder: temporary_folder().context("cannot make a temporary folder")? };
        each_file(archive, |path, content| match inside(&unpacked.folder, path) {
            Some(place) => write(content, &place).with_context(cannot),
            None => Ok(()),
        })?;
        Ok(unpacked)
    }

    /// Where the files are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Goes through the files of an archive, within the limits.
fn each_file(
    archive: &Path,
    mut take: impl FnMut(&Path, &mut dyn Read) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let shown = archive.display();
    let cannot = || format!("cannot unpack {shown}");
    let file = File::open(archive).with_context(|| format!("cannot read {shown}"))?;
    let may_read = Rc::new(Cell::new(MAX_BETWEEN));
    let stream = Rationed { inner: flate2::read::MultiGzDecoder::new(file), may_read: may_read.clone() };
    let mut entries = tar::Archive::new(stream);
    let mut left = LIMITS.1;
    for (count, entry) in entries.entries().with_context(cannot)?.enumerate() {
        let mut entry = entry.with_context(cannot)?;
        may_read.set(MAX_BETWEEN + entry.size().min(MAX_LEFT_OUT));
        if !entry.header().entry_type().is_file() {
            continue;
        }
        if count >= LIMITS.0 || entry.size() > left {
            bail!("{shown} holds more than {} files or {} bytes", LIMITS.0, LIMITS.1);
        }
        left -= entry.size();
        may_read.set(MAX_BETWEEN + entry.size());
        let path = entry.path()?.into_owned();
        take(&path, &mut entry)?;
    }
    Ok(())
}

/// A stream of which only so much may be read until somebody allows more.
struct Rationed<R> {
    inner: R,
    may_read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Rationed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.may_read.get();
        if left == 0 {
            return Err(io::Error::other("what stands before a file, such as its name, is too long"));
        }
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = self.inner.read(&mut buffer[..most])?;
        self.may_read.set(left - count as u64);
        Ok(count)
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // Nothing can be done about what stays in the system's own folder for it.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A path of an archive below a folder; `None` if it leads out of it.
fn inside(folder: &Path, path: &Path) -> Option<PathBuf> {
    let mut place = folder.to_owned();
    for step in path.components() {
        match step {
            Component::Normal(step) => place.push(step),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (place != folder).then_some(place)
}

fn write(entry: &mut dyn Read, place: &Path) -> io::Result<()> {
    if let Some(parent) = place.parent() {
        std::fs::create_dir_all(parent)?;
    }
    // Of a path that comes twice the first counts.
    match new_file(place) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        file => io::copy(entry, &mut file?).map(drop),
    }
}

/// A new folder that nobody else can look into.
fn temporary_folder() -> io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tiphys-{}-{}-{count}", std::process::id(), now.as_nanos());
        let folder = std::env::temp_dir().join(name);
        match new_folder(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn paths_that_lead_out_of_the_folder_are_left_out() {
        let folder = Path::new("/x");
        assert_eq!(inside(folder, Path::new("./a/b.json")), Some(PathBuf::from("/x/a/b.json")));
        for path in ["../a", "/etc/passwd", "a/../../b", ".", ""] {
            assert_eq!(inside(folder, Path::new(path)), None, "{path}");
        }
    }

    /// An archive of one entry of a kind, which is as long as it says.
    fn archive_of(kind: tar::EntryType, size: u64) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut packed = flate2::write::GzEncoder::new(file.reopen().unwrap(), flate2::Compression::fast());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_cksum();
        packed.write_all(header.as_bytes()).unwrap();
        io::copy(&mut io::repeat(b'a').take(size), &mut packed).unwrap();
        packed.finish().unwrap();
        file
    }

    #[test]
    fn long_names_and_what_is_left_out_do_not_fill_the_memory() {
        for kind in [tar::EntryType::GNULongName, tar::EntryType::GNULongLink, tar::EntryType::XHeader] {
            let error = Unpacked::from_archive(archive_of(kind, 2 * MAX_BETWEEN).path()).err().unwrap();
            assert!(format!("{error:#}").contains("too long"), "{error:#}");
        }
        assert!(
            Unpacked::from_archive(archive_of(tar::EntryType::Directory, 2 * MAX_LEFT_OUT).path()).is_err()
        );
        assert!(Unpacked::from_archive(archive_of(tar::EntryType::Directory, MAX_LEFT_OUT).path()).is_ok());
    }

    #[test]
    fn the_folder_goes_with_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("a.tar.gz");
        let packed =
            flate2::write::GzEncoder::new(File::create(&archive).unwrap(), flate2::Compression::fast());
        let mut builder = tar::Builder::new(packed);
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        builder.append_data(&mut header, "d/a.yaml", &b"{}"[..]).unwrap();
        let mut link = tar::Header::new_gnu();
        link.set_entry_type(tar::EntryType::Symlink);
        link.set_size(0);
        builder.append_link(&mut link, "d/link", "/etc/passwd").unwrap();
        builder.into_inner().unwrap().finish().unwrap();
        let unpacked = Unpacked::from_archive(&archive).unwrap();
        let folder = unpacked.folder().to_owned();
        assert_eq!(std::fs::read_to_string(folder.join("d/a.yaml")).unwrap(), "{}");
        assert!(!folder.join("d/link").exists());
        drop(unpacked);
        assert!(!folder.exists());
        std::fs::write(&archive, "no archive").unwrap();
        assert!(Unpacked::from_archive(&archive).is_err());
    }
}
