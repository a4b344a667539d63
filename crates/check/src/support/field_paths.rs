//! Paths of fields in the spelling of the API server.

use tiphys_diag::{Edit, Span};
use tiphys_graph::Object;
use tiphys_model::ApplicationSpec;
use tiphys_value::{FieldPath, OriginKind, Segment, Value};
use tiphys_yaml::{Content, Node, Position};

/// The path that an API error names, such as `spec.ports[0].name` or `metadata.labels[a.b/c]`.
pub(crate) fn of_api(text: &str) -> FieldPath {
    let mut path = FieldPath::default();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (step, after) = inner.split_once(']').unwrap_or((inner, ""));
            path = step.parse().map_or_else(|_| path.key(step), |index: usize| path.index(index));
            rest = after;
            continue;
        }
        let body = rest.strip_prefix('.').unwrap_or(rest);
        let end = body.find(['.', '[']).unwrap_or(body.len());
        if end > 0 {
            path = path.key(&body[..end]);
        }
        rest = &body[end..];
    }
    path
}

/// The nearest ancestor of a path that a value has.
pub(crate) fn nearest(path: FieldPath, value: &Value) -> FieldPath {
    let mut path = path;
    while path.get(value).is_none() {
        let Some(parent) = path.parent() else { return path };
        path = parent;
    }
    path
}

/// Where a source of an Application stands.
pub(crate) fn source(spec: &ApplicationSpec, at: usize) -> FieldPath {
    match spec.has_multiple_sources() {
        true => keys(&["spec", "sources"]).index(at),
        false => keys(&["spec", "source"]),
    }
}

/// The edit that puts another text in the place of a field, if the file that is the object's own wrote it
/// last.
pub(crate) fn rewrite(object: &Object, field: &FieldPath, span: Span, text: &str) -> Option<Edit> {
    let origin = object.rendered.origins.lookup(field).first()?;
    (origin.kind == OriginKind::Manifest).then(|| Edit { span, replacement: text.to_owned() })
}

/// A path of keys.
pub(crate) fn keys(keys: &[&str]) -> FieldPath {
    keys.iter().fold(FieldPath::default(), |path, key| path.key(*key))
}

/// Where a field, or the last of the steps to it that are there, stands in a document.
pub(crate) fn place(root: &Node, field: &FieldPath) -> Position {
    let mut node = root;
    let mut start = root.span.start;
    for step in &field.0 {
        let next = match (step, &node.content) {
            (Segment::Key(key), Content::Mapping(pairs)) => {
                let found = pairs
                    .iter()
                    .find(|(name, _)| matches!(&name.content, Content::Scalar(text) if **text == **key));
                found.map(|(name, value)| (name.span.start, value))
            }
            (Segment::Index(at), Content::Sequence(items)) => {
                items.get(*at).map(|item| (item.span.start, item))
            }
            _ => None,
        };
        let Some((at, value)) = next else { break };
        (start, node) = (at, value);
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_api_errors_are_read() {
        assert_eq!(of_api("spec.ports[0].name").to_string(), ".spec.ports[0].name");
        assert_eq!(of_api("metadata.labels[a.b/c]").to_string(), r#".metadata.labels["a.b/c"]"#);
        assert_eq!(of_api("spec..x[").to_string(), ".spec.x[\"\"]");
    }
}
