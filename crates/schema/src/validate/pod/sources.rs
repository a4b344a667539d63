//! Storage that pods and persistent volumes can be of: which fields each kind needs, and what they look like.

use serde_json::Value;

use super::{faulty, list, names, text};
use crate::{ErrorList, FieldError, Path};

/// The fields that each kind needs.
const REQUIRED: [(&str, &[&str]); 18] = [
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("nfs", &["server", "path"]),
    ("glusterfs", &["endpoints", "path"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("rbd", &["image"]),
    ("cinder", &["volumeID"]),
    ("flexVolume", &["driver"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("storageos", &["volumeName"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("quobyte", &["volume"]),
    ("iscsi", &["targetPortal", "iqn"]),
];
const HOST_PATHS: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
const PARTITION: &str = "must be between 1 and 255, inclusive";
const LUN: &str = "must be between 0 and 255, inclusive";

/// One source; those of persistent volumes (`persistent`) name the namespaces of their secrets.
pub(in crate::validate) fn source(
    kind: &str,
    source: &Value,
    persistent: bool,
    path: &Path,
    errors: &mut ErrorList,
) {
    let place = |field: &str| path.child(field);
    // The API server has another name for it.
    let path = if kind == "gcePersistentDisk" {
        let shown = path.to_string().replace("gcePersistentDisk", "persistentDisk");
        &Path::new(shown)
    } else {
        path
    };
    if matches!(kind, "rbd" | "cephfs") && list(source, "monitors").is_empty() {
        errors.push(FieldError::required(&place("monitors"), ""));
    }
    if kind == "quobyte" {
        quobyte(source, path, errors);
    }
    let required = REQUIRED.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, fields)| fields);
    for field in required.iter().filter(|field| text(source, field).is_empty()) {
        errors.push(FieldError::required(&path.child(field), ""));
    }
    match kind {
        "hostPath" => host_path(source, path, errors),
        "local" => match text(source, "path") {
            "" => errors.push(FieldError::required(&place("path"), "")),
            target => no_backsteps(target, &place("path"), errors),
        },
        "gitRepo" => descending(text(source, "directory"), &place("directory"), errors),
        "gcePersistentDisk" | "awsElasticBlockStore" => {
            if let Some(number) = source["partition"].as_i64().filter(|number| !(0..=255).contains(number)) {
                errors.push(FieldError::invalid(&path.child("partition"), number, PARTITION));
            }
        }
        "nfs" => {
            let target = text(source, "path");
            if !target.starts_with('/') {
                errors.push(FieldError::invalid(&place("path"), target, "must be an absolute path"));
            }
        }
        "iscsi" => iscsi(source, persistent, path, errors),
        "fc" => fibre_channel(source, path, errors),
        "flocker" => flocker(source, path, errors),
        "flexVolume" => options(source, path, errors),
        "azureDisk" => azure_disk(source, path, errors),
        "azureFile" if persistent && source["secretNamespace"] == "" => {
            errors.push(FieldError::required(&place("secretNamespace"), ""));
        }
        "glusterfs" if persistent => match source["endpointsNamespace"].as_str() {
            None => {}
            Some("") => {
                let detail = "if the endpointnamespace is set, it must be a valid namespace name";
                errors.push(FieldError::invalid(&place("endpointsNamespace"), "", detail));
            }
            Some(name) => faulty(names::dns1123_label(name), name, &place("endpointsNamespace"), errors),
        },
        "cinder" => secret(source, persistent, path, errors),
        "storageos" => {
            for field in ["volumeName", "volumeNamespace"] {
                let name = text(source, field);
                if !name.is_empty() {
                    faulty(names::dns1123_label(name), name, &place(field), errors);
                }
            }
            secret(source, persistent, path, errors);
        }
        _ => {}
    }
}

/// The secret of a source, where it has one.
fn secret(source: &Value, persistent: bool, path: &Path, errors: &mut ErrorList) {
    let secret = &source["secretRef"];
    let fields: &[&str] = if persistent { &["name", "namespace"] } else { &["name"] };
    for field in fields.iter().filter(|field| secret.is_object() && text(secret, field).is_empty()) {
        errors.push(FieldError::required(&path.child("secretRef").child(field), ""));
    }
}

fn host_path(source: &Value, path: &Path, errors: &mut ErrorList) {
    let target = text(source, "path");
    if target.is_empty() {
        errors.push(FieldError::required(&path.child("path"), ""));
        return;
    }
    no_backsteps(target, &path.child("path"), errors);
    let kind = text(source, "type");
    if !HOST_PATHS.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, &HOST_PATHS));
    }
}

/// A path below the place where it starts.
pub(in crate::validate) fn descending(target: &str, path: &Path, errors: &mut ErrorList) {
    if target.starts_with('/') {
        errors.push(FieldError::invalid(path, target, "must be a relative path"));
    }
    no_backsteps(target, path, errors);
}

/// A path that never goes up.
pub(in crate::validate) fn no_backsteps(target: &str, path: &Path, errors: &mut ErrorList) {
    if target.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(path, target, "must not contain '..'"));
    }
}

