//! Health of a Pod: from its phase, its conditions and the states of its containers.

use serde_json::Value;
use tiphys_model::{HealthCode, HealthStatus, hook, names};
use tiphys_value::ObjectExt;

use crate::conditions;

pub(crate) fn assess(pod: &Value) -> HealthStatus {
    let restarts = pod.str_at(&["spec", "restartPolicy"]).unwrap_or("Always");
    let is_hook = hook::is_hook(pod);
    let ignores_policy = pod.annotation(names::IGNORE_RESTART_POLICY) == Some("true") && !is_hook;
    let stays = restarts == "Always" || ignores_policy;
    if stays {
        let messages = failing_containers(pod);
        if !messages.is_empty() {
            return HealthStatus::new(HealthCode::Degraded, messages.join(", "));
        }
    }
    let message = pod.str_at(&["status", "message"]).unwrap_or_default();
    match pod.str_at(&["status", "phase"]).unwrap_or_default() {
        "Pending" => HealthStatus::new(HealthCode::Progressing, message),
        "Succeeded" => HealthStatus::new(HealthCode::Healthy, message),
        "Failed" => HealthStatus::new(HealthCode::Degraded, failure(pod, message)),
        "Running" => running(pod, stays, message),
        _ => HealthStatus::new(HealthCode::Unknown, message),
    }
}

fn containers<'a>(pod: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    pod.at(&["status", field]).and_then(Value::as_array).into_iter().flatten()
}

/// Messages of containers that wait because of an error.
fn failing_containers(pod: &Value) -> Vec<String> {
    containers(pod, "containerStatuses")
        .filter_map(|container| container.at(&["state", "waiting"]))
        .filter(|waiting| {
            let reason = waiting.str_at(&["reason"]).unwrap_or_default();
            reason.starts_with("Err") || reason.ends_with("Error") || reason.ends_with("BackOff")
        })
        .map(|waiting| waiting.str_at(&["message"]).unwrap_or_default().to_owned())
        .collect()
}

fn failure(pod: &Value, message: &str) -> String {
    if !message.is_empty() {
        return message.to_owned();
    }
    let all = containers(pod, "initContainerStatuses").chain(containers(pod, "containerStatuses"));
    all.filter_map(container_failure).next().unwrap_or_default()
}

fn container_failure(container: &Value) -> Option<String> {
    let ended = container.at(&["state", "terminated"])?;
    if let Some(message) = ended.str_at(&["message"]).filter(|m| !m.is_empty()) {
        return Some(message.to_owned());
    }
    if ended.str_at(&["reason"]) == Some("OOMKilled") {
        return Some("OOMKilled".into());
    }
    let name = container.str_at(&["name"]).unwrap_or_default();
    let code = ended.int_at(&["exitCode"]).filter(|code| *code != 0)?;
    Some(format!("container {name:?} failed with exit code {code}"))
}

fn running(pod: &Value, stays: bool, message: &str) -> HealthStatus {
    if !stays {
        return HealthStatus::new(HealthCode::Progressing, message);
    }
    if conditions::list(pod).iter().any(|c| c.kind == "Ready" && c.status == "True") {
        return HealthStatus::new(HealthCode::Healthy, message);
    }
    // A container that ended before and is not ready again: it crashes, whatever the back-off says now.
    let crashed = containers(pod, "containerStatuses")
        .any(|c| c.at(&["lastState", "terminated"]).is_some_and(Value::is_object));
    let code = if crashed { HealthCode::Degraded } else { HealthCode::Progressing };
    HealthStatus::new(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(policy: &str, status: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"restartPolicy": policy}, "status": status})
    }

    #[test]
    fn rules_by_phase_and_policy() {
        use HealthCode::*;
        let waiting = |reason: &str| json!({"phase": "Running", "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": reason, "message": "why"}}}]});
        let rows = [
            (pod("Always", waiting("CrashLoopBackOff")), Degraded),
            (pod("Always", waiting("ErrImagePull")), Degraded),
            (pod("Always", waiting("ContainerCreating")), Progressing),
            (pod("Never", waiting("CrashLoopBackOff")), Progressing),
            (pod("Always", json!({"phase": "Pending"})), Progressing),
            (pod("Never", json!({"phase": "Succeeded"})), Healthy),
            (
                pod(
                    "Always",
                    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
                ),
                Healthy,
            ),
            (
                pod(
                    "Always",
                    json!({"phase": "Running", "containerStatuses": [{"lastState": {"terminated": {"exitCode": 1}}}]}),
                ),
                Degraded,
            ),
        ];
        for (pod, expected) in rows {
            assert_eq!(assess(&pod).status, expected, "{pod}");
        }
    }

    #[test]
    fn the_restart_policy_of_a_pod_that_is_no_hook_can_be_ignored() {
        let waiting = json!({"phase": "Running",
            "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]});
        let mut pod = pod("Never", waiting);
        pod["metadata"]["annotations"] = json!({names::IGNORE_RESTART_POLICY: "true"});
        assert_eq!(assess(&pod).status, HealthCode::Degraded);
        pod["metadata"]["annotations"][names::IGNORE_RESTART_POLICY] = "false".into();
        assert_eq!(assess(&pod).status, HealthCode::Progressing);
        pod["metadata"]["annotations"][names::IGNORE_RESTART_POLICY] = "true".into();
        pod["metadata"]["annotations"]["argocd.argoproj.io/hook"] = "PreSync".into();
        assert_eq!(assess(&pod).status, HealthCode::Progressing);
    }

    #[test]
    fn a_failed_pod_says_why() {
        let status = json!({"phase": "Failed", "containerStatuses": [
            {"name": "c", "state": {"terminated": {"exitCode": 3}}}]});
        assert_eq!(assess(&pod("Never", status)).message, "container \"c\" failed with exit code 3");
    }
}
