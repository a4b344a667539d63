//! What the levels of Pod Security refuse in pods, each with its place.

use tiphys_schema::pod_security::{Level, Violation};
use tiphys_value::{FieldPath, ObjectExt, Value};

use super::pods::{Pod, list};

/// Lists of a pod whose items are looked at one by one.
const LISTS: [&str; 4] = ["initContainers", "containers", "ephemeralContainers", "volumes"];

/// Fields to point at, by the reason of a violation: from a container, volume or pod on.
const FIELDS: [(&str, &[&str]); 9] = [
    ("privileged", &["securityContext", "privileged"]),
    ("non-default capabilities", &["securityContext", "capabilities", "add"]),
    ("hostPort", &["ports"]),
    ("hostPath volumes", &["hostPath"]),
    ("host namespaces", &["hostNetwork"]),
    ("host namespaces", &["hostPID"]),
    ("host namespaces", &["hostIPC"]),
    ("forbidden sysctls", &["securityContext", "sysctls"]),
    ("runAsUser=0", &["securityContext", "runAsUser"]),
];

/// What a level refuses in pods, each with its place.
pub(crate) fn violations(pod: &Pod<'_>, level: Level) -> Vec<(Violation, FieldPath)> {
    let annotations = pod.template.at(&["metadata", "annotations"]).unwrap_or(&Value::Null);
    let found = level.violations(pod.spec(), annotations);
    let placed = |violation| {
        let at = place(pod, level, &violation);
        (violation, at)
    };
    found.into_iter().map(placed).collect()
}

/// The first container or volume that violates the rule even where it is alone, or the pod.
fn place(pod: &Pod<'_>, level: Level, violation: &Violation) -> FieldPath {
    let violates = |spec: &Value| {
        let found = level.violations(spec, &Value::Null);
        found.iter().any(|other| other.reason == violation.reason)
    };
    let mut bare = pod.spec().clone();
    for name in LISTS {
        bare[name] = Value::Null;
    }
    let mut holder = (pod.spec_path(), pod.spec());
    if !violates(&bare) {
        let items = LISTS.into_iter().flat_map(|name| {
            list(pod.spec(), name).iter().enumerate().map(move |(at, item)| (name, at, item))
        });
        let mut alone = items.filter(|(name, _, item)| {
            bare[*name] = vec![(*item).clone()].into();
            let violates = violates(&bare);
            bare[*name] = Value::Null;
            violates
        });
        if let Some((name, at, item)) = alone.next() {
            holder = (pod.spec_path().key(name).index(at), item);
        }
    }
    let (path, value) = holder;
    let fields = FIELDS.iter().filter(|(reason, _)| *reason == violation.reason);
    match fields.map(|(_, keys)| keys).find(|keys| value.at(keys).is_some_and(|field| *field != false)) {
        Some(keys) => keys.iter().fold(path, |path, key| path.key(*key)),
        None => path,
    }
}
