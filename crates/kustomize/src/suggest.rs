//! What a user may have meant: names, objects, fields and files that are like what is not there.

use tiphys_vfs::{EntryKind, FileTree};

use crate::{
    error::Error,
    node::{Content, Node, list_index},
    resid::{Gvk, ResId},
    resource_map::ResourceMap,
    selector::plain_text,
};

/// The most names that one advice lists.
const MOST_LISTED: usize = 5;
/// The most entries of folders that are looked at for a missing file.
const MOST_ENTRIES: usize = 2000;

/// The candidate most like a text: at most a third of its letters differ, or one is the beginning or end of
/// the other.
pub(crate) fn nearest_of<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (text.chars().count() / 3).clamp(1, 4);
    let text = text.to_lowercase();
    let distance = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let (short, long) =
            if text.len() < candidate.len() { (&text, &candidate) } else { (&candidate, &text) };
        let part = short.len() >= 4 && (long.starts_with(short.as_str()) || long.ends_with(short.as_str()));
        let edits = strsim::osa_distance(&text, &candidate);
        // A part of a name is worse than any misspelling.
        if edits <= limit { Some(edits) } else { part.then_some(limit + edits) }
    };
    let found = candidates.filter_map(|candidate| Some((distance(candidate)?, candidate)));
    found.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Some of a list of names.
fn some_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names[..names.len().min(MOST_LISTED)].join(", ");
    if names.len() > MOST_LISTED { format!("{shown}, …") } else { shown }
}

/// The advice for a name that is none of a few.
pub(crate) fn one_of<'a>(text: &str, candidates: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest_of(text, candidates.clone()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("there is {}", some_of(candidates)),
    }
}

/// Adds what there is that is similar to an object that is not there. Parts of the id that are regular
/// expressions count as they are written.
pub(crate) fn with_similar(error: Error, id: &ResId, objects: &ResourceMap) -> Error {
    match similar(id, objects) {
        Some(advice) => error.advise(advice),
        None => error,
    }
}

/// What there is that is similar to an object that is not there: of its kind and a name like its own, of its
/// name, of a kind like its own, or else of its kind.
pub(crate) fn similar(id: &ResId, objects: &ResourceMap) -> Option<String> {
    let all = || objects.list.iter().filter(|resource| !resource.node.is_empty());
    let name = plain_text(&id.name);
    let kind = plain_text(&id.gvk.kind);
    let same_kind = || all().filter(|resource| kind.is_empty() || resource.node.object_kind() == kind);
    let same_name = || all().filter(|resource| !name.is_empty() && resource.node.name() == name);
    let shown = |resource: &crate::resource::Resource| {
        let place = match resource.location.file.is_empty() {
            true => String::new(),
            false => format!(" in {}", resource.location),
        };
        format!("{}{place}", resource.id())
    };
    // Its kind and name, but another group, version or namespace.
    if !kind.is_empty()
        && let Some(twin) = same_name().find(|resource| resource.node.object_kind() == kind)
    {
        return Some(format!("did you mean {}?", shown(twin)));
    }
    if !name.is_empty()
        && let Some(nearest) = nearest_of(&name, same_kind().map(|resource| resource.node.name()))
        && let Some(found) = same_kind().find(|resource| resource.node.name() == nearest)
    {
        return Some(format!("did you mean {}?", shown(found)));
    }
    if let Some(found) = same_name().next() {
        return Some(format!("there is {} of that name", shown(found)));
    }
    let mut of_kind = same_kind().map(|resource| resource.id().to_string()).peekable();
    if of_kind.peek().is_some() {
        let list: Vec<String> = of_kind.collect();
        return Some(format!("of that kind there are: {}", some_of(list.iter().map(String::as_str))));
    }
    let nearest = nearest_of(&kind, all().map(|resource| resource.node.object_kind()))?;
    Some(format!("there is no {kind}; did you mean the kind {nearest}?"))
}

/// An id that selectors and references give in parts.
pub(crate) fn id_of(gvk: &Gvk, name: &str, namespace: &str) -> ResId {
    ResId { gvk: gvk.clone(), name: name.into(), namespace: namespace.into(), cluster_scoped: false }
}

