//! Health of the kinds that come with Kubernetes (`argo-cd` docs, "Resource Health"; the status fields
//! of the Kubernetes API reference).

use serde_json::Value;
use tiphys_model::{HealthCode, HealthStatus};
use tiphys_value::{GroupVersionKind, ObjectExt};

use crate::{
    HealthSettings,
    conditions::{self, Condition},
    pod,
};

fn verdict(code: HealthCode, message: impl Into<String>) -> HealthStatus {
    HealthStatus::new(code, message)
}

fn healthy() -> HealthStatus {
    verdict(HealthCode::Healthy, "")
}

/// Health by built-in rule; `None` if the kind has none.
pub(crate) fn assess(
    gvk: &GroupVersionKind,
    object: &Value,
    settings: &HealthSettings,
) -> Option<HealthStatus> {
    let status = match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apps", "Deployment") => versioned(gvk, "v1", object, deployment),
        ("apps", "StatefulSet") => versioned(gvk, "v1", object, stateful_set),
        ("apps", "DaemonSet") => versioned(gvk, "v1", object, daemon_set),
        ("apps", "ReplicaSet") => versioned(gvk, "v1", object, replica_set),
        ("", "Pod") => pod::assess(object),
        ("batch", "Job") => job(object, settings),
        ("batch", "CronJob") => cron_job(object),
        ("autoscaling", "HorizontalPodAutoscaler") => hpa(object),
        ("", "Service") => service(object),
        ("networking.k8s.io" | "extensions", "Ingress") => ingress(object),
        ("", "PersistentVolumeClaim") => claim(object),
        ("apiregistration.k8s.io", "APIService") => api_service(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd(object),
        ("policy", "PodDisruptionBudget") => disruption_budget(object),
        ("argoproj.io", "Workflow") => workflow(object),
        _ => return None,
    };
    Some(status)
}

fn versioned(
    gvk: &GroupVersionKind,
    version: &str,
    object: &Value,
    rule: fn(&Value) -> HealthStatus,
) -> HealthStatus {
    if gvk.version == version {
        return rule(object);
    }
    verdict(HealthCode::Unknown, format!("unsupported {} GVK: {gvk}", gvk.kind))
}

fn count(object: &Value, path: &[&str]) -> i64 {
    object.int_at(path).unwrap_or(0)
}

fn behind(object: &Value) -> bool {
    object.generation() > count(object, &["status", "observedGeneration"])
}

fn progressing(message: impl Into<String>) -> HealthStatus {
    verdict(HealthCode::Progressing, message)
}

fn deployment(object: &Value) -> HealthStatus {
    if object.at(&["spec", "paused"]) == Some(&Value::Bool(true)) {
        return verdict(HealthCode::Suspended, "Deployment is paused");
    }
    if behind(object) {
        return progressing(
            "Waiting for rollout to finish: observed deployment generation less than desired generation",
        );
    }
    let conditions = conditions::list(object);
    if conditions.iter().any(|c| c.kind == "Progressing" && c.reason == "ProgressDeadlineExceeded") {
        return verdict(
            HealthCode::Degraded,
            format!("Deployment {:?} exceeded its progress deadline", object.name()),
        );
    }
    let desired = object.int_at(&["spec", "replicas"]);
    let [replicas, updated, available] =
        ["replicas", "updatedReplicas", "availableReplicas"].map(|field| count(object, &["status", field]));
    match desired {
        Some(desired) if updated < desired => progressing(format!(
            "Waiting for rollout to finish: {updated} out of {desired} new replicas have been updated..."
        )),
        _ if replicas > updated => progressing(format!(
            "Waiting for rollout to finish: {} old replicas are pending termination...",
            replicas - updated
        )),
        _ if available < updated => progressing(format!(
            "Waiting for rollout to finish: {available} of {updated} updated replicas are available..."
        )),
        _ => healthy(),
    }
}

