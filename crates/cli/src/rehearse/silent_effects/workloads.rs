//! What runs pods, and what selects them.

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::image_parts;
use tiphys_value::{Map, ObjectExt, Value, json};

/// What of the group `apps` has a template of pods.
const WORKLOADS: [&str; 3] = ["deployments", "statefulsets", "daemonsets"];

/// Everything with a template of pods.
pub(super) fn workloads(snapshot: &Snapshot) -> impl Iterator<Item = &Value> {
    WORKLOADS
        .iter()
        .flat_map(|plural| snapshot.list(&ResourceId::new("apps", *plural), None))
        .map(|object| object.value())
}

/// Whether any pod of a workload is asked for.
pub(super) fn is_asked_for(workload: &Value) -> bool {
    workload.int_at(&["spec", "replicas"]) != Some(0) && !workload.is_terminating()
}

/// The same workload in another state of the cluster.
pub(super) fn same_in<'a>(snapshot: &'a Snapshot, workload: &Value) -> Option<&'a Value> {
    let (namespace, name) = (workload.namespace(), workload.name());
    let mut named = WORKLOADS
        .iter()
        .filter_map(|plural| snapshot.get(&ResourceId::new("apps", *plural), namespace, name))
        .map(|object| object.value());
    named.find(|other| other.kind() == workload.kind())
}

/// Whether labels are as a selector wants them. One that wants nothing selects nothing.
pub(super) fn is_selected(selector: &Map<String, Value>, labels: Option<&Value>) -> bool {
    !selector.is_empty()
        && selector.iter().all(|(name, value)| labels.and_then(|labels| labels.get(name)) == Some(value))
}

/// The labels of a workload's pods.
pub(super) fn labels(workload: &Value) -> Option<&Value> {
    workload.at(&["spec", "template", "metadata", "labels"])
}

/// The images of a workload's pods, without their versions.
pub(super) fn images(workload: &Value) -> Vec<String> {
    let containers = workload.at(&["spec", "template", "spec", "containers"]).and_then(Value::as_array);
    let images = containers.into_iter().flatten().filter_map(|container| container.str_at(&["image"]));
    let repository = |image: &str| {
        let (registry, repository, _) = image_parts(image);
        format!("{registry}/{repository}")
    };
    images.map(repository).collect()
}

/// The items of a list in an object; none if there is no such list.
pub(super) fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A pod as a workload would make it now.
pub(super) fn next_pod(workload: &Value) -> Option<Value> {
    let template = workload.at(&["spec", "template"])?;
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": template.get("metadata").cloned().unwrap_or_default(),
        "spec": template.get("spec")?,
    });
    pod["metadata"]["name"] = format!("{}-next", workload.name()).into();
    pod["metadata"]["namespace"] = workload.namespace().into();
    Some(pod)
}
