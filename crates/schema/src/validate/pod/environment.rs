//! Environment variables and where their values come from.

use serde_json::Value;

use super::{every_container, faulty, list, names, text};
use crate::{ErrorList, FieldError, Path, Quantity};

/// Fields of a pod that a variable can show.
const VARIABLE_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields of a pod that a file can show.
pub(super) const FILE_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// Fields that the API knows to convert, whether or not they can be shown.
const CONVERTIBLE: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const DIVISORS: [&str; 13] =
    ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

/// A container's `env`.
pub(super) fn variables(container: &Value, path: &Path, errors: &mut ErrorList) {
    for (at, variable) in list(container, "env").iter().enumerate() {
        let path = path.index(at);
        match text(variable, "name") {
            "" => errors.push(FieldError::required(&path.child("name"), "")),
            name => faulty(names::env_name(name), name, &path.child("name"), errors),
        }
        if variable["valueFrom"].is_object() {
            value_from(variable, &path.child("valueFrom"), errors);
        }
    }
}

fn value_from(variable: &Value, path: &Path, errors: &mut ErrorList) {
    let source = &variable["valueFrom"];
    let given: Vec<&str> = SOURCES.into_iter().filter(|kind| source[*kind].is_object()).collect();
    for kind in &given {
        let (reference, path) = (&source[*kind], path.child(kind));
        match *kind {
            "fieldRef" => field(reference, &VARIABLE_FIELDS, &path, errors),
            "resourceFieldRef" => resource(reference, false, &path, errors),
            "fileKeyRef" => file_key(reference, &path, errors),
            _ => key(reference, &path, errors),
        }
    }
    let detail = match given.len() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !text(variable, "value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(path, "", detail));
}

/// The key of a config map or a secret.
fn key(reference: &Value, path: &Path, errors: &mut ErrorList) {
    let name = text(reference, "name");
    faulty(names::dns1123_subdomain(name), name, &path.child("name"), errors);
    match text(reference, "key") {
        "" => errors.push(FieldError::required(&path.child("key"), "")),
        key => faulty(names::config_key(key), key, &path.child("key"), errors),
    }
}

/// A variable in a file.
fn file_key(reference: &Value, path: &Path, errors: &mut ErrorList) {
    for (field, faults) in [
        ("key", names::env_name as fn(&str) -> Vec<String>),
        ("volumeName", names::dns1123_label),
        ("path", |_| Vec::new()),
    ] {
        let (value, path) = (text(reference, field), path.child(field));
        match value {
            "" => errors.push(FieldError::required(&path, "")),
            value => faulty(faults(value), value, &path, errors),
        }
        if field == "path" {
            super::sources::no_backsteps(value, &path, errors);
        }
    }
}

/// The volumes of variables in files are there, and are directories of the pod.
pub(super) fn file_volumes(spec: &Value, path: &Path, errors: &mut ErrorList) {
    for (container, path) in every_container(spec, path) {
        for (at, variable) in list(container, "env").iter().enumerate() {
            let reference = &variable["valueFrom"]["fileKeyRef"];
            if !reference.is_object() {
                continue;
            }
            let name = text(reference, "volumeName");
            let path = path.child("env").index(at).child("valueFrom").child("fileKeyRef").child("volumeName");
            match list(spec, "volumes").iter().rfind(|volume| text(volume, "name") == name) {
                None => errors.push(FieldError::not_found(&path, name)),
                Some(volume) if volume["emptyDir"].is_object() => {}
                Some(_) => {
                    let detail = "referenced volume must be of type emptyDir";
                    errors.push(FieldError::invalid(&path, name, detail));
                }
            }
        }
    }
}

/// A path with a subscript: `metadata.labels['app']`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (field, key) = path.strip_suffix("']")?.split_once("['")?;
    (!field.is_empty()).then_some((field, key))
}

