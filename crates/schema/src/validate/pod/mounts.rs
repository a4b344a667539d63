//! Where containers see volumes: mounts and block devices.

use std::collections::HashSet;

use serde_json::Value;

use super::{list, sources, text, volumes::Known};
use crate::{ErrorList, FieldError, Path};

const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];

/// A container's `volumeMounts`.
pub(super) fn mounts(container: &Value, volumes: &Known<'_>, path: &Path, errors: &mut ErrorList) {
    let devices = list(container, "volumeDevices");
    let mut seen = HashSet::new();
    for (at, mount) in list(container, "volumeMounts").iter().enumerate() {
        let place = path.index(at);
        let (name, target) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(&place.child("name"), ""));
        }
        if !volumes.contains_key(name) {
            errors.push(FieldError::not_found(&place.child("name"), name));
        }
        if target.is_empty() {
            errors.push(FieldError::required(&place.child("mountPath"), ""));
        }
        if !seen.insert(target) {
            errors.push(FieldError::invalid(&place.child("mountPath"), target, "must be unique"));
        }
        if devices.iter().any(|device| text(device, "name") == name) {
            let detail = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(&place.child("name"), name, detail));
        }
        if devices.iter().any(|device| text(device, "devicePath") == target) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(&place.child("mountPath"), target, detail));
        }
        sub_paths(mount, path, &place, errors);
        propagation(mount, container, &path.child("mountPropagation"), errors);
        recursive_read_only(mount, &path.child("recursiveReadOnly"), errors);
    }
}

/// `all` is the path of all mounts, `place` that of the mount.
fn sub_paths(mount: &Value, all: &Path, place: &Path, errors: &mut ErrorList) {
    let (plain, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
    if !plain.is_empty() {
        sources::descending(plain, &all.child("subPath"), errors);
    }
    if expression.is_empty() {
        return;
    }
    if !plain.is_empty() {
        let detail = "subPathExpr and subPath are mutually exclusive";
        errors.push(FieldError::invalid(&place.child("subPathExpr"), expression, detail));
    }
    sources::descending(expression, &all.child("subPathExpr"), errors);
}

fn propagation(mount: &Value, container: &Value, path: &Path, errors: &mut ErrorList) {
    let Some(propagation) = mount["mountPropagation"].as_str() else { return };
    if !PROPAGATIONS.contains(&propagation) {
        errors.push(FieldError::not_supported(path, propagation, &PROPAGATIONS));
    }
    if propagation == "Bidirectional" && container["securityContext"]["privileged"] != true {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(path, detail));
    }
}

fn recursive_read_only(mount: &Value, path: &Path, errors: &mut ErrorList) {
    match mount["recursiveReadOnly"].as_str() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if mount["readOnly"] != true {
                errors.push(FieldError::forbidden(path, "may only be specified when readOnly is true"));
            }
            if mount["mountPropagation"].as_str().is_some_and(|propagation| propagation != "None") {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(path, detail));
            }
        }
        Some(other) => {
            errors.push(FieldError::not_supported(path, other, &["Disabled", "Enabled", "IfPossible"]));
        }
    }
}

/// A container's `volumeDevices`.
pub(super) fn devices(container: &Value, volumes: &Known<'_>, path: &Path, errors: &mut ErrorList) {
    let mounts = list(container, "volumeMounts");
    let (mut paths, mut names) = (HashSet::new(), HashSet::new());
    for (at, device) in list(container, "volumeDevices").iter().enumerate() {
        let (name, target) = (text(device, "name"), text(device, "devicePath"));
        let (name_path, target_path) = (path.index(at).child("name"), path.index(at).child("devicePath"));
        if name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        }
        if names.contains(name) {
            errors.push(FieldError::invalid(&name_path, name, "must be unique"));
        }
        match volumes.get(name) {
            None => errors.push(FieldError::not_found(&name_path, name)),
            Some(volume)
                if volume["persistentVolumeClaim"].is_object() || volume["ephemeral"].is_object() => {}
            Some(_) => {
                let detail =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(FieldError::invalid(&name_path, name, detail));
            }
        }
        if target.is_empty() {
            errors.push(FieldError::required(&target_path, ""));
        }
        if paths.contains(target) {
            errors.push(FieldError::invalid(&target_path, target, "must be unique"));
        }
        if target.split('/').any(|part| part == "..") {
            errors.push(FieldError::invalid(&target_path, target, "can not contain backsteps ('..')"));
        } else {
            paths.insert(target);
        }
        if mounts.iter().any(|mount| text(mount, "name") == name) {
            let detail = "must not already exist in volumeMounts";
            errors.push(FieldError::invalid(&name_path, name, detail));
        }
        if mounts.iter().any(|mount| text(mount, "mountPath") == target) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.push(FieldError::invalid(&target_path, target, detail));
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}
