//! When nothing moves any more.

use std::time::Duration;

use jiff::Timestamp;
use tiphys_cluster::LiveCache;
use tiphys_sync::WaitKind;
use tiphys_value::{GroupKind, ObjectExt, Value};
use tokio::time::Instant;

use super::app_rows::Row;

/// How long what is told of the Applications stays the same before they count as settled.
const SETTLED: Duration = Duration::from_secs(3);

/// How long before that is taken to be the end.
pub(crate) const QUIET: Duration = Duration::from_secs(15);

/// How long before a person who watches is told why.
pub(crate) const QUIET_FOR_A_PERSON: Duration = Duration::from_secs(6);

/// Since when nothing moves. What it says holds from one look to the next, so that nobody takes for the end
/// what was not yet rest for who puts things in place then.
pub(crate) struct Stillness {
    seen: Vec<Row>,
    since: Instant,
    still_for: Duration,
    /// How long a rest is the end.
    quiet: Duration,
    /// The time on the cluster's clock at the last look.
    now: Timestamp,
}

impl Stillness {
    /// From now on, where so long a rest is the end.
    pub(crate) fn with_quiet(quiet: Duration) -> Self {
        Self {
            quiet,
            seen: Vec::new(),
            since: Instant::now(),
            still_for: Duration::ZERO,
            now: Timestamp::UNIX_EPOCH,
        }
    }

    /// Takes up what is to be told now; `now` is the time on the cluster's clock.
    pub(crate) fn observe(&mut self, rows: &[Row], now: Timestamp) {
        self.now = now;
        let same = self.seen.len() == rows.len()
            && self.seen.iter().zip(rows).all(|(seen, row)| seen.at_rest(now) == row.at_rest(now));
        if !same {
            self.since = Instant::now();
        }
        self.seen = rows.to_vec();
        self.still_for = self.since.elapsed();
    }

    /// Something was done that will move things.
    pub(crate) fn reset_timer(&mut self) {
        self.since = Instant::now();
        self.still_for = Duration::ZERO;
    }

    /// How long nothing had moved at the last look.
    pub(crate) fn still_for(&self) -> Duration {
        self.still_for
    }

    /// How long until things count as settled, and how long until that counts as the end, if nothing moves
    /// until then.
    pub(crate) fn next_look(&self) -> Option<Duration> {
        [SETTLED, self.quiet].into_iter().find(|at| self.still_for < *at).map(|at| at - self.still_for)
    }

    /// Whether things have come to rest for the moment.
    pub(crate) fn is_settled(&self) -> bool {
        self.still_for >= SETTLED
    }

    /// Whether nothing has moved for long, and nothing is known to be on its way: no attempt is to be
    /// repeated that has not failed again and again, no program is starting or at work on something that
    /// ends, or has still to run for a while to count, in any of the clusters.
    pub(crate) fn is_quiet(&self, caches: &[LiveCache]) -> bool {
        let all = |group: &str, kind: &str| {
            let kind = GroupKind::new(group, kind);
            caches.iter().flat_map(|cache| cache.of_kind(&kind)).collect::<Vec<_>>()
        };
        self.still_for >= self.quiet
            && !self.seen.iter().any(|row| is_moving(row, self.now))
            && !all("", "Pod").iter().any(|pod| is_busy(pod))
            && !["Deployment", "StatefulSet", "DaemonSet"]
                .iter()
                .any(|kind| all("apps", kind).iter().any(|workload| is_maturing(workload)))
    }
}

/// Whether an operation is at work, or waits for nothing but time.
fn is_moving(row: &Row, now: Timestamp) -> bool {
    let is_at_work = row.phase.is_some_and(|phase| !phase.is_completed()) && row.waits.is_empty();
    let is_due = row.waits.iter().any(|wait| matches!(wait.kind, WaitKind::Retry | WaitKind::WaveDelay));
    is_at_work || is_due && !row.fails_again_and_again(now)
}

/// Whether a pod's program runs and is not where it should be: not ready yet, or to end one day.
fn is_busy(pod: &Value) -> bool {
    let statuses = |field: &str| {
        let list = pod.at(&["status", field]).and_then(Value::as_array);
        list.into_iter().flatten().collect::<Vec<_>>()
    };
    let is_running = |status: &&Value| status.at(&["state", "running"]).is_some();
    let ends = pod.owner_references().iter().any(|owner| owner.kind() == "Job");
    statuses("initContainerStatuses")
        .iter()
        .chain(&statuses("containerStatuses"))
        .filter(|status| is_running(status))
        .any(|status| ends || status.get("ready") != Some(&Value::Bool(true)))
}

/// Whether pods of a workload are ready and have not been for as long as it asks (`minReadySeconds`).
fn is_maturing(workload: &Value) -> bool {
    let count = |field: &str| workload.at(&["status", field]).and_then(Value::as_u64).unwrap_or_default();
    let asks =
        workload.at(&["spec", "minReadySeconds"]).and_then(Value::as_u64).is_some_and(|seconds| seconds > 0);
    asks && (count("readyReplicas") > count("availableReplicas")
        || count("numberReady") > count("numberAvailable"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[tokio::test(start_paused = true)]
    async fn rest_begins_with_a_look() {
        let mut stillness = Stillness::with_quiet(QUIET);
        stillness.observe(&[], Timestamp::UNIX_EPOCH);
        tokio::time::advance(SETTLED).await;
        assert!(!stillness.is_settled(), "nobody has looked since");
        stillness.observe(&[], Timestamp::UNIX_EPOCH);
        assert!(stillness.is_settled() && !stillness.is_quiet(&[]));
        tokio::time::advance(QUIET).await;
        stillness.observe(&[], Timestamp::UNIX_EPOCH);
        assert!(stillness.is_quiet(&[]));
        stillness.reset_timer();
        assert!(!stillness.is_settled());
    }

    #[test]
    fn programs_that_run_and_are_not_ready_are_on_their_way() {
        let pod = |kind: &str, state: &str, ready: bool| {
            json!({"metadata": {"ownerReferences": [{"kind": kind}]},
                "status": {"containerStatuses": [{"ready": ready, "state": {state: {}}}]}})
        };
        assert!(is_busy(&pod("ReplicaSet", "running", false)));
        assert!(!is_busy(&pod("ReplicaSet", "running", true)));
        assert!(is_busy(&pod("Job", "running", true)));
        assert!(!is_busy(&pod("Job", "terminated", false)));
        assert!(!is_busy(&pod("ReplicaSet", "waiting", false)));
    }

    #[test]
    fn pods_that_have_still_to_stay_ready_are_on_their_way() {
        let workload = |seconds: u64, ready: u64, available: u64| json!({"spec": {"minReadySeconds": seconds}, "status": {"readyReplicas": ready, "availableReplicas": available}});
        assert!(is_maturing(&workload(30, 2, 1)));
        assert!(!is_maturing(&workload(30, 1, 1)));
        assert!(!is_maturing(&workload(0, 2, 1)));
        assert!(is_maturing(&json!({"spec": {"minReadySeconds": 5}, "status": {"numberReady": 3}})));
    }
}
