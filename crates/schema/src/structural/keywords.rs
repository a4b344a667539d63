//! The keywords of the schemas of a `CustomResourceDefinition`: that each schema is structural, and that what
//! a keyword asks for is there.

use serde_json::Value;
use tiphys_gocompat::regex::Regex;

use super::{MAX_DEPTH, flag};
use crate::{ErrorList, FieldError, Path};

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const LIST_TYPE: &str = "x-kubernetes-list-type";
const LIST_KEYS: &str = "x-kubernetes-list-map-keys";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The schema of a version.
pub(super) fn structural(schema: &Value, path: &Path, errors: &mut ErrorList) {
    if flag(schema, "nullable") {
        errors.push(FieldError::forbidden(&path.child("nullable"), "nullable cannot be true at the root"));
    }
    node(schema, path, errors, 0, Level::Root);
}

fn node(schema: &Value, path: &Path, errors: &mut ErrorList, depth: usize, level: Level) {
    if depth > MAX_DEPTH {
        errors.push(FieldError::forbidden(path, "schema is nested too deeply"));
        return;
    }
    let before = errors.0.len();
    unsupported(schema, path, errors);
    if errors.0.len() > before {
        return;
    }
    types(schema, path, errors, level);
    if schema["type"] == "array" && !schema["items"].is_object() {
        errors.push(FieldError::required(&path.child("items"), "must be specified"));
    }
    if schema["properties"].is_object() && schema["additionalProperties"].is_object() {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), detail));
    }
    lists(schema, path, errors);
    maps(schema, path, errors);
    embedded(schema, path, errors);
    values(schema, path, errors);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = path.child("properties").key(name);
        match level == Level::Root && name == "metadata" {
            true => metadata(property, &path, errors),
            false => node(property, &path, errors, depth + 1, Level::Field),
        }
    }
    for (field, level) in [("items", Level::Item), ("additionalProperties", Level::Field)] {
        if schema[field].is_object() {
            node(&schema[field], &path.child(field), errors, depth + 1, level);
        }
    }
}

/// The type: every schema has one that does not leave open what it is about.
fn types(schema: &Value, path: &Path, errors: &mut ErrorList, level: Level) {
    let kind = schema["type"].as_str().unwrap_or_default();
    let path = path.child("type");
    let is_free = flag(schema, PRESERVE) || flag(schema, INT_OR_STRING) || flag(schema, EMBEDDED);
    if kind.is_empty() && !is_free {
        let place = match level {
            Level::Root => "at the root",
            Level::Item => "for specified array items",
            Level::Field => "for specified object fields",
        };
        errors.push(FieldError::required(&path, format!("must not be empty {place}")));
    }
    if level == Level::Root && !matches!(kind, "" | "object") {
        errors.push(FieldError::invalid(&path, kind, "must be object at the root"));
    }
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&path, kind, &TYPES));
    }
}

/// A keyword that only schemas of one type have.
fn needs_type(schema: &Value, keyword: &str, kind: &str, path: &Path, errors: &mut ErrorList) {
    if schema["type"] == kind {
        return;
    }
    let (detail, place) = (format!("must be {kind} if {keyword}"), path.child("type"));
    errors.push(match schema["type"].as_str().unwrap_or_default() {
        "" => FieldError::required(&place, detail),
        other => FieldError::invalid(&place, other, detail),
    });
}

/// How lists are merged.
fn lists(schema: &Value, path: &Path, errors: &mut ErrorList) {
    if schema[LIST_TYPE].is_string() {
        needs_type(schema, "x-kubernetes-list-type is specified", "array", path, errors);
    }
    if schema[LIST_KEYS].as_array().is_some_and(|keys| !keys.is_empty()) {
        let (detail, place) =
            ("must be map if x-kubernetes-list-map-keys is non-empty", path.child(LIST_TYPE));
        match schema[LIST_TYPE].as_str() {
            Some("map") => {}
            None => errors.push(FieldError::required(&place, detail)),
            Some(other) => errors.push(FieldError::invalid(&place, other, detail)),
        }
    }
    match schema[LIST_TYPE].as_str() {
        None | Some("atomic" | "set") => {}
        Some("map") => keyed_list(schema, path, errors),
        Some(other) => {
            let supported = ["atomic", "set", "map"];
            errors.push(FieldError::not_supported(&path.child(LIST_TYPE), other, &supported));
        }
    }
}

