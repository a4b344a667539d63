//! What all controllers of pods have in common.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use crate::{
    Awaited, Event, Key, Propagation, Reporter, View, Write,
    behaviour::{Pattern, runs_image},
    object::{is_condition_true, resources},
};

/// Letters that Kubernetes uses in generated names: no vowels, so that no word arises.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// How many pods a controller makes at once, as Kubernetes' own do (`BurstReplicas`).
pub(crate) const BURST: usize = 500;

/// A short name part that depends on nothing but its input, so that the same state gives the same
/// names in every run.
pub(crate) fn stable_suffix(input: &[&str], length: usize) -> String {
    let mut hash = Sha256::new();
    for part in input {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let digest = hash.finalize();
    digest.iter().take(length).map(|byte| ALPHABET[usize::from(*byte) % ALPHABET.len()] as char).collect()
}

/// The hash of a pod template, as it stands in `pod-template-hash`.
pub(crate) fn template_hash(template: &Value) -> String {
    stable_suffix(&[&template.to_string()], 10)
}

/// Whether a pod has ended.
pub(crate) fn is_finished(pod: &Value) -> bool {
    matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"))
}

/// Whether a pod counts: neither finished nor going.
pub(crate) fn is_active(pod: &Value) -> bool {
    !pod.is_terminating() && !is_finished(pod)
}

/// Whether a pod is Ready.
pub(crate) fn is_ready(pod: &Value) -> bool {
    !pod.is_terminating() && is_condition_true(pod, "Ready")
}

/// What to wait for where pods of an image do some work and none of them is Ready. Where there is no such
/// pod, somebody else does it, such as a cloud.
pub(crate) fn unready_pods(image: &Pattern, view: &View<'_>) -> Option<Awaited> {
    unready_of(view, |pod| runs_image(pod, image).then_some(image))
}

/// The same for pods of several images, each with the image that it does the work by.
pub(crate) fn unready_of<'p>(
    view: &View<'_>,
    image_of: impl Fn(&Value) -> Option<&'p Pattern>,
) -> Option<Awaited> {
    let pods = view.list(&resources::pods(), None);
    let mut own = pods.iter().filter_map(|pod| Some((pod, image_of(pod)?))).peekable();
    let (_, first) = *own.peek()?;
    (!own.any(|(pod, _)| is_ready(pod))).then(|| Awaited::ReadyPod(first.text().to_owned()))
}

/// How many of the pods satisfy something.
pub(crate) fn count(pods: &[Arc<Object>], satisfies: impl Fn(&Value) -> bool) -> i64 {
    pods.iter().filter(|pod| satisfies(pod)).count() as i64
}

/// Pods that have been Ready for `spec.minReadySeconds` of their owner.
#[derive(Clone, Copy)]
pub(crate) struct Availability {
    least: i64,
    now: Timestamp,
}

impl Availability {
    /// What an owner demands.
    pub(crate) fn from_owner(owner: &Value, now: Timestamp) -> Self {
        Self { least: owner.int_at(&["spec", "minReadySeconds"]).unwrap_or(0), now }
    }

    /// Whether a pod is available.
    pub(crate) fn has(&self, pod: &Value) -> bool {
        is_ready(pod) && self.missing(pod) <= 0
    }

    /// Until when one of the pods becomes available that is only Ready.
    pub(crate) fn next(&self, pods: &[Arc<Object>]) -> Option<Duration> {
        let missing = pods.iter().filter(|pod| is_ready(pod)).map(|pod| self.missing(pod));
        missing
            .filter(|seconds| *seconds > 0)
            .min()
            .map(|seconds| Duration::from_secs(seconds.unsigned_abs()))
    }

    /// Seconds that a Ready pod still lacks.
    fn missing(&self, pod: &Value) -> i64 {
        if self.least == 0 {
            return 0;
        }
        let since = ready_since(pod).unwrap_or(self.now);
        self.least - (self.now.as_second() - since.as_second())
    }
}

