//! The baseline level: nothing that is known to break out of a pod.

use std::collections::BTreeSet;

use tiphys_value::{ObjectExt, Value};

use super::{Pod, Said, Violation, containers, items, plural, quoted};
use crate::quote;

const CAPABILITIES: [&str; 13] = [
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
];
const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];
const SELINUX_TYPES: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// What a pod violates, in the order in which the API server looks; `stricter` leaves out what the
/// restricted level checks in its own way.
pub(super) fn violations(pod: &Pod<'_>, stricter: bool) -> Vec<Violation> {
    let mut found: Vec<Option<Said>> = vec![apparmor(pod)];
    if !stricter {
        found.push(capabilities(pod));
    }
    found.push(host_namespaces(pod));
    if !stricter {
        found.push(host_paths(pod));
    }
    found.extend([host_ports(pod), host_probes(pod), privileged(pod)]);

    if !stricter || !pod.has_own_users() {
        found.push(proc_mount(pod));
    }
    found.push(selinux(pod));
    if !stricter {
        found.push(seccomp(pod));
    }
    found.extend([sysctls(pod), windows_host_process(pod)]);
    found.into_iter().flatten().map(Violation::from).collect()
}

fn context<'a>(container: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    let mut path = vec!["securityContext"];
    path.extend(keys);
    container.at(&path)
}

fn apparmor(pod: &Pod<'_>) -> Option<Said> {
    let allowed = |kind: &str| matches!(kind, "RuntimeDefault" | "Localhost");
    let (mut setters, mut values) = (Vec::new(), BTreeSet::new());
    let kind = |holder: &Value| Some(context(holder, &["appArmorProfile", "type"])?.as_str()?.to_owned());
    if let Some(kind) = kind(pod.spec).filter(|kind| !allowed(kind)) {
        setters.push("pod".to_owned());
        values.insert(quote(&kind));
    }
    let bad = pod.names(|c| kind(c).is_some_and(|kind| !allowed(&kind)));
    if !bad.is_empty() {
        setters.push(containers(&bad));
        values
            .extend(pod.containers().filter_map(kind).filter(|kind| !allowed(kind)).map(|kind| quote(&kind)));
    }
    let annotations = pod.annotations.as_object().into_iter().flatten();
    let forbidden: Vec<String> = annotations
        .filter(|(key, _)| key.starts_with(APPARMOR))
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .filter(|(_, value)| {
            !value.is_empty() && *value != "runtime/default" && !value.starts_with("localhost/")
        })
        .map(|(key, value)| format!("{key}={}", quote(value)))
        .collect();
    if !forbidden.is_empty() {
        setters.push(plural("annotation", "annotations", forbidden.len()).to_owned());
        values.extend(forbidden);
    }
    if setters.is_empty() {
        return None;
    }
    let count = values.len();
    let list = values.into_iter().collect::<Vec<_>>().join(", ");
    let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", count);
    Some((reason, format!("{} must not set AppArmor profile type to {list}", setters.join(" and "))))
}

fn capabilities(pod: &Pod<'_>) -> Option<Said> {
    let added = |c: &Value| {
        let added = items(c, "/securityContext/capabilities/add").filter_map(Value::as_str);
        added.filter(|name| !CAPABILITIES.contains(name)).map(str::to_owned).collect::<Vec<_>>()
    };
    let bad = pod.names(|c| !added(c).is_empty());
    let names: Vec<String> = pod.containers().flat_map(added).collect::<BTreeSet<_>>().into_iter().collect();
    (!bad.is_empty()).then(|| {
        let detail = format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&bad),
            quoted(&names)
        );
        ("non-default capabilities", detail)
    })
}

fn host_namespaces(pod: &Pod<'_>) -> Option<Said> {
    let set = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|key| pod.spec[*key] == true);
    let set: Vec<String> = set.map(|key| format!("{key}=true")).collect();
    (!set.is_empty()).then(|| ("host namespaces", set.join(", ")))
}

fn host_paths(pod: &Pod<'_>) -> Option<Said> {
    let volumes = items(pod.spec, "/volumes").filter(|volume| volume["hostPath"].is_object());
    let names: Vec<&str> = volumes.filter_map(|volume| volume.str_at(&["name"])).collect();
    (!names.is_empty()).then(|| {
        ("hostPath volumes", format!("{} {}", plural("volume", "volumes", names.len()), quoted(&names)))
    })
}

fn host_ports(pod: &Pod<'_>) -> Option<Said> {
    let ports = |c: &Value| {
        let ports = items(c, "/ports").filter_map(|port| port.int_at(&["hostPort"]));
        ports.filter(|port| *port != 0).map(|port| port.to_string()).collect::<Vec<_>>()
    };
    let bad = pod.names(|c| !ports(c).is_empty());
    let all: Vec<String> = pod.containers().flat_map(ports).collect::<BTreeSet<_>>().into_iter().collect();
    (!bad.is_empty()).then(|| {
        let (uses, which) = (plural("uses", "use", bad.len()), plural("hostPort", "hostPorts", all.len()));
        ("hostPort", format!("{} {uses} {which} {}", containers(&bad), all.join(", ")))
    })
}