/// Where a path into an object ends, and what goes on there: `spec has no field `replica`; did you mean …`.
/// `None` if the path leads to something.
pub(crate) fn nearest_field<S: AsRef<str>>(node: &Node, path: &[S]) -> Option<String> {
    let mut node = node;
    let mut at: Vec<&str> = Vec::new();
    for step in path.iter().map(|step| step.as_ref().trim()).filter(|step| !step.is_empty()) {
        match next(node, step) {
            Some(next) => node = next,
            None => return Some(ends_at(node, step, &at.join("."))),
        }
        at.push(step);
    }
    None
}

fn next<'a>(node: &'a Node, step: &str) -> Option<&'a Node> {
    match &node.content {
        Content::Scalar(_) => None,
        Content::Map(_) => node.get(step),
        Content::Seq(items) => match list_index(step) {
            Some(parts) => {
                let (name, value) = parts.ok()?;
                items.iter().find(|item| match name {
                    "" => item.value() == value,
                    name => item.get(name).is_some_and(|field| field.value() == value),
                })
            }
            None if matches!(step, "*" | "-") => items.first(),
            None => items.get(step.parse::<usize>().ok()?),
        },
    }
}

fn ends_at(node: &Node, step: &str, at: &str) -> String {
    let at = if at.is_empty() { "the object".to_owned() } else { format!("`{at}`") };
    match &node.content {
        Content::Map(pairs) if pairs.is_empty() => format!("{at} is empty"),
        Content::Map(pairs) => {
            let advice = one_of(step, pairs.iter().map(|(key, _)| key.value()));
            format!("{at} has no field `{step}`; {advice}")
        }
        Content::Seq(items) => {
            let Some(Ok((name, value))) = list_index(step) else {
                return format!("{at} is a list of {}, and `{step}` is none of its items", items.len());
            };
            let names = || {
                items.iter().filter_map(move |item| match name {
                    "" => Some(item.value()),
                    name => item.get(name).map(Node::value),
                })
            };
            match names().next() {
                Some(_) => format!("no item of {at} has {name}={value}; {}", one_of(value, names())),
                None => format!("no item of {at} has a field `{name}`"),
            }
        }
        Content::Scalar(_) => format!("{at} is no mapping and no list"),
    }
}

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
        if let Some(nearest) = nearest_of(step, names.filter(|name| tree.exists(&join(&at, name)))) {
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
    if let Some(near) = nearest_of(names[0], files) {
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
    use super::*;
    use crate::reader::parse_plain;
    use tiphys_vfs::MemTree;

    #[test]
    fn the_nearest_name_is_the_one_with_fewest_edits() {
        let rows = [
            ("resource", &["resources", "replicas"][..], Some("resources")),
            ("nmaespace", &["name", "namespace"], Some("namespace")),
            ("web", &["api", "db"], None),
            ("commonLabel", &["labels", "commonLabels"], Some("commonLabels")),
            ("shop", &["shop-frontend"], Some("shop-frontend")),
        ];
        for (text, candidates, expected) in rows {
            assert_eq!(nearest_of(text, candidates.iter().copied()), expected, "{text}");
        }
    }

    #[test]
    fn fields_are_named_where_a_path_ends() {
        let text = "spec:\n  replicas: 1\n  containers:\n  - {name: web, image: x}\n  - {name: db}\n";
        let node = parse_plain(text).unwrap().unwrap();
        let rows = [
            ("spec.replica", "`spec` has no field `replica`; did you mean `replicas`?"),
            ("spce.replicas", "the object has no field `spce`; did you mean `spec`?"),
            (
                "spec.containers.[name=wbe].image",
                "no item of `spec.containers` has name=wbe; did you mean `web`?",
            ),
            ("spec.containers.[name=zzz]", "no item of `spec.containers` has name=zzz; there is web, db"),
            ("spec.containers.7", "`spec.containers` is a list of 2, and `7` is none of its items"),
            ("spec.replicas.x", "`spec.replicas` is no mapping and no list"),
        ];
        for (path, expected) in rows {
            let steps = crate::node::smarter_split(path, '.');
            assert_eq!(nearest_field(&node, &steps).as_deref(), Some(expected), "{path}");
        }
        assert_eq!(nearest_field(&node, &["spec", "replicas"]), None);
    }

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