fn stateful_set(object: &Value) -> HealthStatus {
    if count(object, &["status", "observedGeneration"]) == 0 || behind(object) {
        return progressing("Waiting for statefulset spec update to be observed...");
    }
    let [ready, updated] =
        ["readyReplicas", "updatedReplicas"].map(|field| count(object, &["status", field]));
    let desired = object.int_at(&["spec", "replicas"]);
    if let Some(desired) = desired
        && ready < desired
    {
        return progressing(format!("Waiting for {} pods to be ready...", desired - ready));
    }
    let strategy = object.str_at(&["spec", "updateStrategy", "type"]).unwrap_or_default();
    if strategy == "RollingUpdate"
        && object.at(&["spec", "updateStrategy", "rollingUpdate"]).is_some_and(Value::is_object)
    {
        let partition = count(object, &["spec", "updateStrategy", "rollingUpdate", "partition"]);
        let wanted = desired.unwrap_or(0) - partition;
        if desired.is_some() && updated < wanted {
            return progressing(format!(
                "Waiting for partitioned roll out to finish: {updated} out of {wanted} new pods have been updated..."
            ));
        }
        return verdict(
            HealthCode::Healthy,
            format!("partitioned roll out complete: {updated} new pods have been updated..."),
        );
    }
    if strategy == "OnDelete" {
        return verdict(HealthCode::Healthy, format!("statefulset has {ready} ready pods"));
    }
    let revision = |field| object.str_at(&["status", field]).unwrap_or_default();
    if revision("updateRevision") != revision("currentRevision") {
        return progressing(format!(
            "waiting for statefulset rolling update to complete {updated} pods at revision {}...",
            revision("updateRevision")
        ));
    }
    verdict(
        HealthCode::Healthy,
        format!(
            "statefulset rolling update complete {} pods at revision {}...",
            count(object, &["status", "currentReplicas"]),
            revision("currentRevision")
        ),
    )
}

fn daemon_set(object: &Value) -> HealthStatus {
    if behind(object) {
        return progressing(
            "Waiting for rollout to finish: observed daemon set generation less than desired generation",
        );
    }
    let [updated, desired, available] =
        ["updatedNumberScheduled", "desiredNumberScheduled", "numberAvailable"]
            .map(|field| count(object, &["status", field]));
    let name = object.name();
    if object.str_at(&["spec", "updateStrategy", "type"]) == Some("OnDelete") {
        return verdict(
            HealthCode::Healthy,
            format!("daemon set {updated} out of {desired} new pods have been updated"),
        );
    }
    if updated < desired {
        return progressing(format!(
            "Waiting for daemon set {name:?} rollout to finish: {updated} out of {desired} new pods have been updated..."
        ));
    }
    if available < desired {
        return progressing(format!(
            "Waiting for daemon set {name:?} rollout to finish: {available} of {desired} updated pods are available..."
        ));
    }
    healthy()
}

fn replica_set(object: &Value) -> HealthStatus {
    if behind(object) {
        return progressing(
            "Waiting for rollout to finish: observed replica set generation less than desired generation",
        );
    }
    if let Some(failure) =
        conditions::list(object).into_iter().find(|c| c.kind == "ReplicaFailure" && c.status == "True")
    {
        return verdict(HealthCode::Degraded, failure.message);
    }
    let available = count(object, &["status", "availableReplicas"]);
    match object.int_at(&["spec", "replicas"]) {
        Some(desired) if available < desired => progressing(format!(
            "Waiting for rollout to finish: {available} out of {desired} new replicas are available..."
        )),
        _ => healthy(),
    }
}

fn job(object: &Value, settings: &HealthSettings) -> HealthStatus {
    let conditions = conditions::list(object);
    // A condition that says False means the opposite of one that says True. Argo CD looks at presence
    // alone, so that a resumed job counts as done.
    let counts = |c: &&Condition| settings.compat || c.status != "False";
    let find = |kind: &str| conditions.iter().filter(counts).find(|c| c.kind == kind);
    if let Some(failed) = find("Failed") {
        return verdict(HealthCode::Degraded, &failed.message);
    }
    let suspended = find("Suspended");
    if let Some(suspended) = suspended
        && suspended.status == "True"
    {
        return verdict(HealthCode::Suspended, &suspended.message);
    }
    match find("Complete") {
        Some(complete) => verdict(HealthCode::Healthy, &complete.message),
        None if suspended.is_some() => healthy(),
        None => progressing(""),
    }
}

