//! `toYamlPretty`: Go values as go-yaml v3 marshals them, not by way of JSON. Whole floats stay floats
//! (`1e+06`), bytes are lists of numbers, fields of structs have their Go names in small letters.

use tiphys_gocompat::{base64, rawstr};
use tiphys_gotemplate::{Object, Value};
use tiphys_value::Value as Json;
use tiphys_yaml::{EmitOptions, Node, SequenceIndent, Style, emit, from_value, go_float, sort_keys};

/// How deep values may nest, as for JSON.
const MAX_DEPTH: usize = 1000;

/// Length of the lines of base64 that go-yaml writes for texts that are not UTF-8.
const BASE64_LINE: usize = 70;

/// The YAML of a value, without the last newline; nothing if it nests too deep, as where go-yaml fails.
pub(super) fn to_yaml_pretty(value: &Value) -> String {
    let Some(node) = node(value, 0) else { return String::new() };
    let layout = EmitOptions { indent: 2, sequence_indent: SequenceIndent::Wide };
    let mut yaml = emit(&node, layout);
    if yaml.ends_with('\n') {
        yaml.pop();
    }
    yaml
}

fn node(value: &Value, depth: usize) -> Option<Node> {
    if depth > MAX_DEPTH {
        return None;
    }
    Some(match value {
        Value::NoValue | Value::Nil => Node::null(),
        Value::Bool(value) => Node::scalar(value.to_string()),
        Value::Int(value) | Value::Int64(value) => Node::scalar(value.to_string()),
        Value::Uint8(value) => Node::scalar(value.to_string()),
        Value::Uint64(value) => Node::scalar(value.to_string()),
        Value::Float64(value) => Node::scalar(go_float(*value)),
        Value::String(text) => string(text),
        Value::Bytes(bytes) => {
            Node::sequence(bytes.iter().map(|byte| Node::scalar(byte.to_string())).collect())
        }
        Value::List(list) => {
            let items = list.items();
            Node::sequence(items.iter().map(|item| node(item, depth + 1)).collect::<Option<_>>()?)
        }
        Value::Map(map) => {
            let entries = map.entries();
            let mut pairs: Vec<_> = entries.iter().map(|entry| (entry.key.as_str(), &entry.value)).collect();
            sort_keys(&mut pairs, |pair| pair.0);
            mapping(pairs.into_iter().map(|(key, value)| Some((string(key), node(value, depth + 1)?))))?
        }
        Value::Object(object) => of_object(&**object, depth)?,
    })
}

fn mapping(pairs: impl Iterator<Item = Option<(Node, Node)>>) -> Option<Node> {
    Some(Node::mapping(pairs.collect::<Option<_>>()?))
}

fn of_object(object: &dyn Object, depth: usize) -> Option<Node> {
    if let Some(content) = object.content() {
        return node(&content, depth + 1);
    }
    let fields =
        object.field_names().iter().filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()));
    let pairs = fields.map(|name| {
        let value = object.field(name).unwrap_or_default();
        Some((string(&name.to_ascii_lowercase()), node(&value, depth + 1)?))
    });
    match (object.field_names(), object.to_json()) {
        ([_, ..], _) => mapping(pairs),
        ([], Value::String(moment)) if object.type_name() == "time.Time" => Some(Node::scalar(&*moment)),
        // What has a text of its own in JSON has it in YAML.
        ([], other) => node(&other, depth + 1),
    }
}

fn string(text: &str) -> Node {
    if !rawstr::has_raw(text) {
        return from_value(&Json::from(text));
    }
    let encoded = base64::encode(&rawstr::decode(text));
    let lines: Vec<&str> = (0..encoded.len())
        .step_by(BASE64_LINE)
        .map(|at| &encoded[at..encoded.len().min(at + BASE64_LINE)])
        .collect();
    let mut node = match lines.as_slice() {
        [line] => Node::scalar(*line),
        lines => {
            let mut node = Node::scalar(lines.iter().flat_map(|line| [line, "\n"]).collect::<String>());
            node.style = Style::Literal;
            node
        }
    };
    node.tag = "!!binary".into();
    node.explicit_tag = true;
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_text_that_ends_in_newlines_one_is_left_out() {
        let list = Value::list(vec![Value::string("a\n\n")]);
        assert_eq!(to_yaml_pretty(&list), "- |+\n  a\n");
    }
}
