//! Words to write structural schemas with.

use serde_json::{Map, Value, json};

pub(super) fn string() -> Value {
    json!({"type": "string"})
}

pub(super) fn boolean() -> Value {
    json!({"type": "boolean"})
}

pub(super) fn int64() -> Value {
    json!({"type": "integer", "format": "int64"})
}

pub(super) fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

pub(super) fn int_or_string() -> Value {
    json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]})
}

/// An object of any content.
pub(super) fn any_object() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A value of any type.
pub(super) fn anything() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

pub(super) fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

pub(super) fn strings() -> Value {
    list(string())
}

pub(super) fn map(values: Value) -> Value {
    json!({"type": "object", "additionalProperties": values})
}

pub(super) fn string_map() -> Value {
    map(string())
}

pub(super) fn one_of(texts: &[&str]) -> Value {
    json!({"type": "string", "enum": texts})
}

/// An object; a name that ends with `!` is required.
pub(super) fn object(fields: &[(&str, Value)]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, schema) in fields {
        let plain = name.trim_end_matches('!');
        if plain != *name {
            required.push(Value::from(plain));
        }
        properties.insert(plain.to_owned(), schema.clone());
    }
    let mut out = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        out["required"] = required.into();
    }
    out
}

/// An object that keeps fields which are not listed.
pub(super) fn open_object(fields: &[(&str, Value)]) -> Value {
    let mut out = object(fields);
    out["x-kubernetes-preserve-unknown-fields"] = true.into();
    out
}

/// A whole kind.
pub(super) fn root(fields: &[(&str, Value)]) -> Value {
    let mut all =
        vec![("apiVersion", string()), ("kind", string()), ("metadata!", json!({"type": "object"}))];
    all.extend(fields.iter().cloned());
    object(&all)
}

/// `metav1.LabelSelector`.
pub(super) fn label_selector() -> Value {
    let expression = object(&[("key!", string()), ("operator!", string()), ("values", strings())]);
    object(&[("matchExpressions", list(expression)), ("matchLabels", string_map())])
}
