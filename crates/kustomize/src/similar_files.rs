//! What a user may have meant by a path that is not there.

use tiphys_diag::similar_names::nearest;
use tiphys_vfs::{EntryKind, FileTree};

use crate::name_advice::some_of;

/// The most entries of folders that are looked at for a missing file.
const MOST_ENTRIES: usize = 2000;

/// What stands in a tree that is like a path of it that is missing: the nearest name where the path ends, or
/// else a file of that very name below the folder `root`. The answer is a path of the tree.
pub(crate) fn nearest_file(tree: &dyn FileTree, path: &str, root: &str) -> Option<String> {
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    let mut at = String::new();
    for (index, step) in steps.iter().enumerate() {
        let below = join(&at, step);
        if tree.exists(&below) {
            if index + 1 < steps.len() && !tree.is_dir(&below) {
                // Nothing can be below a file: it may be meant itself.
                return Some(below);
            }
            at = below;
            continue;
        }
        // A link that leads nowhere is no help, and would be looked for again without end.
        let entries = tree.read_dir(&at).ok()?;
        let names = entries.iter().map(|entry| entry.name.as_str());
        if let Some(nearest) = nearest(step, names.filter(|name| tree.exists(&join(&at, name)))) {
            let rest = steps[index + 1..].iter().fold(join(&at, nearest), |path, step| join(&path, step));
            // What follows is there, too, or else is looked for in turn.
            return match tree.exists(&rest) {
                true => Some(rest),
                false => nearest_file(tree, &rest, root).or_else(|| Some(join(&at, nearest))),
            };
        }
        break;
    }
    same_name_below(tree, root, steps.last()?)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// What there is where a folder has no kustomization: one that cannot be read, a file that is nearly named
/// so, or folders below that have one.
pub(crate) fn kustomizations(tree: &dyn FileTree, folder: &str, names: &[&str]) -> Option<String> {
    let entries = tree.read_dir(folder).ok()?;
    let unread = |name: &&str| tree.read(&join(folder, name)).err().map(|error| format!("{error}"));
    let mut present = names.iter().filter(|name| entries.iter().any(|entry| entry.name == **name));
    if let Some(error) = present.find_map(unread) {
        return Some(error);
    }
    let files = entries.iter().filter(|entry| entry.kind == EntryKind::File).map(|entry| entry.name.as_str());
    if let Some(near) = nearest(names[0], files) {
        return Some(format!("`{near}` there is not looked at: its name would have to be `{}`", names[0]));
    }
    let below = |folder: &str| -> Vec<String> {
        let entries = tree.read_dir(folder).unwrap_or_default().into_iter().take(MOST_ENTRIES / 10);
        let folders = entries.filter(|entry| entry.kind == EntryKind::Dir && !entry.name.starts_with('.'));
        folders.map(|entry| join(folder, &entry.name)).collect()
    };
    let first = below(folder);
    let second: Vec<String> =
        first.iter().take(MOST_ENTRIES / 100).flat_map(|folder| below(folder)).collect();
    let has_one = |folder: &&String| names.iter().any(|name| tree.is_file(&join(folder, name)));
    let found: Vec<&str> = first.iter().chain(&second).filter(has_one).map(String::as_str).collect();
    if found.is_empty() {
        None
    } else {
        Some(format!("there are kustomizations in {}", some_of(found.into_iter())))
    }
}

/// A file or folder of a name, the nearest to a folder first.
fn same_name_below(tree: &dyn FileTree, root: &str, name: &str) -> Option<String> {
    let mut folders = std::collections::VecDeque::from([root.to_owned()]);
    let mut seen = 0;
    while let Some(folder) = folders.pop_front() {
        for entry in tree.read_dir(&folder).ok()? {
            seen += 1;
            let path = join(&folder, &entry.name);
            if entry.name == name {
                return Some(path);
            }
            if seen > MOST_ENTRIES {
                return None;
            }
            if entry.kind == EntryKind::Dir && !entry.is_symlink && !entry.name.starts_with('.') {
                folders.push_back(path);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::nearest_file;
    use tiphys_vfs::MemTree;

    #[test]
    fn missing_files_are_looked_for() {
        let tree = MemTree::from_files([("base/app/deployment.yaml", ""), ("over/patches/p.yaml", "")]);
        let rows = [
            ("bsae/app/deployment.yaml", "", Some("base/app/deployment.yaml")),
            ("base/app/deploymnt.yaml", "over", Some("base/app/deployment.yaml")),
            ("bsae/ap/deployment.yml", "", Some("base/app/deployment.yaml")),
            ("over/p.yaml", "over", Some("over/patches/p.yaml")),
            ("over/q.json", "over", None),
            ("base/app/deployment.yaml/", "", Some("base/app/deployment.yaml")),
            ("base/app/deployment.yaml/more/x", "", Some("base/app/deployment.yaml")),
        ];
        for (path, root, expected) in rows {
            assert_eq!(nearest_file(&tree, path, root).as_deref(), expected, "{path}");
        }
    }
}
