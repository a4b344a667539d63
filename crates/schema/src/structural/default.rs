//! Defaults of structural schemas.

use serde_json::{Map, Value};

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

/// Bytes of defaults that one object may get. An API server stores no object of a tenth of it; a list of
/// empty items could ask for gigabytes.
const MAX_DEFAULTS: usize = 16 << 20;

/// Sets defaults of missing fields, and of nulls where the schema does not allow null. Past [`MAX_DEFAULTS`]
/// the rest is left unset: the object is too large for every store by then.
pub(super) fn apply(schema: &Value, value: &mut Value) {
    Defaults { room: MAX_DEFAULTS }.apply(schema, value, 0);
}

/// Defaults on their way into one object.
struct Defaults {
    /// How many bytes of them still fit.
    room: usize,
}

impl Defaults {
    fn apply(&mut self, schema: &Value, value: &mut Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::Object(map) => {
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    self.fill(name, property, map);
                    if let Some(inner) = map.get_mut(name) {
                        self.apply(property, inner, depth + 1);
                    }
                }
                let others = &schema["additionalProperties"];
                if others.is_object() {
                    for (name, inner) in map.iter_mut() {
                        if schema["properties"].get(name).is_none() {
                            self.apply(others, inner, depth + 1);
                        }
                    }
                }
            }
            Value::Array(items) => {
                items.iter_mut().for_each(|item| self.apply(&schema["items"], item, depth + 1));
            }
            _ => {}
        }
    }

    /// The default of one property, if it has one and needs one.
    fn fill(&mut self, name: &str, property: &Value, map: &mut Map<String, Value>) {
        let Some(default) = property.get("default").filter(|default| !default.is_null()) else { return };
        let is_set = map.get(name).is_some_and(|value| !value.is_null() || flag(property, "nullable"));
        if is_set {
            return;
        }
        if let Some(room) = self.room.checked_sub(name.len() + size(default)) {
            self.room = room;
            map.insert(name.to_owned(), default.clone());
        }
    }
}

/// The bytes of a value, about.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(size).sum::<usize>() + 2,
        Value::Object(map) => map.iter().map(|(name, value)| name.len() + size(value)).sum::<usize>() + 2,
        _ => 5,
    }
}
