//! Validation of `CustomResourceDefinition` objects: names, versions, and that schemas are structural.

use serde_json::Value;
use tiphys_gocompat::regex::Regex;

use super::{MAX_DEPTH, flag};
use crate::{
    ErrorList, FieldError, Path,
    validate::{admission, names},
};

/// Faults of a `CustomResourceDefinition` object (`old` on update), after defaulting.
pub fn validate_crd(crd: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = ErrorList::new();
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let spec = Path::new("spec");
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    let expected = format!("{plural}.{group}");
    if text("/metadata/name") != expected && !text("/metadata/name").is_empty() {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid(&Path::new("metadata.name"), text("/metadata/name"), detail));
    }
    if group.is_empty() {
        errors.push(FieldError::required(&spec.child("group"), ""));
    } else if let Some(fault) = names::dns1123_subdomain(group).into_iter().next() {
        errors.push(FieldError::invalid(&spec.child("group"), group, fault));
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
    if flag(&crd["spec"], "preserveUnknownFields")
        && old.is_none_or(|old| !flag(&old["spec"], "preserveUnknownFields"))
    {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid(&spec.child("preserveUnknownFields"), true, detail));
    }
    versions(crd, &spec.child("versions"), &mut errors);
    if old.is_none() {
        approval(crd, group, &mut errors);
    }
    check_names(&crd["spec"]["names"], &spec.child("names"), &mut errors);
    printer_columns(&crd["spec"], &mut errors);
    conversion(&crd["spec"], &mut errors);
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

fn versions(crd: &Value, path: &Path, errors: &mut ErrorList) {
    let spec = &crd["spec"];
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
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            errors.push(FieldError::required(&path.child("schema").child("openAPIV3Schema"), ""));
        }
    }
    for (schema, path) in crd_schemas(crd) {
        structural(schema, &path, errors);
    }
    if storage != 1 {
        let detail = "must have exactly one version marked as storage version";
        let shown: Vec<String> = versions.iter().map(internal_version).collect();
        let shown =
            if crd["spec"]["versions"].is_array() { format!("[{}]", shown.join(",")) } else { "null".into() };
        errors.push(FieldError::invalid_as(path, shown, detail));
    }
}

/// A version as the API server's own type prints it, when all versions share one schema.
fn internal_version(version: &Value) -> String {
    let quoted = |key: &str| Value::from(version[key].as_str().unwrap_or_default()).to_string();
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
        quoted("name"),
        flag(version, "served"),
        flag(version, "storage"),
        flag(version, "deprecated")
    )
}

/// The columns of tables; those that all versions share are the definition's.
fn printer_columns(spec: &Value, errors: &mut ErrorList) {
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let columns = |version: &Value| version["additionalPrinterColumns"].clone();
    let shared = versions.first().is_some_and(|first| versions.iter().all(|v| columns(v) == columns(first)));
    let count = if shared { 1 } else { versions.len() };
    for (at, version) in versions.iter().take(count).enumerate() {
        let path = match shared {
            true => Path::new("spec.additionalPrinterColumns"),
            false => Path::new("spec.versions").index(at).child("additionalPrinterColumns"),
        };
        for (number, column) in columns(version).as_array().into_iter().flatten().enumerate() {
            printer_column(column, &path.index(number), errors);
        }
    }
}

fn printer_column(column: &Value, path: &Path, errors: &mut ErrorList) {
    const KINDS: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let text = |field: &str| column[field].as_str().unwrap_or_default();
    if text("name").is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let detail = format!("must be one of {}", KINDS.join(","));
    match text("type") {
        "" => errors.push(FieldError::required(&path.child("type"), detail)),
        kind if !KINDS.contains(&kind) => errors.push(FieldError::invalid(&path.child("type"), kind, detail)),
        _ => {}
    }
    let format = text("format");
    if !format.is_empty() && !FORMATS.contains(&format) {
        let detail = format!("must be one of {}", FORMATS.join(","));
        errors.push(FieldError::invalid(&path.child("format"), format, detail));
    }
    if text("jsonPath").is_empty() {
        errors.push(FieldError::required(&path.child("JSONPath"), ""));
    }
}

fn conversion(spec: &Value, errors: &mut ErrorList) {
    let path = Path::new("spec.conversion");
    match spec["conversion"]["strategy"].as_str() {
        None | Some("None") => {
            let detail = "should not be set when strategy is not set to Webhook";
            let webhook = &spec["conversion"]["webhook"];
            if webhook["clientConfig"].is_object() {
                errors.push(FieldError::forbidden(&path.child("webhookClientConfig"), detail));
            }
            if webhook["conversionReviewVersions"].as_array().is_some_and(|reviews| !reviews.is_empty()) {
                errors.push(FieldError::forbidden(&path.child("conversionReviewVersions"), detail));
            }
        }
        Some("Webhook") => {
            let webhook = &spec["conversion"]["webhook"];
            let client = path.child("webhookClientConfig");
            if webhook["clientConfig"].is_object() {
                admission::client_config(&webhook["clientConfig"], &client, errors);
            } else {
                errors.push(FieldError::required(&client, "required when strategy is set to Webhook"));
            }
            let path = path.child("conversionReviewVersions");
            match webhook["conversionReviewVersions"].as_array().map_or(&[][..], Vec::as_slice) {
                [] => errors.push(FieldError::required(&path, "")),
                reviews => admission::known_reviews(reviews, &path, errors),
            }
        }
        Some(other) => {
            errors.push(FieldError::not_supported(&path.child("strategy"), other, &["None", "Webhook"]));
        }
    }
}

