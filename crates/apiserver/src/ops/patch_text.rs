//! A patched object as messages show it: parts that the patch looked into have their keys sorted, all others
//! stand as they were written, in the order of their structs.

use std::fmt::Write;

use tiphys_schema::TypeRef;
use tiphys_value::{Map, Value};

/// The text. Objects are as deep as the JSON parser's limit at most.
pub(super) fn format_patched(value: &Value, patch: Option<&Value>, ty: Option<TypeRef<'_>>) -> String {
    let mut text = String::new();
    write(&mut text, value, patch, ty);
    // As Go's encoder writes them.
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// As [`shown`], of an object without a struct: all keys are sorted.
pub(super) fn sorted(value: &Value) -> String {
    fn write_sorted(out: &mut String, value: &Value) {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(name, _)| name.as_str());
                out.push('{');
                for (at, (name, inner)) in fields.into_iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    let _ = write!(out, "{comma}{}:", Value::from(name.as_str()));
                    write_sorted(out, inner);
                }
                out.push('}');
            }
            Value::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    write_sorted(out, item);
                }
                out.push(']');
            }
            other => drop(write!(out, "{other}")),
        }
    }
    let mut text = String::new();
    write_sorted(&mut text, value);
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn write(out: &mut String, value: &Value, patch: Option<&Value>, ty: Option<TypeRef<'_>>) {
    match value {
        Value::Object(fields) => {
            let patch = patch.filter(|patch| patch.is_object());
            let position =
                |name: &str| ty.and_then(|ty| ty.field_info(name)).map_or(usize::MAX, |f| f.position);
            let mut fields: Vec<_> = fields.iter().collect();
            if patch.is_none() && ty.is_some_and(|ty| ty.definition().is_some()) {
                fields.sort_by_key(|(name, _)| position(name));
            }
            out.push('{');
            for (at, (name, inner)) in fields.into_iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                let _ = write!(out, "{comma}{}:", Value::from(name.as_str()));
                match inner {
                    Value::Object(owned) if name == "fieldsV1" => write_owned(out, owned),
                    _ => write(
                        out,
                        inner,
                        patch.and_then(|patch| patch.get(name)),
                        ty.and_then(|ty| ty.field(name)),
                    ),
                }
            }
            out.push('}');
        }
        Value::Array(items) => {
            // A list comes from the patch as a whole, and then all keys in it are sorted.
            let ty = ty.filter(|_| !patch.is_some_and(Value::is_array));
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write(out, item, None, ty.and_then(|ty| ty.items()));
            }
            out.push(']');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

/// A set of owned fields: keys are sorted as path elements are, items of lists by what identifies them.
fn write_owned(out: &mut String, owned: &Map<String, Value>) {
    let mut entries: Vec<_> = owned.iter().map(|(name, inner)| (rank(name), name, inner)).collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    out.push('{');
    for (at, (_, name, inner)) in entries.into_iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let _ = write!(out, "{comma}{}:", Value::from(name.as_str()));
        match inner {
            Value::Object(inner) => write_owned(out, inner),
            other => drop(write!(out, "{other}")),
        }
    }
    out.push('}');
}

/// The place of a path element: the field itself, fields, keys of list items, values, positions.
fn rank(name: &str) -> (u8, Vec<(u64, String)>) {
    let (class, rest) = match name.split_once(':') {
        _ if name == "." => return (0, Vec::new()),
        Some(("f", rest)) => return (1, vec![(0, rest.to_owned())]),
        Some(("k", rest)) => (2, rest),
        Some(("v", rest)) => (3, rest),
        Some((_, rest)) => (4, rest),
        None => (5, name),
    };
    let of = |value: &Value| match value.as_u64() {
        Some(number) => (number, String::new()),
        None => (u64::MAX, value.to_string()),
    };
    match serde_json::from_str::<Value>(rest) {
        Ok(Value::Object(keys)) => {
            (class, keys.iter().flat_map(|(key, value)| [(0, key.clone()), of(value)]).collect())
        }
        Ok(value) => (class, vec![of(&value)]),
        Err(_) => (class, vec![(0, rest.to_owned())]),
    }
}

#[cfg(test)]
mod tests {
    use tiphys_schema::Catalog;
    use tiphys_value::{GroupVersionKind, json};

    use super::*;

    #[test]
    fn only_what_a_patch_looks_into_is_sorted() {
        let ty = Catalog::latest().type_of(&GroupVersionKind::new("", "v1", "Pod"));
        let pod = json!({"kind": "Pod", "metadata": {"labels": {"b": 1, "a": "x"}, "name": "p",
            "managedFields": [{"operation": "Update", "manager": "m"}]}, "spec": {"containers": [{"image": "i", "name": "c"}], "restartPolicy": "Always"}});
        assert_eq!(
            format_patched(&pod, Some(&json!({"metadata": {"labels": {"b": 1}}})), ty),
            r#"{"kind":"Pod","metadata":{"labels":{"a":"x","b":1},"managedFields":[{"manager":"m","operation":"Update"}],"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}],"restartPolicy":"Always"}}"#
        );
    }
}
