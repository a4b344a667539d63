//! From a change in a cluster to the Applications that it concerns.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tiphys_cluster::Change;
use tiphys_value::{ObjectExt, Value};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::Instant,
};

use crate::{
    AppKey, Refresh,
    clusters::is_cluster_secret,
    credentials,
    destinations::{ConnectedCluster, Follower},
    engine::Engine,
    installation::Installation,
    operation_field,
    project_objects::{project_kind, project_name},
    projects::may_free,
    safeguards::competing_engines,
    status_writer::application_kind,
};

/// Changes of a set's Applications are gathered for so long.
const GATHER_SETS: Duration = Duration::from_millis(50);

/// Follows what the engine's own cluster serves.
pub(crate) async fn follow_home(engine: Arc<Engine>) {
    loop {
        engine.clusters.home().new_kinds().await;
        engine.add_all(Refresh::LiveState);
    }
}

/// Takes changes of the live state to the Applications that they concern.
pub(crate) async fn route(engine: Arc<Engine>, mut changes: Receiver<Arc<Change>>) {
    loop {
        match changes.recv().await {
            Ok(change) => engine.take(&change),
            Err(RecvError::Lagged(_)) => {
                engine.metrics.apps.invalidate();
                engine.add_all(Refresh::LiveState);
            }
            Err(RecvError::Closed) => return,
        }
    }
}

impl Engine {
    /// Takes a change in the engine's own cluster to the Applications that it concerns.
    fn take(&self, change: &Change) {
        self.clusters.home().count_change(&change.key);
        self.sets.take(change, GATHER_SETS);
        if change.key.group_kind() == application_kind() {
            let key = AppKey { namespace: change.key.namespace.clone(), name: change.key.name.clone() };
            self.metrics.apps.note(&key);
            if let Some(new) = &change.new {
                self.apps.written(&key, new.resource_version());
            }
            if let (Some(old), Some(new)) = (&change.old, &change.new)
                && let Some(manager) = competing_engines::writer(old, new)
                && self.home.settings.shadow.is_none()
            {
                self.apps.note_rival(&key, manager);
                self.queue.add(key.clone(), Refresh::LiveState, Instant::now());
            }
            if let (Some(old), Some(new)) = (&change.old, &change.new)
                && let Some(gone) = operation_field::taken_away(old, new)
            {
                self.apps.note_taken_away(&key, Some(gone));
                self.queue.add(key.clone(), Refresh::LiveState, Instant::now());
            }
            match &change.new {
                None => self.apps.forget(&key),
                Some(new) if is_request(change.old.as_deref(), new) => {
                    self.queue.add(key, Refresh::LiveState, Instant::now());
                }
                Some(_) => {}
            }
        }
        if Installation::is_changed_by(change, &self.home.settings) {
            self.read_installation();
        }
        if credentials::is_changed_by(change, &self.home.settings.namespace) {
            self.read_credentials();
        }
        let states = [&change.old, &change.new];
        if change.key.namespace == self.home.settings.namespace
            && states.into_iter().flatten().any(|object| is_cluster_secret(object))
        {
            self.read_clusters();
        }
        if may_free(change) {
            self.projects.notify_one();
        }
        if change.key.group_kind() == project_kind() && changes_spec(change) {
            self.add_members(&change.key.name);
        }
        if defines_kinds(change) {
            self.clusters.home().ask_for_kinds();
        }
        for app in self.concerned(self.clusters.home(), change) {
            self.queue.add(app, Refresh::LiveState, Instant::now() + self.home.settings.gather_live);
        }
    }

    /// The Applications that an object of a cluster belongs to or that want it.
    fn concerned(&self, cluster: &ConnectedCluster, change: &Change) -> BTreeSet<AppKey> {
        let marks = [&change.old, &change.new].into_iter().flatten();
        let mut apps: BTreeSet<AppKey> = marks
            .filter_map(|object| self.home.settings.tracking.owner(object))
            .map(|instance| self.home.app_of(&instance))
            .collect();
        apps.extend(cluster.wanting(&change.key));
        if change.old.is_none() || change.new.is_none() {
            apps.extend(cluster.watching(&change.key.namespace));
        }
        apps
    }