fn cron_job(object: &Value) -> HealthStatus {
    if object.at(&["spec", "suspend"]) == Some(&Value::Bool(true)) {
        return verdict(HealthCode::Healthy, "CronJob is Suspended");
    }
    if object.at(&["status"]).is_none() {
        return progressing("");
    }
    let time = |field| object.str_at(&["status", field]).and_then(tiphys_model::Time::parse);
    let active = object.at(&["status", "active"]).and_then(Value::as_array).map_or(0, Vec::len);
    match (time("lastScheduleTime"), time("lastSuccessfulTime")) {
        (None, _) => verdict(HealthCode::Healthy, "CronJob has not been scheduled yet"),
        (Some(_), None) => {
            verdict(HealthCode::Healthy, "CronJob has not completed its first execution successfully")
        }
        (Some(_), Some(_)) if active > 0 => {
            verdict(HealthCode::Healthy, format!("The job is running. Active jobs: {active}"))
        }
        (Some(scheduled), Some(succeeded)) if succeeded < scheduled => {
            verdict(HealthCode::Degraded, "CronJob has not completed its last execution successfully")
        }
        _ => healthy(),
    }
}

const HPA_FAILURES: [(&str, &[&str]); 2] = [
    ("AbleToScale", &["FailedGetScale", "FailedUpdateScale"]),
    (
        "ScalingActive",
        &[
            "FailedGetResourceMetric",
            "FailedGetObjectMetric",
            "FailedGetPodsMetric",
            "FailedGetExternalMetric",
            "FailedComputeMetricsReplicas",
            "InvalidSelector",
        ],
    ),
];

fn hpa(object: &Value) -> HealthStatus {
    let mut conditions = conditions::list(object);
    // autoscaling/v1 has no conditions in its status; the API server puts them in an annotation.
    if let Some(text) = object.annotation("autoscaling.alpha.kubernetes.io/conditions")
        && let Ok(Value::Array(list)) = serde_json::from_str(text)
    {
        conditions.extend(list.iter().map(Condition::read));
    }
    let fails = |c: &&Condition| {
        HPA_FAILURES.iter().any(|(kind, reasons)| *kind == c.kind && reasons.contains(&c.reason.as_str()))
    };
    // A fault counts wherever it stands: scaling that fails may still be able to scale.
    if let Some(fault) = conditions.iter().find(fails) {
        return verdict(HealthCode::Degraded, &fault.message);
    }
    let scales =
        |c: &&Condition| matches!(c.kind.as_str(), "AbleToScale" | "ScalingLimited") && c.status == "True";
    if let Some(scales) = conditions.iter().find(scales) {
        return verdict(HealthCode::Healthy, &scales.message);
    }
    progressing("Waiting to Autoscale")
}

fn has_address(object: &Value) -> bool {
    object
        .at(&["status", "loadBalancer", "ingress"])
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty())
}

fn service(object: &Value) -> HealthStatus {
    if object.str_at(&["spec", "type"]) == Some("LoadBalancer") && !has_address(object) {
        return progressing("");
    }
    healthy()
}

fn ingress(object: &Value) -> HealthStatus {
    if has_address(object) { healthy() } else { progressing("") }
}

fn claim(object: &Value) -> HealthStatus {
    match object.str_at(&["status", "phase"]).unwrap_or_default() {
        "Lost" => verdict(HealthCode::Degraded, ""),
        "Pending" => progressing(""),
        "Bound" => healthy(),
        _ => verdict(HealthCode::Unknown, ""),
    }
}

fn api_service(object: &Value) -> HealthStatus {
    match conditions::list(object).into_iter().find(|c| c.kind == "Available") {
        Some(c) if c.status == "True" => verdict(HealthCode::Healthy, format!("{}: {}", c.reason, c.message)),
        Some(c) => progressing(format!("{}: {}", c.reason, c.message)),
        None => progressing("Waiting to be processed"),
    }
}

fn crd(object: &Value) -> HealthStatus {
    let conditions = conditions::list(object);
    let find = |kind: &str, status: &str| conditions.iter().find(|c| c.kind == kind && c.status == status);
    if conditions.is_empty() {
        return progressing("Status conditions not found");
    }
    if find("Terminating", "True").is_some() {
        return progressing("CRD is being terminated");
    }
    if let Some(c) = find("NamesAccepted", "False") {
        return verdict(HealthCode::Degraded, format!("CRD names have not been accepted: {}", c.message));
    }
    if let Some(c) = find("NonStructuralSchema", "True") {
        return verdict(HealthCode::Degraded, format!("Schema violations found: {}", c.message));
    }
    match conditions.iter().find(|c| c.kind == "Established") {
        Some(c) if c.status == "True" => verdict(HealthCode::Healthy, "CRD is healthy"),
        Some(c) if c.reason != "Installing" => verdict(HealthCode::Degraded, "CRD is not established"),
        Some(_) => progressing("CRD is being installed"),
        None => progressing("CRD is not established"),
    }
}

