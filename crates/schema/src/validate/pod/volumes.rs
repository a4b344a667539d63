//! A pod's volumes: what every volume keeps to, and sources that only pods have.

use std::collections::HashMap;

use serde_json::Value;

use super::{environment, faulty, list, names, sources, text};
use crate::{ErrorList, FieldError, Path, Quantity};

/// Volumes without faults by their names.
pub(super) type Known<'a> = HashMap<&'a str, &'a Value>;

/// The kinds of volumes in the order in which the API server looks at them, and how it calls a second one.
const KINDS: [(&str, &str); 30] = [
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];
const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const CONFLICT: &str = "conflicting duplicate paths";

/// Checks all volumes; those that are right can be mounted.
pub(super) fn volumes<'a>(
    volumes: &'a [Value],
    metadata: Option<&Value>,
    path: &Path,
    errors: &mut ErrorList,
) -> Known<'a> {
    let pod = metadata.map(|metadata| text(metadata, "name")).unwrap_or_default();
    let ephemeral = |claim: &str| {
        !pod.is_empty()
            && volumes.iter().any(|volume| {
                volume["ephemeral"].is_object() && claim == format!("{pod}-{}", text(volume, "name"))
            })
    };
    let mut known = Known::new();
    for (at, volume) in volumes.iter().enumerate() {
        let path = path.index(at);
        let name = text(volume, "name");
        let mut faults = ErrorList::new();
        source(volume, metadata, &path, &mut faults);
        match name {
            "" => faults.push(FieldError::required(&path.child("name"), "")),
            name => faulty(names::dns1123_label(name), name, &path.child("name"), &mut faults),
        }
        if known.contains_key(name) {
            faults.push(FieldError::duplicate(&path.child("name"), name));
        }
        if faults.is_empty() {
            known.insert(name, volume);
        }
        errors.extend(faults);
        let claim = text(&volume["persistentVolumeClaim"], "claimName");
        if volume["persistentVolumeClaim"].is_object() && ephemeral(claim) {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            let path = path.child("persistentVolumeClaim").child("claimName");
            errors.push(FieldError::invalid(&path, claim, detail));
        }
    }
    known
}

fn source(volume: &Value, metadata: Option<&Value>, path: &Path, errors: &mut ErrorList) {
    let mut given = KINDS.iter().filter(|(kind, _)| volume[*kind].is_object());
    let Some((kind, _)) = given.next() else {
        errors.push(FieldError::required(path, "must specify a volume type"));
        return;
    };
    one_source(volume, kind, metadata, path, errors);
    for (kind, shown) in given {
        errors.push(FieldError::forbidden(&path.child(shown), "may not specify more than 1 volume type"));
        if *kind == "iscsi" {
            sources::iscsi_name(volume, path, errors);
        }
    }
}

fn one_source(volume: &Value, kind: &str, metadata: Option<&Value>, path: &Path, errors: &mut ErrorList) {
    let (source, place) = (&volume[kind], path.child(kind));
    match kind {
        "emptyDir" => {
            let size = source["sizeLimit"].as_str().and_then(|text| text.parse::<Quantity>().ok());
            if size.is_some_and(|size| size.signum() < 0) {
                let detail = "SizeLimit field must be a valid resource quantity";
                errors.push(FieldError::forbidden(&place.child("sizeLimit"), detail));
            }
        }
        "secret" => items(source, "secretName", &place, errors),
        "configMap" => items(source, "name", &place, errors),
        "downwardAPI" => {
            mode(source, "defaultMode", &place, errors);
            for file in list(source, "items") {
                pod_file(file, &place, errors);
            }
        }
        "projected" => projected(source, &place, errors),
        "iscsi" => {
            sources::source(kind, source, false, &place, errors);
            sources::iscsi_name(volume, path, errors);
        }
        "csi" => csi(source, &place, errors),
        "ephemeral" => ephemeral(volume, metadata, path, errors),
        "image" => {
            if metadata.is_some() && text(source, "reference").is_empty() {
                errors.push(FieldError::required(&place.child("reference"), ""));
            }
            let policies = ["Always", "IfNotPresent", "Never"];
            super::one_of(text(source, "pullPolicy"), &policies, &place.child("pullPolicy"), errors);
        }
        _ => sources::source(kind, source, false, &place, errors),
    }
}

/// A file mode.
fn mode(object: &Value, field: &str, path: &Path, errors: &mut ErrorList) {
    if let Some(mode) = object[field].as_i64().filter(|mode| !(0..=0o777).contains(mode)) {
        errors.push(FieldError::invalid(&path.child(field), mode, MODE));
    }
}

/// A config map or a secret as files; `name` is the field that names it.
fn items(source: &Value, name: &str, path: &Path, errors: &mut ErrorList) {
    if text(source, name).is_empty() {
        errors.push(FieldError::required(&path.child(name), ""));
    }
    mode(source, "defaultMode", path, errors);
    for (at, item) in list(source, "items").iter().enumerate() {
        key_to_path(item, &path.child("items").index(at), errors);
    }
}

