//! Gzipped tar archives as file trees, with limits.

use std::{
    io::Read,
    path::{Component, Path},
};

use flate2::read::MultiGzDecoder;
use tiphys_vfs::{MAX_FILE_BYTES, MemTree};

use crate::SourceError;

/// The largest archive that is fetched, in bytes.
pub const MAX_ARCHIVE_BYTES: u64 = 100 * 1024 * 1024;
/// What an archive may unpack to, in bytes: Helm's own limit for charts.
pub const MAX_UNPACKED_BYTES: u64 = 100 * 1024 * 1024;
/// How many files and folders an archive may hold.
pub const MAX_ENTRIES: usize = 20_000;
/// How deep folders may lie in an archive.
const MAX_PATH_DEPTH: usize = 64;

/// Unpacks a tar archive, gzipped or not, into memory. Links and devices are refused, and paths that
/// leave the archive; folders appear with their files.
///
/// # Errors
/// Not a tar archive, a refused entry, or a limit; `what` names the archive in the message.
pub fn unpack(bytes: &[u8], what: &str) -> Result<MemTree, SourceError> {
    let fail = |reason: String| SourceError::Archive { what: what.to_owned(), reason };
    let gzipped = bytes.starts_with(&[0x1F, 0x8B]);
    let stream: Box<dyn Read + '_> =
        if gzipped { Box::new(MultiGzDecoder::new(bytes)) } else { Box::new(bytes) };
    // One byte more than allowed, to notice.
    let mut archive = tar::Archive::new(stream.take(MAX_UNPACKED_BYTES + 1));
    let mut tree = MemTree::default();
    let mut unpacked = 0;
    let entries = archive.entries().map_err(|e| fail(format!("it is no tar archive: {e}")))?;
    for (count, entry) in entries.enumerate() {
        if count >= MAX_ENTRIES {
            return Err(fail(format!("it has more than {MAX_ENTRIES} entries")));
        }
        let mut entry = entry.map_err(|e| fail(format!("it cannot be read: {e}")))?;
        let path =
            entry.path().map_err(|e| fail(format!("an entry has no readable path: {e}")))?.into_owned();
        let shown = path.display().to_string();
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() {
            continue;
        }
        if !kind.is_file() {
            return Err(fail(format!("{shown} is a link or device, which is refused")));
        }
        let inside =
            relative(&path).ok_or_else(|| fail(format!("{shown} leads out of the archive or too deep")))?;
        let size = entry.size();
        unpacked += size;
        if size > MAX_FILE_BYTES || unpacked > MAX_UNPACKED_BYTES {
            return Err(fail(format!("{shown} makes it larger than {MAX_UNPACKED_BYTES} bytes")));
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(|e| fail(format!("{shown} cannot be read: {e}")))?;
        tree.insert(&inside, content).map_err(|e| fail(format!("{shown} cannot be placed: {e}")))?;
    }
    Ok(tree)
}

/// The path inside the archive, if it stays there.
fn relative(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!parts.is_empty() && parts.len() <= MAX_PATH_DEPTH).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tiphys_vfs::FileTree;

    use super::*;

    fn archive(fill: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        fill(&mut builder);
        let bytes = builder.into_inner().expect("memory can be written");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&bytes).expect("memory can be written");
        gzip.finish().expect("memory can be written")
    }

    fn header(kind: tar::EntryType, size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_cksum();
        header
    }

    #[test]
    fn files_are_found_at_their_paths() {
        let bytes = archive(|builder| {
            let mut header = header(tar::EntryType::Regular, 2);
            builder.append_data(&mut header, "app/templates/a.yaml", &b"a\n"[..]).expect("fits");
        });
        let tree = unpack(&bytes, "app.tgz").expect("is an archive");
        assert_eq!(&*tree.read("app/templates/a.yaml").expect("is there"), b"a\n");
        assert!(tree.is_dir("app/templates"));
    }

    #[test]
    fn links_are_refused() {
        for kind in [tar::EntryType::Symlink, tar::EntryType::Link] {
            let bytes = archive(|builder| {
                let mut header = header(kind, 0);
                builder.append_link(&mut header, "app/x", "/etc/passwd").expect("fits");
            });
            let error = unpack(&bytes, "app.tgz").expect_err("has a link");
            assert!(error.to_string().contains("app/x is a link"), "{error}");
        }
    }

    #[test]
    fn paths_stay_inside() {
        for path in ["../x", "/etc/x", "a/../../x"] {
            let bytes = archive(|builder| {
                let mut header = header(tar::EntryType::Regular, 0);
                // The builder refuses such paths, so they are put in by hand.
                let name = &mut header.as_old_mut().name;
                name[..path.len()].copy_from_slice(path.as_bytes());
                header.set_cksum();
                builder.append(&header, &b""[..]).expect("fits");
            });
            let error = unpack(&bytes, "app.tgz").expect_err(path);
            assert!(error.to_string().contains("leads out"), "{error}");
        }
    }

    #[test]
    fn sizes_are_limited_before_anything_is_read() {
        let bytes = archive(|builder| {
            let header = header(tar::EntryType::Regular, MAX_UNPACKED_BYTES + 1);
            let mut header = header.clone();
            header.as_old_mut().name[..3].copy_from_slice(b"big");
            header.set_cksum();
            builder.append(&header, std::io::empty()).expect("fits");
        });
        let error = unpack(&bytes, "app.tgz").expect_err("too large");
        assert!(error.to_string().contains("larger than"), "{error}");
    }

    #[test]
    fn noise_is_no_archive() {
        assert!(unpack(b"\x1f\x8b garbage", "x").is_err());
        assert!(unpack(&[7; 2000], "x").is_err());
    }
}
