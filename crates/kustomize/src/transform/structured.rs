//! Setting fields inside YAML or JSON that a field holds as text.

use serde_json::Value;

use crate::{
    node::{Kind, Node, PathMatcher, lookup, lookup_mut, quoted_json, to_json},
    reader::parse_plain,
};

/// Sets a field of the document held by the first scalar on a path; returns whether there was one
/// with such a field.
pub(super) fn set(node: &mut Node, value: &Node, path: &[String], create: Option<Kind>) -> bool {
    let Some((split, text)) = find_scalar(node, path) else { return false };
    let Ok(Some(mut document)) = parse_plain(&text) else { return false };
    let matcher = PathMatcher { path: &path[split..], create };
    let result = matcher.each(&mut document, &mut |field| {
        if field.kind() == Kind::Scalar {
            field.assign_value(value.value_smol());
        } else {
            field.assign(value.clone());
        }
        Ok(())
    });
    if !matches!(result, Ok(count) if count > 0) {
        return false;
    }
    let Some(serialized) = serialize(&document, &text) else { return false };
    match lookup_mut(node, &path[..split]) {
        Ok(Some(scalar)) => {
            scalar.assign_value(serialized);
            true
        }
        _ => false,
    }
}

/// The first step after which the path goes on below a scalar that is YAML, and its text.
fn find_scalar(node: &Node, path: &[String]) -> Option<(usize, String)> {
    (1..path.len()).find_map(|split| {
        let scalar = lookup(node, &path[..split]).ok()??;
        let is_text = scalar.kind() == Kind::Scalar && parse_plain(scalar.value()).is_ok();
        is_text.then(|| (split, scalar.value().to_owned()))
    })
}

/// As JSON if the text was JSON, indented if it was; else as YAML.
fn serialize(document: &Node, original: &str) -> Option<String> {
    let first = original.trim_start().chars().next()?;
    if first != '{' && first != '[' {
        return Some(yaml_text(document));
    }
    let value = to_json(document).ok()?;
    if original.contains('\n') && original.contains("  ") {
        return Some(indented(&value, 0));
    }
    Some(quoted_json(&value))
}

/// The document as kyaml writes it: order of keys and styles kept.
fn yaml_text(document: &Node) -> String {
    let text = tiphys_yaml::emit(&document.to_yaml_node(), tiphys_yaml::EmitOptions::KYAML);
    text.trim().to_owned()
}

/// `json.MarshalIndent` with two spaces.
fn indented(value: &Value, depth: usize) -> String {
    let pad = "  ".repeat(depth + 1);
    let end = "  ".repeat(depth);
    match value {
        Value::Array(items) if !items.is_empty() => {
            let items: Vec<String> =
                items.iter().map(|item| format!("{pad}{}", indented(item, depth + 1))).collect();
            format!("[\n{}\n{end}]", items.join(",\n"))
        }
        Value::Object(map) if !map.is_empty() => {
            let pairs: Vec<String> = map
                .iter()
                .map(|(key, value)| {
                    format!(
                        "{pad}{}: {}",
                        quoted_json(&Value::from(key.as_str())),
                        indented(value, depth + 1)
                    )
                })
                .collect();
            format!("{{\n{}\n{end}}}", pairs.join(",\n"))
        }
        other => quoted_json(other),
    }
}
