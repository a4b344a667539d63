//! What functions are given and what they give back.

use serde_json::Value;
use tiphys_value::Location;

use tiphys_gocompat::strconv::quote;

use crate::{
    context::Context,
    error::{Error, Result},
    node::{Content, Kind, Node, WRITTEN, kind_error},
    reader::{self, Text},
    repo_url::parse_bool,
    resid::ResId,
    resource::{Behavior, Resource},
    resource_map::ResourceMap,
};

/// By which kustomize knows objects again.
const ID: &str = "kustomize.config.k8s.io/id";
/// By which a generated object asks for a name with its hash, and says what it does with one that is there.
const NEEDS_HASH: &str = "kustomize.config.k8s.io/needs-hash";
const BEHAVIOR: &str = "kustomize.config.k8s.io/behavior";
/// Where an object would be written to, were it written.
pub(crate) const PATHS: [&str; 2] = ["internal.config.kubernetes.io/path", "config.kubernetes.io/path"];
/// What the objects are numbered by on their way, and lose on their way back.
const PASSING: [&str; 6] = [
    "internal.config.kubernetes.io/index",
    "config.kubernetes.io/index",
    "internal.config.kubernetes.io/id",
    "config.k8s.io/id",
    "internal.config.kubernetes.io/seqindent",
    "internal.config.kubernetes.io/annotations-migration-resource-id",
];

/// The `ResourceList` for a generator: the configuration itself is its only item.
pub(super) fn generator_input(config: &str) -> String {
    let config = local(config);
    resource_list(&[annotated(&config, &numbers(0))], &config)
}

/// The `ResourceList` for a transformer.
pub(super) fn transformer_input(objects: &ResourceMap, config: &str) -> Result<String> {
    let texts = texts(objects)?;
    let items: Vec<String> =
        texts.iter().enumerate().map(|(index, text)| annotated(text, &numbers(index))).collect();
    Ok(resource_list(&items, &local(config)))
}

/// The objects for an exec plugin, as documents.
pub(super) fn plugin_input(objects: &ResourceMap) -> Result<String> {
    Ok(texts(objects)?.join("---\n"))
}

/// The configuration, marked as no object of its own.
fn local(config: &str) -> String {
    annotated(config, &[("config.kubernetes.io/local-config", "true".to_owned())])
}

fn numbers(index: usize) -> [(&'static str, String); 5] {
    let (from_0, from_1) = (index.to_string(), (index + 1).to_string());
    [
        ("config.kubernetes.io/index", from_0.clone()),
        ("internal.config.kubernetes.io/index", from_0.clone()),
        ("internal.config.kubernetes.io/annotations-migration-resource-id", from_0),
        ("internal.config.kubernetes.io/id", from_1.clone()),
        ("config.k8s.io/id", from_1),
    ]
}

/// Every object as YAML, with what kustomize keeps in annotations and the id by which it knows it again.
fn texts(objects: &ResourceMap) -> Result<Vec<String>> {
    let text = |resource: &Resource| {
        let mut value = crate::node::to_json(&resource.node).map_err(Error::transform)?;
        let mut added = resource.state_annotations();
        added.push((ID.to_owned(), tiphys_yaml::to_yaml(&id_value(&resource.id()))));
        let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
        let annotations = metadata.map(|metadata| {
            metadata.entry("annotations").or_insert_with(|| Value::Object(Default::default()))
        });
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.extend(added.into_iter().map(|(name, value)| (name, value.into())));
        }
        Ok(tiphys_yaml::to_yaml(&value))
    };
    objects.list.iter().map(text).collect()
}

/// The parts of an id that are set, in the order in which Go declares them.
fn id_parts(id: &ResId) -> impl Iterator<Item = (&'static str, &str)> {
    let parts = [
        ("group", &id.gvk.group),
        ("version", &id.gvk.version),
        ("kind", &id.gvk.kind),
        ("name", &id.name),
        ("namespace", &id.namespace),
    ];
    parts.into_iter().map(|(name, part)| (name, part.as_str())).filter(|(_, part)| !part.is_empty())
}

fn id_value(id: &ResId) -> Value {
    Value::Object(id_parts(id).map(|(name, part)| (name.to_owned(), part.into())).collect())
}

/// An id as Go's `json.Marshal` shows it.
fn id_json(id: &ResId) -> String {
    let parts: Vec<String> =
        id_parts(id).map(|(name, part)| format!("{}:{}", quote(name), Value::from(part))).collect();
    format!("{{{}}}", parts.join(","))
}

/// The text of a `ResourceList` around the texts of its items.
fn resource_list(items: &[String], config: &str) -> String {
    let mut text = String::from("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n");
    text.push_str(if items.is_empty() { "items: []\n" } else { "items:\n" });
    for item in items {
        push_indented(&mut text, item, "- ");
    }
    text.push_str("functionConfig:\n");
    push_indented(&mut text, config, "  ");
    text
}

fn push_indented(text: &mut String, block: &str, first: &str) {
    for (at, line) in block.lines().enumerate() {
        if !line.is_empty() {
            text.push_str(if at == 0 { first } else { "  " });
            text.push_str(line);
        }
        text.push('\n');
    }
}

