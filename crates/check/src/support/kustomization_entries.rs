//! Entries of kustomizations that lead nowhere. The build tells of the first fault only, and of none where
//! something out of reach is named before it.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_graph::Files;
use tiphys_kustomize::FILE_NAMES;
use tiphys_value::{ObjectExt, Value};
use tiphys_vfs::{base_name, is_below, join, parent};

/// The kustomizations of a folder; more than one is a fault.
pub(crate) fn of_folder(files: &Files, folder: &str) -> impl Iterator<Item = String> {
    let paths = FILE_NAMES.map(|name| join(folder, name).unwrap_or_default()).into_iter();
    paths.filter(|path| files.contains(path))
}

/// An entry that leads nowhere.
pub(crate) struct Dangling {
    /// The kustomization.
    pub file: String,
    /// The line of the entry, from 1.
    pub line: u32,
    /// The entry as it is written.
    pub entry: String,
    /// What it comes to, from the root of the repository.
    pub path: String,
    /// Whether it is a folder that is there and holds no kustomization.
    pub is_bare: bool,
}

/// All entries that lead nowhere.
pub(crate) fn dangling(files: &Files) -> Vec<Dangling> {
    let mut found = Vec::new();
    for file in files.paths().filter(|path| FILE_NAMES.contains(&base_name(path))) {
        let (Some(text), Some(content)) = (files.text(file), files.value(file)) else { continue };
        let folder = parent(file).unwrap_or_default();
        for (entry, may_be_folder) in entries(&content) {
            let Ok(path) = join(folder, entry) else { continue };
            let is_bare = files.has_folder(&path) && of_folder(files, &path).next().is_none();
            let is_there = files.contains(&path) || (may_be_folder && files.has_folder(&path) && !is_bare);
            let is_there = is_there || is_behind_link(files, &path, may_be_folder);
            let line = text.lines().position(|line| holds(line, entry));
            // An entry that stands one column too far to the right is the end of the one before it.
            let line = line.or_else(|| text.lines().position(|line| begins(line, entry)));
            let Some(line) = line.filter(|_| !is_there) else {
                continue;
            };
            found.push(Dangling {
                file: file.to_string(),
                line: u32::try_from(line + 1).unwrap_or(u32::MAX),
                entry: entry.to_owned(),
                is_bare: is_bare && may_be_folder,
                path,
            });
        }
    }
    found
}

/// Whether a kustomization names its own files as they are named from a folder above: something moves it up
/// there before it is built.
pub(crate) fn is_moved(files: &Files, file: &str) -> bool {
    let folder = parent(file).unwrap_or_default();
    let Some(content) = files.value(file) else { return false };
    let is_at = |above: &str, entry: &str| {
        join(above, entry)
            .is_ok_and(|path| is_below(&path, folder) && (files.contains(&path) || files.has_folder(&path)))
    };
    let above: Vec<&str> = std::iter::successors(parent(folder), |it| parent(it)).chain([""]).collect();
    let mut entries = entries(&content).into_iter().filter(|(entry, _)| entry.contains('/'));
    entries.any(|(entry, _)| !is_at(folder, entry) && above.iter().any(|above| is_at(above, entry)))
}

/// Whether a path leads through a symbolic link, which builds follow and the list of files does not.
fn is_behind_link(files: &Files, path: &str, may_be_folder: bool) -> bool {
    let tree = files.tree();
    let holds_kustomization =
        || FILE_NAMES.iter().any(|name| join(path, name).is_ok_and(|file| tree.is_file(&file)));
    tree.is_file(path) || (may_be_folder && tree.is_dir(path) && holds_kustomization())
}

/// The entries that another tool completes before anything is built: the same text leads nowhere in many
/// kustomizations, to more than one place, and somewhere in none.
pub(crate) fn left_to_others(files: &Files) -> BTreeSet<String> {
    const MANY: usize = 5;
    let mut by_entry: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for it in dangling(files).into_iter().filter(|it| !it.is_bare) {
        by_entry.entry(it.entry).or_default().entry(it.path).or_default().insert(it.file);
    }
    by_entry.retain(|_, paths| paths.len() > 1 && paths.values().map(BTreeSet::len).sum::<usize>() >= MANY);
    by_entry.retain(|entry, paths| {
        let told: BTreeSet<&String> = paths.values().flatten().collect();
        let users = files.paths().filter(|path| FILE_NAMES.contains(&base_name(path)));
        let mut others = users.filter(|path| !told.contains(&path.to_string()));
        !others.any(|path| files.text(path).is_some_and(|text| text.lines().any(|line| holds(line, entry))))
    });
    by_entry.into_keys().collect()
}

/// Whether a line is an entry of a list, or a field, with a text.
fn holds(line: &str, entry: &str) -> bool {
    let line = line.split(" #").next().unwrap_or_default().trim().trim_start_matches("- ");
    let value = line.strip_prefix("path:").unwrap_or(line).trim();
    value.trim_matches(['"', '\'']) == entry
}

