//! From the text of a file to objects: cutting into documents, unpacking lists, checking metadata.

use std::{borrow::Cow, collections::HashMap};

use tiphys_value::Location;
use tiphys_yaml::Profile;

use crate::{
    context::Context,
    error::{Error, ErrorKind, Result},
    node::{Content, Conversion, Node, from_json_text, from_yaml_node, keep_origins, read_simple, to_json},
    origins::Tracker,
};

/// A text with what is known of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    /// The text.
    pub text: &'a str,
    /// The file that it stands in.
    pub file: &'a str,
    /// Lines of the file before it.
    pub line_offset: u32,
    /// Who wrote it, for origins.
    pub writer: u32,
}

/// One document: its text and the lines before it.
type Document<'a> = (&'a str, u32);

/// Cuts a stream into documents, as kyaml does: at lines that begin with `---` and hold nothing else
/// but a comment. (Others are left to the parser or refused.)
fn split_documents(text: &str) -> Result<Vec<Document<'_>>, String> {
    let mut documents = Vec::new();
    if text.is_empty() {
        return Ok(documents);
    }
    let (mut start, mut line, mut from) = (0, 0, 0);
    while let Some(at) = text[from..].find("\n---").map(|at| at + from) {
        let Some(end) = text[at + 1..].find('\n').map(|end| at + 1 + end) else { break };
        let rest = text[at + "\n---".len()..end].trim();
        if !rest.is_empty() && !rest.starts_with('#') {
            return Err(format!("invalid document separator: {}", text[at..end].trim()));
        }
        documents.push((&text[start..=at], line));
        line += count_lines(&text[start..=end]);
        start = end + 1;
        from = start;
    }
    documents.push((&text[start..], line));
    Ok(documents)
}

fn count_lines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|byte| *byte == b'\n').count()).unwrap_or(u32::MAX)
}

fn malformed(message: String) -> Error {
    Error::new(ErrorKind::MalformedYaml, message)
}

/// The text of a file of objects: UTF-16 where its byte order mark says so, else UTF-8.
///
/// # Errors
/// The bytes are neither, in the words of go-yaml.
pub(crate) fn decoded(bytes: &[u8]) -> Result<Cow<'_, str>> {
    tiphys_yaml::decode_text(bytes).map_err(|error| malformed(format!("MalformedYAMLError: {error}")))
}

/// The bytes that the nodes of a text take for each of its own, about.
const READ: usize = 5;

/// The documents of a text as trees (`kio.FromBytes`): empty ones dropped, a lone `List` unpacked.
///
/// # Errors
/// What is no YAML.
pub(crate) fn read_documents(context: &mut Context<'_>, source: Text<'_>) -> Result<Vec<Node>> {
    let text: Cow<'_, str> = match source.text.contains('\r') {
        true => source.text.replace("\r\n", "\n").into(),
        false => source.text.into(),
    };
    let documents = split_documents(&text).map_err(malformed)?;
    let alone = documents.len() == 1;
    let mut nodes = Vec::with_capacity(documents.len());
    for (document, line) in documents {
        let Some(node) = read_one(context, source, document, line + source.line_offset)? else { continue };
        let is_list = matches!(node.object_kind(), "ResourceList" | "List");
        if alone && is_list && (node.get("items").is_some() || node.get("functionConfig").is_some()) {
            nodes.extend(take_items(node));
        } else {
            nodes.push(node);
        }
    }
    Ok(nodes)
}

fn take_items(mut node: Node) -> Vec<Node> {
    let items = node.get_mut("items").and_then(Node::items_mut);
    items.map(std::mem::take).unwrap_or_default()
}

fn read_one(context: &mut Context<'_>, source: Text<'_>, document: &str, line: u32) -> Result<Option<Node>> {
    let budget = context.options.limits.nodes_per_file;
    context.meter.check(READ * document.len())?;
    if !context.tracker.is_enabled()
        && let Some(read) = read_simple(document, budget)
    {
        return Ok(read);
    }
    let parsed = tiphys_yaml::parse_first(document, Profile::Go3).map_err(|error| {
        let place = error.position().map(|at| Location::new(source.file, at.line + line, at.column));
        malformed(format!("MalformedYAMLError: {error}")).located_at(place)
    })?;
    let Some(parsed) = parsed.filter(|parsed| !parsed.root.is_null()) else { return Ok(None) };
    let mut conversion = Conversion {
        tracker: &mut context.tracker,
        writer: source.writer,
        line_offset: line,
        budget,
        anchors: HashMap::new(),
    };
    let start = parsed.root.span.start;
    let at = |message| {
        malformed(message).located_at(Some(Location::new(source.file, start.line + line, start.column)))
    };
    let node = from_yaml_node(parsed.root, &mut conversion).map_err(at)?;
    context.meter.take_node(&node, 0).map_err(at)?;
    Ok(Some(node))
}

/// The objects in a text (`SliceFromBytes`).
///
/// # Errors
/// What is no YAML, or no Kubernetes object.
pub(crate) fn read_objects(context: &mut Context<'_>, source: Text<'_>) -> Result<Vec<Node>> {
    let nodes = read_documents(context, source)?;
    objects_of(context, source, nodes)
}

/// The objects that trees are: empty ones dropped, lists unpacked.
///
/// # Errors
/// What is no Kubernetes object.
pub(crate) fn objects_of(context: &Context<'_>, source: Text<'_>, nodes: Vec<Node>) -> Result<Vec<Node>> {
    let nodes = check_objects(context, source, nodes)?;
    unpack_lists(context, source, nodes)
}

