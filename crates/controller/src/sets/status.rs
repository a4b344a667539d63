//! What a set's status tells: conditions, resources and the rollout, as Argo CD writes them.

use jiff::Timestamp;
use tiphys_appset::Rollout;
use tiphys_model::{Time, names};
use tiphys_value::{Map, ObjectExt, Value, json};

use crate::status_writer::bounded;

/// How many Applications `status.resources` lists.
const MAX_RESOURCES: usize = 5000;

/// Why a set is not up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetError {
    /// Reason for machines.
    pub reason: &'static str,
    /// Text for people.
    pub message: String,
}

impl SetError {
    pub(super) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: bounded(message.into()) }
    }
}

/// What a look at a set found out.
#[derive(Default)]
pub(crate) struct SetObservation {
    /// Whether the generators and the template yielded something.
    pub generated: bool,
    /// What is wrong.
    pub fault: Option<SetError>,
    /// The rollout, if the set rolls.
    pub rollout: Option<Rollout>,
    /// The Applications that the set owns now.
    pub apps: Vec<std::sync::Arc<Value>>,
}

impl SetObservation {
    /// A look that a fault of the engine's own broke off.
    pub(super) fn broken(told: &str) -> Self {
        Self { fault: Some(SetError::new("UnknownError", told)), ..Self::default() }
    }
}

/// The status after a look at a set.
pub(crate) fn after(set: &Value, seen: &SetObservation, now: Timestamp) -> Value {
    let mut status = set.get("status").cloned().filter(Value::is_object).unwrap_or_else(|| json!({}));
    let old = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let conditions = conditions(set, seen, &old, Time::from(now));
    status["health"] = health(&conditions);
    status["conditions"] = conditions.into();
    if seen.generated {
        let resources: Vec<Value> = seen.apps.iter().take(MAX_RESOURCES).map(|app| resource(app)).collect();
        status["resources"] = resources.into();
        status["resourcesCount"] = seen.apps.len().into();
        match &seen.rollout {
            Some(rollout) => {
                let apps: Vec<Value> = rollout.apps.iter().map(tiphys_appset::AppRollout::to_value).collect();
                status["applicationStatus"] = apps.into();
            }
            None => {
                if let Some(status) = status.as_object_mut() {
                    status.remove("applicationStatus");
                }
            }
        }
    }
    status
}

fn resource(app: &Value) -> Value {
    let mut entry = Map::new();
    entry.insert("group".into(), names::GROUP.into());
    entry.insert("version".into(), "v1alpha1".into());
    entry.insert("kind".into(), "Application".into());
    entry.insert("namespace".into(), app.namespace().into());
    entry.insert("name".into(), app.name().into());
    if let Some(sync) = app.str_at(&["status", "sync", "status"]) {
        entry.insert("status".into(), sync.into());
    }
    if let Some(health) = app.str_at(&["status", "health", "status"]) {
        entry.insert("health".into(), json!({"status": health}));
    }
    Value::Object(entry)
}