/// Whether an entry of several lines begins in a line.
fn begins(line: &str, entry: &str) -> bool {
    let first = line.trim().strip_prefix("- ").unwrap_or_default().trim();
    !first.is_empty() && entry.strip_prefix(first).is_some_and(|rest| rest.starts_with(" - "))
}

/// The entries that name files or folders, and whether a folder may be meant.
fn entries(content: &Value) -> Vec<(&str, bool)> {
    let list = |keys: &[&str]| content.at(keys).and_then(Value::as_array).into_iter().flatten();
    let mut found: Vec<(&str, bool)> = Vec::new();
    for key in ["resources", "bases", "components"] {
        found.extend(list(&[key]).filter_map(Value::as_str).filter(|it| is_local(it)).map(|it| (it, true)));
    }
    found.extend(list(&["crds"]).filter_map(Value::as_str).filter(|it| is_local(it)).map(|it| (it, false)));
    let is_inline = |it: &&str| it.contains('\n') || it.contains(": ");
    let merges = list(&["patchesStrategicMerge"]).filter_map(Value::as_str).filter(|it| !is_inline(it));
    found.extend(merges.filter(|it| is_local(it)).map(|it| (it, false)));
    for key in ["patches", "patchesJson6902", "replacements"] {
        let paths = list(&[key]).filter_map(|it| it.str_at(&["path"]));
        found.extend(paths.filter(|it| is_local(it)).map(|it| (it, false)));
    }
    found
}

/// Whether an entry is no address.
fn is_local(entry: &str) -> bool {
    let first = entry.split('/').next().unwrap_or_default();
    let is_host = entry.contains('/') && first.contains('.') && !first.starts_with('.');
    let is_address =
        ["://", "git::", "git@", "?ref=", "?timeout=", "//"].iter().any(|mark| entry.contains(mark));
    !entry.trim().is_empty() && !is_address && !is_host && !entry.contains(['$', '{', '<', '*'])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tiphys_graph::Files;
    use tiphys_vfs::MemTree;

    use super::{dangling, holds, is_local, left_to_others};

    fn files(of: &[(&str, &str)], links: &[(&str, &str)]) -> Files {
        let mut tree = MemTree::from_files(of.iter().copied());
        for (path, target) in links {
            tree.insert_symlink(path, target).expect("a link");
        }
        Files::list(Arc::new(tree), "")
    }

    #[test]
    fn entries_that_lead_through_links_lead_somewhere() {
        let both = [
            ("web/kustomization.yaml", "resources: []\n"),
            ("all/kustomization.yaml", "resources:\n- ../latest\n"),
        ];
        assert_eq!(dangling(&files(&both, &[])).len(), 1);
        assert!(dangling(&files(&both, &[("latest", "web")])).is_empty());
    }

    #[test]
    fn an_entry_one_column_too_far_to_the_right_is_part_of_the_one_before() {
        let all = [
            ("web/kustomization.yaml", "resources: []\n"),
            ("all/kustomization.yaml", "resources:\n- https://example.com/far.yaml\n- ../web\n - ../db\n"),
        ];
        let found = dangling(&files(&all, &[]));
        assert_eq!(
            found.iter().map(|it| (it.line, it.entry.as_str())).collect::<Vec<_>>(),
            [(3, "../web - ../db")]
        );
    }

    #[test]
    fn what_is_nowhere_for_anybody_is_put_there_later() {
        let text = "resources:\n- ../base\n";
        let mut all: Vec<(String, &str)> = Vec::new();
        for site in ["east", "west"] {
            all.extend(["web", "db", "mail"].map(|app| (format!("{site}/{app}/kustomization.yaml"), text)));
        }
        let all: Vec<(&str, &str)> = all.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        assert!(left_to_others(&files(&all, &[])).contains("../base"));
        // A folder that one site has is one that the other one lacks.
        let with: Vec<_> =
            all.iter().copied().chain([("east/base/kustomization.yaml", "resources: []\n")]).collect();
        assert!(left_to_others(&files(&with, &[])).is_empty());
        assert!(left_to_others(&files(&all[..3], &[])).is_empty());
    }

    #[test]
    fn addresses_are_told_from_paths() {
        for path in ["a", "./a.yaml", "../base", "a/b", ".hidden/x", "v1.2.yaml"] {
            assert!(is_local(path), "{path}");
        }
        for address in ["https://x/y", "github.com/a/b", "git@h:a/b.git", "a//b?ref=v1", "${X}/a", ""] {
            assert!(!is_local(address), "{address}");
        }
    }

    #[test]
    fn entries_are_found_in_their_lines() {
        assert!(holds("  - ./web.yaml # the shop", "./web.yaml"));
        assert!(holds("  - path: \"a.yaml\"", "a.yaml"));
        assert!(!holds("  # - a.yaml", "a.yaml"));
    }
}
