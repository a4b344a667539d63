//! What a `CustomResourceDefinition` says beside its schemas: subresources, columns, selectable fields. What
//! all versions share is the definition's, as in the first version of that API.

use serde_json::Value;

use super::flag;
use crate::{ErrorList, FieldError, Path, validate::names};

/// A field of the versions with its path: once where all share it.
fn each<'a>(spec: &'a Value, field: &str) -> Vec<(&'a Value, &'a Value, Path)> {
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let shared = versions.first().is_some_and(|first| versions.iter().all(|v| v[field] == first[field]));
    match versions {
        [first, ..] if shared => vec![(first, &first[field], Path::new("spec").child(field))],
        all => {
            let path = |at: usize| Path::new("spec.versions").index(at).child(field);
            all.iter().enumerate().map(|(at, version)| (version, &version[field], path(at))).collect()
        }
    }
}

/// All of it.
pub(super) fn surface(spec: &Value, errors: &mut ErrorList) {
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    for (at, version) in versions.iter().enumerate() {
        deprecation(version, &Path::new("spec.versions").index(at).child("deprecationWarning"), errors);
    }
    if let Some(name) = versions.first().and_then(|version| version["name"].as_str()) {
        let faults = names::dns1035_label(name);
        if !faults.is_empty() && !name.is_empty() {
            errors.push(FieldError::invalid(&Path::new("spec.version"), name, faults.join(",")));
        }
    }
    for (_, subresources, path) in each(spec, "subresources") {
        scale(&subresources["scale"], &path, errors);
    }
    for (version, schema, path) in each(spec, "schema") {
        if version["subresources"]["status"].is_object() {
            // The path of a schema that all share is the older one.
            let path = match path.to_string() == "spec.schema" {
                true => Path::new("spec.validation.openAPIV3Schema"),
                false => path.child("openAPIV3Schema"),
            };
            root_with_status(&schema["openAPIV3Schema"], &path, errors);
        }
    }
    for (_, columns, path) in each(spec, "additionalPrinterColumns") {
        for (at, column) in columns.as_array().into_iter().flatten().enumerate() {
            let json_path = column["jsonPath"].as_str().unwrap_or_default();
            if !json_path.is_empty() {
                simple_path(json_path, &[], "", &path.index(at).child("JSONPath"), errors);
            }
        }
    }
    for (version, fields, path) in each(spec, "selectableFields") {
        selectable(fields, &version["schema"]["openAPIV3Schema"], &path, errors);
    }
    for field in ["shortNames", "categories"] {
        for (at, name) in spec["names"][field].as_array().into_iter().flatten().enumerate() {
            let name = name.as_str().unwrap_or_default();
            let faults = names::dns1035_label(name);
            if !faults.is_empty() {
                let path = Path::new("spec.names").child(field).index(at);
                errors.push(FieldError::invalid(&path, name, faults.join(",")));
            }
        }
    }
    if spec["conversion"].is_object() && spec["conversion"]["strategy"].as_str().is_none_or(str::is_empty) {
        errors.push(FieldError::required(&Path::new("spec.conversion.strategy"), ""));
    }
}

/// Where the status is a part of its own, the root describes fields and nothing else.
fn root_with_status(schema: &Value, path: &Path, errors: &mut ErrorList) {
    const FORBIDDEN: [&str; 19] = [
        "additionalItems",
        "additionalProperties",
        "allOf",
        "anyOf",
        "default",
        "definitions",
        "dependencies",
        "enum",
        "maxProperties",
        "minProperties",
        "not",
        "nullable",
        "oneOf",
        "patternProperties",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    ];
    // The server looks at these before the type, and at nothing after a fault.
    const FIRST: [&str; 3] = ["$ref", "$schema", "id"];
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::Bool(on) => *on,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let has = |fields: &[&str]| fields.iter().any(|field| is_set(&schema[*field]));
    let kind = schema["type"].as_str().unwrap_or_default();
    if !has(&FIRST) && !matches!(kind, "" | "object") {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(&path.child("type"), kind, detail));
    } else if has(&FIRST) || has(&FORBIDDEN) {
        let detail = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(path, schema.clone(), detail));
    }
}

fn deprecation(version: &Value, path: &Path, errors: &mut ErrorList) {
    const LONGEST: usize = 256;
    let Some(warning) = version["deprecationWarning"].as_str() else { return };
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(path, warning, detail));
    if !flag(version, "deprecated") {
        refuse("can only be set for deprecated versions");
    } else if warning.is_empty() {
        refuse("must not be an empty string");
    } else {
        if warning.len() > LONGEST {
            refuse("must be <= 256 characters long");
        }
        if warning.chars().any(|c| c.is_control()) {
            refuse("must only contain printable UTF-8 characters; non-printable character found");
        }
    }
}

fn scale(scale: &Value, path: &Path, errors: &mut ErrorList) {
    if !scale.is_object() {
        return;
    }
    for (field, starts, detail) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."], "should be a json path under .status"),
        ("labelSelectorPath", &[".spec.", ".status."], "should be a json path under either .spec or .status"),
    ] {
        let path = path.child("scale").child(field);
        match scale[field].as_str().unwrap_or_default() {
            "" if field == "labelSelectorPath" => {}
            "" => errors.push(FieldError::required(&path, "")),
            value => simple_path(value, starts, detail, &path, errors),
        }
    }
}

/// A path of names with dots, which starts with one of a few others if there are any.
fn simple_path(value: &str, starts: &[&str], detail: &str, path: &Path, errors: &mut ErrorList) {
    if !value.starts_with('.') {
        let detail = "must be a simple json path starting with .";
        errors.push(FieldError::invalid(path, value, detail));
    } else if !starts.is_empty() && !starts.iter().any(|start| value.starts_with(start)) {
        errors.push(FieldError::invalid(path, value, detail));
    }
}

/// Fields that clients can select by.
fn selectable(fields: &Value, schema: &Value, path: &Path, errors: &mut ErrorList) {
    const MOST: usize = 8;
    let fields = fields.as_array().map_or(&[][..], Vec::as_slice);
    let mut seen: Vec<&str> = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let place = path.index(at).child("jsonPath");
        let json_path = field["jsonPath"].as_str().unwrap_or_default();
        if json_path.is_empty() {
            errors.push(FieldError::required(&place, ""));
            continue;
        }
        let Some(found) = lookup(json_path, schema) else {
            let detail = "is an invalid path: does not refer to a valid field";
            errors.push(FieldError::invalid(&place, json_path, detail));
            continue;
        };
        if json_path.starts_with(".metadata.") {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(&place, json_path, detail));
        }
        if !matches!(found["type"].as_str(), Some("string" | "boolean" | "integer")) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&place, json_path, detail));
        }
        match seen.contains(&json_path) {
            true => errors.push(FieldError::duplicate(&place, json_path)),
            false => seen.push(json_path),
        }
    }
    if seen.len() > MOST {
        errors.push(FieldError::too_many(path, seen.len(), MOST));
    }
}

/// The schema that a path of names leads to.
fn lookup<'a>(path: &str, schema: &'a Value) -> Option<&'a Value> {
    let names = path.strip_prefix('.')?.split('.');
    names.into_iter().try_fold(schema, |schema, name| schema["properties"].get(name))
}
