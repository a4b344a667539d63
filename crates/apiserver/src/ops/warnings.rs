//! What a real server accepts with a warning.

use std::collections::BTreeMap;

use tiphys_value::{ObjectExt, Value};

use super::{At, items};

/// Where a kind keeps its pods' spec.
fn pod_spec_path(kind: &str) -> Option<&'static [&'static str]> {
    match kind {
        "Pod" => Some(&["spec"]),
        "PodTemplate" => Some(&["template", "spec"]),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "ReplicationController" | "Job" => {
            Some(&["spec", "template", "spec"])
        }
        "CronJob" => Some(&["spec", "jobTemplate", "spec", "template", "spec"]),
        _ => None,
    }
}

/// The warnings of a new object, or of one whose generation has changed.
pub(super) fn of(at: &At, object: &Value, old: Option<&Value>) -> Vec<String> {
    if at.resource.custom.is_some() && at.subresource.is_none() {
        return unqualified_finalizers(object, old);
    }
    if at.resource.custom.is_some() || at.subresource.is_some() {
        return Vec::new();
    }
    let is_same = old.is_some_and(|old| object.kind() == "Pod" || old.generation() == object.generation());
    match pod_spec_path(object.kind()).filter(|_| !is_same) {
        Some(path) => object.at(path).map(|spec| duplicate_ports(spec, &path.join("."))).unwrap_or_default(),
        None => Vec::new(),
    }
}

/// New finalizers of custom resources that have no domain, or only that.
fn unqualified_finalizers(object: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map(crate::meta::finalizers).unwrap_or_default();
    let new = crate::meta::finalizers(object).into_iter().filter(|name| !before.contains(name));
    let is_plain = |name: &&str| !matches!(*name, "orphan" | "foregroundDeletion" | "kubernetes");
    let faulty = new.filter(|name| !name.contains('/')).filter(is_plain);
    faulty
        .map(|name| {
            let path = if name.contains('.') { " including a path (/)" } else { "" };
            let quoted = tiphys_schema::quote(name);
            format!("metadata.finalizers: {quoted}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers")
        })
        .collect()
}

/// Ports of containers of a pod that mean the same, or may.
fn duplicate_ports(spec: &Value, path: &str) -> Vec<String> {
    let mut seen = BTreeMap::<String, Vec<(String, &Value)>>::new();
    let mut warnings = Vec::new();
    for list in ["initContainers", "containers"] {
        for (number, container) in items(spec, &format!("/{list}")).enumerate() {
            for (index, port) in items(container, "/ports").enumerate() {
                let field = format!("{path}.{list}[{number}].ports[{index}]");
                let key = format!("{}/{}", port["containerPort"], port["protocol"]);
                let others = seen.entry(key).or_default();
                let about = others.iter().filter_map(|(other, taken)| Some((other, overlap(port, taken)?)));
                warnings.extend(
                    about.map(|(other, what)| format!("{field}: {what} port definition with {other}")),
                );
                others.push((field, port));
            }
        }
    }
    warnings
}

/// What is wrong with two ports of the same number and protocol.
fn overlap(port: &Value, other: &Value) -> Option<&'static str> {
    let host = |port: &Value| port.int_at(&["hostPort"]).unwrap_or_default();
    let address = |port: &Value| port.str_at(&["hostIP"]).unwrap_or_default().to_owned();
    let (own, taken) = (host(port), host(other));
    if own == taken && address(port) == address(other) {
        Some("duplicate")
    } else if own == 0 || taken == 0 {
        Some("overlapping")
    } else if own == taken && address(port).is_empty() != address(other).is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    #[test]
    fn the_same_port_of_two_containers_is_warned_of() {
        let port = json!([{"containerPort": 80, "protocol": "TCP"}]);
        let spec = json!({"containers": [{"ports": port}, {"ports": port}]});
        assert_eq!(
            duplicate_ports(&spec, "spec"),
            ["spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]"]
        );
    }
}
