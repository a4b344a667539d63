//! Claims and storage classes.

use serde_json::Value;

use super::{list, text};
use crate::{ErrorList, FieldError, Path, Quantity};

pub(super) const ACCESS: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) fn claim(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let modes = list(spec, "accessModes");
    if modes.is_empty() {
        errors.push(FieldError::required(&path.child("accessModes"), "at least 1 access mode is required"));
    }
    for mode in modes.iter().filter(|mode| !ACCESS.contains(&mode.as_str().unwrap_or_default())) {
        errors.push(FieldError::not_supported(&path.child("accessModes"), mode.clone(), &ACCESS));
    }
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&path.child("accessModes"), detail));
    }
    super::selector(&spec["selector"], &path.child("selector"), errors);
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        let faults = super::names::dns1123_subdomain(class);
        super::faulty(faults, class, &path.child("storageClassName"), errors);
    }
    let mode = text(spec, "volumeMode");
    if !matches!(mode, "" | "Block" | "Filesystem") {
        errors.push(FieldError::not_supported(&path.child("volumeMode"), mode, &["Block", "Filesystem"]));
    }
    let storage = &spec["resources"]["requests"]["storage"];
    let path = path.child("resources").key("storage");
    match storage.as_str().and_then(|text| text.parse::<Quantity>().ok()) {
        None => errors.push(FieldError::required(&path, "")),
        Some(amount) if amount.signum() <= 0 => {
            let detail = "must be greater than zero";
            errors.push(FieldError::invalid(&path, amount.to_string(), detail));
        }
        Some(_) => {}
    }
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
        let difference = super::unified::difference(&spec(old), &spec(new));
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
            if list(requirement, "values").is_empty() {
                errors.push(FieldError::required(&path.child("values"), ""));
            }
            let key = text(requirement, "key");
            super::faulty(super::names::qualified_name(key), key, &path.child("key"), errors);
        }
    }
    for (field, allowed) in [
        ("reclaimPolicy", ["Delete", "Retain"]),
        ("volumeBindingMode", ["Immediate", "WaitForFirstConsumer"]),
    ] {
        let value = text(object, field);
        if !allowed.contains(&value) {
            errors.push(FieldError::not_supported(&Path::new(field), value, &allowed));
        }
    }
}

pub(super) fn class_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        super::immutable(new, old, &format!("/{field}"), errors);
    }
}
