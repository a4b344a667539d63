//! Security contexts of pods and containers.

use serde_json::Value;

use super::{faulty, list, names, pod::sources, text};
use crate::{ErrorList, FieldError, Path};

const RANGE: &str = "must be between 0 and 2147483647, inclusive";
const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

/// A user or group id.
fn id(value: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(id) = value.as_i64().filter(|id| !(0..=i64::from(i32::MAX)).contains(id)) {
        errors.push(FieldError::invalid(path, id, RANGE));
    }
}

/// A pod's `securityContext`, given its spec.
pub(super) fn pod(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let context = &spec["securityContext"];
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(&context[field], &path.child(field), errors);
    }
    for (at, group) in list(context, "supplementalGroups").iter().enumerate() {
        id(group, &path.child("supplementalGroups").index(at), errors);
    }
    if spec["shareProcessNamespace"] == true && spec["hostPID"] == true {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(&path.child("shareProcessNamespace"), true, detail));
    }
    sysctls(spec, &path.child("sysctls"), errors);
    one_of_given(context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"], path, errors);
    seccomp(&context["seccompProfile"], &path.child("seccompProfile"), errors);
    windows(&context["windowsOptions"], &path.child("windowsOptions"), errors);
    app_armor(&context["appArmorProfile"], &path.child("appArmorProfile"), errors);
    one_of_given(context, "supplementalGroupsPolicy", &["Merge", "Strict"], path, errors);
    // The other policy is behind a feature gate that is off.
    one_of_given(context, "seLinuxChangePolicy", &["Recursive"], path, errors);
}

/// A field that has one of a few values where it is given, even an empty one.
fn one_of_given(object: &Value, field: &str, known: &[&str], path: &Path, errors: &mut ErrorList) {
    if let Some(value) = object[field].as_str().filter(|value| !known.contains(value)) {
        errors.push(FieldError::not_supported(&path.child(field), value, known));
    }
}

