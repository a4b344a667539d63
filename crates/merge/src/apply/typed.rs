//! Whether a configuration is an object of its type: server-side apply refuses others whatever the field
//! validation, in the words of structured-merge-diff.

use std::collections::HashSet;

use serde_json::Value;
use tiphys_gocompat::strconv::{FloatFormat, format_float};
use tiphys_schema::{Definition, ListKind, Type, TypeRef};
use tiphys_value::go_type;

/// How deep objects may be; the JSON parser allows no deeper ones.
const DEPTH: usize = 128;

/// What does not fit, in the server's words; `None` if everything does.
pub(super) fn faults(config: &Value, ty: TypeRef<'_>) -> Option<String> {
    let mut walk = Walk { faults: Vec::new() };
    walk.value(config, ty, "", DEPTH);
    match walk.faults.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        many => Some(format!("errors:\n  {}", many.join("\n  "))),
    }
}

struct Walk {
    faults: Vec<String>,
}

impl Walk {
    fn add(&mut self, path: &str, why: &str) {
        self.faults.push(if path.is_empty() { why.to_owned() } else { format!("{path}: {why}") });
    }

    fn value(&mut self, value: &Value, ty: TypeRef<'_>, path: &str, depth: usize) {
        let Some(depth) = depth.checked_sub(1).filter(|_| !value.is_null()) else { return };
        if let Some(definition) = ty.definition() {
            return self.object(value, ty, Some(definition), path, depth);
        }
        match ty.ty {
            Type::Map(..) => self.object(value, ty, None, path, depth),
            Type::List(..) => self.list(value, ty, path, depth),
            Type::Str | Type::Bytes if !value.is_string() => {
                let shown =
                    format!("expected string, got &value.valueUnstructured{{Value:{}}}", syntax(value));
                self.add(path, &shown);
            }
            Type::Bool if !value.is_boolean() => {
                self.add(path, &format!("expected boolean, got &{{{}}}", plain(value)));
            }
            Type::I32 | Type::I64 | Type::F64 if !value.is_number() => {
                self.add(path, &format!("expected numeric (int or float), got {}", go_type(value)));
            }
            Type::Time | Type::MicroTime if value.is_array() || value.is_object() => {
                self.add(path, &format!("expected any scalar, got &{{{}}}", plain(value)));
            }
            _ => {}
        }
    }

    fn object(
        &mut self,
        value: &Value,
        ty: TypeRef<'_>,
        definition: Option<&Definition>,
        path: &str,
        depth: usize,
    ) {
        let Some(fields) = value.as_object() else {
            return self.add(path, &format!("expected map, got &{{{}}}", plain(value)));
        };
        let is_closed = definition.is_some_and(|definition| definition.others.is_none());
        for (name, inner) in fields {
            let at = format!("{path}.{name}");
            match ty.field(name) {
                Some(field) => self.value(inner, field, &at, depth),
                // An object's own kind is known wherever it stands.
                None if is_closed && !(path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind")) => {
                    // An API server looks at no more of the map then, which it walks through in any order.
                    return self.add(&at, "field not declared in schema");
                }
                None => {}
            }
        }
    }

    fn list(&mut self, value: &Value, ty: TypeRef<'_>, path: &str, depth: usize) {
        let Some(items) = value.as_array() else {
            return self.add(path, &format!("expected list, got &{{{}}}", plain(value)));
        };
        let Some(inner) = ty.items() else { return };
        let kind = ty.list_kind().unwrap_or(&ListKind::Atomic);
        let mut seen = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let step = match step(item, index, inner, kind) {
                Ok(step) => step,
                Err(why) => return self.add(path, &format!("element {index}: {why}")),
            };
            self.value(item, inner, &format!("{path}{step}"), depth);
            if *kind == ListKind::Atomic {
                continue;
            }
            if let Some(step) = seen.replace(step) {
                self.add(path, &format!("duplicate entries for key {step}"));
            }
        }
    }
}