/// The YAML of an object with annotations added at the end of those that it has, as kyaml adds them.
fn annotated(text: &str, added: &[(&str, String)]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let end_of = |start: usize, indent: &str| {
        let is_over = |line: &&str| !line.is_empty() && !line.starts_with(indent);
        lines[start..].iter().position(is_over).map_or(lines.len(), |at| start + at)
    };
    let Some(metadata) = lines.iter().position(|line| *line == "metadata:") else { return text.to_owned() };
    let after = end_of(metadata + 1, "  ");
    let annotations = lines[metadata..after].iter().position(|line| line.starts_with("  annotations:"));
    let (at, is_new) = match annotations {
        Some(at) => (end_of(metadata + at + 1, "    "), false),
        None => (after, true),
    };
    let mut result = String::with_capacity(text.len() + 400);
    for line in &lines[..at] {
        // An empty mapping becomes one with entries.
        result.push_str(if *line == "  annotations: {}" { "  annotations:" } else { line });
        result.push('\n');
    }
    if is_new {
        result.push_str("  annotations:\n");
    }
    for (name, value) in added {
        result.push_str(&format!("    {name}: '{value}'\n"));
    }
    for line in &lines[at..] {
        result.push_str(line);
        result.push('\n');
    }
    result
}

fn source<'a>(text: &'a str, name: &'a str) -> Text<'a> {
    Text { text, file: name, line_offset: 0, writer: 0 }
}

/// What a function printed, as trees that only have to be mappings yet.
///
/// # Errors
/// What is no YAML, or no mapping.
pub(super) fn read_documents(context: &mut Context<'_>, text: &str, name: &str) -> Result<Vec<Node>> {
    let mut nodes = reader::read_documents(context, source(text, name))?;
    nodes.retain(|node| !node.is_null());
    for node in &mut nodes {
        if node.kind() != Kind::Map {
            return Err(Error::transform(kind_error(Kind::Map, node)));
        }
        forget_origins(node);
    }
    Ok(nodes)
}

/// What an exec plugin printed, as objects.
///
/// # Errors
/// What is no YAML, or no Kubernetes object.
pub(super) fn read_objects(context: &mut Context<'_>, text: &str, name: &str) -> Result<Vec<Node>> {
    let mut nodes = reader::read_objects(context, source(text, name))?;
    nodes.iter_mut().for_each(forget_origins);
    Ok(nodes)
}

/// Where something stands in what a program printed says nothing to a reader.
fn forget_origins(node: &mut Node) {
    node.origin = 0;
    match &mut node.content {
        Content::Scalar(_) => {}
        Content::Seq(items) => items.iter_mut().for_each(forget_origins),
        Content::Map(pairs) => {
            for (key, value) in pairs {
                key.origin = 0;
                forget_origins(value);
            }
        }
    }
}

/// Takes what a function gave back for objects, with paths where they have none.
///
/// # Errors
/// What is no Kubernetes object.
pub(super) fn accept(context: &mut Context<'_>, mut nodes: Vec<Node>, name: &str) -> Result<Vec<Node>> {
    for node in &mut nodes {
        let mut annotations = node.metadata_map("annotations");
        annotations.retain(|name, _| !PASSING.contains(&name.as_str()));
        let known = PATHS.iter().find_map(|name| annotations.get(*name).cloned());
        let path = known.unwrap_or_else(|| default_path(node));
        for name in PATHS {
            annotations.entry(name.to_owned()).or_insert_with(|| path.clone());
        }
        node.set_metadata_map("annotations", &annotations).map_err(Error::transform)?;
    }
    reader::objects_of(context, source("", name), nodes)
}

fn default_path(node: &Node) -> String {
    let file = format!("{}_{}.yaml", node.object_kind().to_lowercase(), node.name());
    crate::provenance::join_clean(node.namespace(), &file)
}

