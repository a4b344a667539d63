//! What of a Job has ended and is counted: every pod carries a finalizer until it is, so that none is lost or
//! counted twice (batch/v1 Job, "Job termination and cleanup", `uncountedTerminatedPods`).

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{
    indexes::{Indexes, index},
    policy,
};
use crate::object::{finalizers, without_finalizer};

/// The finalizer of a pod that is not counted yet.
pub(super) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// How many pods may be on their way to being counted.
const MOST_UNCOUNTED: usize = 500;

/// Whether a pod is still to be counted.
pub(super) fn is_tracked(pod: &Value) -> bool {
    finalizers(pod).any(|finalizer| finalizer == FINALIZER)
}

/// The pod without the finalizer.
pub(super) fn untracked(pod: &Value) -> Value {
    without_finalizer(pod, FINALIZER)
}

/// Whether a pod succeeded.
pub(super) fn has_succeeded(pod: &Value) -> bool {
    pod.str_at(&["status", "phase"]) == Some("Succeeded")
}

/// Whether a pod is taken for failed: one that is going is, unless the Job waits for its end.
pub(super) fn has_failed(job: &Value, pod: &Value) -> bool {
    pod.str_at(&["status", "phase"]) == Some("Failed")
        || (!waits_for_end(job) && pod.is_terminating() && !has_succeeded(pod))
}

/// Whether a Job replaces pods only once they have ended (`podReplacementPolicy: Failed`).
pub(super) fn waits_for_end(job: &Value) -> bool {
    match job.str_at(&["spec", "podReplacementPolicy"]) {
        Some(policy) => policy == "Failed",
        None => job.at(&["spec", "podFailurePolicy"]).is_some(),
    }
}

/// Counts of a Job.
pub(super) struct Tally {
    /// Pods, or indexes, that succeeded.
    pub succeeded: i64,
    /// Pods that failed and count as failures.
    pub failed: i64,
    /// The indexes that succeeded, if the Job has any.
    pub indexes: Option<Indexes>,
    counted: [i64; 2],
    uncounted: [Vec<String>; 2],
}

const KINDS: [&str; 2] = ["succeeded", "failed"];

impl Tally {
    /// Reads what the status counts, and adds what ended since. Pods that are on their way to being counted
    /// and have lost their finalizer are counted by that.
    pub(super) fn from_job(job: &Value, pods: &[Arc<Object>], is_indexed: bool) -> Self {
        let tracked: BTreeSet<_> = pods.iter().filter(|pod| is_tracked(pod)).map(|pod| pod.uid()).collect();
        let mut tally = Self {
            succeeded: 0,
            failed: 0,
            indexes: None,
            counted: KINDS.map(|kind| job.int_at(&["status", kind]).unwrap_or(0)),
            uncounted: KINDS.map(|kind| uids(job, kind)),
        };
        for (counted, uncounted) in tally.counted.iter_mut().zip(&mut tally.uncounted) {
            let before = uncounted.len();
            uncounted.retain(|uid| tracked.contains(uid.as_str()));
            *counted += (before - uncounted.len()) as i64;
        }
        let is_new = |kind: usize, pod: &Object| {
            is_tracked(pod) && !tally.uncounted[kind].iter().any(|uid| uid == pod.uid())
        };
        let succeeded = pods.iter().filter(|pod| has_succeeded(pod) && is_new(0, pod)).count() as i64;
        let failed = pods.iter().filter(|pod| has_failed(job, pod) && is_new(1, pod));
        let failed = failed.filter(|pod| policy::is_counted(job, pod)).count() as i64;
        tally.succeeded = tally.counted[0] + tally.uncounted[0].len() as i64 + succeeded;
        tally.failed = tally.counted[1] + tally.uncounted[1].len() as i64 + failed;
        if is_indexed {
            let mut indexes = Indexes::parse(job.str_at(&["status", "completedIndexes"]).unwrap_or_default());
            let ended = pods.iter().filter(|pod| has_succeeded(pod) && is_tracked(pod));
            indexes.extend(ended.filter_map(|pod| index(pod)));
            indexes.keep_below(job.int_at(&["spec", "completions"]).unwrap_or(0));
            tally.succeeded = indexes.count();
            tally.counted[0] = tally.succeeded;
            tally.indexes = Some(indexes);
        }
        tally
    }

    /// Puts the pods that may lose their finalizer on their way to being counted; returns those for which
    /// there was room. `all_failed` counts what has not ended as failed: the Job has.
    pub(super) fn take<'a>(
        &mut self,
        job: &Value,
        pods: impl Iterator<Item = &'a Arc<Object>>,
        all_failed: bool,
    ) -> Vec<&'a Arc<Object>> {
        let mut taken = Vec::new();
        for pod in pods.filter(|pod| is_tracked(pod)) {
            if self.uncounted.iter().map(Vec::len).sum::<usize>() >= MOST_UNCOUNTED {
                break;
            }
            taken.push(pod);
            let uid = pod.uid().to_owned();
            let known = |kind: usize| self.uncounted[kind].contains(&uid);
            if has_succeeded(pod) && !known(1) {
                if self.indexes.is_none() && !known(0) {
                    self.uncounted[0].push(uid);
                }
            } else if (has_failed(job, pod) || all_failed) && !known(1) && policy::is_counted(job, pod) {
                self.uncounted[1].push(uid);
            }
        }
        taken
    }

    /// Whether every pod that ended is counted.
    pub(super) fn is_settled(&self) -> bool {
        self.uncounted.iter().all(Vec::is_empty)
    }

    /// Writes the counts.
    pub(super) fn tell(&self, status: &mut Map<String, Value>) {
        let mut on_the_way = Map::new();
        for ((kind, counted), uncounted) in KINDS.into_iter().zip(self.counted).zip(&self.uncounted) {
            match counted {
                0 => status.remove(kind),
                counted => status.insert(kind.into(), counted.into()),
            };
            if !uncounted.is_empty() {
                on_the_way.insert(kind.into(), json!(uncounted));
            }
        }
        status.insert("uncountedTerminatedPods".into(), on_the_way.into());
        match self.indexes.as_ref().map(Indexes::to_string).filter(|indexes| !indexes.is_empty()) {
            Some(indexes) => status.insert("completedIndexes".into(), indexes.into()),
            None => status.remove("completedIndexes"),
        };
    }
}

fn uids(job: &Value, kind: &str) -> Vec<String> {
    let list = job.at(&["status", "uncountedTerminatedPods", kind]).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
