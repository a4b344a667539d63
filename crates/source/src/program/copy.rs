//! Copies of what programs read: they never see a checkout itself.

use std::path::Path;

use tiphys_vfs::{EntryKind, FileTree, join};

/// The most that a program is given to read, in bytes and files.
const MOST_FILES: (u64, usize) = (512 << 20, 100_000);

/// Writes what stands below a folder of a tree into one of the disk, without what Git keeps.
///
/// # Errors
/// It is too large, cannot be read, or cannot be written.
pub(crate) fn unpack(tree: &dyn FileTree, below: &str, into: &Path) -> Result<(), String> {
    let (mut bytes, mut files) = (0_u64, 0_usize);
    let below = tiphys_vfs::normalize(below).map_err(|error| error.to_string())?;
    walk(tree, &below, &mut |path, content| {
        let content = content()?;
        bytes += content.len() as u64;
        files += 1;
        if bytes > MOST_FILES.0 || files > MOST_FILES.1 {
            return Err(format!(
                "the repository is too large for a plugin: more than {} bytes or {} files",
                MOST_FILES.0, MOST_FILES.1
            ));
        }
        let at = into.join(path[below.len()..].trim_start_matches('/'));
        let fail = |error: std::io::Error| format!("{path}: {error}");
        if let Some(parent) = at.parent() {
            std::fs::create_dir_all(parent).map_err(fail)?;
        }
        std::fs::write(&at, &content).map_err(fail)
    })
}

/// What is done with a file: its path, and what reads it.
pub(crate) type Visit<'a> = dyn FnMut(&str, &dyn Fn() -> Result<Vec<u8>, String>) -> Result<(), String> + 'a;

/// Visits every file below a folder. Links to folders are not followed: one may lead back up.
///
/// # Errors
/// A folder cannot be read, and those of the visit.
pub(crate) fn walk(tree: &dyn FileTree, folder: &str, visit: &mut Visit<'_>) -> Result<(), String> {
    let fail = |error: tiphys_vfs::VfsError| error.to_string();
    let mut folders = vec![tiphys_vfs::normalize(folder).map_err(fail)?];
    while let Some(folder) = folders.pop() {
        for entry in tree.read_dir(&folder).map_err(fail)? {
            let path = join(&folder, &entry.name).map_err(fail)?;
            match entry.kind {
                EntryKind::Dir if entry.is_symlink || entry.name == ".git" => {}
                EntryKind::Dir => folders.push(path),
                EntryKind::File => {
                    visit(&path, &|| tree.read(&path).map(|bytes| bytes.to_vec()).map_err(fail))?;
                }
            }
        }
    }
    Ok(())
}