/// What a function says of the objects beside returning them: errors and warnings of its `results`.
pub(super) fn results(text: &str, name: &str) -> Vec<String> {
    let Ok(list) = tiphys_yaml::from_yaml(text) else { return Vec::new() };
    let at = |value: &Value, path: &str| {
        value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let results = list.get("results").and_then(Value::as_array).into_iter().flatten();
    let shown = results.filter_map(|result| {
        let severity = at(result, "/severity");
        if !matches!(severity.as_str(), "error" | "warning") {
            return None;
        }
        let mut text = format!("function {name}: {severity}: {}", at(result, "/message"));
        let about =
            [at(result, "/resourceRef/kind"), at(result, "/resourceRef/name"), at(result, "/field/path")];
        let about: Vec<String> = about.into_iter().filter(|part| !part.is_empty()).collect();
        if !about.is_empty() {
            text.push_str(&format!(" ({})", about.join(" ")));
        }
        Some(text)
    });
    shown.collect()
}

/// Reads the annotations by which a generated object says how it is to be taken, and removes them.
///
/// # Errors
/// A value that is none.
pub(super) fn take_generator_options(resource: &mut Resource) -> Result<()> {
    let mut annotations = resource.node.metadata_map("annotations");
    let behavior = annotations.remove(BEHAVIOR).unwrap_or_default();
    if let Some(value) = annotations.remove(NEEDS_HASH) {
        resource.needs_hash |= parse_bool(&value).ok_or_else(|| {
            Error::transform(format!(
                "the annotation {} contains an invalid value ({})",
                quote(NEEDS_HASH),
                quote(&value)
            ))
        })?;
    }
    resource.behavior = Behavior::parse(&behavior);
    resource.node.set_metadata_map("annotations", &annotations).map_err(Error::transform)
}

/// Puts what a transformer gave back in the place of the objects (`UpdateResMapValues`): changed ones keep
/// their places, new ones come last, those that it left out are gone.
///
/// # Errors
/// The same object twice, or an id that several objects have.
pub(super) fn take_over(
    objects: &mut ResourceMap,
    nodes: Vec<Node>,
    name: &str,
    location: &Location,
    context: &Context<'_>,
) -> Result<()> {
    let mut returned = ResourceMap::default();
    for mut node in nodes {
        let mut annotations = node.metadata_map("annotations");
        annotations.remove(ID);
        node.set_metadata_map("annotations", &annotations).map_err(Error::transform)?;
        let mut fresh = Resource::new(node, location.clone(), &context.schemas);
        let id = fresh.id();
        if returned.append(vec![fresh.clone()]).is_err() {
            let id = id_json(&id);
            return Err(Error::transform(format!("plugin {name} generated duplicate resource: {id}")));
        }
        let same: Vec<usize> =
            (0..objects.list.len()).filter(|at| objects.list[*at].id().same(&id)).collect();
        fresh.touched = true;
        match same.as_slice() {
            [] => objects.append(vec![fresh])?,
            [at] => {
                let old = &objects.list[*at];
                inherit(&mut fresh.node, &old.node);
                (fresh.vars, fresh.location) = (old.vars.clone(), old.location.clone());
                objects.list[*at] = fresh;
            }
            more => return Err(Error::transform(format!("id matched {} resources", more.len()))),
        }
    }
    let kept: Vec<ResId> = returned.list.iter().map(Resource::id).collect();
    objects.list.retain(|resource| {
        let id = resource.id();
        kept.iter().any(|kept| kept.same(&id))
    });
    Ok(())
}

/// Gives what a function left as it was the origin that it had; what it changed is marked as written over it.
fn inherit(fresh: &mut Node, old: &Node) {
    let before = old.origin & !WRITTEN;
    match (&mut fresh.content, &old.content) {
        (Content::Scalar(text), Content::Scalar(was)) => {
            fresh.origin = if text == was { old.origin } else { before | WRITTEN };
        }
        (Content::Seq(items), Content::Seq(was)) => {
            fresh.origin = old.origin;
            let aligned = items.len() == was.len();
            for (at, item) in items.iter_mut().enumerate() {
                if let Some(old) = counterpart(item, at, was, aligned) {
                    inherit(item, old);
                }
            }
        }
        (Content::Map(pairs), Content::Map(was)) => {
            fresh.origin = old.origin;
            for (key, value) in pairs {
                if let Some((old_key, old_value)) = was.iter().find(|(k, _)| k.value() == key.value()) {
                    key.origin = old_key.origin & !WRITTEN;
                    inherit(value, old_value);
                }
            }
        }
        _ => fresh.origin = before | WRITTEN,
    }
}

/// The item of a list that one given back stands for: of the same name, or else at the same place.
fn counterpart<'a>(item: &Node, at: usize, was: &'a [Node], aligned: bool) -> Option<&'a Node> {
    let name = |node: &Node| node.get("name").map(|name| name.value().to_owned());
    match name(item) {
        Some(wanted) => was.iter().find(|old| name(old).as_ref() == Some(&wanted)),
        None => {
            let same = was.iter().find(|old| item.kind() == Kind::Scalar && old.value() == item.value());
            same.or_else(|| was.get(at).filter(|_| aligned))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_added_as_text() {
        let added = [("k", "0".to_owned())];
        let rows = [
            (
                "a: 1\nmetadata:\n  annotations:\n    b: |\n      x\n\n      y\n  name: n\nz: 1\n",
                "a: 1\nmetadata:\n  annotations:\n    b: |\n      x\n\n      y\n    k: '0'\n  name: n\nz: 1\n",
            ),
            ("metadata:\n  name: n\n", "metadata:\n  name: n\n  annotations:\n    k: '0'\n"),
            (
                "metadata:\n  annotations: {}\n  name: n\n",
                "metadata:\n  annotations:\n    k: '0'\n  name: n\n",
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(annotated(text, &added), expected);
        }
    }

    #[test]
    fn lists_are_wrapped() {
        let list = resource_list(&["a: |\n  x\n\n  y\n".to_owned()], "c: 1\n");
        let value = tiphys_yaml::from_yaml(&list).unwrap();
        assert_eq!(value["items"][0]["a"], "x\n\ny\n");
        assert_eq!(value["functionConfig"]["c"], 1);
        assert!(resource_list(&[], "c: 1\n").contains("items: []\n"));
    }
}
