//! Fetched bytes on disk, by content.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

/// A folder of files named by the SHA-256 of their content, and of notes that point to them.
pub(crate) struct Store {
    folder: PathBuf,
}

/// The SHA-256 of some bytes in lower-case hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a text can be the hexadecimal form of a SHA-256.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

impl Store {
    pub(super) fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn blob_path(&self, digest: &str) -> PathBuf {
        self.folder.join("blobs").join(digest)
    }

    /// Bytes with that SHA-256, if they are here (and whole).
    pub(super) fn blob(&self, digest: &str) -> Option<Vec<u8>> {
        if !is_sha256(digest) {
            return None;
        }
        fs::read(self.blob_path(digest)).ok().filter(|bytes| sha256(bytes) == digest)
    }

    /// Keeps bytes; returns their digest.
    pub(super) fn keep(&self, bytes: &[u8]) -> std::io::Result<String> {
        let digest = sha256(bytes);
        write_atomically(&self.blob_path(&digest), bytes)?;
        Ok(digest)
    }

    fn note_path(&self, key: &str) -> PathBuf {
        self.folder.join("notes").join(sha256(key.as_bytes()))
    }

    /// What was noted under a key.
    pub(super) fn read_note(&self, key: &str) -> Option<String> {
        fs::read_to_string(self.note_path(key)).ok()
    }

    /// Notes a text under a key.
    pub(super) fn set_note(&self, key: &str, text: &str) -> std::io::Result<()> {
        write_atomically(&self.note_path(key), text.as_bytes())
    }
}

/// Writes beside the target and renames, so that nobody ever sees half a file.
fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