/// Drops empty nodes; others must have a kind and a name.
fn check_objects(context: &Context<'_>, source: Text<'_>, nodes: Vec<Node>) -> Result<Vec<Node>> {
    let mut kept = Vec::with_capacity(nodes.len());
    for node in nodes {
        if node.is_empty() {
            continue;
        }
        check_metadata(&node, &[]).map_err(|message| {
            let place = context.tracker.location(node.origin);
            malformed(message).located_at(place.or_else(|| Some(Location::new(source.file, 0, 0))))
        })?;
        kept.push(node);
    }
    Ok(kept)
}

/// Kind and name of an object (`GetValidatedMetadata`).
///
/// # Errors
/// kustomize's text, which shows the annotations in which it keeps `state` beside the object's own.
pub(crate) fn check_metadata(node: &Node, state: &[(String, String)]) -> std::result::Result<(), String> {
    let field = |name: &str| node.get(name).filter(|value| !value.is_empty());
    let metadata = field("metadata");
    let has =
        |name: &str| metadata.and_then(|metadata| metadata.get(name)).is_some_and(|value| !value.is_empty());
    let known = field("apiVersion").is_some()
        || field("kind").is_some()
        || ["name", "namespace", "labels", "annotations"].into_iter().any(has);
    if !known {
        return Err("missing Resource metadata".to_owned());
    }
    let kind = field("kind").map(Node::value).unwrap_or_default();
    if kind.is_empty() {
        return Err(format!("missing kind in object {}", describe(node, state)));
    }
    if !kind.ends_with("List") && node.name().is_empty() {
        return Err(format!("missing metadata.name in object {}", describe(node, state)));
    }
    Ok(())
}

/// Metadata as Go prints the struct.
fn describe(node: &Node, state: &[(String, String)]) -> String {
    let has_metadata =
        node.get("metadata").is_none_or(|metadata| matches!(metadata.content, Content::Map(_)));
    let state = if has_metadata { state } else { &[] };
    let map = |field: &str, state: &[(String, String)]| {
        let mut entries = node.metadata_map(field);
        entries.extend(state.iter().cloned());
        let pairs: Vec<String> = entries.iter().map(|(k, v)| format!("{k}:{v}")).collect();
        format!("map[{}]", pairs.join(" "))
    };
    let text = |field: &str| node.get(field).filter(|value| !value.is_null()).map_or("", Node::value);
    format!(
        "{{{{{} {}}} {{{{{} {}}} {} {}}}}}",
        text("apiVersion"),
        text("kind"),
        node.name(),
        node.namespace(),
        map("labels", &[]),
        map("annotations", state)
    )
}

/// Replaces objects of a kind that ends in `List` by their items, which go to the end of the queue.
fn unpack_lists(context: &Context<'_>, source: Text<'_>, nodes: Vec<Node>) -> Result<Vec<Node>> {
    let mut queue: std::collections::VecDeque<Node> = nodes.into();
    let mut result = Vec::with_capacity(queue.len());
    while let Some(node) = queue.pop_front() {
        let kind = node.object_kind();
        let Some(items) = node.get("items").filter(|_| kind.ends_with("List")) else {
            result.push(node);
            continue;
        };
        match &items.content {
            Content::Seq(items) => {
                let items =
                    items.iter().map(as_json_text).collect::<Result<Vec<_>, _>>().map_err(malformed)?;
                queue.extend(check_objects(context, source, items)?);
            }
            _ if items.is_null() => {}
            _ => {
                let found = if matches!(items.content, Content::Map(_)) {
                    "map[string]interface {}"
                } else {
                    "string"
                };
                return Err(malformed(format!("expected array in {kind}/items, but found {found}")));
            }
        }
        context.check_objects(queue.len() + result.len())?;
    }
    Ok(result)
}

/// An item, printed as JSON and parsed again.
fn as_json_text(item: &Node) -> Result<Node, String> {
    let mut fresh = from_json_text(&to_json(item)?);
    keep_origins(&mut fresh, item);
    Ok(fresh)
}

/// The first document of a text without origins; `None` if it is empty.
///
/// # Errors
/// What is no YAML.
pub(crate) fn parse_plain(text: &str) -> Result<Option<Node>, String> {
    let budget = crate::Limits::default().nodes_per_file;
    if let Some(read) = read_simple(text, budget) {
        return Ok(read);
    }
    let Some(parsed) = tiphys_yaml::parse_first(text, Profile::Go3).map_err(|error| error.to_string())?
    else {
        return Ok(None);
    };
    let mut conversion = Conversion {
        tracker: &mut Tracker::new(false),
        writer: 0,
        line_offset: 0,
        budget,
        anchors: HashMap::new(),
    };
    from_yaml_node(parsed.root, &mut conversion).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_separators_and_counts_lines() {
        let documents = split_documents("a: 1\n---\nb: 2\n--- # c\nc: 3").unwrap();
        assert_eq!(documents, [("a: 1\n", 0), ("b: 2\n", 2), ("c: 3", 4)]);
        assert!(split_documents("a\n--- b\nc").is_err());
        assert_eq!(split_documents("---\na: 1\n").unwrap(), [("---\na: 1\n", 0)]);
    }
}
