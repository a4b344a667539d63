//! The restricted level: current hardening practice, on top of the baseline.

use std::collections::BTreeSet;

use tiphys_value::{ObjectExt, Value};

use super::{Pod, Said, Violation, containers, items, plural, quoted};

/// The volume types that are allowed.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// What a pod violates beyond the baseline, in the order in which the API server looks.
pub(super) fn violations(pod: &Pod<'_>) -> Vec<Violation> {
    let linux = !pod.is_windows();
    let found = [
        escalation(pod).filter(|_| linux),
        capabilities(pod).filter(|_| linux),
        volumes(pod),
        non_root(pod),
        user(pod),
        seccomp(pod).filter(|_| linux),
    ];
    found.into_iter().flatten().map(Violation::from).collect()
}

fn escalation(pod: &Pod<'_>) -> Option<Said> {
    let bad =
        pod.names(|c| c.at(&["securityContext", "allowPrivilegeEscalation"]) != Some(&Value::Bool(false)));
    (!bad.is_empty()).then(|| {
        let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&bad));
        ("allowPrivilegeEscalation != false", detail)
    })
}

fn capabilities(pod: &Pod<'_>) -> Option<Said> {
    let dropped = |c: &Value| items(c, "/securityContext/capabilities/drop").any(|name| name == "ALL");
    let added = |c: &Value| {
        let added = items(c, "/securityContext/capabilities/add").filter_map(Value::as_str);
        added.filter(|name| *name != "NET_BIND_SERVICE").map(str::to_owned).collect::<Vec<_>>()
    };
    let mut details = Vec::new();
    let keeping = pod.names(|c| !dropped(c));
    if !keeping.is_empty() {
        details
            .push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&keeping)));
    }
    let adding = pod.names(|c| !added(c).is_empty());
    if !adding.is_empty() {
        let names: Vec<String> =
            pod.containers().flat_map(added).collect::<BTreeSet<_>>().into_iter().collect();
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&adding),
            quoted(&names)
        ));
    }
    (!details.is_empty()).then(|| ("unrestricted capabilities", details.join("; ")))
}

fn volumes(pod: &Pod<'_>) -> Option<Said> {
    let kind = |volume: &Value| {
        let fields = volume.as_object().into_iter().flatten();
        let kinds: Vec<&String> =
            fields.filter(|(key, v)| *key != "name" && !v.is_null()).map(|(key, _)| key).collect();
        if kinds.iter().any(|kind| VOLUMES.contains(&kind.as_str())) {
            return None;
        }
        Some(kinds.first().map_or_else(|| "unknown".to_owned(), |kind| (*kind).clone()))
    };
    let bad = items(pod.spec, "/volumes").filter(|volume| kind(volume).is_some());
    let names: Vec<&str> = bad.filter_map(|volume| volume.str_at(&["name"])).collect();
    let kinds: Vec<String> =
        items(pod.spec, "/volumes").filter_map(kind).collect::<BTreeSet<_>>().into_iter().collect();
    (!names.is_empty()).then(|| {
        let detail = format!(
            "{} {} {} {} {}",
            plural("volume", "volumes", names.len()),
            quoted(&names),
            plural("uses", "use", names.len()),
            plural("restricted volume type", "restricted volume types", kinds.len()),
            quoted(&kinds)
        );
        ("restricted volume types", detail)
    })
}

fn non_root(pod: &Pod<'_>) -> Option<Said> {
    if pod.has_own_users() {
        return None;
    }
    let of = |holder: &Value| holder.at(&["securityContext", "runAsNonRoot"]).and_then(Value::as_bool);
    let own = of(pod.spec);
    let mut setters: Vec<String> = (own == Some(false)).then(|| "pod".to_owned()).into_iter().collect();
    let explicit = pod.names(|c| of(c) == Some(false));
    if !explicit.is_empty() {
        setters.push(containers(&explicit));
    }
    if !setters.is_empty() {
        let detail = format!("{} must not set securityContext.runAsNonRoot=false", setters.join(" and "));
        return Some(("runAsNonRoot != true", detail));
    }
    let implicit = pod.names(|c| of(c).is_none() && own != Some(true));
    (!implicit.is_empty()).then(|| {
        let detail = format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&implicit));
        ("runAsNonRoot != true", detail)
    })
}

fn user(pod: &Pod<'_>) -> Option<Said> {
    if pod.has_own_users() {
        return None;
    }
    let is_root = |holder: &Value| holder.int_at(&["securityContext", "runAsUser"]) == Some(0);
    let mut setters: Vec<String> = is_root(pod.spec).then(|| "pod".to_owned()).into_iter().collect();
    let bad = pod.names(is_root);
    if !bad.is_empty() {
        setters.push(containers(&bad));
    }
    (!setters.is_empty())
        .then(|| ("runAsUser=0", format!("{} must not set runAsUser=0", setters.join(" and "))))
}

fn seccomp(pod: &Pod<'_>) -> Option<Said> {
    let of = |holder: &Value| {
        Some(holder.at(&["securityContext", "seccompProfile", "type"])?.as_str()?.to_owned())
    };
    let is_valid = |kind: &String| matches!(kind.as_str(), "RuntimeDefault" | "Localhost");
    let own = of(pod.spec);
    let mut setters = Vec::new();
    let mut values: BTreeSet<String> = own.iter().filter(|kind| !is_valid(kind)).cloned().collect();
    if !values.is_empty() {
        setters.push("pod".to_owned());
    }
    let explicit = pod.names(|c| of(c).is_some_and(|kind| !is_valid(&kind)));
    if !explicit.is_empty() {
        setters.push(containers(&explicit));
        values.extend(pod.containers().filter_map(of).filter(|kind| !is_valid(kind)));
    }
    if !setters.is_empty() {
        let values: Vec<String> = values.into_iter().collect();
        let who = setters.join(" and ");
        let detail = format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(&values));
        return Some(("seccompProfile", detail));
    }
    let implicit = pod.names(|c| of(c).is_none() && own.is_none());
    (!implicit.is_empty()).then(|| {
        let detail = format!(
            "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
            containers(&implicit)
        );
        ("seccompProfile", detail)
    })
}
