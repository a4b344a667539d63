//! What Helm says of the symbolic links in a chart folder.

use std::path::Path;

use tiphys_gocompat::path::clean;
use tiphys_vfs::{BrokenLink, FileTree};

use crate::{Compat, HelmError, log_text::log_text};

/// The links of a tree, in the words of one Helm.
pub(super) struct Links<'a> {
    pub tree: &'a dyn FileTree,
    pub compat: Compat,
}

impl Links<'_> {
    /// What Helm logs of a link that it follows; nothing where the tree does not stand on a disk, because
    /// then the link is the repository's own and its reader has chosen nothing.
    ///
    /// # Errors
    /// The link leads nowhere.
    pub(super) fn follow(
        &self,
        link: &str,
        broken: Option<&BrokenLink>,
    ) -> Result<Option<String>, HelmError> {
        let named = named_path(self.tree, link);
        if let Some(broken) = broken {
            return Err(HelmError::BrokenLink { text: self.unfollowed(&named, broken), logged: Vec::new() });
        }
        let (Some(place), Ok(target)) = (self.tree.on_disk(), self.tree.canonical(link)) else {
            return Ok(None);
        };
        let resolved = join_path(&place.resolved, &target);
        Ok(Some(match self.compat {
            Compat::Helm4 => format!(
                "level=INFO msg=\"found symbolic link in path. Contents of linked file included and used\" path={} resolved={}",
                log_text(&named),
                log_text(&resolved)
            ),
            Compat::Helm3 => format!(
                "walk.go:75: found symbolic link in path: {named} resolves to {resolved}. Contents of linked file included and used"
            ),
        }))
    }

    fn unfollowed(&self, link: &str, broken: &BrokenLink) -> String {
        let reason = match broken {
            BrokenLink::Missing(path) => {
                let place = self.tree.on_disk().filter(|_| !path.starts_with('/'));
                let path = place.map_or_else(|| path.clone(), |place| join_path(&place.resolved, path));
                format!("lstat {path}: no such file or directory")
            }
            BrokenLink::NotDir => "not a directory".to_owned(),
            BrokenLink::Circle => "EvalSymlinks: too many links".to_owned(),
            BrokenLink::TooDeep => return format!("open {link}: too many levels of symbolic links"),
        };
        format!("error evaluating symlink {link}: {reason}")
    }
}

/// A path of a tree as Helm names it: absolute, if the tree stands on a disk.
pub(super) fn named_path(tree: &dyn FileTree, path: &str) -> String {
    tree.on_disk().map_or_else(|| path.to_owned(), |place| join_path(&place.named, path))
}

fn join_path(root: &Path, path: &str) -> String {
    clean(&format!("{}/{path}", root.display()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tiphys_vfs::{DirEntry, EntryKind, MemTree, OnDisk, VfsError};

    use super::*;
    use crate::Chart;

    /// A tree in memory that says it stands on a disk.
    struct Placed(MemTree, OnDisk);

    impl FileTree for Placed {
        fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
            self.0.kind(path)
        }

        fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
            self.0.read(path)
        }

        fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
            self.0.list(path)
        }

        fn canonical(&self, path: &str) -> Result<String, VfsError> {
            self.0.canonical(path)
        }

        fn on_disk(&self) -> Option<&OnDisk> {
            Some(&self.1)
        }
    }

    fn tree(link: (&str, &str), ignored: &str) -> MemTree {
        let chart = "apiVersion: v2\nname: c\nversion: 1.0.0\n";
        let files = [("Chart.yaml", chart), ("templates/a.yaml", "a: b\n"), (".helmignore", ignored)];
        let mut tree = MemTree::from_files(files);
        tree.insert_symlink(link.0, link.1).unwrap();
        tree
    }

    fn placed(link: (&str, &str)) -> Placed {
        Placed(tree(link, ""), OnDisk { named: "/srv/./named".into(), resolved: "/srv/real one".into() })
    }

    #[test]
    fn a_link_that_leads_nowhere_stops_helm() {
        let nowhere = "error evaluating symlink templates/x: lstat templates/none: no such file or directory";
        for (target, ignored, text) in [
            ("none/deeper", "", nowhere),
            ("none", "templates/x", nowhere),
            ("a.yaml/b", "", "error evaluating symlink templates/x: not a directory"),
            ("x", "", "error evaluating symlink templates/x: EvalSymlinks: too many links"),
        ] {
            let error = Chart::load(&tree(("templates/x", target), ignored), "").unwrap_err();
            assert_eq!(error.to_string(), text);
        }
        Chart::load(&tree(("templates/x", "none"), "templates/"), "").expect("its folder is left out");
        let error = Chart::load(&placed(("x", "none")), "").unwrap_err();
        assert_eq!(
            error.to_string(),
            "error evaluating symlink /srv/named/x: lstat /srv/real one/none: no such file or directory"
        );
    }

    #[test]
    fn links_followed_before_a_broken_one_are_told() {
        let mut tree = tree(("a", "templates/a.yaml"), "");
        tree.insert_symlink("x", "none").unwrap();
        let place = OnDisk { named: "/srv".into(), resolved: "/srv".into() };
        match Chart::load(&Placed(tree, place), "").unwrap_err() {
            HelmError::BrokenLink { logged, .. } => assert!(logged[0].contains("path=/srv/a "), "{logged:?}"),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn helm_3_follows_links_before_it_looks_for_chart_yaml() {
        let mut tree = MemTree::from_files([("templates/a.yaml", "a: b\n")]);
        tree.insert_symlink("Chart.yaml", "none").unwrap();
        let error = |compat| Chart::load_as(&tree, "", compat).unwrap_err().to_string();
        assert_eq!(
            error(Compat::Helm3),
            "error evaluating symlink Chart.yaml: lstat none: no such file or directory"
        );
        assert!(error(Compat::Helm4).starts_with("unable to detect chart at Chart.yaml"));
    }

    #[test]
    fn a_link_that_is_followed_on_a_disk_is_logged() {
        let warnings =
            |compat| Chart::load_as(&placed(("x", "templates/a.yaml")), "", compat).unwrap().warnings;
        let [text] = warnings(Compat::Helm4).try_into().unwrap();
        assert_eq!(
            text,
            r#"level=INFO msg="found symbolic link in path. Contents of linked file included and used" path=/srv/named/x resolved="/srv/real one/templates/a.yaml""#
        );
        let [text] = warnings(Compat::Helm3).try_into().unwrap();
        assert_eq!(
            text,
            "walk.go:75: found symbolic link in path: /srv/named/x resolves to /srv/real one/templates/a.yaml. Contents of linked file included and used"
        );
        let silent = Chart::load(&tree(("x", "templates/a.yaml"), ""), "").unwrap();
        assert_eq!(silent.warnings, Vec::<String>::new());
    }
}
