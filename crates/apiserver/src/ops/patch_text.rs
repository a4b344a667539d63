//! A patched object as messages show it: parts that the patch looked into have their keys sorted, all others
//! stand as they were written, in the order of their structs.

use std::fmt::Write;

use tiphys_schema::TypeRef;
use tiphys_value::Value;

/// The text. Objects are as deep as the JSON parser's limit at most.
pub(super) fn shown(value: &Value, patch: Option<&Value>, ty: Option<TypeRef<'_>>) -> String {
    let mut text = String::new();
    write(&mut text, value, patch, ty);
    text
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
                write(out, inner, patch.and_then(|patch| patch.get(name)), ty.and_then(|ty| ty.field(name)));
            }
            out.push('}');
        }
        Value::Array(items) => {
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
            shown(&pod, Some(&json!({"metadata": {"labels": {"b": 1}}})), ty),
            r#"{"kind":"Pod","metadata":{"labels":{"a":"x","b":1},"managedFields":[{"manager":"m","operation":"Update"}],"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}],"restartPolicy":"Always"}}"#
        );
    }
}
