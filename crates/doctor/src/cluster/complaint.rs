//! Whether a resource says of itself that it is not well.

use tiphys_value::{ObjectExt as _, Value};

use super::{conditions, items};

/// Conditions that are good news while they are true.
const GOOD: &[&str] = &[
    "Ready",
    "Available",
    "Synced",
    "Accepted",
    "Programmed",
    "ResolvedRefs",
    "Healthy",
    "Reconciled",
    "Succeeded",
];
/// Conditions that are bad news while they are true.
const BAD: &[&str] = &[
    "NotReady",
    "Degraded",
    "Stalled",
    "Failed",
    "InvalidRequest",
    "InvalidSpec",
    "ResolutionFailed",
    "ReconcileError",
    "Failure",
    "CatalogSourcesUnhealthy",
    "NodeDegraded",
    // Controllers of AWS's own services put their name before.
    "Terminal",
    "Recoverable",
    // Operators that are made of charts.
    "ReleaseFailed",
    "Irreconcilable",
    "Errored",
    "ErrorOccurred",
    "ReconcileFailed",
    "ReconciliationFailed",
    "SyncFailed",
];
/// Parts of the reasons by which any other condition that is false tells of a failure.
const FAILURES: &[&str] = &[
    "Fail",
    "Error",
    "Invalid",
    "NotFound",
    "Denied",
    "Unauthorized",
    "Forbidden",
    "Missing",
    "Refused",
    "Rejected",
    "Mismatch",
];
/// Parts of the names of conditions that are bad news while they are true, so that false is good news.
const NEGATIVE: &[&str] = &[
    "Fail",
    "Error",
    "Pressure",
    "Unavailable",
    "Unhealthy",
    "Degraded",
    "Invalid",
    "Conflict",
    "Missing",
    "Disrupt",
    "Drift",
    "Limited",
    "Paused",
    "Suspend",
    "Deprecated",
    "Warning",
    "Problem",
    "Blocked",
    "Remaining",
];
/// Conditions that tell what cannot be done with a resource that is well.
const ABILITIES: &[&str] = &["Upgradeable", "RetrievedUpdates", "Migratable", "Remediation", "Updates"];

/// The condition by which a resource says that it is not well.
pub(crate) fn complaint(live: &Value) -> Option<&Value> {
    // Of several the first that tells why counts.
    let says = |it: &&Value| it.str_at(&["message"]).is_some_and(|message| !message.is_empty());
    let complaints = || conditions(live).filter(|it| is_complaint(it));
    let summary = complaints().find(says).or_else(|| complaints().next());
    let told = |it: &&Value| match summary {
        // `Ready` may only say which other condition is false.
        Some(summary) => points_at(summary, it),
        None => true,
    };
    let failure = conditions(live).filter(|it| is_failure(it)).find(told).or(summary);
    failure.or_else(|| unready_part(live))
}

/// The condition about a part of a resource that has no summary: `AllReplicasReady`, `ClusterAvailable`.
fn unready_part(live: &Value) -> Option<&Value> {
    const ENDS: &[&str] = &["Ready", "Available", "Reachable", "Healthy"];
    /// Reasons of what somebody does without.
    const ON_PURPOSE: &[&str] =
        &["Disabled", "NotEnabled", "NotConfigured", "NotRequested", "Deleting", "Paused"];
    let text = |condition: &Value, key: &str| condition.str_at(&[key]).unwrap_or_default().to_owned();
    if conditions(live).any(|it| GOOD.contains(&text(it, "type").as_str())) {
        return None;
    }
    conditions(live).find(|it| {
        let (name, reason) = (text(it, "type"), text(it, "reason"));
        text(it, "status") == "False"
            && ENDS.iter().any(|end| name.ends_with(end))
            && !NEGATIVE.iter().chain(ABILITIES).any(|word| name.contains(word))
            && !ON_PURPOSE.iter().any(|word| reason.contains(word))
    })
}

/// What the replicas of an operator say about a resource, where each of them has a say.
pub(crate) fn error_of_pods(live: &Value) -> Option<&str> {
    let told = items(live, &["status", "byPod"]).flat_map(|pod| items(pod, &["errors"]));
    told.filter_map(|error| error.str_at(&["message"])).find(|message| !message.is_empty())
}

