//! Claims and storage classes.

use serde_json::Value;

use super::{list, text};
use crate::{ErrorList, FieldError, Path, Quantity};

pub(super) const ACCESS: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) fn claim(spec: &Value, path: &Path, errors: &mut ErrorList) {
    if list(spec, "accessModes").is_empty() {
        errors.push(FieldError::required(&path.child("accessModes"), "at least 1 access mode is required"));
    }
    super::selector(&spec["selector"], &path.child("selector"), errors);
    access_modes(spec, &path.child("accessModes"), errors);
    let storage = &spec["resources"]["requests"]["storage"];
    let place = path.child("resources").key("storage");
    match storage.as_str().and_then(|text| text.parse::<Quantity>().ok()) {
        None => errors.push(FieldError::required(&place, "")),
        Some(amount) if amount.signum() <= 0 => {
            let detail = "must be greater than zero";
            errors.push(FieldError::invalid(&place, amount.to_string(), detail));
        }
        Some(_) => {}
    }
    class_name(spec, "storageClassName", path, errors);
    volume_mode(spec, path, errors);
    for field in ["dataSource", "dataSourceRef"] {
        if spec[field].is_object() {
            data_source(&spec[field], &path.child(field), errors);
        }
    }
    same_source(spec, path, errors);
    class_name(spec, "volumeAttributesClassName", path, errors);
}

/// The access modes of a claim or a volume.
pub(super) fn access_modes(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let modes = list(spec, "accessModes");
    let is_known = |mode: &&Value| ACCESS.contains(&mode.as_str().unwrap_or_default());
    for mode in modes.iter().filter(|mode| !is_known(mode)) {
        errors.push(FieldError::not_supported(path, mode.clone(), &ACCESS));
    }
    let is_single = |mode: &&Value| *mode == "ReadWriteOncePod";
    if modes.iter().any(|mode| is_single(&mode))
        && modes.iter().any(|mode| is_known(&mode) && !is_single(&mode))
    {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(path, detail));
    }
}

fn class_name(spec: &Value, field: &str, path: &Path, errors: &mut ErrorList) {
    let class = text(spec, field);
    if !class.is_empty() {
        super::faulty(super::names::dns1123_subdomain(class), class, &path.child(field), errors);
    }
}

/// Whether a claim or a volume is a file system or a device.
pub(super) fn volume_mode(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let known = ["Block", "Filesystem"];
    if let Some(mode) = spec["volumeMode"].as_str().filter(|mode| !known.contains(mode)) {
        errors.push(FieldError::not_supported(&path.child("volumeMode"), mode, &known));
    }
}

/// From what a claim is filled.
fn data_source(source: &Value, path: &Path, errors: &mut ErrorList) {
    for field in ["name", "kind"] {
        if text(source, field).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    let (group, kind) = (text(source, "apiGroup"), text(source, "kind"));
    if group.is_empty() {
        if kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(path, kind, detail));
        }
    } else {
        super::faulty(super::names::dns1123_subdomain(group), group, &path.child("apiGroup"), errors);
    }
    let namespace = text(source, "namespace");
    if !namespace.is_empty() {
        super::faulty(super::names::dns1123_label(namespace), namespace, &path.child("namespace"), errors);
    }
}

/// The two fields that say from what a claim is filled say the same.
fn same_source(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let (old, new) = (&spec["dataSource"], &spec["dataSourceRef"]);
    if !old.is_object() || !new.is_object() {
        return;
    }
    let detail = match text(new, "namespace") {
        "" if ["apiGroup", "kind", "name"].iter().all(|field| old[*field] == new[*field]) => return,
        "" => "must match dataSourceRef",
        _ => "may not be specified when dataSourceRef.namespace is specified",
    };
    errors.push(FieldError::invalid(path, path.child("dataSource").to_string(), detail));
}