/// A path for a file that the kubelet writes: it keeps names that start with two dots for itself.
pub(in crate::validate) fn not_reserved(target: &str, path: &Path, errors: &mut ErrorList) {
    descending(target, path, errors);
    if target.starts_with("..") && !target.starts_with("../") {
        errors.push(FieldError::invalid(path, target, "must not start with '..'"));
    }
}

/// A name of an initiator or target.
fn is_iscsi_name(name: &str) -> bool {
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_alphanumeric());
    if let Some(rest) = name.strip_prefix("iqn.") {
        let (date, rest) = rest.split_at_checked(8).unwrap_or(("", ""));
        let is_date = |(at, b): (usize, u8)| match at {
            4 => b == b'-',
            7 => b == b'.',
            _ => b.is_ascii_digit(),
        };
        let (domain, last) = rest.split_once(':').unwrap_or((rest, ""));
        let domain_is_right =
            !domain.is_empty() && domain.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b));
        let last_is_right =
            !last.is_empty() && !last.chars().any(|c| ",;*&$|".contains(c) || c.is_ascii_whitespace());
        return date.len() == 8 && date.bytes().enumerate().all(is_date) && domain_is_right && last_is_right;
    }
    let rest = |start: &str| {
        name.strip_prefix(start).and_then(|rest| rest.split_at_checked(1)).map(|(_, rest)| rest)
    };
    rest("eui").is_some_and(|rest| digits(rest, 16)) || rest("naa").is_some_and(|rest| digits(rest, 32))
}

fn iscsi(source: &Value, persistent: bool, path: &Path, errors: &mut ErrorList) {
    let is_known = |name: &str| ["iqn", "eui", "naa"].iter().any(|start| name.starts_with(start));
    let wrong_start = if persistent {
        "must be valid format"
    } else {
        "must be valid format starting with iqn, eui, or naa"
    };
    let mut name = |name: &str, path: &Path| {
        if !is_known(name) {
            errors.push(FieldError::invalid(path, name, wrong_start));
        } else if !is_iscsi_name(name) {
            errors.push(FieldError::invalid(path, name, "must be valid format"));
        }
    };
    if !text(source, "iqn").is_empty() {
        name(text(source, "iqn"), &path.child("iqn"));
    }
    if let Some(initiator) = source["initiatorName"].as_str() {
        name(initiator, &path.child("initiatorname"));
    }
    lun(source, path, errors);
    let needs_secret = source["chapAuthDiscovery"] == true || source["chapAuthSession"] == true;
    if needs_secret && !source["secretRef"].is_object() {
        errors.push(FieldError::required(&path.child("secretRef"), ""));
    }
    if persistent && source["secretRef"].is_object() && text(&source["secretRef"], "name").is_empty() {
        errors.push(FieldError::required(&path.child("secretRef").child("name"), ""));
    }
}

const LONG_NAME: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";

fn is_long_name(name: &str, source: &Value) -> bool {
    source["initiatorName"].is_string() && name.len() + 1 + text(source, "targetPortal").len() > 64
}

/// An initiator's name leaves little room for the name of a pod's volume.
pub(super) fn iscsi_name(volume: &Value, path: &Path, errors: &mut ErrorList) {
    let name = text(volume, "name");
    if is_long_name(name, &volume["iscsi"]) {
        errors.push(FieldError::invalid(&path.child("name"), name, LONG_NAME));
    }
}