fn sysctls(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let sysctls = list(&spec["securityContext"], "sysctls");
    for (at, sysctl) in sysctls.iter().enumerate() {
        let path = path.index(at).child("name");
        let name = text(sysctl, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !is_sysctl(name) {
            let detail = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.push(FieldError::invalid(&path, name, detail));
        } else if sysctls[..at].iter().any(|other| text(other, "name") == name) {
            errors.push(FieldError::duplicate(&path, name));
        }
        let dotted = name.replace('/', ".");
        let is_net = dotted.starts_with("net.");
        let is_ipc = dotted == "kernel.sem"
            || ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|start| dotted.starts_with(start));
        for (field, is_shared) in [("hostNetwork", is_net), ("hostIPC", is_ipc)] {
            if is_shared && spec[field] == true {
                let detail = format!("may not be specified when '{field}' is true");
                errors.push(FieldError::invalid(&path, name, detail));
            }
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    name.len() <= 253
        && name
            .split(['.', '/'])
            .all(|part| end(part.chars().next()) && end(part.chars().next_back()) && part.chars().all(inner))
}

fn profile_type(profile: &Value, what: &str, path: &Path, errors: &mut ErrorList) {
    match text(profile, "type") {
        "" => {
            let detail = format!("type is required when {what} is set");
            errors.push(FieldError::required(&path.child("type"), detail));
        }
        kind if PROFILES.contains(&kind) => {}
        other => errors.push(FieldError::not_supported(&path.child("type"), other, &PROFILES)),
    }
}

fn seccomp(profile: &Value, path: &Path, errors: &mut ErrorList) {
    if !profile.is_object() {
        return;
    }
    profile_type(profile, "seccompProfile", path, errors);
    let (file, place) = (profile["localhostProfile"].as_str(), path.child("localhostProfile"));
    match (profile["type"] == "Localhost", file) {
        (true, None) => {
            errors.push(FieldError::required(&place, "must be set when seccomp type is Localhost"));
        }
        (true, Some(file)) => sources::descending(file, &place, errors),
        (false, Some(_)) => {
            let shown = format!(
                "{{\"Type\":{},\"LocalhostProfile\":{}}}",
                profile["type"], profile["localhostProfile"]
            );
            let detail = "can only be set when seccomp type is Localhost";
            errors.push(FieldError::invalid_as(&place, shown, detail));
        }
        (false, None) => {}
    }
}

fn app_armor(profile: &Value, path: &Path, errors: &mut ErrorList) {
    const LONGEST: usize = 4095;
    const MISSING: &str = "must be set when AppArmor type is Localhost";
    if !profile.is_object() {
        return;
    }
    let (file, place) = (profile["localhostProfile"].as_str(), path.child("localhostProfile"));
    match (text(profile, "type"), file) {
        ("Localhost", None | Some("")) => errors.push(FieldError::required(&place, MISSING)),
        ("Localhost", Some(file)) => {
            if file.trim() != file {
                errors.push(FieldError::invalid(&place, file, "must not be padded with whitespace"));
            }
            if file.len() > LONGEST {
                errors.push(FieldError::too_long(&place, LONGEST));
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(file)) => {
            let detail = "can only be set when AppArmor type is Localhost";
            errors.push(FieldError::invalid(&place, file, detail));
        }
        _ => profile_type(profile, "appArmorProfile", path, errors),
    }
}

fn windows(options: &Value, path: &Path, errors: &mut ErrorList) {
    const LONGEST: usize = 64 * 1024;
    if let Some(name) = options["gmsaCredentialSpecName"].as_str() {
        faulty(names::dns1123_subdomain(name), name, &path.child("gmsaCredentialSpecName"), errors);
    }
    if let Some(spec) = options["gmsaCredentialSpec"].as_str() {
        let detail = match spec.len() {
            0 => "gmsaCredentialSpec cannot be an empty string",
            length if length > LONGEST => "gmsaCredentialSpec size must be under 64 KiB",
            _ => "",
        };
        if !detail.is_empty() {
            errors.push(FieldError::invalid(&path.child("gmsaCredentialSpec"), spec, detail));
        }
    }
    if let Some(name) = options["runAsUserName"].as_str() {
        for detail in windows_user_faults(name) {
            errors.push(FieldError::invalid(&path.child("runAsUserName"), name, detail));
        }
    }
}

/// Faults of `DOMAIN\USER`, the domain being optional.
fn windows_user_faults(name: &str) -> Vec<String> {
    const LONGEST_DOMAIN: usize = 256;
    const LONGEST_USER: usize = 104;
    let fault = |text: &str| vec![format!("runAsUserName{text}")];
    if name.is_empty() {
        return fault(" cannot be an empty string");
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return fault(" cannot contain control characters");
    }
    if name.matches('\\').count() > 1 {
        return fault(" cannot contain more than one backslash");
    }
    let (domain, user) = match name.split_once('\\') {
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    let mut faults = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= LONGEST_DOMAIN) {
        faults.extend(fault("'s Domain length must be under 256 characters"));
    }
    if domain.is_some_and(|domain| !is_windows_domain(domain)) {
        faults.extend(fault("'s Domain doesn't match the NetBios nor the DNS format"));
    }
    if user.is_empty() {
        faults.extend(fault("'s User cannot be empty"));
    } else if user.len() > LONGEST_USER {
        faults.extend(fault("'s User length must not be longer than 104 characters"));
    }
    if !user.is_empty() && user.chars().all(|c| c == '.' || c == ' ') {
        faults.extend(fault("'s User cannot contain only periods or spaces"));
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        faults.extend(fault("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"));
    }
    faults
}

/// A name of NetBIOS or of DNS.
fn is_windows_domain(domain: &str) -> bool {
    let is_plain = |c: char| !"\\/:*?\"<>|".contains(c);
    let net_bios = (1..=15).contains(&domain.chars().count())
        && domain.chars().all(is_plain)
        && !domain.starts_with('.');
    let is_label = |label: &str| {
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        (1..=63).contains(&label.len())
            && ends(label.chars().next())
            && ends(label.chars().next_back())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    net_bios || domain.split('.').all(is_label)
}

/// A container's `securityContext`; the pod may give it users of its own.
pub(super) fn container(context: &Value, own_users: bool, path: &Path, errors: &mut ErrorList) {
    if !context.is_object() {
        return;
    }
    for field in ["runAsUser", "runAsGroup"] {
        id(&context[field], &path.child(field), errors);
    }
    one_of_given(context, "procMount", &["Default", "Unmasked"], path, errors);
    if context["procMount"] == "Unmasked" && !own_users {
        let detail = "`hostUsers` must be false to use `Unmasked`";
        errors.push(FieldError::invalid(&path.child("procMount"), "Unmasked", detail));
    }
    seccomp(&context["seccompProfile"], &path.child("seccompProfile"), errors);
    if context["allowPrivilegeEscalation"] == false {
        if context["privileged"] == true {
            let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.push(FieldError::invalid_as(path, internal(context), why));
        }
        let added = list(&context["capabilities"], "add").iter();
        for _ in added.filter(|name| **name == "CAP_SYS_ADMIN") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.push(FieldError::invalid_as(path, internal(context), why));
        }
    }
    windows(&context["windowsOptions"], &path.child("windowsOptions"), errors);
    app_armor(&context["appArmorProfile"], &path.child("appArmorProfile"), errors);
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