    /// Lets every Application of a project be looked at.
    fn add_members(&self, project: &str) {
        let apps = self.home.cache.each_of(&application_kind());
        for object in apps.filter(|object| project_name(object) == project) {
            self.queue.add(
                AppKey::of_object(&object),
                Refresh::LiveState,
                Instant::now() + self.home.settings.gather_live,
            );
        }
    }
}

impl Follower for Engine {
    /// Takes a change in another cluster to the Applications that it concerns.
    fn object_changed(&self, cluster: &ConnectedCluster, change: &Change) {
        cluster.count_change(&change.key);
        if defines_kinds(change) {
            cluster.ask_for_kinds();
        }
        for app in self.concerned(cluster, change) {
            self.queue.add(app, Refresh::LiveState, Instant::now() + self.home.settings.gather_live);
        }
    }

    /// Lets every Application of a cluster be looked at.
    fn cluster_changed(&self, server: &str) {
        for app in self.home.cache.each_of(&application_kind()) {
            if self.clusters.is_inhabitant(&app, server) {
                self.queue.add(AppKey::of_object(&app), Refresh::LiveState, Instant::now());
            }
        }
    }
}

/// Whether somebody other than the engine changed an Application: all but the status counts.
fn is_request(old: Option<&Value>, new: &Value) -> bool {
    let Some(old) = old else { return true };
    let metadata = |object: &Value, field: &str| object.at(&["metadata", field]).cloned();
    ["annotations", "labels", "finalizers", "deletionTimestamp"]
        .iter()
        .any(|field| metadata(old, field) != metadata(new, field))
        || old.get("spec") != new.get("spec")
        || (new.get("operation").is_some()
            && old.get("operation") != new.get("operation")
            && !operation_field::asks_for_its_own(new))
        || terminating(old) != terminating(new)
}

/// Whether the end of the operation under way was asked for.
fn terminating(object: &Value) -> bool {
    object.str_at(&["status", "operationState", "phase"]) == Some("Terminating")
}

fn changes_spec(change: &Change) -> bool {
    let spec = |object: &Option<Arc<Value>>| object.as_ref().and_then(|object| object.get("spec").cloned());
    change.old.is_none() || change.new.is_none() || spec(&change.old) != spec(&change.new)
}

/// Whether a change may change what the cluster serves.
fn defines_kinds(change: &Change) -> bool {
    let is_definition = match change.key.kind.as_str() {
        "CustomResourceDefinition" => change.key.group == "apiextensions.k8s.io",
        "APIService" => change.key.group == "apiregistration.k8s.io",
        _ => false,
    };
    let part = |object: &Option<Arc<Value>>, field: &str| {
        object.as_ref().and_then(|object| object.get(field).cloned())
    };
    is_definition
        && (change.old.is_none()
            || change.new.is_none()
            || ["spec", "status"].iter().any(|field| part(&change.old, field) != part(&change.new, field)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_model::names;
    use tiphys_value::json;

    #[test]
    fn writes_of_the_engine_are_no_requests() {
        let old = json!({"metadata": {"resourceVersion": "1"}, "spec": {"a": 1}, "operation": {"sync": {}}});
        let mut new = json!({"metadata": {"resourceVersion": "2"}, "spec": {"a": 1}, "status": {"x": 1}});
        assert!(!is_request(Some(&old), &new));
        new["operation"] = json!({"sync": {"prune": true}});
        assert!(is_request(Some(&old), &new));
        let annotated = json!({"metadata": {"annotations": {names::REFRESH: "hard"}}, "spec": {"a": 1}});
        assert!(is_request(Some(&old), &annotated));
        assert!(is_request(None, &old));
    }
}
