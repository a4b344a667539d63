//! One look at one Application: render, compare, decide, work, write.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use tiphys_diff::Difference;
use tiphys_model::{
    Application, Condition, ConditionType, HealthCode, SyncStatusCode, Time, Tracking, names, pause::Until,
};
use tiphys_sync::{
    AutoSync, CompareInput, Comparison, Inputs, LiveObject, SyncState, auto_sync, compare, left_alone,
};
use tiphys_value::{GroupKind, Map, ObjectExt, ResourceKey, Value};

use crate::{
    AppKey, Refresh,
    destinations::{Absent, ConnectedCluster},
    engine::Engine,
    live_state::{self, Kinds},
    operation_field::without_running,
    orphans,
    project_policy::{Policy, engine_namespace},
    rendering::Rendering,
    safeguards::{blockers, object_owners, pause, prune_guard, reverted_changes},
    server_side_diff::Predictions,
    status_fields::{note_left, set_conditions},
};

/// How long after a look at closed sync windows the next one follows: schedules count minutes.
const WINDOW_LOOK: Duration = Duration::from_secs(60);

/// What a look at an Application leads to.
#[derive(Default)]
pub(crate) struct Next {
    /// When to look again though nothing changes.
    pub at: Option<Timestamp>,
    /// Look again at once.
    pub again: bool,
    /// An operation is under way.
    pub is_under_way: bool,
}

impl Next {
    /// Another look at once.
    pub fn at_once() -> Self {
        Self { again: true, ..Self::default() }
    }
}

/// An Application with its desired and its live state.
pub(crate) struct Compared {
    /// The cluster whose state was compared.
    pub place: Arc<ConnectedCluster>,
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
    fn left_alone(&self) -> BTreeSet<ResourceKey> {
        self.protected.keys().chain(self.paused.keys()).cloned().collect()
    }
}

impl Engine {
    /// Looks at an Application once.
    pub(crate) async fn reconcile(self: &Arc<Self>, key: &AppKey, level: Refresh) -> Next {
        if level == Refresh::Poll
            && let Some(next) = self.unmoved(key).await
        {
            return next;
        }
        self.note_calm(key, false);
        let resource_key = key.of_application();
        let Some(object) = self.cache.peek(&resource_key) else {
            self.forget(key);
            return Next::default();
        };
        if !self.installation().serves(&key.namespace, &self.settings) {
            self.forget(key);
            return Next::default();
        }
        if object.annotation(names::SKIP_RECONCILE) == Some("true") {
            return Next::default();
        }
        let mut app = match Application::from_value(&object) {
            Ok(app) => app,
            Err(error) if self.settings.shadow.is_some() => {
                tracing::warn!(app = %key.name, %error, "cannot be read");
                return Next::default();
            }
            Err(error) => {
                self.report_unreadable(key, &object, &error.to_string()).await;
                return Next::default();
            }
        };
        if let Some(shadow) = &self.settings.shadow {
            let next = self.shadow_app(key, app, level, shadow).await;
            self.mark_seen(key);
            return next;
        }
        if let Some(next) = self.leave_to_rival(key, &mut app, &object).await {
            self.mark_seen(key);
            return next;
        }
        if app.is_terminating() {
            return self.finalize(key, &app).await;
        }
        if matches!(self.place_of(&app), Err(Absent::Pending)) {
            // How the attempt to connect ends leads back here.
            return Next::default();
        }
        let refresh = app.metadata.annotations.remove(names::REFRESH);
        let level = match refresh.as_deref() {
            Some("hard") => Refresh::Hard,
            Some(_) => {
                self.ask_anew(key, &app);
                level.max(Refresh::Sources)
            }
            None if level == Refresh::Poll && self.is_set_aside(key) => Refresh::LiveState,
            None if level == Refresh::Poll => Refresh::Sources,
            None => level,
        };
        self.respect_taking_away(key, &mut app);
        without_running(&mut app);
        if app.operation.is_some() && !is_running(&app) {
            self.ask_anew(key, &app);
        }
        let mut next = self.bring_forward(key, &mut app, level, &object).await;
        next.is_under_way = is_running(&app);
        let written = self.write(key, &object, &app).await;
        self.mark_seen(key);
        self.note_calm(key, written && !next.again && is_at_rest(&app));
        next
    }

