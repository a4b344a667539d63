//! From a rendering and the live state to their comparison, with what is protected in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use tiphys_diff::Difference;
use tiphys_model::{Application, Condition, ConditionType, SyncStatusCode, Tracking, names, pause::Until};
use tiphys_sync::{CompareInput, Comparison, LiveObject, compare, left_alone};
use tiphys_value::{GroupKind, ObjectExt, ResourceKey, Value};

use crate::{
    AppKey,
    app_state::AppMemory,
    destinations::ConnectedCluster,
    home::Home,
    live_state::{self, Kinds},
    orphans,
    project_policy::{Policies, Policy},
    rendering::Rendering,
    safeguards::{object_owners, pause, prune_guard},
    server_side_diff::{Predictions, predictions},
    status_writer::own_key,
};

/// An Application with its desired and its live state.
pub(crate) struct Compared {
    /// The cluster whose state was compared.
    pub cluster: Arc<ConnectedCluster>,
    pub policy: Policy,
    pub rendering: Arc<Rendering>,
    pub live: BTreeMap<ResourceKey, LiveObject>,
    /// What the API server says that it would make of the targets, if it was asked.
    pub predictions: Predictions,
    pub comparison: Comparison,
    /// Objects that must not be pruned, with why.
    pub protected: BTreeMap<ResourceKey, String>,
    /// Objects to which nothing is synced now, with until when.
    pub paused: BTreeMap<ResourceKey, Until>,
    /// Objects of the destination namespace that nobody has, if they were looked for.
    pub orphans: Option<Vec<ResourceKey>>,
}

impl Compared {
    /// The objects that automated sync leaves alone.
    pub(crate) fn left_alone(&self) -> BTreeSet<ResourceKey> {
        self.protected.keys().chain(self.paused.keys()).cloned().collect()
    }

    /// When the first hold on an object ends.
    pub(crate) fn first_hold_end(&self) -> Option<Timestamp> {
        self.paused.values().filter_map(Until::timestamp).min()
    }
}

/// Compares Applications with the live state.
pub(crate) struct Comparer {
    home: Arc<Home>,
    policies: Arc<Policies>,
    apps: Arc<AppMemory>,
}

impl Comparer {
    pub(crate) fn new(home: Arc<Home>, policies: Arc<Policies>, apps: Arc<AppMemory>) -> Self {
        Self { home, policies, apps }
    }

    /// Compares with what is in force: where the sources do not render, the last good state of the same spec,
    /// so that what is changed in the cluster is still healed.
    pub(crate) async fn compare_in_force(
        &self,
        key: &AppKey,
        app: &Application,
        rendering: &Arc<Rendering>,
        cluster: &Arc<ConnectedCluster>,
    ) -> Option<Compared> {
        let fails = rendering.targets.is_err() && !self.home.settings.sync.compat;
        let in_force = match self.apps.last_good_rendering(key, rendering).filter(|_| fails) {
            Some(good) => good,
            None => rendering.clone(),
        };
        self.compare(app, in_force, cluster).await
    }