/// Groups of the project itself are for what it has reviewed.
fn approval(crd: &Value, group: &str, errors: &mut ErrorList) {
    let is_protected =
        ["k8s.io", "kubernetes.io"].iter().any(|own| group == *own || group.ends_with(&format!(".{own}")));
    let approval = &crd["metadata"]["annotations"]["api-approved.kubernetes.io"];
    if !is_protected {
        return;
    }
    let path = Path::new("metadata.annotations").key("api-approved.kubernetes.io");
    match approval.as_str() {
        None | Some("") => {
            let detail = "protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111";
            errors.push(FieldError::required(&path, detail));
        }
        Some(text) if text.starts_with("unapproved") || text.contains("://") => {}
        Some(text) => {
            let detail = "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111";
            errors.push(FieldError::invalid(&path, text, detail));
        }
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
        let mixed = matches!(field, "kind" | "listKind");
        let checked = if mixed { name.to_lowercase() } else { name.to_owned() };
        for fault in names::dns1035_label(&checked) {
            let detail = if mixed {
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
    let before = errors.0.len();
    unsupported(schema, path, errors);
    if errors.0.len() > before {
        return;
    }
    let free =
        flag(schema, "x-kubernetes-preserve-unknown-fields") || flag(schema, "x-kubernetes-int-or-string");
    let kind = schema["type"].as_str().unwrap_or_default();
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    if !root && !free && kind.is_empty() {
        errors
            .push(FieldError::required(&path.child("type"), "must not be empty for specified object fields"));
    } else if !root && !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, &TYPES));
    }
    if kind == "array" && !schema["items"].is_object() {
        errors.push(FieldError::required(&path.child("items"), "must be specified"));
    }
    if schema["properties"].is_object() && schema["additionalProperties"].is_object() {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), detail));
    }
    extensions(schema, path, errors);
    values(schema, path, errors);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if root && name == "metadata" {
            metadata(property, &path.child("properties").key(name), errors);
        } else {
            node(property, &path.child("properties").key(name), errors, depth + 1, false);
        }
    }
    for field in ["items", "additionalProperties"] {
        if schema[field].is_object() {
            node(&schema[field], &path.child(field), errors, depth + 1, false);
        }
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

/// The extensions for lists, maps and embedded objects.
fn extensions(schema: &Value, path: &Path, errors: &mut ErrorList) {
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if schema[preserve] == false {
        errors.push(FieldError::invalid(&path.child(preserve), false, "must be true or undefined"));
    }
    let list_type = "x-kubernetes-list-type";
    match schema[list_type].as_str() {
        None | Some("atomic" | "set") => {}
        Some("map") => {
            let keys = "x-kubernetes-list-map-keys";
            if schema[keys].as_array().is_none_or(Vec::is_empty) {
                let detail = "must not be empty if x-kubernetes-list-type is map";
                errors.push(FieldError::required(&path.child(keys), detail));
            }
            let items = &schema["items"];
            if items["type"] != "object" {
                let detail = "must be object if parent array's x-kubernetes-list-type is map";
                let path = path.child("items").child("type");
                errors.push(FieldError::invalid(&path, items["type"].clone(), detail));
            } else {
                for (at, key) in schema[keys].as_array().into_iter().flatten().enumerate() {
                    let key = key.as_str().unwrap_or_default();
                    if items["properties"].get(key).is_none() {
                        let detail = "entries must all be names of item properties";
                        errors.push(FieldError::invalid(&path.child(keys).index(at), key, detail));
                    }
                }
            }
        }
        Some(other) => {
            let supported = ["atomic", "set", "map"];
            errors.push(FieldError::not_supported(&path.child(list_type), other, &supported));
        }
    }
    let map_type = "x-kubernetes-map-type";
    if let Some(other) = schema[map_type].as_str().filter(|kind| !matches!(*kind, "atomic" | "granular")) {
        errors.push(FieldError::not_supported(&path.child(map_type), other, &["atomic", "granular"]));
    }
    let is_bare = schema["properties"].as_object().is_none_or(serde_json::Map::is_empty);
    if flag(schema, "x-kubernetes-embedded-resource") && is_bare && !flag(schema, preserve) {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&path.child("properties"), detail));
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