fn key_to_path(item: &Value, path: &Path, errors: &mut ErrorList) {
    for field in ["key", "path"] {
        if text(item, field).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    sources::not_reserved(text(item, "path"), &path.child("path"), errors);
    mode(item, "mode", path, errors);
}

/// A file that shows a field of the pod.
fn pod_file(file: &Value, path: &Path, errors: &mut ErrorList) {
    let place = text(file, "path");
    if place.is_empty() {
        errors.push(FieldError::required(&path.child("path"), ""));
    }
    sources::not_reserved(place, &path.child("path"), errors);
    match (file["fieldRef"].is_object(), file["resourceFieldRef"].is_object()) {
        (true, both) => {
            environment::field(&file["fieldRef"], &environment::FILE_FIELDS, &path.child("fieldRef"), errors);
            if both {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(path, "resource", detail));
            }
        }
        (false, true) => {
            environment::resource(&file["resourceFieldRef"], true, &path.child("resourceFieldRef"), errors)
        }
        (false, false) => {
            errors.push(FieldError::required(path, "one of fieldRef and resourceFieldRef is required"));
        }
    }
    mode(file, "mode", path, errors);
}

/// Several sources in one volume: no file is there twice.
fn projected(source: &Value, path: &Path, errors: &mut ErrorList) {
    mode(source, "defaultMode", path, errors);
    let mut seen: Vec<&str> = Vec::new();
    for (at, source) in list(source, "sources").iter().enumerate() {
        let place = path.child("sources").index(at);
        let mut count = 0;
        for kind in ["secret", "configMap"].into_iter().filter(|kind| source[*kind].is_object()) {
            count += 1;
            let (source, place) = (&source[kind], place.child(kind));
            if text(source, "name").is_empty() {
                errors.push(FieldError::required(&place.child("name"), ""));
            }
            for (at, item) in list(source, "items").iter().enumerate() {
                key_to_path(item, &place.child("items").index(at), errors);
                check_taken(&mut seen, text(item, "path"), text(source, "name"), path, errors);
            }
        }
        if source["downwardAPI"].is_object() {
            count += 1;
            for file in list(&source["downwardAPI"], "items") {
                pod_file(file, &place.child("downwardAPI"), errors);
                check_taken(&mut seen, text(file, "path"), text(file, "path"), path, errors);
            }
        }
        if source["serviceAccountToken"].is_object() {
            count += 1;
            token(&source["serviceAccountToken"], path, &place.child("serviceAccountToken"), errors);
        }
        if count > 1 {
            errors.push(FieldError::forbidden(&place, "may not specify more than 1 volume type per source"));
        }
    }
}

/// A path that another source has already; `shown` is what the message shows.
fn check_taken<'a>(seen: &mut Vec<&'a str>, file: &'a str, shown: &str, path: &Path, errors: &mut ErrorList) {
    if seen.contains(&file) {
        errors.push(FieldError::invalid(path, shown, CONFLICT));
    } else if !file.is_empty() {
        seen.push(file);
    }
}

/// A token; `volume` is the path of the projected volume, where the API server says that the file's path
/// stands.
fn token(token: &Value, volume: &Path, path: &Path, errors: &mut ErrorList) {
    const SHORTEST: i64 = 600;
    const LONGEST: i64 = 1 << 32;
    let seconds = token["expirationSeconds"].as_i64().unwrap_or_default();
    let place = path.child("expirationSeconds");
    if seconds < SHORTEST {
        let detail = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid(&place, seconds, detail));
    }
    if seconds > LONGEST {
        let detail = "may not specify a duration larger than 2^32 seconds";
        errors.push(FieldError::invalid(&place, seconds, detail));
    }
    match text(token, "path") {
        "" => errors.push(FieldError::required(&volume.child("path"), "")),
        file => sources::not_reserved(file, &volume.child("path"), errors),
    }
}

fn csi(source: &Value, path: &Path, errors: &mut ErrorList) {
    sources::driver_name(text(source, "driver"), &path.child("driver"), errors);
    let secret = &source["nodePublishSecretRef"];
    if secret.is_object() {
        match text(secret, "name") {
            "" => errors.push(FieldError::required(&path.child("nodePublishSecretRef").child("name"), "")),
            name => faulty(names::dns1123_subdomain(name), name, &path.child("name"), errors),
        }
    }
}

/// A claim that comes and goes with the pod.
fn ephemeral(volume: &Value, metadata: Option<&Value>, path: &Path, errors: &mut ErrorList) {
    let (template, place) =
        (&volume["ephemeral"]["volumeClaimTemplate"], path.child("ephemeral").child("volumeClaimTemplate"));
    if template.is_object() {
        let meta = place.child("metadata");
        super::super::annotations(&template["metadata"]["annotations"], &meta.child("annotations"), errors);
        super::labels(&template["metadata"]["labels"], &meta.child("labels"), errors);
        let others = template["metadata"].as_object().into_iter().flatten();
        for (field, _) in others
            .filter(|(field, value)| !matches!(field.as_str(), "annotations" | "labels") && !value.is_null())
        {
            let shown = if field == "uid" { "uID" } else { field };
            errors.push(FieldError::forbidden(&meta.child(shown), "cannot be set"));
        }
        super::super::storage::claim(&template["spec"], &place.child("spec"), errors);
    } else {
        errors.push(FieldError::required(&place, ""));
    }
    let (pod, name) =
        (metadata.map(|metadata| text(metadata, "name")).unwrap_or_default(), text(volume, "name"));
    if !pod.is_empty() && !name.is_empty() {
        let claim = format!("{pod}-{name}");
        for fault in names::dns1123_subdomain(&claim) {
            let detail = format!("PVC name {}: {fault}", crate::quote(&claim));
            errors.push(FieldError::invalid(&path.child("name"), name, detail));
        }
    }
}