/// Whether the condition by which a resource says that it is not well names a failure, and not a state.
pub(crate) fn tells_of_failure(live: &Value) -> bool {
    let reason = complaint(live).and_then(|it| it.str_at(&["reason"])).unwrap_or_default();
    FAILURES.iter().any(|word| reason.contains(word))
}

/// Whether a condition says no more than the name of another one.
fn points_at(summary: &Value, other: &Value) -> bool {
    let (words, name) =
        (summary.str_at(&["message"]).unwrap_or_default(), other.str_at(&["type"]).unwrap_or_default());
    let is_told = other.str_at(&["message"]).is_some_and(|message| !message.is_empty());
    !name.is_empty()
        && is_told
        && words.contains(name)
        && words.len() <= name.len() + " is not ready: =False".len()
}

fn is_complaint(condition: &Value) -> bool {
    let text = |key: &str| condition.str_at(&[key]).unwrap_or_default();
    match text("status") {
        "True" => BAD.contains(&text("type").rsplit('.').next().unwrap_or_default()),
        "False" => GOOD.contains(&text("type")),
        _ => false,
    }
}

/// Words with which a message about a failure begins.
const FAILED_TO: &[&str] = &["cannot ", "can't ", "failed ", "error ", "unable ", "could not ", "invalid "];

/// Words by which another side is told to have refused, or not to have answered.
const REFUSED: &[&str] = &[
    "authentication required",
    "authentication failed",
    "unauthorized",
    "access denied",
    "accessdenied",
    "permission denied",
    "connection refused",
    "no such host",
    "i/o timeout",
    "x509:",
];

/// Operators invent conditions: what they mean is told by the reason, or by how the message begins.
fn is_failure(condition: &Value) -> bool {
    let text = |key: &str| condition.str_at(&[key]).unwrap_or_default();
    let message = text("message").to_ascii_lowercase();
    // What is not known yet, and why, is no failure unless the reason names one.
    let is_open = text("status") == "Unknown" && FAILURES.iter().any(|word| text("reason").contains(word));
    (text("status") == "False" || is_open)
        && (FAILURES.iter().any(|word| text("reason").contains(word))
            || FAILED_TO.iter().any(|word| message.starts_with(word))
            || REFUSED.iter().any(|word| message.contains(word)))
        && !NEGATIVE.iter().chain(ABILITIES).any(|word| text("type").contains(word))
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    fn has_complaint(name: &str, status: &str, reason: &str) -> bool {
        let condition = json!({"type": name, "status": status, "reason": reason});
        complaint(&json!({"status": {"conditions": [condition]}})).is_some()
    }

    #[test]
    fn conditions_of_any_operator() {
        assert!(has_complaint("Ready", "False", "Pending"));
        assert!(has_complaint("ACK.Recoverable", "True", ""));
        assert!(has_complaint("Irreconcilable", "True", "ReconcileError"));
        assert!(has_complaint("Launched", "False", "LaunchFailed"));
        assert!(has_complaint("ContinuousArchiving", "False", "ContinuousArchivingFailing"));
        assert!(!has_complaint("Active", "False", "ScalerNotActive"));
        assert!(!has_complaint("ReconcileFailed", "False", "NoError"));
        assert!(!has_complaint("Drifted", "False", "NotFound"));
        assert!(!has_complaint("Available", "True", "Error"));
        assert!(!has_complaint("LiveMigratable", "False", "DisksInvalid"));
        assert!(!has_complaint("Upgradeable", "False", "Error"));
    }

    #[test]
    fn a_summary_leads_to_what_it_sums_up() {
        let live = json!({"status": {"conditions": [
            {"type": "Ready", "status": "False", "reason": "Unready", "message": "ImagesReady=False"},
            {"type": "ImagesReady", "status": "False", "reason": "ImageNotFound", "message": "no image matches"},
        ]}});
        assert_eq!(complaint(&live).and_then(|it| it.str_at(&["type"])), Some("ImagesReady"));
    }
}
