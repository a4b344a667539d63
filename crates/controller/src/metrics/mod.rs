//! What is measured, in Prometheus' text form: under Argo CD's names (Argo CD docs, "Metrics") where a
//! dashboard may ask for them, and a few of our own.

mod apps;
mod shadow;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tiphys_cluster::LiveCache;
use tiphys_diag::sanitize::without_passwords;
use tiphys_helm::generic_version;
use tiphys_model::{Application, OperationState, time::elapsed};
use tiphys_source::{GitRequests, Histogram};
use tiphys_sync::{ApplyMethod, Outcome, Verb};
use tiphys_value::{ObjectExt, Value};

use crate::{AppKey, destinations::ClusterStatus, engine::Engine, sets::set_kind};

pub(crate) use apps::AppMetrics;

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

fn write_histogram(text: &mut String, name: &str, base: &[(&str, String)], took: &Histogram) {
    let with = |bound: String| labels_of(&[base.to_vec(), vec![("le", bound)]].concat());
    for (bound, count) in Histogram::BOUNDS.iter().zip(&took.within) {
        let _ = writeln!(text, "{name}_bucket{} {count}", with(bound.to_string()));
    }
    let _ = writeln!(text, "{name}_bucket{} {}", with("+Inf".to_owned()), took.count);
    let _ = writeln!(text, "{name}_sum{} {}", labels_of(base), took.seconds);
    let _ = writeln!(text, "{name}_count{} {}", labels_of(base), took.count);
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

impl Metrics {
    /// Notes how long a look at an Application took.
    pub fn looked(&self, namespace: &str, server: String, took: Duration) {
        let mut counters = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        counters.looks.entry((namespace.to_owned(), server)).or_default().record(took);
    }

    /// Notes how long a look at an ApplicationSet took.
    pub fn looked_at_set(&self, namespace: &str, name: &str, took: Duration) {
        let mut counters = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        counters.set_looks.entry((namespace.to_owned(), name.to_owned())).or_default().record(took);
    }

    /// Notes what became of requests for objects of an Application.
    pub fn acted(&self, app: &Application, outcomes: &[Outcome]) {
        let mut counters = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        for Outcome { action, result } in outcomes {
            let code = result.as_ref().map_or_else(|failure| failure.code.unwrap_or_default(), |_| 200);
            let more = vec![
                ("server", app.spec.destination.server.clone()),
                ("response_code", code.to_string()),
                ("verb", verb_of(&action.verb).to_owned()),
                ("resource_kind", action.task.key.kind.clone()),
                ("resource_namespace", action.task.key.namespace.clone()),
                ("dry_run", action.is_dry_run().to_string()),
            ];
            *counters.requests.entry(labels_of(&[pairs_of(app), more].concat())).or_default() += 1;
        }
    }

    /// Notes that sources were rendered, or that their last rendering still serves.
    pub fn rendered(&self, anew: bool) {
        let mut counters = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = if anew { &mut counters.rendered } else { &mut counters.kept };
        *counter += 1;
    }

    /// Notes that the sources of an Application at rest have not moved.
    pub fn unmoved(&self) {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner).unmoved += 1;
    }

    /// Notes an event of a Git host.
    pub fn told_of(&self, repository: &str) {
        let mut counters = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        *counters.events.entry(without_passwords(repository).into_owned()).or_default() += 1;
    }

    /// Notes an operation that ended.
    pub fn ended(&self, app: &Application, state: &OperationState) {
        let dry_run = state.operation.sync.as_ref().is_some_and(|sync| sync.dry_run);
        let server = &app.spec.destination.server;
        let phase = format!("{:?}", state.phase);
        let shared = [pairs_of(app), vec![("dest_server", server.clone())]].concat();
        let labels = [shared.clone(), vec![("phase", phase), ("dry_run", dry_run.to_string())]].concat();
        let mut counters = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        *counters.syncs.entry(labels_of(&labels)).or_default() += 1;
        if let Some(finished) = state.finished_at {
            let took = elapsed(state.started_at.timestamp(), finished.timestamp()).as_secs_f64();
            *counters.sync_seconds.entry(labels_of(&shared)).or_default() += took;
        }
    }
}

fn pairs_of(app: &Application) -> Vec<(&'static str, String)> {
    vec![
        ("namespace", app.metadata.namespace.clone()),
        ("name", app.metadata.name.clone()),
        ("project", app.project().to_owned()),
    ]
}

/// `{a="b",c="d"}`.
fn labels_of<N: AsRef<str>>(pairs: &[(N, String)]) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let all: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}=\"{}\"", name.as_ref(), escaped(value))).collect();
    format!("{{{}}}", all.join(","))
}

