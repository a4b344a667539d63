//! Annotations of pods that say what fields say today: profiles of seccomp and AppArmor, and a few others.

use serde_json::Value;

use super::{every_container, text};
use crate::{ErrorList, FieldError, Path, quote};

const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Annotations of a pod or a template that must have a form.
pub(super) fn of_pod(metadata: &Value, spec: &Value, path: &Path, errors: &mut ErrorList) {
    let annotation = |key: &str| metadata["annotations"][key].as_str();
    if let Some(value) = annotation(MIRROR)
        && text(spec, "nodeName").is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(&path.key(MIRROR), value, detail));
    }
    if let Some(cost) = annotation(DELETION_COST).filter(|cost| !is_cost(cost)) {
        errors.push(FieldError::invalid(&path.key(DELETION_COST), cost, "must be a 32bit integer"));
    }
    if let Some(profile) = annotation(SECCOMP_POD) {
        seccomp(profile, &path.child(SECCOMP_POD), errors);
    }
    let all = metadata["annotations"].as_object();
    for (key, value) in all.into_iter().flatten() {
        if key.starts_with(SECCOMP_CONTAINER) {
            seccomp(value.as_str().unwrap_or_default(), &path.child(key), errors);
        }
    }
    for (key, value) in all.into_iter().flatten() {
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            let (value, path) = (value.as_str().unwrap_or_default(), path.key(key));
            if !every_container(spec, &Path::root()).any(|(one, _)| text(one, "name") == container) {
                errors.push(FieldError::invalid(&path, container, "container not found"));
            }
            let is_known = matches!(value, "" | "runtime/default" | "unconfined");
            if !is_known && !value.starts_with("localhost/") {
                let detail = format!("invalid AppArmor profile name: {}", quote(value));
                errors.push(FieldError::invalid(&path, value, detail));
            }
        }
    }
}

/// A whole number without a plus sign or leading zeros.
fn is_cost(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_padded = digits.len() > 1 && digits.starts_with('0');
    !text.starts_with('+') && !is_padded && text.parse::<i32>().is_ok()
}

fn seccomp(profile: &str, path: &Path, errors: &mut ErrorList) {
    match profile.strip_prefix("localhost/") {
        _ if matches!(profile, "runtime/default" | "docker/default" | "unconfined") => {}
        Some(file) => super::sources::descending(file, path, errors),
        None => errors.push(FieldError::invalid(path, profile, "must be a valid seccomp profile")),
    }
}

/// Annotation and field must say the same.
pub(super) fn match_fields(metadata: &Value, spec: &Value, path: &Path, errors: &mut ErrorList) {
    let annotation = |key: &str| metadata["annotations"][key].as_str();
    let pod = &spec["securityContext"];
    if let Some(value) = annotation(SECCOMP_POD) {
        let path = path.child("securityContext").child("seccompProfile");
        agree("seccomp", value, &pod["seccompProfile"], &path, errors);
    }
    for (container, path) in every_container(spec, path) {
        if let Some(value) = annotation(&format!("{SECCOMP_CONTAINER}{}", text(container, "name"))) {
            let path = path.child("securityContext").child("seccompProfile");
            agree("seccomp", value, &container["securityContext"]["seccompProfile"], &path, errors);
        }
    }
    if spec["os"]["name"] == "windows" {
        return;
    }
    for (container, path) in every_container(spec, path) {
        let own = &container["securityContext"]["appArmorProfile"];
        let profile = if own.is_object() { own } else { &pod["appArmorProfile"] };
        if let Some(value) = annotation(&format!("{APP_ARMOR}{}", text(container, "name"))) {
            agree(
                "apparmor",
                value,
                profile,
                &path.child("securityContext").child("appArmorProfile"),
                errors,
            );
        }
    }
}

fn agree(what: &str, annotation: &str, profile: &Value, path: &Path, errors: &mut ErrorList) {
    if !profile.is_object() {
        return;
    }
    let file = annotation.strip_prefix("localhost/");
    let is_docker = what == "seccomp" && annotation == "docker/default";
    let same_type = match text(profile, "type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => annotation == "runtime/default" || is_docker,
        "Localhost" => file.is_some(),
        _ => true,
    };
    if !same_type {
        let detail = format!("{what} type in annotation and field must match");
        errors.push(FieldError::forbidden(&path.child("type"), detail));
    } else if profile["type"] == "Localhost" && profile["localhostProfile"].as_str() != file {
        let detail = format!("{what} profile in annotation and field must match");
        errors.push(FieldError::forbidden(&path.child("localhostProfile"), detail));
    }
}
