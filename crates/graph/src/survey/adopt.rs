//! Which foreign addresses mean this repository after all: a copy, a fork, or no clone. What tells is
//! that the paths that Applications and generators name under an address are here.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_value::Value;

use super::{Files, Input, Survey};

/// The paths that are named under one address.
#[derive(Default)]
struct Evidence {
    here: BTreeSet<String>,
    missing: BTreeSet<String>,
}

/// The addresses that are taken to be this repository: the one with the most paths that are here, and its
/// other spellings.
pub fn addresses(survey: &Survey, input: &Input<'_>) -> BTreeSet<String> {
    let mut named: BTreeMap<String, Evidence> = BTreeMap::new();
    let apps = survey.apps.iter().map(|app| &app.declared.value);
    for declared in apps.chain(survey.sets.iter().map(|set| &set.declared.value)) {
        collect(declared, &survey.files, &mut named, 0);
    }
    if named.keys().any(|url| (input.is_given)(url)) {
        return BTreeSet::new();
    }
    named.retain(|_, evidence| evidence.convinces());
    let Some(best) =
        named.iter().max_by_key(|(_, evidence)| evidence.here.len()).map(|(url, _)| name_of(url))
    else {
        return BTreeSet::new();
    };
    named.into_keys().filter(|url| name_of(url) == best).collect()
}

impl Evidence {
    /// Most of what is named is here.
    fn convinces(&self) -> bool {
        const OUT_OF_TEN: usize = 6;
        let (here, all) = (self.here.len(), self.here.len() + self.missing.len());
        here > 0 && here * 10 >= all * OUT_OF_TEN
    }
}

/// Notes every path that stands beside a `repoURL`.
fn collect(value: &Value, files: &Files, named: &mut BTreeMap<String, Evidence>, depth: usize) {
    const MAX_DEPTH: usize = 32;
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, files, named, depth + 1)),
        Value::Object(map) => {
            if let Some(url) = map.get("repoURL").and_then(Value::as_str).filter(|url| !url.contains("{{")) {
                let evidence = named.entry(url.to_owned()).or_default();
                for path in paths(value).into_iter().filter_map(|path| literal(&path)) {
                    let is_here = files.contains(&path) || files.has_folder(&path);
                    if is_here { &mut evidence.here } else { &mut evidence.missing }.insert(path);
                }
            }
            map.values().for_each(|below| collect(below, files, named, depth + 1));
        }
        _ => {}
    }
}

/// The paths of a source, or of a Git generator.
fn paths(value: &Value) -> Vec<String> {
    let listed = ["directories", "files"].iter().filter_map(|key| value.get(key)?.as_array()).flatten();
    let one = value.get("path").into_iter().chain(listed.filter_map(|entry| entry.get("path")));
    one.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The part of a path before its first placeholder or pattern; `None` if nothing of it tells anything.
fn literal(path: &str) -> Option<String> {
    let path = match path.find(['*', '?', '[', '{', '$']) {
        Some(at) => &path[..path[..at].rfind('/')?],
        None => path,
    };
    tiphys_vfs::normalize(path).ok().filter(|path| !path.is_empty())
}

/// The last step of an address, without `.git`.
fn name_of(url: &str) -> String {
    let last = url.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    last.trim_end_matches(".git").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tiphys_vfs::MemTree;

    use super::*;

    const APP: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: NAME}\nspec:\n  project: default\n  \
        source: {repoURL: 'ADDRESS', path: PATH}\n  destination: {name: in-cluster}\n";

    fn adopted(apps: &[(&str, &str)]) -> BTreeSet<String> {
        let mut tree = MemTree::from_files([(
            "shop/web/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
        )]);
        for (index, (url, path)) in apps.iter().enumerate() {
            let name = format!("a{index}");
            let text = APP.replace("NAME", &name).replace("ADDRESS", url).replace("PATH", path);
            tree.insert(&format!("{name}.yaml"), text.into_bytes()).unwrap();
        }
        Survey::of(&Input { is_given: &|_| false, ..Input::alone(Arc::new(tree)) }).adopted
    }

    #[test]
    fn an_address_whose_paths_are_here_is_this_repository() {
        let (https, ssh) = ("https://git.example.com/shop/config", "git@git.example.com:shop/config.git");
        let other = "https://git.example.com/shop/other";
        assert_eq!(adopted(&[(https, "shop/web"), (ssh, "shop"), (other, "none")]).len(), 2);
        assert!(adopted(&[(other, "none"), (other, "shop"), (other, "nothing")]).is_empty());
        assert!(adopted(&[(other, ".")]).is_empty());
    }
}
