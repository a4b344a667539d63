//! The status of a Deployment: counts, and the conditions Available, Progressing and ReplicaFailure.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{bounds, desired_replicas, in_status};
use crate::{
    controller::Context,
    object::{condition, remove_condition, set_condition, status_of, time},
};

/// No deadline: what clients send that want none.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// The status, and when it changes even if nothing else does.
pub(super) fn deployment_status(
    deployment: &Value,
    new: Option<&Value>,
    old: &[Arc<Object>],
    context: &Context<'_>,
) -> (Value, Option<Duration>) {
    let all = || new.into_iter().chain(old.iter().map(|set| set.value()));
    let total = |field| all().map(|set| in_status(set, field)).sum::<i64>();
    let updated = new.map_or(0, |set| in_status(set, "replicas"));
    let available = total("availableReplicas");
    let mut status = status_of(deployment);
    status.insert("observedGeneration".into(), deployment.generation().into());
    let unavailable =
        (all().map(super::replicas).sum::<i64>().max(desired_replicas(deployment)) - available).max(0);
    let counts = [
        ("replicas", total("replicas")),
        ("updatedReplicas", updated),
        ("readyReplicas", total("readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", unavailable),
    ];
    for (field, count) in counts {
        match count {
            0 => status.remove(field),
            count => status.insert(field.into(), count.into()),
        };
    }
    status.insert("terminatingReplicas".into(), total("terminatingReplicas").into());
    let (state, reason, message) = match available >= bounds(deployment).1 {
        true => ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        false => ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
    };
    set(&mut status, "Available", state, reason, message, context.now);
    let again = progress(&mut status, deployment, new, context.now);
    let failure = all().find_map(|set| condition(set, "ReplicaFailure")).cloned();
    match failure {
        Some(failure) => {
            let text = |field: &str| failure.str_at(&[field]).unwrap_or_default().to_owned();
            set(
                &mut status,
                "ReplicaFailure",
                &text("status"),
                &text("reason"),
                &text("message"),
                context.now,
            );
        }
        None => remove_condition(&mut status, "ReplicaFailure"),
    }
    (status.into(), again)
}

fn set(
    status: &mut Map<String, Value>,
    kind: &str,
    state: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let condition = json!({
        "type": kind, "status": state, "lastUpdateTime": time(now), "reason": reason, "message": message,
    });
    set_condition(status, condition, now);
}

/// Keeps the condition Progressing; returns when the deadline passes.
fn progress(
    status: &mut Map<String, Value>,
    deployment: &Value,
    new: Option<&Value>,
    now: Timestamp,
) -> Option<Duration> {
    let deadline = deployment.int_at(&["spec", "progressDeadlineSeconds"]).unwrap_or(600);
    if deadline == NO_DEADLINE {
        remove_condition(status, "Progressing");
        return None;
    }
    let before = condition(deployment, "Progressing");
    let reason = before.and_then(|condition| condition.str_at(&["reason"])).unwrap_or_default().to_owned();
    let is_paused = deployment.at(&["spec", "paused"]) == Some(&Value::Bool(true));
    match (is_paused, reason.as_str()) {
        (true, "DeploymentPaused") => return None,
        (true, _) => {
            set(status, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now);
            return None;
        }
        (false, "DeploymentPaused") => {
            set(status, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed", now);
            return Some(Duration::ZERO);
        }
        _ => {}
    }
    let count = |field: &str| status.get(field).and_then(Value::as_i64).unwrap_or(0);
    let was = |field: &str| in_status(deployment, field);
    let is_settled = count("replicas") == count("updatedReplicas") && reason == "NewReplicaSetAvailable";
    // Without a set for its template there is nothing to tell of yet: it is about to be made.
    let new = new?;
    if is_settled && is_of(before, new) {
        return None;
    }
    let wanted = desired_replicas(deployment);
    let is_complete =
        ["updatedReplicas", "replicas", "availableReplicas"].iter().all(|field| count(field) == wanted);
    let set_name = new.name();
    if is_complete {
        let message = format!("ReplicaSet \"{set_name}\" has successfully progressed.");
        set(status, "Progressing", "True", "NewReplicaSetAvailable", &message, now);
        return None;
    }
    let of_old = |replicas: i64, updated: i64| replicas - updated;
    let has_progressed = count("updatedReplicas") > was("updatedReplicas")
        || count("readyReplicas") > was("readyReplicas")
        || count("availableReplicas") > was("availableReplicas")
        || of_old(count("replicas"), count("updatedReplicas"))
            < of_old(was("replicas"), was("updatedReplicas"));
    let is_new = before.is_none() || !is_of(before, new);
    if is_new || has_progressed {
        let (reason, message) = match is_new {
            true => ("NewReplicaSetCreated", format!("Created new replica set \"{set_name}\"")),
            false => ("ReplicaSetUpdated", format!("ReplicaSet \"{set_name}\" is progressing.")),
        };
        renew(status, reason, &message, now);
        return Some(Duration::from_secs(deadline.unsigned_abs()));
    }
    let since = before.and_then(|condition| condition.str_at(&["lastUpdateTime"])?.parse::<Timestamp>().ok());
    let left = since.unwrap_or(now).as_second().saturating_add(deadline).saturating_sub(now.as_second());
    if left > 0 && reason != "ProgressDeadlineExceeded" {
        return Some(Duration::from_secs(left.unsigned_abs()));
    }
    let message = format!("ReplicaSet \"{set_name}\" has timed out progressing.");
    set(status, "Progressing", "False", "ProgressDeadlineExceeded", &message, now);
    None
}

/// Whether a condition is about a set.
fn is_of(condition: Option<&Value>, set: &Value) -> bool {
    let message = condition.and_then(|condition| condition.str_at(&["message"])).unwrap_or_default();
    message.contains(&format!("\"{}\"", set.name()))
}

/// Progress moves the time of the last update, even if nothing else of the condition changes.
fn renew(status: &mut Map<String, Value>, reason: &str, message: &str, now: Timestamp) {
    set(status, "Progressing", "True", reason, message, now);
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    let progressing = conditions.into_iter().flatten().find(|condition| condition["type"] == "Progressing");
    if let Some(progressing) = progressing {
        progressing["lastUpdateTime"] = time(now);
    }
}
