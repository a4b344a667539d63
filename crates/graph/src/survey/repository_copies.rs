//! Which foreign addresses mean this repository after all: a copy, a fork, or no clone. What tells is
//! that the paths that Applications and generators name under an address are here, or that pages of the
//! tree say to clone it.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_value::Value;
use tiphys_vfs::FileTree;

use super::notice::Notice;

/// The paths that are named under one address.
#[derive(Default)]
struct Evidence {
    here: BTreeSet<String>,
    missing: BTreeSet<String>,
}

/// Which addresses are taken to be this repository.
#[derive(Default)]
pub struct Adoption {
    /// The one with the most paths that are here, and its other spellings: by ssh, at a mirror, of a fork.
    pub addresses: BTreeSet<String>,
    /// What is told of it.
    pub notice: Option<Notice>,
}

/// The addresses that are taken to be this repository, of those under which declarations name paths.
pub(super) fn addresses<'a>(
    declared: impl Iterator<Item = &'a Value>,
    tree: &dyn FileTree,
    is_given: &dyn Fn(&str) -> bool,
) -> Adoption {
    let mut named: BTreeMap<String, Evidence> = BTreeMap::new();
    declared.for_each(|declared| collect(declared, tree, &mut named, 0));
    if named.keys().any(|url| is_given(url)) {
        return Adoption::default();
    }
    // Where all that is named is one repository, it is hardly another than this one.
    let owners: BTreeSet<_> = named.keys().map(|url| owner_and_name(url)).collect();
    let out_of_ten = if owners.len() == 1 { OF_ONE_ALONE } else { OF_SEVERAL };
    let convincing = named.iter().filter(|(_, evidence)| evidence.convinces(out_of_ten));
    let best = convincing.max_by_key(|(_, evidence)| evidence.here.len()).map(|(url, _)| url);
    let Some(best) = best.or_else(|| cloned_by_pages(&named, tree)) else {
        return Adoption::default();
    };
    let is_spelling = |(url, evidence): &(&String, &Evidence)| {
        owner_and_name(url) == owner_and_name(best)
            || name_of(url) == name_of(best) && (evidence.is_none() || evidence.convinces(out_of_ten))
    };
    let spellings: Vec<_> = named.iter().filter(is_spelling).collect();
    let here: BTreeSet<&String> = spellings.iter().flat_map(|(_, it)| &it.here).collect();
    let missing: BTreeSet<&String> = spellings.iter().flat_map(|(_, it)| &it.missing).collect();
    let notice = Notice::Adopted { url: best.clone(), here: here.len(), all: here.len() + missing.len() };
    Adoption { addresses: spellings.into_iter().map(|(url, _)| url.clone()).collect(), notice: Some(notice) }
}

/// The one address that the pages of a tree say to clone, if a path that is named under it is here, or
/// has moved: the last step of one that is not is a folder of the tree.
fn cloned_by_pages<'n>(named: &'n BTreeMap<String, Evidence>, tree: &dyn FileTree) -> Option<&'n String> {
    let pages = ["", "docs"].into_iter().flat_map(|folder| {
        let entries = tree.list(folder).unwrap_or_default().into_iter();
        let pages = entries.filter(|entry| entry.name.to_ascii_lowercase().ends_with(".md"));
        pages.filter_map(move |entry| tree.read(&format!("{folder}/{}", entry.name)).ok())
    });
    let text =
        pages.map(|page| String::from_utf8_lossy(&page).to_ascii_lowercase() + "\n").collect::<String>();
    let is_cloned = |url: &String| {
        owner_and_name(url).is_some_and(|(owner, name)| {
            let words = text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '`' | '(' | ')' | '\''));
            let mut last = "";
            words.filter(|word| !word.is_empty()).any(|word| {
                let is_clone = last == "clone" && owner_and_name(word) == Some((owner.clone(), name.clone()));
                last = word;
                is_clone || word.contains(&format!("/{owner}/{name}/actions/workflows/"))
            })
        })
    };
    let mut cloned = named.iter().filter(|(url, _)| is_cloned(url));
    let (url, evidence) = cloned.next()?;
    let is_one = cloned.all(|(other, _)| owner_and_name(other) == owner_and_name(url));
    let folders = || {
        let files = tiphys_vfs::walk(tree, "").unwrap_or_default();
        files.into_iter().flat_map(|file| file.split('/').map(str::to_owned).collect::<Vec<_>>())
    };
    let last = |path: &String| path.rsplit('/').next().unwrap_or(path).to_owned();
    let missing: BTreeSet<String> = evidence.missing.iter().map(last).collect();
    let is_near = !evidence.here.is_empty() || folders().any(|step| missing.contains(&step));
    (is_one && is_near).then_some(url)
}

/// The addresses under which declarations name paths, and how many of those are in a tree.
pub(super) fn paths_here<'a>(
    declared: impl Iterator<Item = &'a Value>,
    tree: &dyn FileTree,
) -> BTreeMap<String, usize> {
    let mut named: BTreeMap<String, Evidence> = BTreeMap::new();
    declared.for_each(|declared| collect(declared, tree, &mut named, 0));
    named.into_iter().map(|(url, evidence)| (url, evidence.here.len())).collect()
}

impl Evidence {
    /// Whether no path is named that tells anything.
    fn is_none(&self) -> bool {
        self.here.is_empty() && self.missing.is_empty()
    }