/// One family of metrics.
fn family(text: &mut String, name: &str, kind: &str, help: &str, rows: &[(String, f64)]) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in rows {
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

impl Engine {
    /// Everything that is measured.
    pub(crate) fn exposition(&self) -> String {
        let mut text = String::new();
        let owned = self.applications(&mut text);
        self.sets_and_queues(&mut text, &owned);
        self.cluster_state(&mut text);
        if let Some(shadow) = &self.settings.shadow {
            shadow::shadow(&mut text, shadow);
        }
        let fetches = self.repositories.fetcher().map(|fetcher| fetcher.git_requests());
        git(&mut text, &fetches.unwrap_or_default());
        let counters = self.metrics.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let syncs: Vec<_> = counters.syncs.iter().map(|(labels, n)| (labels.clone(), *n as f64)).collect();
        family(&mut text, "argocd_app_sync_total", "counter", "Operations that ended.", &syncs);
        let seconds: Vec<_> = counters.sync_seconds.iter().map(|(labels, s)| (labels.clone(), *s)).collect();
        let help = "Time that operations took, in seconds.";
        family(&mut text, "argocd_app_sync_duration_seconds_total", "counter", help, &seconds);
        let help = "Looks at sources: rendered anew, or seen to be what was rendered last; unmoved if the Application was at \
                    rest and is not compared either.";
        let rows = [("anew", counters.rendered), ("kept", counters.kept), ("unmoved", counters.unmoved)];
        let rows = rows.map(|(how, n)| (labels_of(&[("how", how.to_owned())]), n as f64));
        family(&mut text, "tiphys_app_renders_total", "counter", help, &rows);
        let help = "Requests that were sent to the cluster.";
        let sent = self.cache.cluster().requests();
        let rows: Vec<_> =
            sent.iter().map(|(verb, n)| (labels_of(&[("method", (*verb).to_owned())]), *n as f64)).collect();
        family(&mut text, "tiphys_cluster_requests_total", "counter", help, &rows);
        let rows: Vec<_> = counters.requests.iter().map(|(labels, n)| (labels.clone(), *n as f64)).collect();
        let help = "Requests for objects of Applications.";
        family(&mut text, "argocd_app_k8s_request_total", "counter", help, &rows);
        let events = counters.events.iter();
        let rows: Vec<_> =
            events.map(|(repo, n)| (labels_of(&[("repo", repo.clone())]), *n as f64)).collect();
        family(&mut text, "argocd_webhook_requests_total", "counter", "Events of Git hosts.", &rows);
        looks(&mut text, &counters);
        text
    }

    fn sets_and_queues(&self, text: &mut String, owned: &BTreeMap<AppKey, usize>) {
        let sets = self.cache.of_kind(&set_kind());
        let named =
            |set: &Value| vec![("namespace", set.namespace().to_owned()), ("name", set.name().to_owned())];
        let status = |set: &Value| {
            let conditions = set.at(&["status", "conditions"]).and_then(Value::as_array);
            let current = conditions
                .into_iter()
                .flatten()
                .find(|condition| condition.str_at(&["type"]) == Some("ResourcesUpToDate"));
            let status = current.and_then(|condition| condition.str_at(&["status"]));
            (
                "resource_update_status",
                if status == Some("True") { "ApplicationSetUpToDate" } else { "" }.to_owned(),
            )
        };
        let info: Vec<_> =
            sets.iter().map(|set| (labels_of(&[named(set), vec![status(set)]].concat()), 1.0)).collect();
        family(text, "argocd_appset_info", "gauge", "ApplicationSets.", &info);
        let owned = sets.iter().map(|set| {
            let count = owned.get(&AppKey::of_object(set)).copied().unwrap_or_default();
            (labels_of(&named(set)), count as f64)
        });
        let help = "Applications of ApplicationSets.";
        family(text, "argocd_appset_owned_applications", "gauge", help, &owned.collect::<Vec<_>>());
        let queues = [("app_reconciliation_queue", &self.queue), ("applicationset", &self.sets.queue)];
        let rows =
            queues.map(|(name, queue)| (labels_of(&[("name", name.to_owned())]), queue.depth() as f64));
        family(text, "workqueue_depth", "gauge", "What is due and not begun.", &rows);
    }

    fn cluster_state(&self, text: &mut String) {
        let clusters = self.places.seen();
        let server = |seen: &ClusterStatus| ("server", seen.server.clone());
        let version = |seen: &ClusterStatus| {
            let version = seen.place.as_ref().map(|place| place.kube_version.clone());
            let generic = version.and_then(|version| generic_version(&version).ok());
            ("k8s_version", generic.map_or_else(String::new, |version| format!("v{version}")))
        };
        let rows = |labels: &dyn Fn(&ClusterStatus) -> Vec<(&'static str, String)>,
                    value: &dyn Fn(&ClusterStatus) -> f64| {
            clusters.iter().map(|seen| (labels_of(&labels(seen)), value(seen))).collect::<Vec<_>>()
        };
        let named = |seen: &ClusterStatus| vec![server(seen), version(seen), ("name", seen.name.clone())];
        family(text, "argocd_cluster_info", "gauge", "Clusters.", &rows(&named, &|_| 1.0));
        let help = "Whether clusters answer.";
        let answers =
            rows(&|seen| vec![server(seen), version(seen)], &|seen| f64::from(u8::from(seen.answers)));
        family(text, "argocd_cluster_connection_status", "gauge", help, &answers);
        let of = |ask: &dyn Fn(&LiveCache) -> usize| {
            rows(&|seen| vec![server(seen)], &|seen| {
                seen.place.as_ref().map_or(0.0, |place| ask(&place.cache) as f64)
            })
        };
        let objects = of(&LiveCache::len);
        let help = "Objects that are followed.";
        family(text, "argocd_cluster_api_resource_objects", "gauge", help, &objects);
        let kinds = of(&|cache| cache.cluster().discovery().kinds().count());
        family(text, "argocd_cluster_api_resources", "gauge", "Kinds that are served.", &kinds);
        let age = |seen: &ClusterStatus| seen.place.as_ref().map_or(0.0, |place| place.age().as_secs_f64());
        let ages = rows(&|seen| vec![server(seen)], &age);
        let help = "How long clusters have been followed, in seconds.";
        family(text, "argocd_cluster_cache_age_seconds", "gauge", help, &ages);
        let mut events = Vec::new();
        for seen in &clusters {
            for (kind, n) in seen.place.iter().flat_map(|place| place.changes()) {
                let labels = [server(seen), ("group", kind.group), ("kind", kind.kind)];
                events.push((labels_of(&labels), n as f64));
            }
        }
        let help = "Changes of objects that were heard of.";
        family(text, "argocd_cluster_events_total", "counter", help, &events);
        let version = vec![(labels_of(&[("version", env!("CARGO_PKG_VERSION").to_owned())]), 1.0)];
        family(text, "tiphys_build_info", "gauge", "This program.", &version);
    }
}

fn looks(text: &mut String, counters: &Counters) {
    let name = "argocd_app_reconcile";
    head(text, name, "How long looks at Applications took.");
    for ((namespace, server), histogram) in &counters.looks {
        let base = [("namespace", namespace.clone()), ("dest_server", server.clone())];
        write_histogram(text, name, &base, histogram);
    }
    let name = "argocd_appset_reconcile";
    head(text, name, "How long looks at ApplicationSets took.");
    for ((namespace, set), histogram) in &counters.set_looks {
        write_histogram(text, name, &[("namespace", namespace.clone()), ("name", set.clone())], histogram);
    }
}

/// The head of a histogram.
fn head(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram");
}

/// What was asked of Git hosts, by repository.
fn git(text: &mut String, fetches: &BTreeMap<String, GitRequests>) {
    let of = |repo: &String| [("repo", repo.clone()), ("request_type", "fetch".to_owned())];
    let all = fetches.iter().map(|(repo, asked)| (labels_of(&of(repo)), asked.took.count as f64));
    family(text, "argocd_git_request_total", "counter", "Fetches from Git hosts.", &all.collect::<Vec<_>>());
    let failed =
        fetches.iter().map(|(repo, asked)| (labels_of(&[("repo", repo.clone())]), asked.failed as f64));
    let failed: Vec<_> = failed.collect();
    family(text, "argocd_git_fetch_fail_total", "counter", "Fetches that failed.", &failed);
    let name = "argocd_git_request_duration_seconds";
    head(text, name, "How long Git hosts took.");
    for (repo, asked) in fetches {
        write_histogram(text, name, &of(repo), &asked.took);
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
        metrics.ended(&app, app.status.operation_state.as_ref().unwrap());
        let counters = metrics.engine.lock().unwrap();
        assert!(counters.syncs.keys().all(|labels| labels.contains("phase=\"Succeeded\"")));
        assert_eq!(counters.syncs.values().copied().collect::<Vec<_>>(), [1]);
        assert_eq!(counters.sync_seconds.values().copied().collect::<Vec<_>>(), [5.0]);
    }

    #[test]
    fn fetches_are_counted_by_repository() {
        let took = Histogram { count: 2, seconds: 3.3, within: [0, 1, 1, 1, 2, 2] };
        let asked = GitRequests { took, failed: 1 };
        let mut text = String::new();
        git(&mut text, &BTreeMap::from([("https://g/a".to_owned(), asked)]));
        let labels = "{repo=\"https://g/a\",request_type=\"fetch\"}";
        assert!(text.contains(&format!("argocd_git_request_total{labels} 2")), "{text}");
        assert!(text.contains(&format!("argocd_git_request_duration_seconds_sum{labels} 3.3")), "{text}");
        assert!(text.contains("argocd_git_fetch_fail_total{repo=\"https://g/a\"} 1"), "{text}");
    }

    #[test]
    fn histograms_are_cumulative_and_labels_are_escaped() {
        let metrics = Metrics::default();
        metrics.looked("n", "s".into(), Duration::from_millis(300));
        metrics.looked("n", "s".into(), Duration::from_secs(60));
        let mut text = String::new();
        looks(&mut text, &metrics.engine.lock().unwrap());
        assert!(text.contains("argocd_app_reconcile_bucket{namespace=\"n\",dest_server=\"s\",le=\"0.5\"} 1"));
        assert!(
            text.contains("le=\"+Inf\"} 2") && text.contains("_count{namespace=\"n\",dest_server=\"s\"} 2")
        );
        assert_eq!(labels_of(&[("a", "b\"\n".into())]), "{a=\"b\\\"\\n\"}");
    }
}
