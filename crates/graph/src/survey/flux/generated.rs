//! Folders without a kustomization: Flux makes one of the manifests below (Flux docs, "Generating a
//! kustomization.yaml").

use std::{collections::BTreeSet, sync::Arc};

use tiphys_value::json;
use tiphys_vfs::{DirEntry, EntryKind, FileTree, VfsError, base_name, is_below, join, parent};

use crate::survey::{Files, ignore_patterns::is_left_out_by_flux};

/// A revision of this repository that has one file more begins so; the folder follows, then the file's text.
const MARK: &str = "flux-generated:";

/// The name of what Flux makes.
const FILE: &str = "kustomization.yaml";

/// A revision of this repository in which a folder has the kustomization that Flux would make of it. `ignore`
/// are the patterns of the source.
pub(super) fn revision(files: &Files, folder: &str, ignore: Option<&str>) -> String {
    let is_of = |path: &str| folder.is_empty() || is_below(path, folder);
    let below = |path: &str| path[folder.len()..].trim_start_matches('/').to_owned();
    let folders: BTreeSet<&str> = files
        .paths()
        .filter(|path| is_of(path) && tiphys_kustomize::FILE_NAMES.contains(&base_name(path)))
        .filter_map(|path| parent(path))
        .collect();
    let is_inside = |path: &str| folders.iter().any(|of| is_below(path, of));
    let manifests = files.ending(&[".yaml", ".yml"]).map(AsRef::as_ref);
    let resources: BTreeSet<String> = manifests
        .filter(|path: &&str| is_of(path) && !is_inside(path))
        .filter(|path| !is_left_out_by_flux(files, path, ignore))
        .chain(folders.iter().copied().filter(|path| !is_inside(path)))
        .map(below)
        .collect();
    let text = json!({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources});
    format!("{MARK}{folder}\n{text}")
}

/// A tree with the file that a revision of [`revision`] has more; nothing if it is another revision.
pub(crate) fn with_file(tree: &Arc<dyn FileTree>, revision: &str) -> Option<Arc<dyn FileTree>> {
    let (folder, text) = revision.strip_prefix(MARK)?.split_once('\n')?;
    let path = join(folder, FILE).ok()?;
    Some(Arc::new(WithFile {
        tree: tree.clone(),
        folder: folder.to_owned(),
        path,
        bytes: text.as_bytes().into(),
    }))
}

/// A tree and one file more.
struct WithFile {
    tree: Arc<dyn FileTree>,
    folder: String,
    path: String,
    bytes: Arc<[u8]>,
}

impl WithFile {
    fn is_it(&self, path: &str) -> bool {
        tiphys_vfs::normalize(path).is_ok_and(|path| path == self.path)
    }
}

impl FileTree for WithFile {
    fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
        if self.is_it(path) { Ok(EntryKind::File) } else { self.tree.kind(path) }
    }

    fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
        if self.is_it(path) { Ok(self.bytes.clone()) } else { self.tree.read(path) }
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
        let mut entries = self.tree.list(path)?;
        if tiphys_vfs::normalize(path).is_ok_and(|path| path == self.folder) {
            entries.push(DirEntry {
                name: FILE.to_owned(),
                kind: EntryKind::File,
                is_symlink: false,
                broken: None,
            });
            entries.sort_by(|one, other| one.name.cmp(&other.name));
        }
        Ok(entries)
    }

    fn canonical(&self, path: &str) -> Result<String, VfsError> {
        if self.is_it(path) { Ok(self.path.clone()) } else { self.tree.canonical(path) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tiphys_vfs::{FileTree, MemTree};

    use super::{revision, with_file};
    use crate::survey::Files;

    #[test]
    fn what_lies_in_folders_is_listed() {
        let files =
            ["a.yaml", "b/c.yml", "b/d.json", "e/kustomization.yaml", "e/f.yaml", "e/g/h.yaml", ".sops.yaml"];
        let tree: Arc<dyn FileTree> = Arc::new(MemTree::from_files(
            files.map(|path| (format!("apps/{path}"), "")).iter().map(|(path, text)| (path.as_str(), *text)),
        ));
        let revision = revision(&Files::list(tree.clone(), ""), "apps", None);
        let with = with_file(&tree, &revision).expect("it is one");
        let text = with.read("apps/kustomization.yaml").expect("it is there");
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(text.ends_with(r#""resources":["a.yaml","b/c.yml","e"]}"#), "{text}");
        assert!(with.list("apps").expect("a folder").iter().any(|it| it.name == "kustomization.yaml"));
        assert!(!with.exists("apps/b/kustomization.yaml") && with_file(&tree, "main").is_none());
    }
}