fn host_probes(pod: &Pod<'_>) -> Option<Said> {
    let hosts = |c: &Value| {
        let handlers = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| &c[probe]);
        let hooks = ["postStart", "preStop"].map(|hook| &c["lifecycle"][hook]);
        let all = handlers.into_iter().chain(hooks);
        let hosts = all.flat_map(|h| [h.str_at(&["httpGet", "host"]), h.str_at(&["tcpSocket", "host"])]);
        hosts.flatten().filter(|host| !host.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let bad = pod.names(|c| !hosts(c).is_empty());
    let all: Vec<String> = pod.containers().flat_map(hosts).collect::<BTreeSet<_>>().into_iter().collect();
    (!bad.is_empty()).then(|| {
        let (uses, which) = (plural("uses", "use", bad.len()), plural("host", "hosts", all.len()));
        let detail = format!("{} {uses} probe or lifecycle {which} {}", containers(&bad), quoted(&all));
        ("probe or lifecycle host", detail)
    })
}

fn privileged(pod: &Pod<'_>) -> Option<Said> {
    let bad = pod.names(|c| context(c, &["privileged"]) == Some(&Value::Bool(true)));
    (!bad.is_empty())
        .then(|| ("privileged", format!("{} must not set securityContext.privileged=true", containers(&bad))))
}

fn proc_mount(pod: &Pod<'_>) -> Option<Said> {
    if pod.has_own_users() {
        return None;
    }
    let kind = |c: &Value| {
        let kind = context(c, &["procMount"])?.as_str()?.to_owned();
        (kind != "Default").then_some(kind)
    };
    let bad = pod.names(|c| kind(c).is_some());
    let kinds: Vec<String> = pod.containers().filter_map(kind).collect::<BTreeSet<_>>().into_iter().collect();
    (!bad.is_empty()).then(|| {
        (
            "procMount",
            format!("{} must not set securityContext.procMount to {}", containers(&bad), quoted(&kinds)),
        )
    })
}

fn selinux(pod: &Pod<'_>) -> Option<Said> {
    let options = |holder: &Value| context(holder, &["seLinuxOptions"]).cloned().unwrap_or_default();
    let bad_type = |o: &Value| o.str_at(&["type"]).is_some_and(|kind| !SELINUX_TYPES.contains(&kind));
    let bad = |o: &Value| {
        bad_type(o)
            || o.str_at(&["user"]).is_some_and(|u| !u.is_empty())
            || o.str_at(&["role"]).is_some_and(|r| !r.is_empty())
    };
    let mut setters = Vec::new();
    if bad(&options(pod.spec)) {
        setters.push("pod".to_owned());
    }
    let names = pod.names(|c| bad(&options(c)));
    if !names.is_empty() {
        setters.push(containers(&names));
    }
    if setters.is_empty() {
        return None;
    }
    let all: Vec<Value> = std::iter::once(options(pod.spec)).chain(pod.containers().map(options)).collect();
    let mut data = Vec::new();
    let types: BTreeSet<&str> =
        all.iter().filter(|o| bad_type(o)).filter_map(|o| o.str_at(&["type"])).collect();
    if !types.is_empty() {
        let types: Vec<&str> = types.into_iter().collect();
        data.push(format!("{} {}", plural("type", "types", types.len()), quoted(&types)));
    }
    for (field, text) in [("user", "user may not be set"), ("role", "role may not be set")] {
        if all.iter().any(|o| o.str_at(&[field]).is_some_and(|value| !value.is_empty())) {
            data.push(text.to_owned());
        }
    }
    Some((
        "seLinuxOptions",
        format!(
            "{} set forbidden securityContext.seLinuxOptions: {}",
            setters.join(" and "),
            data.join("; ")
        ),
    ))
}

fn seccomp(pod: &Pod<'_>) -> Option<Said> {
    let kind = |holder: &Value| {
        let kind = context(holder, &["seccompProfile", "type"])?.as_str()?.to_owned();
        (!matches!(kind.as_str(), "RuntimeDefault" | "Localhost")).then_some(kind)
    };
    let mut setters = Vec::new();
    let mut kinds: BTreeSet<String> = kind(pod.spec).into_iter().collect();
    if !kinds.is_empty() {
        setters.push("pod".to_owned());
    }
    let bad = pod.names(|c| kind(c).is_some());
    if !bad.is_empty() {
        setters.push(containers(&bad));
        kinds.extend(pod.containers().filter_map(kind));
    }
    let kinds: Vec<String> = kinds.into_iter().collect();
    (!setters.is_empty()).then(|| {
        let who = setters.join(" and ");
        (
            "seccompProfile",
            format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(&kinds)),
        )
    })
}

fn sysctls(pod: &Pod<'_>) -> Option<Said> {
    let set = items(pod.spec, "/securityContext/sysctls").filter_map(|sysctl| sysctl.str_at(&["name"]));
    let bad: Vec<&str> = set.filter(|name| !SYSCTLS.contains(name)).collect();
    (!bad.is_empty()).then(|| ("forbidden sysctls", bad.join(", ")))
}

fn windows_host_process(pod: &Pod<'_>) -> Option<Said> {
    let set =
        |holder: &Value| context(holder, &["windowsOptions", "hostProcess"]) == Some(&Value::Bool(true));
    let mut setters = Vec::new();
    if set(pod.spec) {
        setters.push("pod".to_owned());
    }
    let bad = pod.names(set);
    if !bad.is_empty() {
        setters.push(containers(&bad));
    }
    (!setters.is_empty()).then(|| {
        let who = setters.join(" and ");
        ("hostProcess", format!("{who} must not set securityContext.windowsOptions.hostProcess=true"))
    })
}