/// The same for a persistent volume.
pub(in crate::validate) fn iscsi_portal(name: &str, source: &Value, path: &Path, errors: &mut ErrorList) {
    if is_long_name(name, source) {
        let portal = text(source, "targetPortal");
        errors.push(FieldError::invalid(&path.child("targetportal"), portal, LONG_NAME));
    }
}

fn lun(source: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(number) = source["lun"].as_i64().filter(|number| !(0..=255).contains(number)) {
        errors.push(FieldError::invalid(&path.child("lun"), number, LUN));
    }
}

fn fibre_channel(source: &Value, path: &Path, errors: &mut ErrorList) {
    let names = path.child("targetWWNs");
    let (targets, ids) = (list(source, "targetWWNs"), list(source, "wwids"));
    if targets.is_empty() && ids.is_empty() {
        let detail = "must specify either targetWWNs or wwids, but not both";
        errors.push(FieldError::required(&names, detail));
    }
    if targets.is_empty() {
        return;
    }
    if !ids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(FieldError::invalid(&names, source["targetWWNs"].clone(), detail));
    }
    if source["lun"].is_null() {
        let detail = "lun is required if targetWWNs is specified";
        errors.push(FieldError::required(&path.child("lun"), detail));
    }
    lun(source, path, errors);
}

fn flocker(source: &Value, path: &Path, errors: &mut ErrorList) {
    let (name, id) = (text(source, "datasetName"), text(source, "datasetUUID"));
    if name.is_empty() && id.is_empty() {
        errors.push(FieldError::required(path, "one of datasetName and datasetUUID is required"));
    }
    if !name.is_empty() && !id.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(FieldError::invalid(path, "resource", detail));
    }
    if name.contains('/') {
        errors.push(FieldError::invalid(&path.child("datasetName"), name, "must not contain '/'"));
    }
}

fn options(source: &Value, path: &Path, errors: &mut ErrorList) {
    for key in source["options"].as_object().into_iter().flat_map(|options| options.keys()) {
        let domain = format!(".{}", key.split('/').next().unwrap_or_default().to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(FieldError::invalid(&path.child("options").key(key), key.as_str(), detail));
        }
    }
}

fn azure_disk(source: &Value, path: &Path, errors: &mut ErrorList) {
    for (field, known) in
        [("cachingMode", ["None", "ReadOnly", "ReadWrite"]), ("kind", ["Dedicated", "Managed", "Shared"])]
    {
        if let Some(value) = source[field].as_str().filter(|value| !known.contains(value)) {
            errors.push(FieldError::not_supported(&path.child(field), value, &known));
        }
    }
    let (start, example) = match source["kind"].as_str() {
        Some("Managed") => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ),
        Some(_) => {
            ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd")
        }
        None => return,
    };
    let address = text(source, "diskURI");
    if !address.starts_with(start) {
        errors.push(FieldError::not_supported(&path.child("diskURI"), address, &[example]));
    }
}

fn quobyte(source: &Value, path: &Path, errors: &mut ErrorList) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = text(source, "registry");
    let place = path.child("registry");
    if registry.is_empty() {
        errors.push(FieldError::required(&place, PAIRS));
    } else if text(source, "tenant").len() > 64 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(&path.child("tenant"), detail));
    } else {
        for _ in registry.split(',').filter(|pair| !is_host_and_port(pair)) {
            errors.push(FieldError::invalid(&place, registry, PAIRS));
        }
    }
}

/// `host:port`, the host in brackets if it has colons.
fn is_host_and_port(text: &str) -> bool {
    match text.rsplit_once(':') {
        Some((host, port)) if host.starts_with('[') => host.ends_with(']') && !port.contains(['[', ']']),
        Some((host, port)) => !host.contains([':', '[', ']']) && !port.contains(['[', ']']),
        None => false,
    }
}

/// The name of a CSI driver.
pub(in crate::validate) fn driver_name(name: &str, path: &Path, errors: &mut ErrorList) {
    const LONGEST: usize = 63;
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    if name.len() > LONGEST {
        errors.push(FieldError::too_long(path, LONGEST));
    }
    faulty(names::dns1123_subdomain(&name.to_lowercase()), name, path, errors);
}