    /// Compares the desired with the live state; `None` if the desired state or the project is not known.
    pub(crate) async fn compare(
        &self,
        app: &Application,
        rendering: Arc<Rendering>,
        cluster: &Arc<ConnectedCluster>,
    ) -> Option<Compared> {
        let Home { settings, .. } = &*self.home;
        let targets = rendering.targets.as_ref().ok()?.get();
        let policy = self.policies.policy_of(app).ok()?;
        let instance = app.instance_name(&settings.namespace);
        let namespace = &app.spec.destination.namespace;
        let also = live_state::also_concerned(app);
        let installation = self.home.installation();
        let live =
            live_state::gather(&cluster.cache, &installation, &instance, namespace, &targets, &also).await;
        let key = AppKey::from_app(app);
        let known = self.apps.answers(&key);
        let predictions = predictions(app, &installation, &targets, &live, known, cluster).await;
        if let Some(predictions) = &predictions {
            self.apps.keep_answers(&key, predictions.answers().clone());
        }
        let predictions = predictions.unwrap_or_default();
        let kinds = Kinds(cluster.cache.cluster().discovery());
        let mut wanted = live_state::target_keys(&targets, namespace, &kinds);
        wanted.extend(also);
        self.apps.index_targets(app, wanted.clone(), cluster);
        let mut comparison = compare(&CompareInput {
            app,
            instance: &instance,
            tracking: &settings.tracking,
            own_key: cluster.is_home.then(|| own_key(app)),
            targets: &targets,
            live: &live,
            kinds: &kinds,
            differ: &|target, live| self.difference(app, (target, live), &predictions, cluster).paths,
            permit: &|object, namespaced| policy.permit(object, namespaced),
            excluded: &|kind| installation.excludes(kind, &cluster.server),
            has_generated: generated_for(app).is_some_and(|inputs| inputs == rendering.identity),
        });
        comparison.conditions.extend(predictions.conditions());
        if let Some(fault) = installation.ignore_fault(app, &targets) {
            comparison.sync = SyncStatusCode::Unknown;
            let message = format!("Failed to compare desired state to live state: {fault}");
            comparison.conditions.push(Condition::new(ConditionType::ComparisonError, message));
        }
        let orphans = self.orphans(app, &policy, &live, cluster);
        let mut protected = BTreeMap::new();
        if !settings.sync.compat {
            let key_of = |target: &Value| tiphys_sync::target_key(target, namespace, &kinds);
            object_owners::find_claims(&cluster.cache, app, &settings.tracking, &mut comparison, &key_of);
            let (claims, shared) = (&comparison.claims, &comparison.shared);
            comparison.left_alone = left_alone(claims, shared, &app.sync_options(), &installation.sync);
            let grounds = object_owners::grounds(&cluster.cache, &comparison.claims);
            if !grounds.is_empty() {
                wanted.extend(grounds);
                self.apps.index_targets(app, wanted, cluster);
            }
            protected = prune_guard::protected(&cluster.cache, app, &comparison, self.home.now());
        }
        let paused = pause::paused(app, &live, self.home.now());
        let cluster = cluster.clone();
        Some(Compared {
            cluster,
            policy,
            rendering,
            live,
            predictions,
            comparison,
            protected,
            paused,
            orphans,
        })
    }

    /// How a target differs from its live object.
    pub(crate) fn difference(
        &self,
        app: &Application,
        (target, live): (&Value, &Value),
        predictions: &Predictions,
        cluster: &ConnectedCluster,
    ) -> Difference {
        let schema = cluster.schema(&target.gvk());
        let aligned = self.home.settings.tracking.align_tracking(target, live);
        let live = aligned.as_ref().unwrap_or(live);
        let predicted = predictions.get(&live.resource_key());
        self.home.installation().differ(app, target, live, schema.as_ref(), predicted)
    }

    /// The objects of the destination namespace that nobody has, if the project wants to know.
    fn orphans(
        &self,
        app: &Application,
        policy: &Policy,
        live: &BTreeMap<ResourceKey, LiveObject>,
        cluster: &ConnectedCluster,
    ) -> Option<Vec<ResourceKey>> {
        let managed: BTreeSet<ResourceKey> = live.keys().cloned().collect();
        let is_application = |object: &Value, tracking: &Tracking| {
            tracking.owner(object).is_some_and(|instance| {
                let at = self.home.app_of(&instance).of_application();
                self.home.cache.get(&at).is_some()
            })
        };
        let installation = self.home.installation();
        let is_excluded = |kind: &GroupKind| installation.excludes(kind, &cluster.server);
        let tracking = &self.home.settings.tracking;
        let orphans =
            orphans::find(cluster, policy.project(), app, &managed, &is_excluded, &is_application, tracking);
        let namespace = orphans.as_ref().map(|_| app.spec.destination.namespace.as_str());
        cluster.watch(&AppKey::from_app(app), namespace);
        orphans
    }
}

/// The desired state of which a sync has made the objects whose names are generated.
fn generated_for(app: &Application) -> Option<&str> {
    app.status.tiphys.as_ref()?.str_at(&[names::GENERATED_FOR])
}
