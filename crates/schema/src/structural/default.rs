//! Defaults of structural schemas.

use serde_json::Value;

use super::{MAX_DEPTH, flag};

/// Removes nulls that the schema neither allows nor has a default for (apiextensions-apiserver,
/// `PruneNonNullableNullsWithoutDefaults`). Items of lists stay.
pub(super) fn remove_nulls(schema: &Value, value: &mut Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(map) => {
            let others = &schema["additionalProperties"];
            let below = |name: &str| match schema["properties"].get(name) {
                Some(property) => property,
                None => others,
            };
            map.retain(|name, value| {
                let schema = below(name);
                let kept = !schema.is_object() || flag(schema, "nullable") || !schema["default"].is_null();
                kept || !value.is_null()
            });
            map.iter_mut().for_each(|(name, value)| remove_nulls(below(name), value, depth + 1));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| remove_nulls(&schema["items"], item, depth + 1));
        }
        _ => {}
    }
}

/// Whether a schema has a default anywhere.
pub(super) fn any(schema: &Value, depth: usize) -> bool {
    let below = |part: &Value| part.is_object() && any(part, depth + 1);
    depth <= MAX_DEPTH
        && (!schema["default"].is_null()
            || schema["properties"].as_object().is_some_and(|properties| properties.values().any(below))
            || below(&schema["items"])
            || below(&schema["additionalProperties"]))
}

/// Sets defaults of missing fields, and of nulls where the schema does not allow null.
pub(super) fn apply(schema: &Value, value: &mut Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let default = property.get("default").filter(|default| !default.is_null());
                let unset = match map.get(name) {
                    None => true,
                    Some(value) => value.is_null() && !flag(property, "nullable"),
                };
                if let (true, Some(default)) = (unset, default) {
                    map.insert(name.clone(), default.clone());
                }
                if let Some(inner) = map.get_mut(name) {
                    apply(property, inner, depth + 1);
                }
            }
            let others = &schema["additionalProperties"];
            if others.is_object() {
                for (name, inner) in map.iter_mut() {
                    if schema["properties"].get(name).is_none() {
                        apply(others, inner, depth + 1);
                    }
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| apply(&schema["items"], item, depth + 1)),
        _ => {}
    }
}