/// What identifies a list item in paths: its keys, itself, or its place.
fn step(item: &Value, index: usize, inner: TypeRef<'_>, kind: &ListKind) -> Result<String, String> {
    match kind {
        ListKind::Atomic => Ok(format!("[{index}]")),
        ListKind::Set => match item {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
            scalar => Ok(format!("[={}]", key_text(scalar))),
        },
        ListKind::Map(_) if item.is_null() => {
            Err("associative list with keys may not have a null element".into())
        }
        ListKind::Map(_) if !item.is_object() => {
            Err("associative list with keys may not have non-map elements".into())
        }
        ListKind::Map(keys) => {
            let value = |key: &str| item.get(key).or_else(|| inner.key_default(key));
            let mut given: Vec<_> =
                keys.iter().filter_map(|key| Some(format!("{key}={}", key_text(value(key)?)))).collect();
            given.sort();
            if given.is_empty() {
                let keys: Vec<_> = keys.iter().map(|key| tiphys_schema::quote(key)).collect();
                return Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                    keys.join(" ")
                ));
            }
            Ok(format!("[{}]", given.join(",")))
        }
    }
}

fn key_text(value: &Value) -> String {
    match value {
        Value::String(text) => tiphys_schema::quote(text),
        Value::Array(items) => format!("[{}]", items.iter().map(key_text).collect::<Vec<_>>().join(",")),
        Value::Object(map) => map.iter().map(|(key, value)| format!("{key}={}", key_text(value))).collect(),
        other => plain(other),
    }
}

fn number(number: &serde_json::Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => format_float(float, FloatFormat::General, None),
        None => number.to_string(),
    }
}

/// As Go's `%v` prints it.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Number(found) => number(found),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| format!("{key}:{}", plain(value)));
            format!("map[{}]", entries.collect::<Vec<_>>().join(" "))
        }
        Value::Bool(truth) => truth.to_string(),
    }
}

/// As Go's `%#v` prints it.
fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::String(text) => tiphys_schema::quote(text),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let entries =
                map.iter().map(|(key, value)| format!("{}:{}", tiphys_schema::quote(key), syntax(value)));
            format!("map[string]interface {{}}{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        other => plain(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tiphys_schema::Catalog;
    use tiphys_value::ObjectExt;

    use super::*;

    fn deployment(spec: Value) -> Option<String> {
        let config =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec});
        faults(&config, Catalog::latest().type_of(&config.gvk()).unwrap())
    }

    #[test]
    fn names_fields_that_a_kind_does_not_have() {
        let spec = json!({"template": {"spec": {"containers": [{"name": "c", "color": "red"}]}}, "width": 1});
        let expected = "errors:\n  .spec.template.spec.containers[name=\"c\"].color: field not declared in schema\n  \
                        .spec.width: field not declared in schema";
        assert_eq!(deployment(spec).unwrap(), expected);
        let several = json!({"size": 1, "width": 1});
        assert_eq!(deployment(several).unwrap(), ".spec.size: field not declared in schema");
    }

    #[test]
    fn names_values_of_another_type() {
        for (spec, expected) in [
            (json!({"replicas": "2"}), ".spec.replicas: expected numeric (int or float), got string"),
            (json!({"paused": [1.5]}), ".spec.paused: expected boolean, got &{[1.5]}"),
            (json!("x"), ".spec: expected map, got &{x}"),
            (
                json!({"selector": {"matchLabels": {"a": {"b": [null, "x"]}}}}),
                ".spec.selector.matchLabels.a: expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"b\":[]interface {}{interface {}(nil), \"x\"}}}",
            ),
            (
                json!({"template": {"spec": {"containers": [{"name": "c"}, {"name": "c"}]}}}),
                ".spec.template.spec.containers: duplicate entries for key [name=\"c\"]",
            ),
        ] {
            assert_eq!(deployment(spec).unwrap(), expected);
        }
        assert_eq!(deployment(json!({"replicas": 2, "strategy": null, "selector": {}})), None);
    }
}
