//! What the server derives from a pod.

use tiphys_value::{ObjectExt, Value};

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

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn classes() {
        let pod = |resources: Value| json!({"spec": {"containers": [{"resources": resources}]}});
        let full = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(qos_class(&pod(json!({}))), "BestEffort");
        assert_eq!(qos_class(&pod(json!({"limits": full, "requests": full}))), "Guaranteed");
        assert_eq!(qos_class(&pod(json!({"requests": full}))), "Burstable");
    }
}
