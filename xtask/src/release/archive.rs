//! Archives that depend on nothing but their content: sorted, owned by root, of one time. Whoever builds the
//! same files again gets the same checksum.

use std::{collections::BTreeMap, fs, io::Write as _, path::Path};

use anyhow::{Context, ensure};
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};

/// What an archive has at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A file of these permissions.
    File { mode: u32, content: Vec<u8> },
    /// A folder of these permissions, and who owns it and its group.
    Folder { mode: u32, owner: u64 },
}

/// Entries by their paths, which have no slash in front; a folder's has none behind either.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries(BTreeMap<String, Entry>);

impl Entries {
    /// Adds a file.
    pub(crate) fn add_file(&mut self, path: &str, mode: u32, content: impl Into<Vec<u8>>) {
        self.0.insert(path.to_owned(), Entry::File { mode, content: content.into() });
    }

    /// Adds a folder.
    pub(crate) fn add_folder(&mut self, path: &str, mode: u32, owner: u64) {
        self.0.insert(path.to_owned(), Entry::Folder { mode, owner });
    }

    /// Adds the files of a folder, without those of its folders.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn add_files_of(&mut self, prefix: &str, folder: &Path) -> anyhow::Result<()> {
        for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).context("a name that is no UTF-8")?;
            if path.is_file() {
                self.add_file(&format!("{prefix}/{name}"), 0o644, fs::read(&path)?);
            }
        }
        Ok(())
    }

    /// The entries as a tar stream.
    ///
    /// # Errors
    /// A path is too long for the format.
    pub(crate) fn to_tar(&self, time: u64) -> anyhow::Result<Vec<u8>> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, entry) in &self.0 {
            let mut header = tar::Header::new_gnu();
            header.set_mtime(time);
            header.set_uid(0);
            header.set_gid(0);
            let (name, content): (_, &[u8]) = match entry {
                Entry::File { mode, content } => {
                    header.set_entry_type(tar::EntryType::Regular);
                    header.set_mode(*mode);
                    (path.clone(), content)
                }
                Entry::Folder { mode, owner } => {
                    header.set_entry_type(tar::EntryType::Directory);
                    header.set_mode(*mode);
                    header.set_uid(*owner);
                    header.set_gid(*owner);
                    (format!("{path}/"), &[])
                }
            };
            header.set_size(content.len() as u64);
            builder
                .append_data(&mut header, &name, content)
                .with_context(|| format!("cannot pack {path}"))?;
        }
        Ok(builder.into_inner()?)
    }
}

/// Compressed by gzip, without the time and the system that did it.
///
/// # Errors
/// There is no memory for it.
pub(crate) fn gzip(content: &[u8]) -> anyhow::Result<Vec<u8>> {
    const UNKNOWN_SYSTEM: u8 = 255;
    let builder = GzBuilder::new().mtime(0).operating_system(UNKNOWN_SYSTEM);
    let mut encoder = builder.write(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    Ok(encoder.finish()?)
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn sha256(content: &[u8]) -> String {
    format!("{:x}", Sha256::digest(content))
}

/// The time that archives bear: SOURCE_DATE_EPOCH, as reproducible builds have it, else the start of 1980,
/// before which some programs that unpack complain.
///
/// # Errors
/// It is set to something else than seconds.
pub(crate) fn source_date() -> anyhow::Result<u64> {
    const DEFAULT: u64 = 315_532_800;
    let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") else { return Ok(DEFAULT) };
    let seconds = text.trim().parse::<u64>();
    seconds.with_context(|| format!("SOURCE_DATE_EPOCH is {text:?}; it has to be seconds since 1970"))
}

/// Unpacks the one file of an archive whose path ends so.
///
/// # Errors
/// It is no such archive, or has no such file.
pub(crate) fn file_of(archive: &[u8], end: &str) -> anyhow::Result<Vec<u8>> {
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    for entry in tar.entries()? {
        let mut entry = entry?;
        if entry.path()?.ends_with(end) && entry.header().entry_type().is_file() {
            let mut content = Vec::new();
            std::io::copy(&mut entry, &mut content)?;
            ensure!(!content.is_empty(), "{end} is empty");
            return Ok(content);
        }
    }
    anyhow::bail!("the archive has no {end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(order: [&str; 2]) -> Entries {
        let mut entries = Entries::default();
        order.iter().for_each(|path| entries.add_file(path, 0o755, path.as_bytes()));
        entries.add_folder("tmp", 0o1777, 0);
        entries
    }

    #[test]
    fn the_same_content_is_the_same_archive() {
        let packed = |order| gzip(&entries(order).to_tar(7).unwrap()).unwrap();
        assert_eq!(sha256(&packed(["a/x", "b/y"])), sha256(&packed(["b/y", "a/x"])));
        assert_ne!(sha256(&packed(["a/x", "b/y"])), sha256(&packed(["a/x", "b/z"])));
    }

    #[test]
    fn a_file_is_found_by_its_end() {
        let archive = gzip(&entries(["a/x", "b/y"]).to_tar(0).unwrap()).unwrap();
        assert_eq!(file_of(&archive, "y").unwrap(), b"b/y");
        assert!(file_of(&archive, "z").unwrap_err().to_string().contains("no z"));
    }
}