fn conditions(set: &Value, seen: &SetObservation, old: &[Value], now: Time) -> Vec<Value> {
    let yes = "All applications have been generated successfully";
    let mut all = vec![match (&seen.fault, seen.generated) {
        (Some(fault), false) => ("ParametersGenerated", false, "ErrorOccurred", fault.message.clone()),
        _ => (
            "ParametersGenerated",
            true,
            "ParametersGenerated",
            "Successfully generated parameters for all Applications".to_owned(),
        ),
    }];
    match &seen.fault {
        Some(fault) => {
            all.push(("ErrorOccurred", true, fault.reason, fault.message.clone()));
            all.push(("ResourcesUpToDate", false, "ErrorOccurred", fault.message.clone()));
        }
        None => {
            all.push(("ErrorOccurred", false, "ApplicationSetUpToDate", yes.to_owned()));
            all.push(("ResourcesUpToDate", true, "ApplicationSetUpToDate", yes.to_owned()));
        }
    }
    if tiphys_appset::is_rolling(set) {
        all.extend(seen.rollout.iter().flat_map(rolling));
    }
    let told = all.into_iter().map(|(kind, status, reason, message)| {
        let status = if status { "True" } else { "False" };
        let known = old.iter().find(|known| {
            let is = |field: &str, value: &str| known.str_at(&[field]) == Some(value);
            is("type", kind) && is("status", status) && is("reason", reason) && is("message", &message)
        });
        let since = known.and_then(|known| known.get("lastTransitionTime")).cloned();
        json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since.unwrap_or_else(|| now.to_string().into())})
    });
    let mut told: Vec<Value> = told.collect();
    if tiphys_appset::is_rolling(set) && seen.rollout.is_none() {
        // Where the rollout stands was not looked at: what was known of it still holds.
        let is_of_rollout =
            |known: &&Value| ROLLING.iter().any(|kind| known.str_at(&["type"]) == Some(*kind));
        told.extend(old.iter().filter(is_of_rollout).cloned());
    }
    told.sort_by(|a, b| a.str_at(&["type"]).cmp(&b.str_at(&["type"])));
    told
}

/// The conditions that only sets that roll have.
const ROLLING: [&str; 2] = ["RolloutProgressing", "InvalidRolloutConfig"];

/// The health that conditions mean (Argo CD, `ApplicationSetStatus.CalculateHealth`).
fn health(conditions: &[Value]) -> Value {
    let holds = |kind: &str| {
        let met = |condition: &&Value| {
            condition.str_at(&["type"]) == Some(kind) && condition.str_at(&["status"]) == Some("True")
        };
        Some(conditions.iter().find(met)?.str_at(&["message"]).unwrap_or_default())
    };
    let meanings = [
        ("ErrorOccurred", "Degraded"),
        ("RolloutProgressing", "Progressing"),
        ("ResourcesUpToDate", "Healthy"),
    ];
    let found = meanings.into_iter().find_map(|(kind, status)| Some((status, holds(kind)?)));
    let (status, message) = found.unwrap_or(("Unknown", "Waiting for health status to be determined"));
    json!({"status": status, "message": message})
}

fn rolling(rollout: &Rollout) -> [(&'static str, bool, &'static str, String); 2] {
    let progress = match rollout.step {
        Some(step) => (
            "RolloutProgressing",
            true,
            "ApplicationSetModified",
            format!("ApplicationSet is performing rollout of step {step}"),
        ),
        None => (
            "RolloutProgressing",
            false,
            "ApplicationSetRolloutComplete",
            "ApplicationSet Rollout has completed".to_owned(),
        ),
    };
    let config = if rollout.faults.is_empty() {
        (
            "InvalidRolloutConfig",
            false,
            "ApplicationSetValidRolloutConfig",
            "Rolling Sync Configured correctly".to_owned(),
        )
    } else {
        ("InvalidRolloutConfig", true, "ApplicationSetInvalidRolloutConfig", rollout.faults.join("; "))
    };
    [progress, config]
}

/// Whether a rollout stands elsewhere than the set's status says.
pub(crate) fn moves_on(set: &Value, rollout: &Rollout) -> bool {
    let now: Vec<Value> = rollout.apps.iter().map(tiphys_appset::AppRollout::to_value).collect();
    set.at(&["status", "applicationStatus"]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice) != now
}

/// Whether deletions that are held back were approved: by the annotation, after they were held.
pub(crate) fn is_approved(set: &Value) -> bool {
    let approved = set.annotation(names::DELETION_APPROVED).and_then(Time::parse);
    let conditions = set.at(&["status", "conditions"]).and_then(Value::as_array);
    let held = conditions.into_iter().flatten().find(|c| c.str_at(&["reason"]) == Some(HELD));
    let since = held.and_then(|held| Time::parse(held.str_at(&["lastTransitionTime"])?));
    matches!((approved, since), (Some(approved), Some(since)) if approved >= since)
}

