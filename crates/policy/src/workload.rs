//! The pods that the controllers of workloads make.

use serde_json::json;
use tiphys_value::{FieldPath, ObjectExt, Segment, Value};

/// The pod that a workload's controller makes, and where the workload has it. The fields of a pod stand at
/// the same places below that path.
pub(crate) fn pod_of(workload: &Value) -> Option<(Value, FieldPath)> {
    let gvk = workload.gvk();
    let path: &[&str] = match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apps" | "extensions", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("", "ReplicationController")
        | ("batch", "Job")
        | ("argoproj.io", "Rollout") => &["spec", "template"],
        ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template"],
        _ => return None,
    };
    let template = workload.at(path)?;
    let spec = template.get("spec").filter(|spec| spec.is_object())?;
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec});
    for field in ["labels", "annotations"] {
        if let Some(given) = template.at(&["metadata", field]) {
            pod["metadata"][field] = given.clone();
        }
    }
    if !workload.namespace().is_empty() {
        pod["metadata"]["namespace"] = workload.namespace().into();
    }
    pod["metadata"]["generateName"] = format!("{}-", workload.name()).into();
    Some((pod, FieldPath(path.iter().map(|key| Segment::Key((*key).to_owned())).collect())))
}
