//! Objects as CEL sees them.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    Value,
    objects::{Key, Map},
};
use serde_json::Value as Json;
use tiphys_schema::{Type, TypeRef};

use super::{Environment, Expression};

/// How deep values are followed.
const MAX_DEPTH: usize = 200;
/// Names that CEL keeps for itself.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A value without a type: keys stay as they are.
pub fn plain(value: &Json) -> Value {
    untyped(value, 0)
}

/// An object of a built-in kind, or of a custom one by its type: fields whose names CEL cannot spell are
/// escaped, keys of maps are not.
pub fn by_type(value: &Json, ty: TypeRef<'_>) -> Value {
    typed(value, ty, 0)
}

/// A value by its structural schema, as the rules of custom resources see it: undescribed fields are
/// not there. The root has its name and type beside what the schema describes.
pub fn by_schema(value: &Json, schema: &Json, is_root: bool) -> Value {
    structural(value, schema, is_root, 0)
}

/// A field's name as CEL spells it.
pub(super) fn escape(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '_' if rest.peek() == Some(&'_') => {
                rest.next();
                out.push_str("__underscores__");
            }
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            c => out.push(c),
        }
    }
    out
}

fn map(entries: impl Iterator<Item = (String, Value)>) -> Value {
    let map: HashMap<Key, Value> = entries.map(|(key, value)| (Key::String(Arc::new(key)), value)).collect();
    Value::Map(Map { map: Arc::new(map) })
}

fn text(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

fn number(number: &serde_json::Number) -> Value {
    match (number.as_i64(), number.as_u64()) {
        (Some(i), _) => Value::Int(i),
        (None, Some(u)) => Value::UInt(u),
        (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

fn untyped(value: &Json, depth: usize) -> Value {
    match value {
        _ if depth > MAX_DEPTH => Value::Null,
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(n) => number(n),
        Json::String(s) => text(s),
        Json::Array(items) => Value::List(Arc::new(items.iter().map(|v| untyped(v, depth + 1)).collect())),
        Json::Object(fields) => map(fields.iter().map(|(k, v)| (k.clone(), untyped(v, depth + 1)))),
    }
}

fn typed(value: &Json, ty: TypeRef<'_>, depth: usize) -> Value {
    match (value, ty.ty) {
        _ if depth > MAX_DEPTH => Value::Null,
        (Json::String(s), Type::Time | Type::MicroTime) => moment(s),
        (Json::String(s), Type::Bytes) => bytes(s),
        (Json::Number(n), Type::F64) => Value::Float(n.as_f64().unwrap_or(f64::NAN)),
        (Json::Array(items), Type::List(..)) => {
            let of = ty.items();
            let items = items.iter().map(|item| match of {
                Some(of) => typed(item, of, depth + 1),
                None => untyped(item, depth + 1),
            });
            Value::List(Arc::new(items.collect()))
        }
        (Json::Object(fields), _) => {
            let has_fields = ty.definition().is_some();
            map(fields.iter().flat_map(|(key, value)| {
                let value = match ty.field(key) {
                    Some(of) => typed(value, of, depth + 1),
                    None => untyped(value, depth + 1),
                };
                // Both spellings of a field are in use; nobody can count or list fields.
                let escaped = (has_fields && escape(key) != *key).then(|| (escape(key), value.clone()));
                escaped.into_iter().chain([(key.clone(), value)])
            }))
        }
        (value, _) => untyped(value, depth),
    }
}

fn structural(value: &Json, schema: &Json, is_root: bool, depth: usize) -> Value {
    let format = schema["format"].as_str().unwrap_or_default();
    let free = schema["x-kubernetes-int-or-string"] == true;
    match value {
        _ if depth > MAX_DEPTH => Value::Null,
        Json::String(s) if !free => match format {
            "date-time" | "date" => moment(s),
            "duration" => span(s),
            "byte" => bytes(s),
            _ => text(s),
        },
        Json::Number(n) if schema["type"] == "number" => Value::Float(n.as_f64().unwrap_or(f64::NAN)),
        Json::Array(items) => {
            let items = items.iter().map(|item| structural(item, &schema["items"], false, depth + 1));
            Value::List(Arc::new(items.collect()))
        }
        Json::Object(fields) => {
            let embedded = is_root || schema["x-kubernetes-embedded-resource"] == true;
            let properties = schema["properties"].as_object();
            let others = &schema["additionalProperties"];
            let open = schema["x-kubernetes-preserve-unknown-fields"] == true && properties.is_none();
            map(fields.iter().filter_map(|(key, value)| {
                if let Some(property) = properties.and_then(|p| p.get(key))
                    && !(embedded && key == "metadata")
                {
                    return Some((escape(key), structural(value, property, false, depth + 1)));
                }
                match key.as_str() {
                    "metadata" if embedded => Some((key.clone(), names_of(value))),
                    "apiVersion" | "kind" if embedded => Some((key.clone(), untyped(value, depth + 1))),
                    _ if others.is_object() => {
                        Some((key.clone(), structural(value, others, false, depth + 1)))
                    }
                    _ if open || *others == true => Some((key.clone(), untyped(value, depth + 1))),
                    _ => None,
                }
            }))
        }
        value => untyped(value, depth),
    }
}

/// Of metadata, rules see the names only.
fn names_of(metadata: &Json) -> Value {
    let names = ["name", "generateName"].into_iter();
    map(names.filter_map(|key| Some((key.to_owned(), text(metadata[key].as_str()?)))))
}

/// Applies one of CEL's conversions; a text that does not fit stays a text.
fn converted(function: &str, input: &str) -> Option<Value> {
    let expression = Expression::compile(&format!("{function}(self)"), &["self"]).ok()?;
    expression.evaluate(&Environment::new([("self".to_owned(), text(input))])).ok()
}

fn moment(input: &str) -> Value {
    converted("timestamp", input).unwrap_or_else(|| text(input))
}

fn span(input: &str) -> Value {
    converted("duration", input).unwrap_or_else(|| text(input))
}

fn bytes(input: &str) -> Value {
    converted("base64.decode", input).unwrap_or_else(|| text(input))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_escaped_where_they_are_fields() {
        assert_eq!(escape("namespace"), "__namespace__");
        assert_eq!(escape("foo-bar"), "foo__dash__bar");
        assert_eq!(escape("a_b"), "a_b");
        let schema = json!({"properties": {"a-b": {"type": "integer"}, "m": {"additionalProperties": {"type": "string"}}}});
        let value = by_schema(&json!({"a-b": 1, "m": {"x-y": "z"}, "unknown": 1}), &schema, false);
        let environment = Environment::new([("self".to_owned(), value)]);
        let holds = |source: &str| Expression::compile(source, &["self"]).unwrap().holds(&environment);
        assert_eq!(holds("self.a__dash__b == 1 && self.m['x-y'] == 'z' && !has(self.unknown)"), Ok(true));
    }

    #[test]
    fn formats_become_types() {
        let schema =
            json!({"properties": {"at": {"type": "string", "format": "date-time"}, "n": {"type": "number"}}});
        let value = by_schema(&json!({"at": "2026-01-01T00:00:00Z", "n": 1}), &schema, false);
        let environment = Environment::new([("self".to_owned(), value)]);
        let rule = "self.at > timestamp('2025-01-01T00:00:00Z') && self.n < 1.5";
        assert_eq!(Expression::compile(rule, &["self"]).unwrap().holds(&environment), Ok(true));
    }
}
