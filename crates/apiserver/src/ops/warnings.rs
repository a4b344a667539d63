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
    if at.resource.custom.is_some() || at.subresource.is_some() {
        return Vec::new();
    }
    let is_same = old.is_some_and(|old| object.kind() == "Pod" || old.generation() == object.generation());
    match pod_spec_path(object.kind()).filter(|_| !is_same) {
        Some(path) => object.at(path).map(|spec| duplicate_ports(spec, &path.join("."))).unwrap_or_default(),
        None => Vec::new(),
    }
}

/// A port and protocol that two containers of a pod, or one twice, claim in the same way.
fn duplicate_ports(spec: &Value, path: &str) -> Vec<String> {
    let mut seen = BTreeMap::<String, String>::new();
    let mut warnings = Vec::new();
    for list in ["initContainers", "containers"] {
        for (number, container) in items(spec, &format!("/{list}")).enumerate() {
            for (index, port) in items(container, "/ports").enumerate() {
                let field = format!("{path}.{list}[{number}].ports[{index}]");
                let part = |name: &str| port.get(name).map(Value::to_string).unwrap_or_default();
                let key = ["containerPort", "protocol", "hostIP", "hostPort"].map(part).join("/");
                if let Some(other) = seen.get(&key) {
                    warnings.push(format!("{field}: duplicate port definition with {other}"));
                } else {
                    seen.insert(key, field);
                }
            }
        }
    }
    warnings
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
