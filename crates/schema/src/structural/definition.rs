//! Validation of `CustomResourceDefinition` objects: names, versions, and that schemas are structural.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{flag, keywords};
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
        for (schema, _) in crd_schemas(crd) {
            if super::default::any(schema, 0) {
                let detail = "must be false in order to use defaults in the schema";
                errors.push(FieldError::invalid(&spec.child("preserveUnknownFields"), true, detail));
            }
        }
        if text("/spec/conversion/strategy") == "Webhook" {
            let path = Path::new("spec.conversion.strategy");
            let detail = "must be None if spec.preserveUnknownFields is true";
            errors.push(FieldError::invalid(&path, "Webhook", detail));
        }
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
    super::surface::surface(&crd["spec"], &mut errors);
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
        storage += usize::from(flag(version, "storage"));
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            errors.push(FieldError::required(&path.child("schema").child("openAPIV3Schema"), ""));
        }
    }
    for (schema, path) in crd_schemas(crd) {
        keywords::structural(schema, &path, errors);
    }
    let refuse = |detail: &str| {
        let shown: Vec<String> = versions.iter().map(internal_version).collect();
        let shown =
            if crd["spec"]["versions"].is_array() { format!("[{}]", shown.join(",")) } else { "null".into() };
        FieldError::invalid_as(path, shown, detail)
    };
    let called: BTreeSet<&str> = versions.iter().filter_map(|version| version["name"].as_str()).collect();
    if called.len() != versions.len() {
        errors.push(refuse("must contain unique version names"));
    }
    if storage != 1 {
        errors.push(refuse("must have exactly one version marked as storage version"));
    }
    let mut stored = versions.iter().filter(|version| flag(version, "storage"));
    if let (Some(first), Some(last)) = (stored.next(), stored.next_back()) {
        let detail = format!("must have the storage version {}", last["name"].as_str().unwrap_or_default());
        let shown = Value::from(vec![first["name"].clone()]);
        errors.push(FieldError::invalid(&Path::new("status.storedVersions"), shown, detail));
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
        None | Some("" | "None") => {
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
