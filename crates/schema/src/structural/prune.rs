//! Removing what a structural schema does not describe.

use serde_json::Value;

use super::{MAX_DEPTH, flag};
use crate::Path;

/// Prunes a custom resource; returns the paths that went.
pub(super) fn prune(schema: &Value, object: &mut Value) -> Vec<String> {
    let mut gone = Vec::new();
    walk(schema, object, true, &Path::root(), &mut gone, 0);
    gone
}

/// `resource`: this object has `apiVersion`, `kind` and `metadata`, whatever the schema says.
fn walk(
    schema: &Value,
    value: &mut Value,
    resource: bool,
    path: &Path,
    gone: &mut Vec<String>,
    depth: usize,
) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(map) => {
            let properties = &schema["properties"];
            let others = &schema["additionalProperties"];
            let keep_all = flag(schema, "x-kubernetes-preserve-unknown-fields") || *others == true;
            map.retain(|name, _| {
                let own = resource && matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
                let known = own || keep_all || others.is_object() || properties.get(name).is_some();
                if !known {
                    gone.push(path.child(name).to_string());
                }
                known
            });
            for (name, inner) in map.iter_mut() {
                if resource && name == "metadata" {
                    continue;
                }
                let property = properties.get(name).or_else(|| others.is_object().then_some(others));
                if let Some(property) = property {
                    let embedded = flag(property, "x-kubernetes-embedded-resource");
                    walk(property, inner, embedded, &path.child(name), gone, depth + 1);
                }
            }
        }
        Value::Array(items) => {
            // A list that keeps what is not described keeps it in its items, too.
            let keeps = flag(schema, "x-kubernetes-preserve-unknown-fields");
            let schema = &schema["items"];
            let kept;
            let schema = match (keeps, schema) {
                (true, Value::Object(fields)) => {
                    let mut fields = fields.clone();
                    fields.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
                    kept = Value::Object(fields);
                    &kept
                }
                _ => schema,
            };
            let embedded = flag(schema, "x-kubernetes-embedded-resource");
            for (at, item) in items.iter_mut().enumerate().filter(|_| schema.is_object()) {
                walk(schema, item, embedded, &path.index(at), gone, depth + 1);
            }
        }
        _ => {}
    }
}
