//! Pods: what the server derives from them.

use tiphys_schema::{ErrorList, validate_resize};
use tiphys_value::{ObjectExt, Value, json};

use super::ephemeral_containers;
use crate::meta::items;

/// What every new pod has.
pub(super) fn complete(pod: &mut Value) {
    if pod.int_at(&["spec", "terminationGracePeriodSeconds"]).is_some_and(|seconds| seconds < 0) {
        pod["spec"]["terminationGracePeriodSeconds"] = 1.into();
    }
    select_by_own_labels(pod);
    let class = qos_class(pod);
    pod["status"]["qosClass"] = class.into();
}

/// The class follows from what admission gave the containers.
pub(super) fn classify(pod: &mut Value) {
    if pod["status"].is_object() {
        pod["status"]["qosClass"] = qos_class(pod).into();
    }
}

/// What admission made of a pod's priority stays where a writer does not say it again.
pub(super) fn keep_priority(pod: &mut Value, current: &Value) {
    for field in ["priority", "preemptionPolicy"] {
        if let (None, Some(value)) = (pod.at(&["spec", field]), current.at(&["spec", field])) {
            pod["spec"][field] = value.clone();
        }
    }
}

/// How long a pod gets to end: only those that run somewhere get time.
pub(super) fn grace(pod: &Value) -> Option<i64> {
    let is_scheduled = !pod.str_at(&["spec", "nodeName"]).unwrap_or_default().is_empty();
    let is_over = matches!(pod.str_at(&["status", "phase"]), Some("Failed" | "Succeeded"));
    if !is_scheduled || is_over {
        return None;
    }
    Some(pod.int_at(&["spec", "terminationGracePeriodSeconds"]).unwrap_or(30))
}

/// Validation of what subresources change.
pub(super) fn validate(subresource: Option<&str>, pod: &Value, old: Option<&Value>) -> Option<ErrorList> {
    let old = old.unwrap_or(&Value::Null);
    match subresource? {
        "ephemeralcontainers" => Some(ephemeral_containers::validate(pod, old)),
        // Where a pod goes is decided there and nothing else.
        "binding" => Some(ErrorList::new()),
        "resize" => Some(validate_resize(pod, old)),
        _ => None,
    }
}

/// `Guaranteed`, `Burstable` or `BestEffort`, from the requests and limits of all containers.
pub(crate) fn qos_class(pod: &Value) -> &'static str {
    let containers = || items(pod, "/spec/containers").chain(items(pod, "/spec/initContainers"));
    let amount = |container: &Value, part: &str, resource: &str| {
        container.at(&["resources", part, resource]).filter(|v| !v.is_null()).cloned()
    };
    let mut any = false;
    let mut guaranteed = true;
    for container in containers() {
        for resource in ["cpu", "memory"] {
            let (request, limit) =
                (amount(container, "requests", resource), amount(container, "limits", resource));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Adds to the selectors of affinities and spread constraints what the pod's own labels say for the keys that
/// they name: pods of the same value, or of another.
fn select_by_own_labels(pod: &mut Value) {
    let labels = pod.at(&["metadata", "labels"]).cloned().unwrap_or_default();
    let Some(spec) = pod.get_mut("spec") else { return };
    for constraint in
        spec.get_mut("topologySpreadConstraints").and_then(Value::as_array_mut).into_iter().flatten()
    {
        add_requirements(constraint, &labels);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = spec.pointer_mut(&format!("/affinity/{kind}")) else { continue };
        for (list, inner) in [
            ("requiredDuringSchedulingIgnoredDuringExecution", ""),
            ("preferredDuringSchedulingIgnoredDuringExecution", "/podAffinityTerm"),
        ] {
            for term in affinity.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(term) = term.pointer_mut(inner) {
                    add_requirements(term, &labels);
                }
            }
        }
    }
}

fn add_requirements(term: &mut Value, labels: &Value) {
    let mut added = Vec::new();
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in items(term, &format!("/{field}")).filter_map(Value::as_str) {
            if let Some(value) = labels.get(key) {
                added.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    let Some(selector) = term.get_mut("labelSelector").and_then(Value::as_object_mut) else { return };
    if added.is_empty() {
        return;
    }
    let present = selector.entry("matchExpressions").or_insert_with(|| json!([]));
    if let Some(present) = present.as_array_mut() {
        present.extend(added);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_named_labels_are_added_to_selectors() {
        let mut pod = json!({"metadata": {"labels": {"version": "2"}}, "spec": {"topologySpreadConstraints": [
            {"labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["version", "absent"]},
            {"matchLabelKeys": ["version"]}
        ]}});
        select_by_own_labels(&mut pod);
        let constraints = &pod["spec"]["topologySpreadConstraints"];
        let expected = json!([{"key": "version", "operator": "In", "values": ["2"]}]);
        assert_eq!(constraints[0]["labelSelector"]["matchExpressions"], expected);
        assert_eq!(constraints[1].get("labelSelector"), None);
    }

    #[test]
    fn classes() {
        let pod = |resources: Value| json!({"spec": {"containers": [{"resources": resources}]}});
        let full = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(qos_class(&pod(json!({}))), "BestEffort");
        assert_eq!(qos_class(&pod(json!({"limits": full, "requests": full}))), "Guaranteed");
        assert_eq!(qos_class(&pod(json!({"requests": full}))), "Burstable");
    }
}
