//! Security contexts of pods and containers.

use serde_json::Value;

use super::{list, text};
use crate::{ErrorList, FieldError, Path};

const RANGE: &str = "must be between 0 and 2147483647, inclusive";

/// A user or group id.
fn id(value: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(id) = value.as_i64().filter(|id| !(0..=i64::from(i32::MAX)).contains(id)) {
        errors.push(FieldError::invalid(path, id, RANGE));
    }
}

/// A pod's `securityContext`.
pub(super) fn pod(context: &Value, path: &Path, errors: &mut ErrorList) {
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(&context[field], &path.child(field), errors);
    }
    for (at, group) in list(context, "supplementalGroups").iter().enumerate() {
        id(group, &path.child("supplementalGroups").index(at), errors);
    }
    for (at, sysctl) in list(context, "sysctls").iter().enumerate() {
        let path = path.child("sysctls").index(at).child("name");
        let name = text(sysctl, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !is_sysctl(name) {
            let detail = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.push(FieldError::invalid(&path, name, detail));
        }
    }
    seccomp(&context["seccompProfile"], &path.child("seccompProfile"), errors);
}

fn is_sysctl(name: &str) -> bool {
    let end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    name.len() <= 253
        && name
            .split(['.', '/'])
            .all(|part| end(part.chars().next()) && end(part.chars().next_back()) && part.chars().all(inner))
}

fn seccomp(profile: &Value, path: &Path, errors: &mut ErrorList) {
    if !profile.is_object() {
        return;
    }
    let file = text(profile, "localhostProfile");
    match text(profile, "type") {
        "Localhost" if file.is_empty() => {
            let detail = "must be set when seccomp type is Localhost";
            errors.push(FieldError::required(&path.child("localhostProfile"), detail));
        }
        "Localhost" => {}
        "RuntimeDefault" | "Unconfined" => {
            if !file.is_empty() {
                let detail = "can only be set when seccomp type is Localhost";
                errors.push(FieldError::invalid(&path.child("localhostProfile"), file, detail));
            }
        }
        other => {
            let known = ["Localhost", "RuntimeDefault", "Unconfined"];
            errors.push(FieldError::not_supported(&path.child("type"), other, &known));
        }
    }
}

/// A container's `securityContext`; the pod may give it users of its own.
pub(super) fn container(context: &Value, own_users: bool, path: &Path, errors: &mut ErrorList) {
    if !context.is_object() {
        return;
    }
    for field in ["runAsUser", "runAsGroup"] {
        id(&context[field], &path.child(field), errors);
    }
    match text(context, "procMount") {
        "" | "Default" => {}
        "Unmasked" if own_users => {}
        "Unmasked" => {
            let detail = "`hostUsers` must be false to use `Unmasked`";
            errors.push(FieldError::invalid(&path.child("procMount"), "Unmasked", detail));
        }
        other => {
            errors.push(FieldError::not_supported(&path.child("procMount"), other, &["Default", "Unmasked"]))
        }
    }
    seccomp(&context["seccompProfile"], &path.child("seccompProfile"), errors);
    if context["allowPrivilegeEscalation"] == false {
        let adds_admin = list(&context["capabilities"], "add").iter().any(|name| name == "CAP_SYS_ADMIN");
        let why = match (context["privileged"] == true, adds_admin) {
            (true, _) => "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
            (_, true) => {
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            }
            _ => return,
        };
        errors.push(FieldError::invalid_as(path, internal(context), why));
    }
}

/// A container's context as the API server's own type prints it.
fn internal(context: &Value) -> String {
    let fields = [
        ("Capabilities", "capabilities"),
        ("Privileged", "privileged"),
        ("SELinuxOptions", "seLinuxOptions"),
        ("WindowsOptions", "windowsOptions"),
        ("RunAsUser", "runAsUser"),
        ("RunAsGroup", "runAsGroup"),
        ("RunAsNonRoot", "runAsNonRoot"),
        ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem"),
        ("AllowPrivilegeEscalation", "allowPrivilegeEscalation"),
        ("ProcMount", "procMount"),
        ("SeccompProfile", "seccompProfile"),
        ("AppArmorProfile", "appArmorProfile"),
    ];
    let parts = fields.map(|(name, key)| format!("\"{name}\":{}", context.get(key).unwrap_or(&Value::Null)));
    format!("{{{}}}", parts.join(","))
}
