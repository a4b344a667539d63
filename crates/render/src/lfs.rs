//! Files that Git LFS keeps elsewhere: the repository itself has a pointer in their place.

use tiphys_vfs::{EntryKind, FileTree, is_lfs_pointer, join, parent};

use crate::{Cause, RenderError};

/// The format allows no longer pointers.
const MOST_BYTES: u64 = 1024;
/// How many files of a source are looked at, and how many of them are named.
const LOOKED_AT: usize = 1000;
const NAMED: usize = 3;

/// A fault of a source, with the pointers among its files if there are any: whoever read one as something
/// else says nothing that helps. Files are looked at only where Git is told to keep some elsewhere: most
/// faults have nothing to do with it, and what is read here counts as read by the rendering.
pub(crate) fn explain(error: RenderError, tree: &dyn FileTree, folder: &str) -> RenderError {
    let says_why = matches!(error.cause(), Cause::Missing | Cause::OutOfReach | Cause::Unsupported);
    if says_why || error.headline().contains("Git LFS") {
        return error;
    }
    let mut found = Vec::new();
    let mut left = LOOKED_AT;
    let top = tiphys_vfs::normalize(folder).unwrap_or_default();
    let is_kept_above =
        std::iter::successors(parent(&top), |above| parent(above)).any(|it| uses_lfs(tree, it));
    let mut open = vec![(top, is_kept_above)];
    while left > 0
        && let Some((folder, is_kept_above)) = open.pop()
    {
        let is_kept = is_kept_above || uses_lfs(tree, &folder);
        for entry in tree.read_dir(&folder).unwrap_or_default() {
            let Ok(path) = join(&folder, &entry.name) else { continue };
            if entry.kind == EntryKind::Dir && !entry.is_symlink && entry.name != ".git" {
                open.push((path, is_kept));
            } else if entry.kind == EntryKind::File && left > 0 {
                left -= 1;
                let is_small = || tree.size(&path).is_ok_and(|size| size <= MOST_BYTES);
                if is_kept && is_small() && tree.read(&path).is_ok_and(|bytes| is_lfs_pointer(&bytes)) {
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

/// Whether a folder's `.gitattributes` has Git LFS keep files of it (Git LFS, `git lfs track`).
fn uses_lfs(tree: &dyn FileTree, folder: &str) -> bool {
    let attributes = join(folder, ".gitattributes").ok().filter(|path| tree.is_file(path));
    let text = attributes.and_then(|path| tree.read(&path).ok());
    text.is_some_and(|bytes| String::from_utf8_lossy(&bytes).contains("filter=lfs"))
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tiphys_vfs::{DirEntry, MemTree, VfsError};

    use super::*;

    const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n";

    /// A tree that counts what is read of it.
    struct Counting(MemTree, AtomicUsize);

    impl FileTree for Counting {
        fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
            self.0.kind(path)
        }

        fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.read(path)
        }

        fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
            self.0.list(path)
        }

        fn canonical(&self, path: &str) -> Result<String, VfsError> {
            self.0.canonical(path)
        }
    }

    fn explained(files: &[(&str, &str)]) -> (String, usize) {
        let tree = Counting(MemTree::from_files(files.iter().copied()), AtomicUsize::new(0));
        let error = explain(RenderError::new("no gzip"), &tree, "a/b");
        (error.to_string(), tree.1.into_inner())
    }

    #[test]
    fn pointers_are_told_of_where_git_lfs_is_at_work_and_nothing_is_read_elsewhere() {
        let files = [("a/b/one.tgz", POINTER), ("a/b/c/two.tgz", POINTER), ("a/b/values.yaml", "a: b\n")];
        assert_eq!(explained(&files), ("no gzip".to_owned(), 0));
        for (folder, told) in [("", "one.tgz"), ("a/", "one.tgz"), ("a/b/", "one.tgz"), ("a/b/c/", "two.tgz")]
        {
            let attributes = format!("{folder}.gitattributes");
            let mut with = files.to_vec();
            with.push((&attributes, "*.tgz filter=lfs diff=lfs merge=lfs -text\n"));
            let (text, _) = explained(&with);
            assert!(text.contains("Git LFS keeps elsewhere") && text.contains(told), "{folder}: {text}");
            assert_eq!(text.contains("one.tgz"), folder != "a/b/c/", "{text}");
        }
        let mut beside = files.to_vec();
        beside.push(("other/.gitattributes", "*.tgz filter=lfs\n"));
        assert_eq!(explained(&beside).0, "no gzip");
    }
}