/// Where the class of a claim stood before there was a field for it.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn claim_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    let class = |claim: &Value| text(&claim["metadata"]["annotations"], CLASS).to_owned();
    let moved = class(new).is_empty() && text(&new["spec"], "storageClassName") == class(old);
    if class(new) != class(old) && !moved {
        let path = Path::new("metadata").child("annotations").child(CLASS);
        errors.push(FieldError::invalid(&path, class(new), "field is immutable"));
    }
    let fixed = |object: &Value| {
        let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
        // Only what is bound can grow.
        if text(&old["status"], "phase") == "Bound" {
            spec.remove("resources");
            spec.remove("volumeAttributesClassName");
        }
        // Binding fills in the volume, admission a default class.
        for late in ["volumeName", "storageClassName"] {
            if text(&old["spec"], late).is_empty() {
                spec.remove(late);
            }
        }
        spec
    };
    let path = Path::new("spec");
    if fixed(new) != fixed(old) {
        let spec = |object: &Value| {
            let mut spec = object["spec"].clone();
            for late in ["volumeName", "storageClassName"] {
                if text(&old["spec"], late).is_empty() {
                    spec[late] = new["spec"][late].clone();
                }
            }
            if text(&old["status"], "phase") == "Bound" && spec["resources"]["requests"].is_object() {
                spec["resources"]["requests"]["storage"] =
                    old["spec"]["resources"]["requests"]["storage"].clone();
                spec["volumeAttributesClassName"] = old["spec"]["volumeAttributesClassName"].clone();
            }
            super::internal::indented("PersistentVolumeClaimSpec", &spec)
        };
        let difference = super::unified_diff::difference(&spec(old), &spec(new));
        let detail = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n{difference}"
        );
        errors.push(FieldError::forbidden(&path, detail));
    }
    let amount = |value: &Value| value.as_str().and_then(|text| text.parse::<Quantity>().ok());
    let requested = |object: &Value| amount(&object["spec"]["resources"]["requests"]["storage"]);
    let zero = || Quantity::from_units(0);
    let (size, before) = (requested(new).unwrap_or_else(zero), requested(old).unwrap_or_else(zero));
    let present = amount(&old["status"]["capacity"]["storage"]).unwrap_or_else(zero);
    if size.minus(&before).signum() < 0 && size.minus(&present).signum() <= 0 {
        let path = path.child("resources").child("requests").child("storage");
        errors.push(FieldError::forbidden(&path, "field can not be less than status.capacity"));
    }
    let mode = (&new["spec"]["volumeMode"], &old["spec"]["volumeMode"]);
    if mode.0 != mode.1 {
        errors.push(FieldError::invalid(&Path::new("volumeMode"), mode.0.clone(), "field is immutable"));
    }
}

pub(super) fn class(object: &Value, errors: &mut ErrorList) {
    if text(object, "provisioner").is_empty() {
        errors.push(FieldError::required(&Path::new("provisioner"), ""));
    }
    let provisioner = text(object, "provisioner").to_lowercase();
    if !provisioner.is_empty() {
        let faults = super::names::qualified_name(&provisioner);
        super::faulty(faults, &provisioner, &Path::new("provisioner"), errors);
    }
    if object["parameters"].as_object().is_some_and(|parameters| parameters.contains_key("")) {
        errors.push(FieldError::invalid(&Path::new("parameters"), "", "field can not be empty."));
    }
    for (at, topology) in list(object, "allowedTopologies").iter().enumerate() {
        for (index, requirement) in list(topology, "matchLabelExpressions").iter().enumerate() {
            let path = Path::new("allowedTopologies").index(at).child("matchLabelExpressions").index(index);
            let values = list(requirement, "values");
            if values.is_empty() {
                errors.push(FieldError::required(&path.child("values"), ""));
            }
            for (at, value) in values.iter().enumerate().filter(|(at, value)| values[..*at].contains(value)) {
                errors.push(FieldError::duplicate(&path.child("values").index(at), value.clone()));
            }
            let key = text(requirement, "key");
            super::faulty(super::names::qualified_name(key), key, &path.child("key"), errors);
            let before = &list(topology, "matchLabelExpressions")[..index];
            if before.iter().any(|other| text(other, "key") == key) {
                errors.push(FieldError::duplicate(&path.child("key"), key));
            }
        }
        let same = |other: &Value| same_topology(other, topology);
        // The server compares with all, and those that it has not read yet are empty.
        let is_empty = list(topology, "matchLabelExpressions").is_empty();
        if is_empty || list(object, "allowedTopologies")[..at].iter().any(same) {
            let path = Path::new("allowedTopologies").index(at).child("matchLabelExpressions");
            errors.push(FieldError::duplicate(&path, ""));
        }
    }
    for (field, allowed) in [
        ("reclaimPolicy", ["Delete", "Retain"]),
        ("volumeBindingMode", ["Immediate", "WaitForFirstConsumer"]),
    ] {
        let value = text(object, field);
        // One that is given as nothing stands as it is.
        let is_left = field == "reclaimPolicy" && value.is_empty();
        if !is_left && !allowed.contains(&value) {
            errors.push(FieldError::not_supported(&Path::new(field), value, &allowed));
        }
    }
}

/// Whether two terms ask for the same, in whatever order.
fn same_topology(one: &Value, other: &Value) -> bool {
    let terms = |term: &Value| {
        let of = |requirement: &Value| {
            let values = list(requirement, "values").iter().map(ToString::to_string);
            (text(requirement, "key").to_owned(), values.collect::<std::collections::BTreeSet<_>>())
        };
        let requirements = list(term, "matchLabelExpressions").iter();
        requirements.map(of).collect::<std::collections::BTreeMap<_, _>>()
    };
    terms(one) == terms(other)
}

pub(super) fn class_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        super::immutable(new, old, &format!("/{field}"), errors);
    }
}
