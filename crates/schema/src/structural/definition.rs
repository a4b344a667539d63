//! Validation of `CustomResourceDefinition` objects: names, versions, and that schemas are structural.

use serde_json::Value;

use super::{MAX_DEPTH, flag};
use crate::{ErrorList, FieldError, Path, validate::names};

/// Faults of a `CustomResourceDefinition` object (`old` on update), after defaulting.
pub fn validate_crd(crd: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = ErrorList::new();
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let spec = Path::new("spec");
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    let expected = format!("{plural}.{group}");
    if text("/metadata/name") != expected {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid(&Path::new("metadata.name"), text("/metadata/name"), detail));
    }
    if group.is_empty() {
        errors.push(FieldError::required(&spec.child("group"), ""));
    } else if group.split('.').count() < 2 {
        errors.push(FieldError::invalid(
            &spec.child("group"),
            group,
            "should be a domain with at least one dot",
        ));
    }
    let scope = text("/spec/scope");
    if scope.is_empty() {
        errors.push(FieldError::required(&spec.child("scope"), ""));
    } else if !matches!(scope, "Cluster" | "Namespaced") {
        errors.push(FieldError::not_supported(&spec.child("scope"), scope, &["Cluster", "Namespaced"]));
    }
    versions(&crd["spec"], &spec.child("versions"), &mut errors);
    check_names(&crd["spec"]["names"], &spec.child("names"), &mut errors);
    let stored =
        crd["spec"]["versions"].as_array().into_iter().flatten().any(|version| flag(version, "storage"));
    if !stored {
        let detail = "must have at least one stored version";
        errors.push(FieldError::invalid(&Path::new("status.storedVersions"), Value::Null, detail));
    }
    if let Some(old) = old {
        immutable(crd, old, &mut errors);
    }
    errors
}

/// The schemas of a `CustomResourceDefinition` and how messages call their places: one that all versions
/// share is the definition's, as in the first version of that API.
pub fn crd_schemas(crd: &Value) -> Vec<(&Value, Path)> {
    let versions = crd["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let schemas: Vec<Option<&Value>> =
        versions.iter().map(|version| version.pointer("/schema/openAPIV3Schema")).collect();
    match schemas.as_slice() {
        [Some(first), rest @ ..] if rest.iter().all(|other| *other == Some(first)) => {
            vec![(first, Path::new("spec.validation.openAPIV3Schema"))]
        }
        all => {
            let place = |at: usize| Path::new("spec.versions").index(at).child("schema.openAPIV3Schema");
            all.iter().enumerate().filter_map(|(at, schema)| Some(((*schema)?, place(at)))).collect()
        }
    }
}

fn versions(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let mut storage = 0;
    for (at, version) in versions.iter().enumerate() {
        let path = path.index(at);
        let name = version["name"].as_str().unwrap_or_default();
        for fault in names::dns1035_label(name) {
            errors.push(FieldError::invalid(&path.child("name"), name, fault));
        }
        if versions[..at].iter().any(|other| other["name"] == version["name"]) {
            errors.push(FieldError::invalid(
                &path.child("name"),
                name,
                "must be unique within the list of versions",
            ));
        }
        storage += usize::from(flag(version, "storage"));
        let schema_path = path.child("schema").child("openAPIV3Schema");
        match version.pointer("/schema/openAPIV3Schema") {
            Some(schema) => structural(schema, &schema_path, errors),
            None => errors.push(FieldError::required(&schema_path, "schemas are required")),
        }
    }
    if storage != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(path, spec["versions"].clone(), detail));
    }
}

fn check_names(given: &Value, path: &Path, errors: &mut ErrorList) {
    for field in ["plural", "singular", "kind", "listKind"] {
        let name = given[field].as_str().unwrap_or_default();
        let path = path.child(field);
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        for fault in names::dns1035_label(&name.to_lowercase()) {
            let detail = if matches!(field, "kind" | "listKind") {
                format!("may have mixed case, but should otherwise match: {fault}")
            } else {
                fault
            };
            errors.push(FieldError::invalid(&path, name, detail));
        }
    }
}

fn immutable(crd: &Value, old: &Value, errors: &mut ErrorList) {
    for field in ["scope", "group"] {
        if crd["spec"][field] != old["spec"][field] {
            let path = Path::new("spec").child(field);
            errors.push(FieldError::invalid(&path, crd["spec"][field].clone(), "field is immutable"));
        }
    }
    for field in ["plural", "kind"] {
        if crd["spec"]["names"][field] != old["spec"]["names"][field] {
            let path = Path::new("spec.names").child(field);
            errors.push(FieldError::invalid(
                &path,
                crd["spec"]["names"][field].clone(),
                "field is immutable",
            ));
        }
    }
}

fn structural(schema: &Value, path: &Path, errors: &mut ErrorList) {
    match schema["type"].as_str() {
        None | Some("") => {
            errors.push(FieldError::required(&path.child("type"), "must not be empty at the root"))
        }
        Some("object") => {}
        Some(other) => {
            errors.push(FieldError::invalid(&path.child("type"), other, "must be object at the root"))
        }
    }
    node(schema, path, errors, 0, true);
}

fn node(schema: &Value, path: &Path, errors: &mut ErrorList, depth: usize, root: bool) {
    if depth > MAX_DEPTH {
        errors.push(FieldError::forbidden(path, "schema is nested too deeply"));
        return;
    }
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
    if flag(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(&path.child("uniqueItems"), detail));
    }
    let free =
        flag(schema, "x-kubernetes-preserve-unknown-fields") || flag(schema, "x-kubernetes-int-or-string");
    if !root && !free && schema["type"].as_str().is_none_or(str::is_empty) {
        errors
            .push(FieldError::required(&path.child("type"), "must not be empty for specified object fields"));
    }
    if schema["type"] == "array" && !schema["items"].is_object() {
        errors.push(FieldError::required(&path.child("items"), "must be specified"));
    }
    if schema["properties"].is_object() && schema["additionalProperties"].is_object() {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), detail));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if !(root && name == "metadata") {
            node(property, &path.child("properties").key(name), errors, depth + 1, false);
        }
    }
    for field in ["items", "additionalProperties"] {
        if schema[field].is_object() {
            node(&schema[field], &path.child(field), errors, depth + 1, false);
        }
    }
}