/// When a pod became Ready, or ceased to be.
pub(crate) fn ready_since(pod: &Value) -> Option<Timestamp> {
    let conditions = pod.at(&["status", "conditions"]).and_then(Value::as_array)?;
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready")?;
    ready.str_at(&["lastTransitionTime"])?.parse().ok()
}

/// The order in which surplus pods go: those on no node, not started, not Ready, cheap to delete, Ready for
/// the shortest time, restarted most often, youngest.
pub(crate) fn going_first(pod: &Arc<Object>) -> impl Ord + use<> {
    let phase = match pod.str_at(&["status", "phase"]) {
        Some("Running") => 2,
        Some("Unknown") => 1,
        _ => 0,
    };
    let is_placed = pod.str_at(&["spec", "nodeName"]).is_some_and(|node| !node.is_empty());
    let cost: i32 = pod
        .annotation("controller.kubernetes.io/pod-deletion-cost")
        .and_then(|c| c.parse().ok())
        .unwrap_or(0);
    let since = ready_since(pod).map_or(0, |at| -at.as_second());
    let statuses = pod.at(&["status", "containerStatuses"]).and_then(Value::as_array);
    let restarts: i64 = statuses.into_iter().flatten().filter_map(|s| s.int_at(&["restartCount"])).sum();
    let created = pod.str_at(&["metadata", "creationTimestamp"]).unwrap_or_default().to_owned();
    (
        is_placed,
        phase,
        is_ready(pod),
        cost,
        since,
        -restarts,
        std::cmp::Reverse(created),
        pod.name().to_owned(),
    )
}

/// Deletes a pod that was seen.
pub(crate) fn delete_pod(pod: &Value) -> Write {
    delete(resources::pods(), pod)
}

/// Deletes an object that was seen, and after it what it owns.
pub(crate) fn delete(resource: tiphys_value::GroupVersionResource, object: &Value) -> Write {
    Write::Delete {
        resource,
        key: Key::from_object(object),
        uid: object.uid().to_owned(),
        propagation: Propagation::Background,
    }
}

/// `Created pod: …`.
pub(crate) fn created(owner: &Value, controller: &'static str, pod: &str) -> Write {
    Event::normal(owner, Reporter::Controller(controller), "SuccessfulCreate", format!("Created pod: {pod}"))
        .into()
}

/// `Deleted pod: …`.
pub(crate) fn deleted(owner: &Value, controller: &'static str, pod: &str) -> Write {
    Event::normal(owner, Reporter::Controller(controller), "SuccessfulDelete", format!("Deleted pod: {pod}"))
        .into()
}

/// `Error creating: …`.
pub(crate) fn failed_create(owner: &Value, controller: &'static str, why: &str) -> Write {
    Event::warning(owner, Reporter::Controller(controller), "FailedCreate", format!("Error creating: {why}"))
        .into()
}

/// A number of pods given as a count or as a percentage of `total`, rounded up or down
/// (Deployment `maxSurge` rounds up, `maxUnavailable` down).
pub(crate) fn count_or_percent(value: Option<&Value>, total: i64, default: i64, round_up: bool) -> i64 {
    match value {
        Some(Value::Number(number)) => number.as_i64().unwrap_or(default),
        Some(Value::String(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            let hundredths = percent.saturating_mul(total);
            if round_up { hundredths.saturating_add(99) / 100 } else { hundredths / 100 }
        }
        _ => default,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_depend_on_their_input_alone() {
        assert_eq!(stable_suffix(&["a", "b"], 5), stable_suffix(&["a", "b"], 5));
        assert_ne!(stable_suffix(&["a", "b"], 5), stable_suffix(&["ab", ""], 5));
    }

    #[test]
    fn percentages_round_as_deployments_do() {
        assert_eq!(count_or_percent(Some(&json!("25%")), 3, 0, true), 1);
        assert_eq!(count_or_percent(Some(&json!("25%")), 3, 0, false), 0);
        assert_eq!(count_or_percent(Some(&json!(2)), 3, 0, false), 2);
        assert_eq!(count_or_percent(None, 3, 1, false), 1);
    }
}
