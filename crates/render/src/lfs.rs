//! Files that Git LFS keeps elsewhere: the repository itself has a pointer in their place.

use tiphys_vfs::{EntryKind, FileTree, is_lfs_pointer, join};

use crate::{Cause, RenderError};

/// The format allows no longer pointers.
const MOST_BYTES: u64 = 1024;
/// How many files of a source are looked at, and how many of them are named.
const LOOKED_AT: usize = 1000;
const NAMED: usize = 3;

/// A fault of a source, with the pointers among its files if there are any: whoever read one as something else says
/// nothing that helps.
pub(crate) fn explain(error: RenderError, tree: &dyn FileTree, folder: &str) -> RenderError {
    if matches!(error.cause(), Cause::Missing | Cause::OutOfReach) || error.headline().contains("Git LFS") {
        return error;
    }
    let mut found = Vec::new();
    let mut left = LOOKED_AT;
    let mut open = vec![tiphys_vfs::normalize(folder).unwrap_or_default()];
    while left > 0
        && let Some(folder) = open.pop()
    {
        for entry in tree.read_dir(&folder).unwrap_or_default() {
            let Ok(path) = join(&folder, &entry.name) else { continue };
            if entry.kind == EntryKind::Dir && !entry.is_symlink && entry.name != ".git" {
                open.push(path);
            } else if entry.kind == EntryKind::File && left > 0 {
                left -= 1;
                let is_small = tree.size(&path).is_ok_and(|size| size <= MOST_BYTES);
                if is_small && tree.read(&path).is_ok_and(|bytes| is_lfs_pointer(&bytes)) {
                    found.push(path);
                }
            }
        }
    }
    if found.is_empty() {
        return error;
    }
    found.sort();
    let more = if found.len() > NAMED { format!(" and {} more", found.len() - NAMED) } else { String::new() };
    found.truncate(NAMED);
    error.noting(&format!(
        "of its files, Git LFS keeps elsewhere {}{more}; nothing is fetched from there",
        found.join(", ")
    ))
}
