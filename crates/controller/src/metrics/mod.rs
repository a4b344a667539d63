//! What is measured, in Prometheus' text form: under Argo CD's names (Argo CD docs, "Metrics") where a
//! dashboard may ask for them, and a few of our own.

mod apps;
pub(crate) mod exposition;
mod shadow;
mod text;

use std::{collections::BTreeMap, time::Duration};

use apps::AppMetrics;
use parking_lot::Mutex;
pub(crate) use text::family;
use text::{labels_of, pairs_of};
use tiphys_diag::sanitize::without_passwords;
use tiphys_model::{Application, OperationState, time::elapsed};
use tiphys_source::Histogram;
use tiphys_sync::{ApplyMethod, Outcome, Verb};

/// Counters since the start.
#[derive(Default)]
pub(crate) struct Metrics {
    pub apps: AppMetrics,
    engine: Mutex<Counters>,
}

#[derive(Default)]
struct Counters {
    looks: BTreeMap<(String, String), Histogram>,
    set_looks: BTreeMap<(String, String), Histogram>,
    /// Requests for objects of Applications.
    requests: BTreeMap<String, u64>,
    syncs: BTreeMap<String, u64>,
    sync_seconds: BTreeMap<String, f64>,
    /// Events of Git hosts of repositories that are read, by the address that they name first.
    events: BTreeMap<String, u64>,
    /// How often sources were rendered, and how often a new commit was seen to leave them alone.
    rendered: u64,
    kept: u64,
    /// How often nothing else was to be looked at either.
    unmoved: u64,
}

/// What Argo CD calls a request.
fn verb_of(verb: &Verb) -> &'static str {
    match verb {
        Verb::Apply { method: ApplyMethod::Create | ApplyMethod::Recreate, .. } => "Create",
        Verb::Apply { method: ApplyMethod::Replace, .. } => "Update",
        Verb::Apply { .. } | Verb::RemoveFinalizer { .. } => "Patch",
        Verb::Delete { .. } => "Delete",
        Verb::Get => "Get",
    }
}

/// One thing that a look counts.
pub(crate) enum Count {
    /// Sources were rendered, or their last rendering still serves.
    Rendered { anew: bool },
    /// The sources of an Application at rest have not moved.
    Unmoved,
    /// A request for an object of an Application.
    Request { labels: String },
    /// An operation that ended.
    Sync {
        labels: String,
        /// The labels of its time, and the time in seconds.
        took: Option<(String, f64)>,
    },
}

impl Count {
    /// What became of requests for objects of an Application.
    pub(crate) fn requests(app: &Application, outcomes: &[Outcome]) -> impl Iterator<Item = Self> {
        outcomes.iter().map(|Outcome { action, result }| {
            let code = result.as_ref().map_or_else(|failure| failure.code.unwrap_or_default(), |_| 200);
            let more = vec![
                ("server", app.spec.destination.server.clone()),
                ("response_code", code.to_string()),
                ("verb", verb_of(&action.verb).to_owned()),
                ("resource_kind", action.task.key.kind.clone()),
                ("resource_namespace", action.task.key.namespace.clone()),
                ("dry_run", action.is_dry_run().to_string()),
            ];
            Self::Request { labels: labels_of(&[pairs_of(app), more].concat()) }
        })
    }

    /// An operation that ended.
    pub(crate) fn sync(app: &Application, state: &OperationState) -> Self {
        let dry_run = state.operation.sync.as_ref().is_some_and(|sync| sync.dry_run);
        let server = &app.spec.destination.server;
        let phase = format!("{:?}", state.phase);
        let shared = [pairs_of(app), vec![("dest_server", server.clone())]].concat();
        let labels = [shared.clone(), vec![("phase", phase), ("dry_run", dry_run.to_string())]].concat();
        let took = state.finished_at.map(|finished| {
            let took = elapsed(state.started_at.timestamp(), finished.timestamp());
            (labels_of(&shared), took.as_secs_f64())
        });
        Self::Sync { labels: labels_of(&labels), took }
    }
}

impl Metrics {
    /// Notes how long a look at an Application took.
    pub(crate) fn looked(&self, namespace: &str, server: String, took: Duration) {
        let mut counters = self.engine.lock();
        counters.looks.entry((namespace.to_owned(), server)).or_default().record(took);
    }

    /// Notes how long a look at an ApplicationSet took.
    pub(crate) fn looked_at_set(&self, namespace: &str, name: &str, took: Duration) {
        let mut counters = self.engine.lock();
        counters.set_looks.entry((namespace.to_owned(), name.to_owned())).or_default().record(took);
    }

    /// Counts what a look has found.
    pub(crate) fn count(&self, counts: Vec<Count>) {
        let mut counters = self.engine.lock();
        for count in counts {
            match count {
                Count::Rendered { anew: true } => counters.rendered += 1,
                Count::Rendered { anew: false } => counters.kept += 1,
                Count::Unmoved => counters.unmoved += 1,
                Count::Request { labels } => *counters.requests.entry(labels).or_default() += 1,
                Count::Sync { labels, took } => {
                    *counters.syncs.entry(labels).or_default() += 1;
                    if let Some((labels, seconds)) = took {
                        *counters.sync_seconds.entry(labels).or_default() += seconds;
                    }
                }
            }
        }
    }

    /// Notes an event of a Git host.
    pub(crate) fn told_of(&self, repository: &str) {
        let mut counters = self.engine.lock();
        *counters.events.entry(without_passwords(repository).into_owned()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn an_operation_counts_with_its_phase_and_time() {
        let app = Application::from_value(&json!({"metadata": {"name": "a", "namespace": "n"}, "spec": {},
            "status": {"operationState": {"phase": "Succeeded", "startedAt": "2026-01-01T00:00:00Z",
                "finishedAt": "2026-01-01T00:00:05Z"}}}))
        .unwrap();
        let metrics = Metrics::default();
        metrics.count(vec![Count::sync(&app, app.status.operation_state.as_ref().unwrap())]);
        let counters = metrics.engine.lock();
        assert!(counters.syncs.keys().all(|labels| labels.contains("phase=\"Succeeded\"")));
        assert_eq!(counters.syncs.values().copied().collect::<Vec<_>>(), [1]);
        assert_eq!(counters.sync_seconds.values().copied().collect::<Vec<_>>(), [5.0]);
    }
}
