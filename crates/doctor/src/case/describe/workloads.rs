//! What makes pods: Deployments and their like.

use tiphys_value::{Value, json};

use super::{
    conditions, pods,
    text::{Field, below, fields, number, pairs, time, value, values},
};

pub(super) fn workload(kind: &str, described: &[Field<'_>]) -> Value {
    let template = fields(below(described, "Pod Template"));
    let labels: Value =
        pairs(&values(&template, "Labels")).into_iter().map(|(key, value)| (key, json!(value))).collect();
    let selector: Value =
        pairs(&values(described, "Selector")).into_iter().map(|(key, value)| (key, json!(value))).collect();
    let mut live = json!({
        "spec": {
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": labels}, "spec": pods::specification(&template)},
        },
        "status": {},
    });
    let found = conditions(described);
    if found.as_array().is_some_and(|found| !found.is_empty()) {
        live["status"]["conditions"] = found;
    }
    match kind {
        "DaemonSet" => {
            let told = |key: &str| value(described, key).and_then(number).unwrap_or(0);
            live["status"]["desiredNumberScheduled"] = json!(told("Desired Number of Nodes Scheduled"));
            live["status"]["currentNumberScheduled"] = json!(told("Current Number of Nodes Scheduled"));
            live["status"]["numberAvailable"] = json!(told("Number of Nodes Scheduled with Available Pods"));
        }
        "CronJob" => {
            live["spec"]["suspend"] = json!(value(described, "Suspend") == Some("True"));
            live["spec"]["schedule"] = json!(value(described, "Schedule").unwrap_or_default());
            if let Some(time) = value(described, "Last Schedule Time").and_then(time) {
                live["status"]["lastScheduleTime"] = json!(time);
            }
        }
        "Job" => {
            if let Some(time) = value(described, "Completed At").and_then(time) {
                live["status"]["completionTime"] = json!(time);
                live["status"]["conditions"] = json!([{"type": "Complete", "status": "True"}]);
            }
            let told = value(described, "Pods Statuses").unwrap_or_default();
            for (word, key) in [("Active", "active"), ("Succeeded", "succeeded"), ("Failed", "failed")] {
                let part = told.split('/').find(|part| part.contains(word));
                live["status"][key] = json!(part.and_then(|part| number(part.trim())).unwrap_or(0));
            }
        }
        _ => replicas(described, &mut live),
    }
    live
}

/// `Replicas:  2 desired | 2 updated | 2 total | 0 available | 2 unavailable`, or `1 current / 2 desired`
fn replicas(described: &[Field<'_>], live: &mut Value) {
    let told = value(described, "Replicas").unwrap_or_default();
    let count = |word: &str| {
        told.split(['|', '/'])
            .find(|part| part.trim().ends_with(&format!(" {word}")))
            .and_then(|part| number(part.trim()))
    };
    if let Some(wanted) = count("desired") {
        live["spec"]["replicas"] = json!(wanted);
    }
    for (word, key) in [
        ("total", "replicas"),
        ("current", "replicas"),
        ("updated", "updatedReplicas"),
        ("available", "availableReplicas"),
    ] {
        if let Some(count) = count(word) {
            live["status"][key] = json!(count);
        }
    }
    let running = value(described, "Pods Status").and_then(number);
    if let Some(running) = running {
        live["status"]["readyReplicas"] = json!(running);
    }
}
