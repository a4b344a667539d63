//! What is measured, as somebody who asks for it gets it: of all parts of the engine at once.

use std::collections::BTreeMap;

use tiphys_cluster::LiveCache;
use tiphys_helm::generic_version;
use tiphys_source::GitRequests;
use tiphys_value::{ObjectExt, Value};

use super::{
    Counters, shadow,
    text::{family, head, labels_of, write_histogram},
};
use crate::{
    AppKey,
    destinations::ClusterStatus,
    engine::Engine,
    home::Home,
    queue::Queue,
    sets::{Sets, set_kind},
};

/// Everything that is measured.
pub(crate) fn exposition(engine: &Engine) -> String {
    let Engine { home, sources, metrics, .. } = engine;
    let mut text = String::new();
    let owned = metrics.apps.write(home, &mut text);
    sets_and_queues(&mut text, home, &engine.queue, &engine.sets, &owned);
    cluster_state(&mut text, &engine.clusters.statuses());
    if let Some(shadow) = &home.settings.shadow {
        shadow::shadow(&mut text, shadow);
    }
    if let Some(share) = &home.settings.share {
        share.write_metrics(&mut text);
    }
    let fetches = sources.repositories.fetcher().map(|fetcher| fetcher.git_requests());
    git(&mut text, &fetches.unwrap_or_default());
    let counters = metrics.engine.lock();
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
    let sent = home.cache.cluster().requests();
    let rows: Vec<_> =
        sent.iter().map(|(verb, n)| (labels_of(&[("method", (*verb).to_owned())]), *n as f64)).collect();
    family(&mut text, "tiphys_cluster_requests_total", "counter", help, &rows);
    let rows: Vec<_> = counters.requests.iter().map(|(labels, n)| (labels.clone(), *n as f64)).collect();
    let help = "Requests for objects of Applications.";
    family(&mut text, "argocd_app_k8s_request_total", "counter", help, &rows);
    let events = counters.events.iter();
    let rows: Vec<_> = events.map(|(repo, n)| (labels_of(&[("repo", repo.clone())]), *n as f64)).collect();
    family(&mut text, "argocd_webhook_requests_total", "counter", "Events of Git hosts.", &rows);
    looks(&mut text, &counters);
    text
}

fn sets_and_queues(
    text: &mut String,
    home: &Home,
    queue: &Queue,
    sets: &Sets,
    owned: &BTreeMap<AppKey, usize>,
) {
    let objects = home.cache.of_kind(&set_kind());
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
        objects.iter().map(|set| (labels_of(&[named(set), vec![status(set)]].concat()), 1.0)).collect();
    family(text, "argocd_appset_info", "gauge", "ApplicationSets.", &info);
    let owned = objects.iter().map(|set| {
        let count = owned.get(&AppKey::of_object(set)).copied().unwrap_or_default();
        (labels_of(&named(set)), count as f64)
    });
    let help = "Applications of ApplicationSets.";
    family(text, "argocd_appset_owned_applications", "gauge", help, &owned.collect::<Vec<_>>());
    let queues = [("app_reconciliation_queue", queue), ("applicationset", &sets.queue)];
    let rows = queues.map(|(name, queue)| (labels_of(&[("name", name.to_owned())]), queue.depth() as f64));
    family(text, "workqueue_depth", "gauge", "What is due and not begun.", &rows);
}

fn cluster_state(text: &mut String, clusters: &[ClusterStatus]) {
    let server = |seen: &ClusterStatus| ("server", seen.server.clone());
    let version = |seen: &ClusterStatus| {
        let version = seen.cluster.as_ref().map(|cluster| cluster.kube_version.clone());
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
    let answers = rows(&|seen| vec![server(seen), version(seen)], &|seen| f64::from(u8::from(seen.answers)));
    family(text, "argocd_cluster_connection_status", "gauge", help, &answers);
    let of = |ask: &dyn Fn(&LiveCache) -> usize| {
        rows(&|seen| vec![server(seen)], &|seen| {
            seen.cluster.as_ref().map_or(0.0, |cluster| ask(&cluster.cache) as f64)
        })
    };
    let objects = of(&LiveCache::len);
    let help = "Objects that are followed.";
    family(text, "argocd_cluster_api_resource_objects", "gauge", help, &objects);
    let kinds = of(&|cache| cache.cluster().discovery().kinds().count());
    family(text, "argocd_cluster_api_resources", "gauge", "Kinds that are served.", &kinds);
    let age = |seen: &ClusterStatus| seen.cluster.as_ref().map_or(0.0, |cluster| cluster.age().as_secs_f64());
    let ages = rows(&|seen| vec![server(seen)], &age);
    let help = "How long clusters have been followed, in seconds.";
    family(text, "argocd_cluster_cache_age_seconds", "gauge", help, &ages);
    let mut events = Vec::new();
    for seen in clusters {
        for (kind, n) in seen.cluster.iter().flat_map(|cluster| cluster.changes()) {
            let labels = [server(seen), ("group", kind.group), ("kind", kind.kind)];
            events.push((labels_of(&labels), n as f64));
        }
    }
    let help = "Changes of objects that were heard of.";
    family(text, "argocd_cluster_events_total", "counter", help, &events);
    let version = vec![(labels_of(&[("version", env!("CARGO_PKG_VERSION").to_owned())]), 1.0)];
    family(text, "tiphys_build_info", "gauge", "This program.", &version);
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
    use std::time::Duration;

    use super::*;
    use crate::metrics::Metrics;
    use tiphys_source::Histogram;

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
        looks(&mut text, &metrics.engine.lock());
        assert!(text.contains("argocd_app_reconcile_bucket{namespace=\"n\",dest_server=\"s\",le=\"0.5\"} 1"));
        assert!(
            text.contains("le=\"+Inf\"} 2") && text.contains("_count{namespace=\"n\",dest_server=\"s\"} 2")
        );
        assert_eq!(labels_of(&[("a", "b\"\n".into())]), "{a=\"b\\\"\\n\"}");
    }
}
