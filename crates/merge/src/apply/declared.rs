//! Whether a configuration names fields that its kind does not have: server-side apply refuses those whatever
//! the field validation.

use serde_json::Value;
use tiphys_schema::{ListKind, Type, TypeRef};

/// How deep objects may be; the JSON parser allows no deeper ones.
const DEPTH: usize = 128;

/// The fields that are not declared, in the server's words; `None` if there is none.
pub fn undeclared(config: &Value, ty: TypeRef<'_>) -> Option<String> {
    let mut faults = Vec::new();
    collect(config, ty, "", DEPTH, &mut faults);
    match faults.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        many => Some(format!("errors:\n  {}", many.join("\n  "))),
    }
}

fn collect(value: &Value, ty: TypeRef<'_>, path: &str, depth: usize, faults: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Object(map) => {
            let is_closed = matches!(ty.ty, Type::Ref(_));
            let mut keys: Vec<_> = map.keys().collect();
            keys.sort();
            for key in keys {
                let at = format!("{path}.{key}");
                match ty.field(key) {
                    Some(inner) => collect(&map[key.as_str()], inner, &at, depth, faults),
                    // An object's own kind is known wherever it stands.
                    None if is_closed
                        && !(path.is_empty() && matches!(key.as_str(), "apiVersion" | "kind")) =>
                    {
                        faults.push(format!("{at}: field not declared in schema"));
                    }
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = ty.items() else { return };
            for (index, item) in items.iter().enumerate() {
                let step = step(item, index, ty);
                collect(item, inner, &format!("{path}[{step}]"), depth, faults);
            }
        }
        _ => {}
    }
}

/// What identifies a list item: its keys, or else its place.
fn step(item: &Value, index: usize, ty: TypeRef<'_>) -> String {
    let Some(ListKind::Map(keys)) = ty.list_kind() else { return index.to_string() };
    let keyed = keys.iter().filter_map(|key| item.get(key.as_str()).map(|value| format!("{key}={value}")));
    keyed.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tiphys_schema::Catalog;
    use tiphys_value::ObjectExt;

    use super::*;

    #[test]
    fn names_fields_that_a_kind_does_not_have() {
        let config = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "labels": {"x": "y"}},
            "spec": {"size": 1, "template": {"spec": {"containers": [{"name": "c", "color": "red"}]}}}});
        let ty = Catalog::latest().type_of(&config.gvk()).unwrap();
        let expected = "errors:\n  .spec.size: field not declared in schema\n  \
                        .spec.template.spec.containers[name=\"c\"].color: field not declared in schema";
        assert_eq!(undeclared(&config, ty).unwrap(), expected);
    }
}
