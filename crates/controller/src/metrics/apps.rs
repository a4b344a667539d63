//! What is measured of Applications. Of thousands few have changed between two times that somebody asks, and
//! only these are read again.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::{Mutex, MutexGuard};
use tiphys_appset::owner_of;
use tiphys_diag::sanitize::without_passwords;
use tiphys_model::{Application, HealthCode};
use tiphys_sync::SyncState;
use tiphys_value::Value;

use super::text::{family, labels_of, pairs_of};
use crate::{AppKey, home::Home, replicas::is_ours, status_writer::application_kind};

/// The rows of every Application, as they were when somebody asked last.
#[derive(Default)]
pub(crate) struct AppMetrics(Mutex<RowCache>);

#[derive(Default)]
struct RowCache {
    /// Whether `rows` are of all Applications, but for those that changed.
    is_whole: bool,
    rows: BTreeMap<AppKey, Rows>,
    changed: BTreeSet<AppKey>,
    /// The labels of Applications that are shown.
    labels: Vec<String>,
}

/// The rows of one Application, by their labels.
struct Rows {
    info: String,
    labels: String,
    conditions: Vec<String>,
    waits: BTreeMap<String, f64>,
    orphaned: Option<(String, f64)>,
    /// The ApplicationSet that it belongs to.
    set: Option<AppKey>,
}

impl AppMetrics {
    /// Notes that an Application came, changed or went.
    pub(crate) fn note(&self, key: &AppKey) {
        self.lock().changed.insert(key.clone());
    }

    /// Any Application may have changed.
    pub(crate) fn invalidate(&self) {
        self.lock().is_whole = false;
    }

    /// Writes what is measured of Applications; how many each ApplicationSet has.
    pub(super) fn write(&self, home: &Home, text: &mut String) -> BTreeMap<AppKey, usize> {
        let installation = home.installation();
        let wanted = &installation.argo.controller.metric_labels;
        let all = || {
            let keys = home.cache.keys_of(&application_kind()).into_iter();
            keys.map(|key| AppKey { namespace: key.namespace, name: key.name }).collect()
        };
        for key in self.take_changed(wanted, all) {
            let object = home.cache.peek(&key.of_application());
            let object = object.filter(|object| is_ours(&home.settings, object));
            let rows = object.and_then(|object| Rows::from_object(&object, wanted));
            let mut known = self.lock();
            match rows {
                Some(rows) => known.rows.insert(key, rows),
                None => known.rows.remove(&key),
            };
        }
        self.lock().write(text)
    }

    fn lock(&self) -> MutexGuard<'_, RowCache> {
        self.0.lock()
    }

    /// The Applications that have to be read again, as all if other labels are wanted.
    fn take_changed(&self, labels: &[String], all: impl Fn() -> BTreeSet<AppKey>) -> BTreeSet<AppKey> {
        let mut known = self.lock();
        if known.is_whole && known.labels == labels {
            return std::mem::take(&mut known.changed);
        }
        *known = RowCache { is_whole: true, labels: labels.to_vec(), ..RowCache::default() };
        all()
    }
}

impl Rows {
    fn from_object(object: &Value, labels: &[String]) -> Option<Self> {
        let app = Application::from_value(object).ok()?;
        let with =
            |kind: &'static str, value: String| labels_of(&[pairs_of(&app), vec![(kind, value)]].concat());
        let conditions = &app.status.conditions;
        let state = app.status.operation_state.clone().filter(|state| !state.phase.is_completed());
        let state = state.map(SyncState::from_operation_state);
        let mut waits = BTreeMap::new();
        for wait in state.iter().flat_map(SyncState::waits) {
            *waits.entry(with("kind", format!("{:?}", wait.kind))).or_default() += 1.0;
        }
        let orphaned = app.status.tiphys.as_ref().and_then(|ours| ours.pointer("/orphaned/count")?.as_f64());
        Some(Self {
            info: labels_of(&info_of(&app)),
            labels: labels_of(&app_labels(&app, labels)),
            conditions: conditions
                .iter()
                .map(|known| with("condition", format!("{:?}", known.kind)))
                .collect(),
            waits,
            orphaned: orphaned.map(|count| (labels_of(&pairs_of(&app)), count)),
            set: owner_of(object)
                .map(|name| AppKey { namespace: app.metadata.namespace.clone(), name: name.to_owned() }),
        })
    }
}

