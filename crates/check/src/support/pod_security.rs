//! What the levels of Pod Security ask of pods (Kubernetes, "Pod Security Standards").

use tiphys_value::{FieldPath, ObjectExt, Value};

use super::pods::{Container, Pod, list, text};

/// A level that refuses something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Refuses known ways to more rights.
    Baseline,
    /// Asks for the hardening of each pod.
    Restricted,
}

impl Level {
    /// The level of a label; nothing for `privileged` and what is no level.
    pub fn of(label: &str) -> Option<Self> {
        match label {
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }

    /// As a label names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

type Found = Vec<(String, FieldPath)>;

/// What a level refuses in pods, each with its place.
pub fn violations(pod: &Pod<'_>, level: Level) -> Found {
    let mut found = Found::new();
    if text(&pod.spec()["os"], "name") == "windows" {
        return found;
    }
    host(pod, &mut found);
    volumes(pod, level, &mut found);
    for container in pod.containers() {
        baseline(&container, &mut found);
        if level == Level::Restricted {
            restricted(pod, &container, &mut found);
        }
    }
    found
}

fn host(pod: &Pod<'_>, found: &mut Found) {
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        if pod.spec()[field] == true {
            found.push((format!("host namespaces ({field}=true)"), pod.spec_path().key(field)));
        }
    }
}

fn volumes(pod: &Pod<'_>, level: Level, found: &mut Found) {
    const RESTRICTED: [&str; 8] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    for (at, volume) in list(pod.spec(), "volumes").iter().enumerate() {
        let path = pod.spec_path().key("volumes").index(at);
        let name = text(volume, "name");
        if volume.get("hostPath").is_some() {
            found.push((format!("hostPath volumes (volume \"{name}\")"), path.key("hostPath")));
            continue;
        }
        let kinds = volume.as_object().into_iter().flat_map(|map| map.keys());
        let other = kinds.filter(|key| *key != "name").find(|key| !RESTRICTED.contains(&key.as_str()));
        if let (Level::Restricted, Some(kind)) = (level, other) {
            found.push((
                format!("restricted volume types (volume \"{name}\" uses restricted volume type \"{kind}\")"),
                path,
            ));
        }
    }
}

fn added<'a>(container: &Container<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let capabilities = &container.value["securityContext"]["capabilities"];
    list(capabilities, "add").iter().filter_map(Value::as_str)
}

fn baseline(container: &Container<'_>, found: &mut Found) {
    const CAPABILITIES: [&str; 14] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
        "",
    ];
    let (name, context) = (container.name(), container.path.key("securityContext"));
    let given = &container.value["securityContext"];
    if given["privileged"] == true {
        let text = format!("privileged (container \"{name}\" must not set securityContext.privileged=true)");
        found.push((text, context.key("privileged")));
    }
    let refused: Vec<&str> = added(container).filter(|it| !CAPABILITIES.contains(it)).collect();
    if !refused.is_empty() {
        let text = format!(
            "non-default capabilities (container \"{name}\" must not include \"{}\" in securityContext.capabilities.add)",
            refused.join("\", \"")
        );
        found.push((text, context.key("capabilities").key("add")));
    }
    for (at, port) in list(container.value, "ports").iter().enumerate() {
        if let Some(number) = port["hostPort"].as_i64().filter(|number| *number != 0) {
            let path = container.path.key("ports").index(at).key("hostPort");
            found.push((format!("hostPort (container \"{name}\" uses hostPort {number})"), path));
        }
    }
    if text(&given["seccompProfile"], "type") == "Unconfined" {
        found.push((format!("seccompProfile (container \"{name}\" must not be Unconfined)"), context));
    }
}

fn restricted(pod: &Pod<'_>, container: &Container<'_>, found: &mut Found) {
    let name = container.name();
    let (own, of_pod) = (&container.value["securityContext"], &pod.spec()["securityContext"]);
    let place = container.path.clone();
    if own["allowPrivilegeEscalation"] != false {
        let text = format!(
            "allowPrivilegeEscalation != false (container \"{name}\" must set securityContext.allowPrivilegeEscalation=false)"
        );
        found.push((text, place.clone()));
    }
    let drops_all = list(&own["capabilities"], "drop").iter().any(|it| it == "ALL");
    if !drops_all || added(container).any(|it| it != "NET_BIND_SERVICE") {
        let text = format!(
            "unrestricted capabilities (container \"{name}\" must set securityContext.capabilities.drop=[\"ALL\"])"
        );
        found.push((text, place.clone()));
    }
    let effective = |field: &str| own.get(field).or_else(|| of_pod.get(field)).cloned().unwrap_or_default();
    if effective("runAsNonRoot") != true {
        let text = format!(
            "runAsNonRoot != true (pod or container \"{name}\" must set securityContext.runAsNonRoot=true)"
        );
        found.push((text, place.clone()));
    }
    if effective("runAsUser") == 0 {
        found.push((format!("runAsUser=0 (container \"{name}\" must not set runAsUser=0)"), place.clone()));
    }
    let profile =
        own.str_at(&["seccompProfile", "type"]).or_else(|| of_pod.str_at(&["seccompProfile", "type"]));
    if !matches!(profile, Some("RuntimeDefault" | "Localhost")) {
        let text = format!(
            "seccompProfile (pod or container \"{name}\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
        );
        found.push((text, place));
    }
}