    /// Compares, decides about automated sync, and works on the operation if there is one.
    async fn bring_forward(
        self: &Arc<Self>,
        key: &AppKey,
        app: &mut Application,
        level: Refresh,
        object: &Value,
    ) -> Next {
        let faults = self.spec_faults(app);
        if !faults.is_empty() {
            return self.refuse_spec(key, app, faults);
        }
        let place = match self.place_of(app) {
            Ok(place) => place,
            Err(absent) => return self.wait_for_cluster(app, absent),
        };
        let rendering = self.rendering(key, app, level, &place).await;
        let compared = self.compare_in_force(key, app, &rendering, &place).await;
        if let Ok(targets) = &rendering.targets {
            self.keep_hook_finalizers(key, app, &targets.get()).await;
        }
        let mut next = self.follow_remotes(key, &rendering);
        self.show(app, compared.as_ref(), level);
        let mut conditions = Vec::new();
        if let Err(error) = &rendering.targets {
            app.status.sync.status = SyncStatusCode::Unknown;
            conditions.push(Condition::new(ConditionType::ComparisonError, format!("{error:#}")));
        }
        if let Some(compared) = &compared {
            let (at, told) = self.begin(key, app, compared).await;
            next.at = earliest(next.at, at);
            conditions.extend(told);
        }
        let state = app.status.operation_state.as_ref();
        conditions.extend(blockers::conditions(&place.cache, &self.settings.tracking, state));
        set_conditions(app, conditions, self.now());
        if app.operation.is_some() || is_running(app) {
            // What is in force is not what somebody means who asks for the newest.
            let in_force = compared.as_ref().map(|compared| &compared.rendering);
            let is_meant = rendering.targets.is_ok() || !self.asks_for_newest(app, in_force);
            let worked = self.operate(key, app, compared.filter(|_| is_meant), object, &place).await;
            next.at = earliest(next.at, worked.at);
            next.again |= worked.again;
        }
        next
    }

    /// An Application whose spec is not valid: nothing is done for it, and whoever asks for an operation is
    /// told.
    fn refuse_spec(&self, key: &AppKey, app: &mut Application, faults: Vec<String>) -> Next {
        let invalid = |fault| Condition::new(ConditionType::InvalidSpecError, fault);
        self.set_unknown(app);
        set_conditions(app, faults.into_iter().map(invalid).collect(), self.now());
        self.refuse_operation(key, app);
        Next::default()
    }

    /// Compares with what is in force: where the sources do not render, the last good state of the same spec,
    /// so that what is changed in the cluster is still healed.
    async fn compare_in_force(
        &self,
        key: &AppKey,
        app: &Application,
        rendering: &Arc<Rendering>,
        place: &Arc<ConnectedCluster>,
    ) -> Option<Compared> {
        let fails = rendering.targets.is_err() && !self.settings.sync.compat;
        let in_force = match self.last_good_rendering(key, rendering).filter(|_| fails) {
            Some(good) => good,
            None => rendering.clone(),
        };
        self.compare(app, in_force, place).await
    }

    /// Lets automated sync begin an operation if it is time. Returns when to look again, and what to tell.
    async fn begin(
        &self,
        key: &AppKey,
        app: &mut Application,
        compared: &Compared,
    ) -> (Option<Timestamp>, Vec<Condition>) {
        let mut conditions = compared.comparison.conditions.clone();
        let open = compared.policy.may_begin(app, self.now());
        let window = (open == Ok(false)).then(|| tiphys_model::time::after(self.now(), WINDOW_LOOK));
        let decision = self.decide(app, compared, open == Ok(true));
        conditions.extend(open.err().map(|fault| Condition::new(ConditionType::InvalidSpecError, fault)));
        let mut at = compared.paused.values().fold(window, |at, until| earliest(at, until.timestamp()));
        conditions.extend(told_of(app, compared));
        note_left(app, &decision);
        match decision {
            AutoSync::Start(operation) => {
                let reverted = reverted_changes::reverted(&operation, &compared.comparison, &compared.live);
                self.tell_of_reverts(key, app, reverted).await;
                app.operation = Some(*operation);
            }
            AutoSync::Held(until, condition) => {
                at = earliest(at, Some(until));
                conditions.push(condition);
            }
            AutoSync::Refused(condition) => conditions.push(condition),
            AutoSync::Later(until, _) => at = earliest(at, Some(until)),
            AutoSync::Nothing(_) | AutoSync::Left(_) => {}
        }
        (at, conditions)
    }

    /// The state of an Application whose cluster does not answer: nothing is known, and nothing is done until
    /// it does. An operation stays as it is.
    fn wait_for_cluster(&self, app: &mut Application, absent: Absent) -> Next {
        if let Absent::Unreachable(why) | Absent::Unknown(why) = absent {
            self.set_unknown(app);
            if let Some(state) =
                app.status.operation_state.as_mut().filter(|state| !state.phase.is_completed())
            {
                state.message = format!("waiting for the cluster: {why}");
            }
            let condition = Condition::new(ConditionType::ComparisonError, why);
            set_conditions(app, vec![condition], self.now());
        }
        Next::default()
    }

