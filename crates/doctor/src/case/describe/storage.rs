//! Claims, volumes and their classes.

use tiphys_value::{Value, json};

use super::text::{Field, below, fields, value};

/// The short words for modes of access.
const MODES: &[(&str, &str)] = &[
    ("RWO", "ReadWriteOnce"),
    ("ROX", "ReadOnlyMany"),
    ("RWX", "ReadWriteMany"),
    ("RWOP", "ReadWriteOncePod"),
];

fn modes(text: &str) -> Vec<&'static str> {
    let words = text.split(',').map(str::trim);
    let full = words.filter_map(|word| MODES.iter().find(|(short, _)| *short == word));
    full.map(|(_, mode)| *mode).collect()
}

pub(super) fn claim(described: &[Field<'_>]) -> Value {
    let mut live = json!({"spec": {}, "status": {"phase": value(described, "Status").unwrap_or_default()}});
    for (title, key) in [("StorageClass", "storageClassName"), ("Volume", "volumeName")] {
        if let Some(text) = value(described, title) {
            live["spec"][key] = json!(text);
        }
    }
    if let Some(size) = value(described, "Capacity") {
        live["status"]["capacity"]["storage"] = json!(size);
    }
    if let Some(text) = value(described, "Access Modes") {
        live["spec"]["accessModes"] = json!(modes(text));
    }
    live
}

pub(super) fn volume(described: &[Field<'_>]) -> Value {
    let text = |title: &str| value(described, title).unwrap_or_default();
    let mut live = json!({
        "spec": {
            "storageClassName": text("StorageClass"),
            "persistentVolumeReclaimPolicy": text("Reclaim Policy"),
            "accessModes": modes(text("Access Modes")),
            "capacity": {"storage": text("Capacity")},
        },
        "status": {"phase": text("Status").split_whitespace().next().unwrap_or_default()},
    });
    if let Some((namespace, name)) = text("Claim").split_once('/') {
        live["spec"]["claimRef"] =
            json!({"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name});
    }
    let source = fields(below(described, "Source"));
    let told = |title: &str| value(&source, title).unwrap_or_default();
    match told("Type").split_whitespace().next() {
        Some("CSI") => {
            live["spec"]["csi"] = json!({"driver": told("Driver"), "volumeHandle": told("VolumeHandle")});
        }
        Some("NFS") => live["spec"]["nfs"] = json!({"server": told("Server"), "path": told("Path")}),
        _ => {}
    }
    let terms = below(described, "Node Affinity").iter().filter_map(|line| {
        let (_, term) = line.trim().strip_prefix("Term ")?.split_once(':')?;
        let (key, values) = term.trim().split_once(" in ")?;
        let values = values.trim_matches(['[', ']']).split(',').map(str::trim);
        Some(json!({"matchExpressions": [
            {"key": key.trim(), "operator": "In", "values": values.collect::<Vec<&str>>()},
        ]}))
    });
    let terms: Vec<Value> = terms.collect();
    if !terms.is_empty() {
        live["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = json!(terms);
    }
    live
}

pub(super) fn class(described: &[Field<'_>]) -> Value {
    let mut live = json!({"allowVolumeExpansion": value(described, "AllowVolumeExpansion") == Some("True")});
    for (title, key) in [
        ("Provisioner", "provisioner"),
        ("ReclaimPolicy", "reclaimPolicy"),
        ("VolumeBindingMode", "volumeBindingMode"),
    ] {
        if let Some(text) = value(described, title) {
            live[key] = json!(text);
        }
    }
    live
}
