//! What pods for Linux and for Windows may not have of the other.

use serde_json::Value;

use super::{every_container, text};
use crate::{ErrorList, FieldError, Path};

/// Fields of a pod that only Linux has, and whether they stand in its security context.
const POD_FIELDS: [(&str, bool); 15] = [
    ("appArmorProfile", true),
    ("seLinuxOptions", true),
    ("hostUsers", false),
    ("hostPID", false),
    ("hostIPC", false),
    ("seccompProfile", true),
    ("fsGroup", true),
    ("fsGroupChangePolicy", true),
    ("sysctls", true),
    ("shareProcessNamespace", false),
    ("runAsUser", true),
    ("runAsGroup", true),
    ("supplementalGroups", true),
    ("supplementalGroupsPolicy", true),
    ("seLinuxChangePolicy", true),
];
/// Fields of a container's security context that only Linux has.
const CONTAINER_FIELDS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// A pod's `os` and the fields that go with it.
pub(super) fn fields(spec: &Value, path: &Path, errors: &mut ErrorList) {
    if !spec["os"].is_object() {
        return;
    }
    let place = path.child("os");
    match text(&spec["os"], "name") {
        "" => errors.push(FieldError::required(&place.child("name"), "")),
        "linux" => linux(spec, path, errors),
        "windows" => windows(spec, path, errors),
        other => errors.push(FieldError::not_supported(&place, other, &["linux", "windows"])),
    }
}

fn linux(spec: &Value, path: &Path, errors: &mut ErrorList) {
    const WHY: &str = "windows options cannot be set for a linux pod";
    let mut check = |context: &Value, path: Path| {
        if context["windowsOptions"].is_object() {
            let path = path.child("securityContext").child("windowsOptions");
            errors.push(FieldError::forbidden(&path, WHY));
        }
    };
    check(&spec["securityContext"], path.clone());
    for (container, path) in every_container(spec, path) {
        check(&container["securityContext"], path);
    }
}

fn windows(spec: &Value, path: &Path, errors: &mut ErrorList) {
    const WHY: &str = "cannot be set for a windows pod";
    // Lists that are empty, and namespaces of the host that are not shared, are not set.
    let is_set = |value: &Value, field: &str| match field {
        "hostPID" | "hostIPC" => *value == true,
        "sysctls" => value.as_array().is_some_and(|items| !items.is_empty()),
        _ => !value.is_null(),
    };
    for (field, in_context) in POD_FIELDS {
        let (object, path) = match in_context {
            true => (&spec["securityContext"], path.child("securityContext")),
            false => (spec, path.clone()),
        };
        if is_set(&object[field], field) {
            errors.push(FieldError::forbidden(&path.child(field), WHY));
        }
    }
    for (container, path) in every_container(spec, path) {
        let (context, path) = (&container["securityContext"], path.child("securityContext"));
        for field in CONTAINER_FIELDS.into_iter().filter(|field| !context[*field].is_null()) {
            errors.push(FieldError::forbidden(&path.child(field), WHY));
        }
    }
}

/// Windows' processes on the host: all containers or none, and in the node's network.
pub(super) fn host_processes(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let of = |object: &Value| object["securityContext"]["windowsOptions"]["hostProcess"].as_bool();
    let pod = of(spec);
    let (mut all, mut on_host) = (0, 0);
    for (container, path) in every_container(spec, path) {
        all += 1;
        let own = of(container);
        if let (Some(pod), Some(own)) = (pod, own)
            && pod != own
        {
            let path = path.child("securityContext").child("windowsOptions").child("hostProcess");
            let detail = format!("pod hostProcess value must be identical if both are specified, was {pod}");
            errors.push(FieldError::invalid(&path, own, detail));
        }
        on_host += usize::from(own.or(pod) == Some(true));
    }
    if on_host == 0 {
        return;
    }
    if on_host != all {
        let detail =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(FieldError::invalid(path, "", detail));
    }
    if spec["hostNetwork"] != true {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(FieldError::invalid(&path.child("hostNetwork"), false, detail));
    }
}