    /// What is wrong with the spec of an Application, apart from its sources' content.
    pub(crate) fn spec_faults(&self, app: &Application) -> Vec<String> {
        if let Some(fault) = self.destination_fault(&app.spec.destination) {
            return vec![fault];
        }
        match self.policy_of(app) {
            Ok(policy) => policy.faults(app, engine_namespace(&self.settings, app)),
            Err(fault) => vec![fault],
        }
    }

    pub(crate) fn decide(&self, app: &Application, compared: &Compared, window_open: bool) -> AutoSync {
        auto_sync(
            app,
            &compared.comparison.without(&compared.left_alone()),
            Inputs { revisions: &compared.rendering.revisions, identity: &compared.rendering.identity },
            window_open,
            &self.installation().auto,
            self.now(),
        )
    }

    /// Compares the desired with the live state; `None` if the desired state or the project is not known.
    pub(crate) async fn compare(
        &self,
        app: &Application,
        rendering: Arc<Rendering>,
        place: &Arc<ConnectedCluster>,
    ) -> Option<Compared> {
        let targets = rendering.targets.as_ref().ok()?.get();
        let policy = self.policy_of(app).ok()?;
        let instance = app.instance_name(&self.settings.namespace);
        let namespace = &app.spec.destination.namespace;
        let also = live_state::also_concerned(app);
        let installation = self.installation();
        let live =
            live_state::gather(&place.cache, &installation, &instance, namespace, &targets, &also).await;
        let predictions = self.predictions(app, &installation, &targets, &live, place).await;
        let kinds = Kinds(place.cache.cluster().discovery());
        let mut wanted = live_state::target_keys(&targets, namespace, &kinds);
        wanted.extend(also);
        self.index_targets(app, wanted.clone(), place);
        let mut comparison = compare(&CompareInput {
            app,
            instance: &instance,
            tracking: &self.settings.tracking,
            own_key: place.is_home.then(|| own_key(app)),
            targets: &targets,
            live: &live,
            kinds: &kinds,
            differ: &|target, live| self.difference(app, (target, live), &predictions, place).paths,
            permit: &|object, namespaced| policy.permit(object, namespaced),
            excluded: &|kind| installation.excludes(kind, &place.server),
            has_generated: generated_for(app).is_some_and(|inputs| inputs == rendering.identity),
        });
        comparison.conditions.extend(predictions.conditions());
        if let Some(fault) = installation.ignore_fault(app, &targets) {
            comparison.sync = SyncStatusCode::Unknown;
            let message = format!("Failed to compare desired state to live state: {fault}");
            comparison.conditions.push(Condition::new(ConditionType::ComparisonError, message));
        }
        let orphans = self.orphans(app, &policy, &live, place);
        if !self.settings.sync.compat {
            let key_of = |target: &Value| tiphys_sync::target_key(target, namespace, &kinds);
            let tracking = &self.settings.tracking;
            object_owners::find_claims(&place.cache, app, tracking, &mut comparison, &key_of);
            let (claims, shared) = (&comparison.claims, &comparison.shared);
            comparison.left_alone = left_alone(claims, shared, &app.sync_options(), &installation.sync);
            let grounds = object_owners::grounds(&place.cache, &comparison.claims);
            if !grounds.is_empty() {
                wanted.extend(grounds);
                self.index_targets(app, wanted, place);
            }
        }
        let protected = if self.settings.sync.compat {
            BTreeMap::new()
        } else {
            prune_guard::protected(&place.cache, app, &comparison, self.now())
        };
        let paused = pause::paused(app, &live, self.now());
        Some(Compared {
            place: place.clone(),
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
        place: &ConnectedCluster,
    ) -> Difference {
        let schema = place.schema(&target.gvk());
        let aligned = self.settings.tracking.align_tracking(target, live);
        let live = aligned.as_ref().unwrap_or(live);
        self.installation().differ(app, target, live, schema.as_ref(), predictions)
    }

    /// The objects of the destination namespace that nobody has, if the project wants to know.
    fn orphans(
        &self,
        app: &Application,
        policy: &Policy,
        live: &BTreeMap<ResourceKey, LiveObject>,
        place: &ConnectedCluster,
    ) -> Option<Vec<ResourceKey>> {
        let managed: BTreeSet<ResourceKey> = live.keys().cloned().collect();
        let is_application = |object: &Value, tracking: &Tracking| {
            tracking.owner(object).is_some_and(|instance| {
                let key = self.app_of(&instance);
                let at = key.of_application();
                self.cache.get(&at).is_some()
            })
        };
        let installation = self.installation();
        let is_excluded = |kind: &GroupKind| installation.excludes(kind, &place.server);
        let tracking = &self.settings.tracking;
        let orphans =
            orphans::find(place, policy.project(), app, &managed, &is_excluded, &is_application, tracking);
        let namespace = orphans.as_ref().map(|_| app.spec.destination.namespace.as_str());
        place.watch(&AppKey::from_app(app), namespace);
        orphans
    }

    /// Logs and records what a self-heal takes back.
    async fn tell_of_reverts(&self, key: &AppKey, app: &mut Application, reverted: Vec<String>) {
        if reverted.is_empty() {
            return;
        }
        for line in &reverted {
            tracing::info!(app = %key.name, "self-heal takes back {line}");
        }
        let entry = tiphys_value::json!({"at": Time::from(self.now()), "changes": reverted});
        remember_reverts(&mut app.status.tiphys, entry);
        let message = format!("self-heal takes back {}", reverted.join("; "));
        crate::events::record(&self.cache, app, "SelfHeal", &message, self.now()).await;
    }

    /// Remote repositories tell nobody of new commits; they are asked at intervals that differ from
    /// Application to Application, or only when somebody asks if the interval is zero. What could not be had
    /// is asked for sooner.
    pub(crate) fn follow_remotes(&self, key: &AppKey, rendering: &Rendering) -> Next {
        let installation = self.installation();
        let (interval, hard) = (installation.refresh, installation.argo.reconciliation.hard);
        let shortest = [interval, hard].into_iter().filter(|interval| !interval.is_zero()).min();
        let spread: u32 =
            key.name.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31) ^ u32::from(byte)) % 1000;
        if rendering.may_pass() {
            let pause = self.pause_after_failures(key, shortest.unwrap_or_default());
            self.refresh_later(key, pause + pause / 4 * spread / 1000);
            return Next::default();
        }
        let Some(interval) = shortest.filter(|_| rendering.reads_remotes) else { return Next::default() };
        let jitter = installation.argo.reconciliation.jitter.unwrap_or(interval / 4);
        self.refresh_later(key, interval + jitter * spread / 1000);
        Next::default()
    }
}