    /// Enough of what is named is here.
    fn convinces(&self, out_of_ten: usize) -> bool {
        let (here, all) = (self.here.len(), self.here.len() + self.missing.len());
        here > 0 && here * 10 >= all * out_of_ten
    }
}

/// How many of ten paths have to be here, where several repositories are named.
const OF_SEVERAL: usize = 6;
/// The same, where one alone is named: then what is not here is rather a fault.
const OF_ONE_ALONE: usize = 4;

/// Notes every path that stands beside a `repoURL`.
fn collect(value: &Value, tree: &dyn FileTree, named: &mut BTreeMap<String, Evidence>, depth: usize) {
    const MAX_DEPTH: usize = 32;
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, tree, named, depth + 1)),
        Value::Object(map) => {
            // A chart has no paths, and is of another place.
            let is_chart = map.contains_key("chart");
            let url =
                map.get("repoURL").and_then(Value::as_str).filter(|url| !is_chart && !url.contains("{{"));
            if let Some(url) = url.filter(|url| !url.starts_with("oci://")) {
                let evidence = named.entry(url.to_owned()).or_default();
                for path in paths(value).into_iter().filter_map(|path| literal(&path)) {
                    let is_here = tree.is_dir(&path) || tree.is_file(&path);
                    if is_here { &mut evidence.here } else { &mut evidence.missing }.insert(path);
                }
            }
            if let Some(sources) = map.get("sources").and_then(Value::as_array) {
                collect_value_files(sources, tree, named);
            }
            map.values().for_each(|below| collect(below, tree, named, depth + 1));
        }
        _ => {}
    }
}

/// Notes the files of values that one source takes from another: `$values/shop/values.yaml`.
fn collect_value_files(sources: &[Value], tree: &dyn FileTree, named: &mut BTreeMap<String, Evidence>) {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let files =
        sources.iter().filter_map(|source| source.get("helm")?.get("valueFiles")?.as_array()).flatten();
    for file in files.filter_map(Value::as_str) {
        let Some((reference, path)) = file.strip_prefix('$').and_then(|file| file.split_once('/')) else {
            continue;
        };
        let referred = sources.iter().find(|source| text(source, "ref").as_deref() == Some(reference));
        let url = referred.and_then(|source| text(source, "repoURL")).filter(|url| !url.contains("{{"));
        let (Some(url), Some(path)) = (url, literal(path)) else { continue };
        let evidence = named.entry(url).or_default();
        let is_here = tree.is_dir(&path) || tree.is_file(&path);
        if is_here { &mut evidence.here } else { &mut evidence.missing }.insert(path);
    }
}

/// The paths of a source, or of a Git generator.
fn paths(value: &Value) -> Vec<String> {
    let listed = ["directories", "files"].iter().filter_map(|key| value.get(key)?.as_array()).flatten();
    let listed = listed.filter(|entry| entry.get("exclude") != Some(&Value::Bool(true)));
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

/// The last two steps of an address: whose the repository is, and its name.
fn owner_and_name(url: &str) -> Option<(String, String)> {
    let above = url.trim_end_matches('/').rsplit_once(['/', ':'])?.0;
    let owner = above.rsplit(['/', ':']).next()?;
    Some((owner.to_ascii_lowercase(), name_of(url)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tiphys_vfs::MemTree;

    use super::*;
    use crate::{Input, Survey};

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
        Survey::read(&Input { is_given: &|_| false, ..Input::alone(Arc::new(tree)) }).adopted
    }

    #[test]
    fn an_address_whose_paths_are_here_is_this_repository() {
        let (https, ssh) = ("https://git.example.com/shop/config", "git@git.example.com:shop/config.git");
        let other = "https://git.example.com/shop/other";
        assert_eq!(adopted(&[(https, "shop/web"), (ssh, "shop"), (other, "none")]).len(), 2);
        assert!(adopted(&[(other, "none"), (other, "shop"), (other, "nothing")]).is_empty());
        assert!(adopted(&[(other, ".")]).is_empty());
    }

    #[test]
    fn pages_tell_which_address_is_this_repository() {
        let (own, other) = ("https://git.example.com/shop/config", "https://git.example.com/shop/other");
        let of = |page: &str| {
            let mut tree = MemTree::from_files([("README.md", page), ("gitops/apps/a.yaml", "a: b\n")]);
            for (index, url) in [own, other].into_iter().enumerate() {
                let text = APP.replace("ADDRESS", url).replace("PATH", "argocd/apps");
                tree.insert(&format!("a{index}.yaml"), text.into_bytes()).unwrap();
            }
            Survey::read(&Input { is_given: &|_| false, ..Input::alone(Arc::new(tree)) }).adopted.len()
        };
        assert_eq!(of("    git clone https://git.example.com/shop/config.git\n"), 1);
        assert_eq!(of("see https://git.example.com/shop/config"), 0);
        assert_eq!(of(&format!("git clone {own}\ngit clone {other}\n")), 0);
    }

    #[test]
    fn one_address_alone_needs_less() {
        let (own, other) = ("https://git.example.com/shop/config", "https://git.example.com/shop/other");
        assert_eq!(adopted(&[(own, "shop/web"), (own, "apps/web")]).len(), 1);
        assert!(adopted(&[(own, "shop/web"), (own, "apps/web"), (other, "a")]).is_empty());
        assert!(adopted(&[(own, "apps/web"), (own, "apps/api")]).is_empty());
    }
}
