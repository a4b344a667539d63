//! Object metadata, and reading typed objects out of JSON.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::Time;

/// Why an object is not what its kind says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name:?} is invalid: {path}: {message}")]
pub struct ModelError {
    /// Kind of the object.
    pub kind: String,
    /// Name of the object, may be empty.
    pub name: String,
    /// Path of the field at fault, such as `spec.sources[0].helm`.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

/// `metadata`: what the engine reads of it, and the rest as it came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Finalizers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Unique id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Resource version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Generation of the desired state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// When the object was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    /// When deletion was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Fields whose nulls mean something and are kept when an object is read.
const NULLS_COUNT_BELOW: [&str; 4] = ["valuesObject", "elements", "input", "items"];

/// Deepest nesting that [`read`] accepts.
const MAX_DEPTH: usize = 128;

/// Reads a typed object. As in Go, a null field counts as absent.
///
/// # Errors
/// A field has another type than its kind defines; the error names its path.
pub fn read<T: DeserializeOwned>(value: &Value) -> Result<T, ModelError> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let fail = |path: String, message: String| ModelError {
        kind: text("kind"),
        name: value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        path,
        message,
    };
    let has_nulls =
        has_nulls(value, 0).ok_or_else(|| fail(".".into(), format!("nested deeper than {MAX_DEPTH}")))?;
    // An Application of hundreds of others is large, and hardly any has a null: it is not copied for nothing.
    let cleaned = if has_nulls { Cow::Owned(without_nulls(value)) } else { Cow::Borrowed(value) };
    // Keeping the path of what is being read takes longer than reading: only a fault needs it.
    T::deserialize(&*cleaned).or_else(|_| {
        serde_path_to_error::deserialize(&*cleaned)
            .map_err(|error| fail(error.path().to_string(), error.inner().to_string()))
    })
}

/// Whether an object has null fields that do not count; `None` when nested too deeply.
fn has_nulls(value: &Value, depth: usize) -> Option<bool> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut found = false;
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                match child {
                    Value::Null => found = true,
                    Value::Object(_) | Value::Array(_) if !NULLS_COUNT_BELOW.contains(&key.as_str()) => {
                        found |= has_nulls(child, depth + 1)?;
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                found |= has_nulls(item, depth + 1)?;
            }
        }
        _ => {}
    }
    Some(found)
}

/// A copy without null fields, of an object that is not nested too deeply.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut out = Map::new();
            for (key, child) in map.iter().filter(|(_, child)| !child.is_null()) {
                let keep = NULLS_COUNT_BELOW.contains(&key.as_str());
                out.insert(key.clone(), if keep { child.clone() } else { without_nulls(child) });
            }
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