/// Whether an Application is as its sources say, healthy, and nothing is told of it.
fn is_at_rest(app: &Application) -> bool {
    app.status.sync.status == SyncStatusCode::Synced
        && app.status.health.status == Some(HealthCode::Healthy)
        && app.status.conditions.is_empty()
        && app.operation.is_none()
        && !is_running(app)
}

/// The desired state of which a sync has made the objects whose names are generated.
fn generated_for(app: &Application) -> Option<&str> {
    app.status.tiphys.as_ref()?.str_at(&[names::GENERATED_FOR])
}

/// Notes that an operation has made the objects whose names are generated.
pub(crate) fn note_generated(app: &mut Application, state: &SyncState, comparison: &Comparison) {
    let sync = state.shown.operation.sync.clone().unwrap_or_default();
    let is_whole = !sync.dry_run && sync.resources.is_empty() && sync.manifests.is_empty();
    if comparison.generated.is_empty() || !is_whole || !state.shown.phase.is_successful() {
        return;
    }
    let mut ours =
        app.status.tiphys.take().filter(Value::is_object).unwrap_or_else(|| Value::Object(Map::new()));
    ours[names::GENERATED_FOR] = state.extension.inputs.as_str().into();
    app.status.tiphys = Some(ours);
}

/// The last few self-heals stay in the status.
fn remember_reverts(ours: &mut Option<Value>, entry: Value) {
    const KEPT: usize = 5;
    let map = ours.get_or_insert_with(|| Value::Object(Map::new()));
    if !map.get("reverted").is_some_and(Value::is_array) {
        map["reverted"] = tiphys_value::json!([]);
    }
    if let Some(list) = map["reverted"].as_array_mut() {
        list.push(entry);
        let extra = list.len().saturating_sub(KEPT);
        list.drain(..extra);
    }
}

/// What is left alone, and until when or why.
fn told_of(app: &Application, compared: &Compared) -> Vec<Condition> {
    let kept = compared.protected.iter().map(|(key, reason)| {
        Condition::new(ConditionType::PruneProtected, format!("{key} is not pruned: {reason}"))
    });
    let orphans = compared.orphans.as_deref().unwrap_or_default();
    let orphaned = orphans::condition(compared.policy.project(), orphans);
    pause::conditions(app, &compared.paused).into_iter().chain(kept).chain(orphaned).collect()
}

/// The key of an Application object.
pub(crate) fn own_key(app: &Application) -> ResourceKey {
    ResourceKey::new(names::GROUP, "Application", &app.metadata.namespace, &app.metadata.name)
}

/// Whether an operation is under way.
pub(crate) fn is_running(app: &Application) -> bool {
    app.status.operation_state.as_ref().is_some_and(|state| !state.phase.is_completed())
}

pub(crate) fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
