//! What the server derives from a pod.

use tiphys_value::{ObjectExt, Value, json};

use super::items;

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
pub(super) fn select_by_own_labels(pod: &mut Value) {
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
