//! What a user may have meant: objects and fields that are like what is not there.

use crate::{
    error::Error,
    name_advice::{one_of, some_of},
    node::{Content, Node, list_index},
    resid::{Gvk, ResId},
    resource_map::ResourceMap,
    selector::plain_text,
};
use tiphys_diag::similar_names::nearest;

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
        && let Some(nearest) = nearest(&name, same_kind().map(|resource| resource.node.name()))
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
    let nearest = nearest(&kind, all().map(|resource| resource.node.object_kind()))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::parse_plain;

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
}
