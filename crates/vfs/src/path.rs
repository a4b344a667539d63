//! Arithmetic on tree paths, and walking a tree.

use crate::{DirEntry, EntryKind, FileTree, VfsError, VfsErrorKind};

/// Removes `.`, empty and `..` steps. A leading slash counts as the root of the tree.
///
/// # Errors
/// [`VfsErrorKind::OutsideTree`] if `..` climbs above the root.
pub fn normalize(path: &str) -> Result<String, VfsError> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or_else(|| VfsError::new(path, VfsErrorKind::OutsideTree))?;
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// The path that `relative` means when read in the folder `base`, normalised.
///
/// # Errors
/// [`VfsErrorKind::OutsideTree`] if `..` climbs above the root.
pub fn join(base: &str, relative: &str) -> Result<String, VfsError> {
    normalize(&format!("{base}/{relative}"))
}

/// The folder that holds `path`, or `None` for the root.
pub fn parent(path: &str) -> Option<&str> {
    if path.is_empty() {
        return None;
    }
    Some(path.rsplit_once('/').map_or("", |(folder, _)| folder))
}

/// A path for people: the root of a tree, which is the empty path, as `.`.
pub fn shown_path(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}

/// The last step of a path; empty for the root.
pub fn base_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Whether a path lies below a folder that is not the root.
pub fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Every file at or below the folder `root`, depth first, names in byte order, as full tree paths.
/// Symbolic links to folders are not entered (a link may lead back up); links to files are listed.
///
/// # Errors
/// Those of [`FileTree::read_dir`].
pub fn walk(tree: &dyn FileTree, root: &str) -> Result<Vec<String>, VfsError> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut below = Vec::new();
        for DirEntry { name, kind, is_symlink, .. } in tree.read_dir(&folder)? {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            match kind {
                EntryKind::File => files.push(path),
                EntryKind::Dir if !is_symlink => below.push(path),
                EntryKind::Dir => {}
            }
        }
        folders.extend(below.into_iter().rev());
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalises_and_refuses_to_climb_out() {
        assert_eq!(normalize("./a//b/../c/").unwrap(), "a/c");
        assert_eq!(join("a/b", "../c").unwrap(), "a/c");
        assert!(join("a", "../../x").is_err());
    }

    #[test]
    fn splits_off_the_last_step() {
        assert_eq!((parent("a/b"), base_name("a/b")), (Some("a"), "b"));
        assert_eq!((parent("a"), base_name("a")), (Some(""), "a"));
        assert_eq!(parent(""), None);
        assert!(is_below("a/b", "a") && !is_below("ab", "a") && !is_below("a", "a"));
    }
}