/// Reason of the condition that tells of deletions held back.
pub(crate) const HELD: &str = "DeletionHeld";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_counts_only_for_what_was_held_before() {
        let set = |approved: &str, reason: &str| {
            json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": approved}},
                "status": {"conditions": [{"type": "ErrorOccurred", "reason": reason, "lastTransitionTime": "2026-01-02T00:00:00Z"}]}})
        };
        assert!(is_approved(&set("2026-01-02T00:00:00Z", HELD)));
        assert!(!is_approved(&set("2026-01-01T00:00:00Z", HELD)));
        assert!(!is_approved(&set("2026-01-03T00:00:00Z", "Other")));
    }

    #[test]
    fn conditions_mean_a_health_and_what_was_not_looked_at_still_holds() {
        let progressing = json!({"type": "RolloutProgressing", "status": "True", "reason": "ApplicationSetModified",
            "message": "step 1", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let steps = json!([{"matchExpressions": []}]);
        let set = json!({"spec": {"strategy": {"type": "RollingSync", "rollingSync": {"steps": steps}}},
            "status": {"conditions": [progressing]}});
        let status = after(
            &set,
            &SetObservation { generated: true, ..SetObservation::default() },
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(status["health"], json!({"status": "Progressing", "message": "step 1"}));
        let conditions = status["conditions"].as_array().expect("list");
        let kinds: Vec<&str> = conditions.iter().filter_map(|one| one.str_at(&["type"])).collect();
        assert_eq!(
            kinds,
            ["ErrorOccurred", "ParametersGenerated", "ResourcesUpToDate", "RolloutProgressing"]
        );
        let broken = after(&set, &SetObservation::broken("no"), Timestamp::UNIX_EPOCH);
        assert_eq!(broken["health"], json!({"status": "Degraded", "message": "no"}));
        let plain = after(
            &json!({}),
            &SetObservation { generated: true, ..SetObservation::default() },
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(plain["health"]["status"], "Healthy");
    }

    #[test]
    fn a_fault_of_the_engine_is_told_and_takes_nothing_away() {
        let set = json!({"status": {"resources": [{"name": "a"}], "resourcesCount": 1}});
        let status = after(&set, &SetObservation::broken("a fault of the engine"), Timestamp::UNIX_EPOCH);
        assert_eq!((&status["resources"], &status["resourcesCount"]), (&json!([{"name": "a"}]), &json!(1)));
        let conditions = status["conditions"].as_array().expect("list");
        let fault = conditions.iter().find(|c| c["type"] == "ErrorOccurred").expect("told");
        assert_eq!(
            (&fault["status"], &fault["reason"], &fault["message"]),
            (&json!("True"), &json!("UnknownError"), &json!("a fault of the engine"))
        );
    }

    #[test]
    fn a_failed_generator_keeps_resources_and_says_so() {
        let set = json!({"status": {"resources": [{"name": "a"}], "conditions": [
            {"type": "ErrorOccurred", "status": "True", "reason": "x", "message": "clone failed", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        let seen =
            SetObservation { fault: Some(SetError::new("x", "clone failed")), ..SetObservation::default() };
        let status = after(&set, &seen, Timestamp::UNIX_EPOCH);
        assert_eq!(status["resources"], json!([{"name": "a"}]));
        let shown: Vec<_> = status["conditions"]
            .as_array()
            .expect("list")
            .iter()
            .map(|c| {
                (
                    c["type"].as_str().unwrap_or(""),
                    c["status"].as_str().unwrap_or(""),
                    c["lastTransitionTime"].as_str().unwrap_or(""),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("ErrorOccurred", "True", "2026-01-01T00:00:00Z"),
                ("ParametersGenerated", "False", "1970-01-01T00:00:00Z"),
                ("ResourcesUpToDate", "False", "1970-01-01T00:00:00Z"),
            ]
        );
    }
}