impl RowCache {
    fn write(&self, text: &mut String) -> BTreeMap<AppKey, usize> {
        let one = |labels: &String| (labels.clone(), 1.0);
        let rows = || self.rows.values();
        let info: Vec<_> = rows().map(|rows| one(&rows.info)).collect();
        family(text, "argocd_app_info", "gauge", "Applications and their state.", &info);
        if !self.labels.is_empty() {
            let labels: Vec<_> = rows().map(|rows| one(&rows.labels)).collect();
            family(text, "argocd_app_labels", "gauge", "Labels of Applications.", &labels);
        }
        let conditions: Vec<_> = rows().flat_map(|rows| rows.conditions.iter().map(one)).collect();
        family(text, "argocd_app_condition", "gauge", "Conditions of Applications.", &conditions);
        let orphaned: Vec<_> = rows().filter_map(|rows| rows.orphaned.clone()).collect();
        let help = "Objects of destination namespaces that nobody has.";
        family(text, "argocd_app_orphaned_resources_count", "gauge", help, &orphaned);
        let mut waits: Vec<_> = rows().flat_map(|rows| rows.waits.clone()).collect();
        waits.sort_by(|(one, _), (other, _)| one.cmp(other));
        family(text, "tiphys_app_waits", "gauge", "What running operations wait for.", &waits);
        let mut owned = BTreeMap::new();
        rows().filter_map(|rows| rows.set.clone()).for_each(|set| *owned.entry(set).or_default() += 1);
        owned
    }
}

fn info_of(app: &Application) -> Vec<(&'static str, String)> {
    let source = app.spec.effective_sources().into_iter().next().unwrap_or_default();
    let destination = &app.spec.destination;
    let operation = app.operation.as_ref().map_or("", |_| "sync");
    let more = vec![
        ("autosync_enabled", app.automated_policy().is_some().to_string()),
        ("repo", without_passwords(&source.repo_url).into_owned()),
        ("dest_server", destination.server.clone()),
        ("dest_namespace", destination.namespace.clone()),
        ("sync_status", app.status.sync.status.as_str().to_owned()),
        ("health_status", app.status.health.status.map_or("", HealthCode::as_str).to_owned()),
        ("operation", operation.to_owned()),
    ];
    [pairs_of(app), more].concat()
}

/// The labels of an Application that are wanted, named as Prometheus takes them; empty where it has none.
fn app_labels(app: &Application, wanted: &[String]) -> Vec<(String, String)> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let of = |label: &String| {
        let name = format!("label_{}", label.chars().map(plain).collect::<String>());
        (name, app.metadata.labels.get(label).cloned().unwrap_or_default())
    };
    let own = pairs_of(app).into_iter().map(|(name, value)| (name.to_owned(), value));
    own.chain(wanted.iter().map(of)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn labels_of_applications_have_names_that_prometheus_takes() {
        let app =
            json!({"metadata": {"name": "a", "namespace": "n", "labels": {"team/name": "x"}}, "spec": {}});
        let labels =
            app_labels(&Application::from_value(&app).unwrap(), &["team/name".into(), "tier".into()]);
        let expected =
            "{namespace=\"n\",name=\"a\",project=\"default\",label_team_name=\"x\",label_tier=\"\"}";
        assert_eq!(labels_of(&labels), expected);
    }

    #[test]
    fn who_did_not_change_is_not_read_again() {
        let metrics = AppMetrics::default();
        let key = |name: &str| AppKey { namespace: "n".into(), name: name.into() };
        let all = || BTreeSet::from([key("a"), key("b")]);
        assert_eq!(metrics.take_changed(&[], all), all());
        assert!(metrics.take_changed(&[], all).is_empty());
        metrics.note(&key("b"));
        assert_eq!(metrics.take_changed(&[], all), BTreeSet::from([key("b")]));
        assert_eq!(metrics.take_changed(&["team".into()], all), all(), "other labels are wanted");
        metrics.invalidate();
        assert_eq!(metrics.take_changed(&["team".into()], all), all());
    }
}