fn disruption_budget(object: &Value) -> HealthStatus {
    let conditions = conditions::list(object);
    if let Some(c) = conditions.iter().find(|c| c.status == "False" && c.reason != "InsufficientPods") {
        return verdict(HealthCode::Degraded, format!("PodDisruptionBudget has {}", c.reason));
    }
    match conditions.first() {
        Some(c) => verdict(HealthCode::Healthy, &c.message),
        None => progressing("Waiting for status"),
    }
}

fn workflow(object: &Value) -> HealthStatus {
    let message = object.str_at(&["status", "message"]).unwrap_or_default();
    match object.str_at(&["status", "phase"]).unwrap_or_default() {
        "" | "Pending" | "Running" => progressing(message),
        "Succeeded" => verdict(HealthCode::Healthy, message),
        "Failed" | "Error" => verdict(HealthCode::Degraded, message),
        _ => verdict(HealthCode::Unknown, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn health_of(object: &Value) -> HealthStatus {
        crate::assess(object, &HealthSettings::default()).expect("kind has a rule")
    }

    fn deployment_with(status: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "generation": 2},
            "spec": {"replicas": 2}, "status": status})
    }

    #[test]
    fn deployment_follows_its_rollout() {
        use HealthCode::*;
        let rows = [
            (json!({"observedGeneration": 1}), Progressing),
            (
                json!({"observedGeneration": 2, "updatedReplicas": 1, "replicas": 2, "availableReplicas": 2}),
                Progressing,
            ),
            (
                json!({"observedGeneration": 2, "updatedReplicas": 2, "replicas": 3, "availableReplicas": 2}),
                Progressing,
            ),
            (
                json!({"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2, "availableReplicas": 1}),
                Progressing,
            ),
            (
                json!({"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2, "availableReplicas": 2}),
                Healthy,
            ),
            (
                json!({"observedGeneration": 2, "conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]}),
                Degraded,
            ),
        ];
        for (status, expected) in rows {
            assert_eq!(health_of(&deployment_with(status.clone())).status, expected, "{status}");
        }
    }

    #[test]
    fn old_api_versions_are_unknown() {
        let mut object = deployment_with(json!({}));
        object["apiVersion"] = json!("apps/v1beta1");
        assert_eq!(health_of(&object).status, HealthCode::Unknown);
    }

    #[test]
    fn a_resumed_job_still_runs_unless_compat() {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
            "status": {"conditions": [{"type": "Suspended", "status": "False"}]}});
        assert_eq!(health_of(&job).status, HealthCode::Progressing);
        let compat =
            crate::assess(&job, &HealthSettings { compat: true, ..HealthSettings::default() }).expect("rule");
        assert_eq!(compat.status, HealthCode::Healthy);
    }

    #[test]
    fn pending_deletion_comes_first() {
        let mut object = deployment_with(json!({}));
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(health_of(&object), HealthStatus::new(HealthCode::Progressing, "Pending deletion"));
    }

    #[test]
    fn config_maps_have_no_health() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
        assert_eq!(crate::assess(&object, &HealthSettings::default()), None);
    }

    #[test]
    fn a_fault_of_an_autoscaler_counts_wherever_it_stands() {
        let conditions = |active: &str| {
            json!([{"type": "AbleToScale", "status": "True"},
            {"type": "ScalingActive", "status": "False", "reason": active}])
        };
        let hpa = |active| {
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h"}, "status": {"conditions": conditions(active)}})
        };
        assert_eq!(health_of(&hpa("FailedGetObjectMetric")).status, HealthCode::Degraded);
        assert_eq!(health_of(&hpa("ScalingDisabled")).status, HealthCode::Healthy);
    }

    #[test]
    fn a_definition_that_was_refused_is_degraded_one_being_installed_is_not() {
        let crd = |reason| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "c"}, "status": {"conditions": [{"type": "Established", "status": "False", "reason": reason}]}})
        };
        assert_eq!(health_of(&crd("Installing")).status, HealthCode::Progressing);
        assert_eq!(health_of(&crd("NotAccepted")).status, HealthCode::Degraded);
    }

    #[test]
    fn stateful_set_with_partition() {
        let object = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "generation": 1},
            "spec": {"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}},
            "status": {"observedGeneration": 1, "readyReplicas": 3, "updatedReplicas": 1}});
        assert_eq!(health_of(&object).status, HealthCode::Healthy);
    }
}
