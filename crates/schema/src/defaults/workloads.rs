//! Workloads, jobs and autoscalers.

use serde_json::{Value, json};

use super::{Object, child, core, each, object_or_new, pod, set, set_text, text};

pub(super) fn deployment(object: &mut Object) {
    let Some(spec) = child(object, "spec") else { return };
    set(spec, "replicas", 1);
    set(spec, "revisionHistoryLimit", 10);
    set(spec, "progressDeadlineSeconds", 600);
    if let Some(strategy) = object_or_new(spec, "strategy") {
        set_text(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = object_or_new(strategy, "rollingUpdate")
        {
            set(rolling, "maxUnavailable", "25%");
            set(rolling, "maxSurge", "25%");
        }
    }
    pod::template(spec, "template");
}

pub(super) fn replica_set(object: &mut Object) {
    let Some(spec) = child(object, "spec") else { return };
    set(spec, "replicas", 1);
    pod::template(spec, "template");
}

/// A replication controller takes its labels and selector from its template.
pub(super) fn replication_controller(object: &mut Object) {
    let labels = object.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels")).cloned();
    if let Some(labels) = labels {
        child(object, "spec").into_iter().for_each(|spec| set(spec, "selector", labels.clone()));
        object_or_new(object, "metadata")
            .into_iter()
            .for_each(|metadata| set(metadata, "labels", labels.clone()));
    }
    replica_set(object);
}

pub(super) fn stateful_set(object: &mut Object) {
    let Some(spec) = child(object, "spec") else { return };
    set(spec, "replicas", 1);
    set(spec, "revisionHistoryLimit", 10);
    set_text(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = object_or_new(spec, "updateStrategy") {
        if text(strategy, "type").is_empty() {
            set(strategy, "type", "RollingUpdate");
            set(strategy, "rollingUpdate", json!({}));
        }
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = child(strategy, "rollingUpdate")
        {
            set(rolling, "partition", 0);
        }
    }
    if let Some(policy) = object_or_new(spec, "persistentVolumeClaimRetentionPolicy") {
        set_text(policy, "whenDeleted", "Retain");
        set_text(policy, "whenScaled", "Retain");
    }
    for claim in each(spec, "volumeClaimTemplates") {
        set_text(claim, "apiVersion", "v1");
        set_text(claim, "kind", "PersistentVolumeClaim");
        core::claim(claim);
    }
    pod::template(spec, "template");
}

pub(super) fn daemon_set(object: &mut Object) {
    let Some(spec) = child(object, "spec") else { return };
    set(spec, "revisionHistoryLimit", 10);
    if let Some(strategy) = object_or_new(spec, "updateStrategy") {
        set_text(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = object_or_new(strategy, "rollingUpdate")
        {
            set(rolling, "maxUnavailable", 1);
            set(rolling, "maxSurge", 0);
        }
    }
    pod::template(spec, "template");
}

pub(super) fn job(object: &mut Object) {
    let Some(spec) = child(object, "spec") else { return };
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".into(), 1.into());
    }
    set(spec, "parallelism", 1);
    let limit = if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 };
    set(spec, "backoffLimit", limit);
    set_text(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    set(spec, "manualSelector", false);
    let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set_text(spec, "podReplacementPolicy", replacement);
    for rule in child(spec, "podFailurePolicy").into_iter().flat_map(|policy| each(policy, "rules")) {
        for condition in each(rule, "onPodConditions") {
            set_text(condition, "status", "True");
        }
    }
    pod::template(spec, "template");
}

pub(super) fn cron_job(object: &mut Object) {
    let Some(spec) = child(object, "spec") else { return };
    set_text(spec, "concurrencyPolicy", "Allow");
    set(spec, "suspend", false);
    set(spec, "successfulJobsHistoryLimit", 3);
    set(spec, "failedJobsHistoryLimit", 1);
    let job = child(spec, "jobTemplate").and_then(|template| child(template, "spec"));
    if let Some(job) = job {
        pod::template(job, "template");
    }
}

pub(super) fn autoscaler(version: &str, object: &mut Object) {
    let Some(spec) = child(object, "spec") else { return };
    set(spec, "minReplicas", 1);
    if version == "v1" {
        return;
    }
    if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        spec.insert("metrics".into(), json!([metric]));
    }
    let Some(behavior) = child(spec, "behavior") else { return };
    let up = json!([{"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15}]);
    let down = json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]);
    if let Some(rules) = object_or_new(behavior, "scaleUp") {
        set(rules, "stabilizationWindowSeconds", 0);
        set(rules, "selectPolicy", "Max");
        set(rules, "policies", up);
    }
    if let Some(rules) = object_or_new(behavior, "scaleDown") {
        set(rules, "selectPolicy", "Max");
        set(rules, "policies", down);
    }
}
