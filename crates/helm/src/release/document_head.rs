//! The few fields that Helm reads of each document.

use std::collections::BTreeMap;

use tiphys_value::{Value, json_kind};
use tiphys_yaml::from_yaml_entries;

use crate::Compat;
use crate::chart::{Field, decoded, is_field};

/// Kind, name and annotations of a document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    pub(crate) kind: String,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The fields of a document that matter here, and of its metadata.
fn is_wanted(keys: &[&str]) -> bool {
    let is_any = |key: &str, fields: &[&str]| fields.iter().any(|field| is_field(key, field));
    match keys {
        [above, key] if is_field(above, "metadata") => is_any(key, &["name", "annotations"]),
        [above, ..] => is_any(above, &["apiVersion", "kind", "metadata"]),
        [] => false,
    }
}

/// Reads the head of a document.
///
/// # Errors
/// The document is no YAML, or a field has another type, in Go's words.
pub(crate) fn read_head(text: &str, compat: Compat) -> Result<Head, String> {
    let value = decoded(text)
        .and_then(|text| from_yaml_entries(&text, is_wanted))
        .map_err(|error| format!("error converting YAML to JSON: {error}"))?;
    let mut head = Head::default();
    let fields = match &value {
        Value::Object(fields) => fields,
        Value::Null => return Ok(head),
        other => {
            return Err(format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type {}.SimpleHead",
                json_kind(other),
                if compat == Compat::Helm3 { "releaseutil" } else { "util" }
            ));
        }
    };
    let mut api_version = String::new();
    for (key, field) in fields {
        if is_field(key, "apiVersion") {
            Field { path: "SimpleHead.apiVersion" }.string(field, &mut api_version)?;
        } else if is_field(key, "kind") {
            Field { path: "SimpleHead.kind" }.string(field, &mut head.kind)?;
        } else if is_field(key, "metadata") {
            read_metadata(field, &mut head)?;
        }
    }
    Ok(head)
}

fn read_metadata(value: &Value, head: &mut Head) -> Result<(), String> {
    let go_type = "struct { Name string \"json:\\\"name\\\"\"; Annotations map[string]string \"json:\\\"annotations\\\"\" }";
    let entries = Field { path: "SimpleHead.metadata" }.entries(value, go_type)?;
    for (key, field) in entries.into_iter().flatten() {
        if is_field(key, "name") {
            let mut name = String::new();
            Field { path: ".metadata.name" }.string(field, &mut name)?;
        } else if is_field(key, "annotations") {
            let mut annotations = None;
            Field { path: ".metadata.annotations" }.string_map(field, &mut annotations)?;
            head.annotations.extend(annotations.into_iter().flatten());
        }
    }
    Ok(())
}