/// A list whose items are distinguished by some of their fields.
fn keyed_list(schema: &Value, path: &Path, errors: &mut ErrorList) {
    let keys: Vec<&str> =
        schema[LIST_KEYS].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&path.child(LIST_KEYS), detail));
    }
    let items = &schema["items"];
    if items["type"] != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let path = path.child("items").child("type");
        errors.push(FieldError::invalid(&path, items["type"].clone(), detail));
        return;
    }
    if keys.iter().any(|key| items["properties"].get(key).is_none()) {
        let detail = "entries must all be names of item properties";
        errors.push(FieldError::invalid(&path.child(LIST_KEYS), schema[LIST_KEYS].clone(), detail));
    }
    let required = items["required"].as_array().map_or(&[][..], Vec::as_slice);
    for key in keys {
        let Some(property) = items["properties"].get(key) else { continue };
        let place = path.child("items").child("properties").key(key);
        if property["default"].is_null() && !required.iter().any(|name| name == key) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(&place.child("default"), detail));
        }
    }
}

/// How maps are merged.
fn maps(schema: &Value, path: &Path, errors: &mut ErrorList) {
    if schema[MAP_TYPE].is_string() {
        needs_type(schema, "x-kubernetes-map-type is specified", "object", path, errors);
    }
    if let Some(other) = schema[MAP_TYPE].as_str().filter(|kind| !matches!(*kind, "atomic" | "granular")) {
        errors.push(FieldError::not_supported(&path.child(MAP_TYPE), other, &["atomic", "granular"]));
    }
}

/// Objects in fields, and what may be of any type.
fn embedded(schema: &Value, path: &Path, errors: &mut ErrorList) {
    if schema[PRESERVE] == false {
        errors.push(FieldError::invalid(&path.child(PRESERVE), false, "must be true or undefined"));
    }
    if flag(schema, INT_OR_STRING) {
        let detail = "must be false if x-kubernetes-int-or-string is true";
        for keyword in [PRESERVE, EMBEDDED].into_iter().filter(|keyword| flag(schema, keyword)) {
            errors.push(FieldError::invalid(&path.child(keyword), true, detail));
        }
    }
    if !flag(schema, EMBEDDED) {
        return;
    }
    needs_type(schema, "x-kubernetes-embedded-resource is true", "object", path, errors);
    if schema["additionalProperties"].is_object() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), detail));
    }
    let is_bare = schema["properties"].as_object().is_none_or(serde_json::Map::is_empty);
    if is_bare && !flag(schema, PRESERVE) {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&path.child("properties"), detail));
    }
}

fn unsupported(schema: &Value, path: &Path, errors: &mut ErrorList) {
    for (field, detail) in [
        ("$ref", "$ref is not supported"),
        ("definitions", "definitions is not supported"),
        ("dependencies", "dependencies is not supported"),
        ("patternProperties", "patternProperties is not supported"),
    ] {
        if schema.get(field).is_some_and(|value| !value.is_null()) {
            errors.push(FieldError::forbidden(&path.child(field), detail));
        }
    }
    if schema["id"].as_str().is_some_and(|id| !id.is_empty()) {
        errors.push(FieldError::forbidden(&path.child("id"), "id is not supported"));
    }
    if flag(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(&path.child("uniqueItems"), detail));
    }
}

/// Of the root's metadata only the names may be described.
fn metadata(schema: &Value, path: &Path, errors: &mut ErrorList) {
    let mut named = schema["properties"].as_object().into_iter().flat_map(|p| p.keys());
    if named.any(|name| !matches!(name.as_str(), "name" | "generateName")) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(path, detail));
    }
}

/// Patterns and defaults.
fn values(schema: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(pattern) = schema["pattern"].as_str()
        && let Err(error) = Regex::check(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(&path.child("pattern"), pattern, detail));
    }
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let place = path.child("default");
        for mut fault in super::StructuralSchema::new(schema).validate(default, None) {
            let within = if fault.field == "<nil>" { String::new() } else { format!(".{}", fault.field) };
            fault.field = format!("{place}{within}");
            fault.detail = fault.detail.replacen("<nil>", "", 1);
            errors.push(fault);
        }
    }
}
