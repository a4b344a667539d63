//! What never counts in a comparison is taken off both sides.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use tiphys_model::names::LAST_APPLIED;
use tiphys_value::ObjectExt;

use crate::{DiffOptions, Fields, duplicate_keys::items_once};

/// Metadata that the API server sets.
pub(crate) const SERVER_METADATA: [&str; 8] = [
    "creationTimestamp",
    "resourceVersion",
    "uid",
    "generation",
    "selfLink",
    "managedFields",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

pub(crate) fn target(object: &Value, options: &DiffOptions<'_>) -> Value {
    let mut object = normalize_once(object, options);
    common(&mut object, options);
    if is_secret(&object) {
        merge_string_data(&mut object);
    }
    forget_silence(&mut object);
    if let Some(Fields::Custom(schema)) = options.fields {
        schema.remove_nulls(&mut object);
    }
    object
}

/// A namespace that is not given is that of the request.
fn forget_silence(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if metadata.get("namespace").is_some_and(|value| value.as_str().unwrap_or_default().is_empty()) {
        metadata.remove("namespace");
    }
}

fn is_secret(object: &Value) -> bool {
    object.kind() == "Secret" && object.gvk().group.is_empty()
}

/// The Secret with its `stringData` in `data`, as the API server stores it; `None` if the object has none or
/// is no Secret. Applied like this, a key that is given no more is removed: of `stringData` itself the API
/// server keeps no owners.
pub fn encoded_secret(object: &Value) -> Option<Value> {
    if !is_secret(object) || object.get("stringData").is_none() {
        return None;
    }
    let mut encoded = object.clone();
    merge_string_data(&mut encoded);
    Some(encoded)
}

pub(crate) fn live(object: &Value, options: &DiffOptions<'_>) -> Value {
    let mut object = normalize_once(object, options);
    common(&mut object, options);
    object
}

/// A copy of what counts, with each item of a list once.
fn normalize_once(object: &Value, options: &DiffOptions<'_>) -> Value {
    let counting = copy_of_what_counts(object, options);
    options.fields.and_then(|fields| items_once(&counting, fields)).unwrap_or(counting)
}

/// A copy without the status and what the API server keeps in the metadata: they are often most of an
/// object.
fn copy_of_what_counts(object: &Value, options: &DiffOptions<'_>) -> Value {
    let Some(map) = object.as_object() else { return object.clone() };
    let fields = map.iter().filter(|(key, _)| options.compare_status || *key != "status");
    let copied = fields.map(|(key, value)| match value {
        Value::Object(metadata) if key == "metadata" => {
            let own = metadata.iter().filter(|(key, _)| !SERVER_METADATA.contains(&key.as_str()));
            (key.clone(), own.map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        _ => (key.clone(), value.clone()),
    });
    Value::Object(copied.collect())
}

fn common(object: &mut Value, options: &DiffOptions<'_>) {
    let is_role = matches!(object.kind(), "Role" | "ClusterRole");
    let is_aggregated = object.get("aggregationRule").is_some_and(Value::is_object);
    let Some(map) = object.as_object_mut() else { return };
    if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
        for key in ["labels", "annotations"] {
            let is_empty =
                |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
            if metadata.get(key).is_some_and(is_empty) {
                metadata.remove(key);
            }
        }
    }
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    if is_role && map.get("rules").is_some_and(is_empty) {
        map.remove("rules");
    }
    if is_role && is_aggregated && options.ignore_aggregated_roles {
        map.remove("rules");
    }
}

/// `stringData` is a write-only spelling of `data`; null data are empty.
fn merge_string_data(secret: &mut Value) {
    let Some(map) = secret.as_object_mut() else { return };
    let plain = match map.remove("stringData") {
        Some(Value::Object(plain)) => plain,
        _ => Map::new(),
    };
    let data = map.entry("data").or_insert_with(|| Value::Object(Map::new()));
    let Some(data) = data.as_object_mut() else { return };
    for value in data.values_mut().filter(|value| value.is_null()) {
        *value = Value::from("");
    }
    for (key, value) in plain {
        let text = value.as_str().unwrap_or_default();
        data.insert(key, STANDARD.encode(text).into());
    }
    if data.is_empty() {
        map.remove("data");
    }
}

/// Removing the last label leaves an empty map, which the API server drops.
pub(crate) fn after_removal(predicted: &mut Value, live: &Value) {
    let Some(metadata) = predicted.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for key in ["labels", "annotations"] {
        let is_empty = metadata.get(key).and_then(Value::as_object).is_some_and(serde_json::Map::is_empty);
        if is_empty && live.at(&["metadata", key]).is_none() {
            metadata.remove(key);
        }
    }
}

/// Puts back what was removed and comes back as the default that it was.
pub(crate) fn restore_defaults(predicted: &mut Value, filled: &Value, live: &Value) {
    match (predicted, filled, live) {
        (Value::Object(predicted), Value::Object(filled), Value::Object(live)) => {
            for (key, live) in live {
                match (predicted.get_mut(key), filled.get(key)) {
                    (Some(predicted), Some(filled)) => restore_defaults(predicted, filled, live),
                    (None, Some(filled)) if filled == live => {
                        predicted.insert(key.clone(), live.clone());
                    }
                    _ => {}
                }
            }
        }
        (Value::Array(predicted), Value::Array(filled), Value::Array(live))
            if predicted.len() == live.len() && filled.len() == live.len() =>
        {
            for ((predicted, filled), live) in predicted.iter_mut().zip(filled).zip(live) {
                restore_defaults(predicted, filled, live);
            }
        }
        _ => {}
    }
}