/// A field of the pod.
pub(super) fn field(reference: &Value, known: &[&str], path: &Path, errors: &mut ErrorList) {
    let (version, field) = (text(reference, "apiVersion"), text(reference, "fieldPath"));
    if version.is_empty() {
        errors.push(FieldError::required(&path.child("apiVersion"), ""));
        return;
    }
    let place = path.child("fieldPath");
    if field.is_empty() {
        errors.push(FieldError::required(&place, ""));
        return;
    }
    let keyed = subscript(field);
    let why = match keyed {
        _ if version != "v1" => format!("unsupported pod version: {version}"),
        Some(("metadata.annotations" | "metadata.labels", _)) => String::new(),
        Some(_) => format!("field label does not support subscript: {field}"),
        None if field == "spec.host" || CONVERTIBLE.contains(&field) => String::new(),
        None => format!("field label not supported: {field}"),
    };
    if !why.is_empty() {
        errors.push(FieldError::invalid(&place, field, format!("error converting fieldPath: {why}")));
        return;
    }
    match keyed {
        Some((field, key)) => {
            let key = if field == "metadata.annotations" { key.to_lowercase() } else { key.to_owned() };
            faulty(names::qualified_name(&key), &key, path, errors);
        }
        None => {
            let field = if field == "spec.host" { "spec.nodeName" } else { field };
            if !known.contains(&field) {
                errors.push(FieldError::not_supported(&place, field, known));
            }
        }
    }
}

/// A resource of a container; in files the container is named.
pub(super) fn resource(reference: &Value, in_file: bool, path: &Path, errors: &mut ErrorList) {
    let resource = text(reference, "resource");
    let is_page =
        ["limits.hugepages-", "requests.hugepages-"].iter().any(|start| resource.starts_with(start));
    if in_file && text(reference, "containerName").is_empty() {
        errors.push(FieldError::required(&path.child("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), ""));
    } else if !RESOURCES.contains(&resource) && !is_page {
        errors.push(FieldError::not_supported(&path.child("resource"), resource, &RESOURCES));
    }
    let divisor = reference["divisor"].as_str().and_then(|text| text.parse::<Quantity>().ok());
    let Some(divisor) = divisor.filter(|divisor| divisor.signum() != 0) else { return };
    let (known, what) = match resource.split_once('.').map(|(_, kind)| kind) {
        Some("cpu") => (&["1m", "1"][..], "cpu"),
        Some("memory") => (&DIVISORS[..], "memory"),
        Some("ephemeral-storage") => (&DIVISORS[..], "local ephemeral storage"),
        _ if is_page => (&DIVISORS[..], "hugepages"),
        _ => return,
    };
    if !known.contains(&divisor.to_string().as_str()) {
        let shown = if what == "cpu" { "1m and 1".to_owned() } else { DIVISORS.join(", ") };
        let detail = format!("only divisor's values {shown} are supported with the {what} resource");
        errors.push(FieldError::invalid(&path.child("divisor"), resource, detail));
    }
}

/// A container's `envFrom`.
pub(super) fn sources(container: &Value, path: &Path, errors: &mut ErrorList) {
    for (at, source) in list(container, "envFrom").iter().enumerate() {
        let place = path.index(at);
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            faulty(names::env_name(prefix), prefix, &place.child("prefix"), errors);
        }
        let given: Vec<&str> =
            ["configMapRef", "secretRef"].into_iter().filter(|kind| source[*kind].is_object()).collect();
        for kind in &given {
            let (name, path) = (text(&source[*kind], "name"), place.child(kind).child("name"));
            match name {
                "" => errors.push(FieldError::required(&path, "")),
                // A hyphen at the end is what a prefix may have.
                name => faulty(names::dns1123_subdomain_prefix(name), name, &path, errors),
            }
        }
        match given.len() {
            0 => {
                let detail = "must specify one of: `configMapRef` or `secretRef`";
                errors.push(FieldError::invalid(path, "", detail));
            }
            1 => {}
            _ => {
                let detail = "may not have more than one field specified at a time";
                errors.push(FieldError::invalid(path, "", detail));
            }
        }
    }
}
