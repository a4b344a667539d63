//! Secrets, namespaces, nodes and storage.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{Object, child, each, object_or_new, set, set_text, text};

/// `stringData` is written into `data`.
pub(super) fn secret(object: &mut Object) {
    if let Some(Value::Object(plain)) = object.remove("stringData")
        && let Some(data) = object_or_new(object, "data")
    {
        for (key, value) in plain {
            let bytes = value.as_str().unwrap_or_default();
            data.insert(key, STANDARD.encode(bytes).into());
        }
    }
    set_text(object, "type", "Opaque");
}

pub(super) fn namespace(object: &mut Object) {
    let name = object.get("metadata").and_then(|metadata| metadata["name"].as_str()).unwrap_or_default();
    let name = name.to_owned();
    if !name.is_empty()
        && let Some(labels) =
            object_or_new(object, "metadata").and_then(|metadata| object_or_new(metadata, "labels"))
    {
        labels.insert("kubernetes.io/metadata.name".into(), name.into());
    }
    if let Some(status) = object_or_new(object, "status") {
        set_text(status, "phase", "Active");
    }
}

pub(super) fn volume(object: &mut Object) {
    if let Some(spec) = child(object, "spec") {
        set_text(spec, "persistentVolumeReclaimPolicy", "Retain");
        set(spec, "volumeMode", "Filesystem");
        if let Some(path) = child(spec, "hostPath") {
            set(path, "type", "");
        }
        super::pod::storage(spec);
    }
    if let Some(status) = object_or_new(object, "status") {
        set_text(status, "phase", "Pending");
    }
}

pub(super) fn claim(object: &mut Object) {
    if let Some(spec) = child(object, "spec") {
        set(spec, "volumeMode", "Filesystem");
        // What is no claim and no snapshot the server drops.
        let kept = spec.get("dataSource").filter(|source| {
            let part = |name: &str| source[name].as_str().unwrap_or_default();
            matches!(
                (part("apiGroup"), part("kind")),
                ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
            )
        });
        if let Some(source) = kept.cloned() {
            set(spec, "dataSourceRef", source);
        }
    }
    if let Some(status) = object_or_new(object, "status") {
        set_text(status, "phase", "Pending");
    }
}

pub(super) fn node(object: &mut Object) {
    if let Some(spec) = child(object, "spec") {
        let range = text(spec, "podCIDR").to_owned();
        if !range.is_empty() && spec.get("podCIDRs").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            spec.insert("podCIDRs".into(), vec![range].into());
        }
    }
    if let Some(status) = child(object, "status")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        set(status, "allocatable", capacity);
    }
}

/// Container limits: defaults come from the maximum, default requests from defaults, then the minimum.
pub(super) fn limit_range(object: &mut Object) {
    let Some(spec) = child(object, "spec") else { return };
    for item in each(spec, "limits").filter(|item| text(item, "type") == "Container") {
        for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
            let Some(amounts) = item.get(from).and_then(Value::as_object).cloned() else { continue };
            let Some(target) = object_or_new(item, to) else { continue };
            for (name, amount) in amounts {
                set(target, &name, amount);
            }
        }
    }
}

pub(super) fn storage_class(object: &mut Object) {
    set(object, "reclaimPolicy", "Delete");
    set(object, "volumeBindingMode", "Immediate");
}

pub(super) fn csi_driver(object: &mut Object) {
    let Some(spec) = child(object, "spec") else { return };
    set(spec, "attachRequired", true);
    for off in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        set(spec, off, false);
    }
    set(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    set(spec, "volumeLifecycleModes", json!(["Persistent"]));
}
