//! One look at one Application: render, compare, decide, work, write.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use tiphys_model::{
    Application, Condition, ConditionType, HealthCode, SyncStatusCode, Time, Tracking, names,
    status::{ComparedTo, SyncStatus},
};
use tiphys_sync::{AutoSync, CompareInput, Comparison, LiveObject, auto_sync, compare};
use tiphys_value::{Map, ObjectExt, ResourceKey, Value};

use crate::{
    AppKey, Level,
    engine::Engine,
    live::{self, Kinds},
    orphans,
    places::{Absent, Place},
    policy::{Policy, engine_namespace},
    prevent::{blockers, drift, guard, owners, pause},
    rendering::Rendering,
    status,
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
}

/// An Application with its desired and its live state.
pub(crate) struct Compared {
    /// The cluster whose state was compared.
    pub place: Arc<Place>,
    pub policy: Policy,
    pub rendering: Arc<Rendering>,
    pub live: BTreeMap<ResourceKey, LiveObject>,
    pub comparison: Comparison,
    /// Objects that must not be pruned, with why.
    pub protected: BTreeMap<ResourceKey, String>,
    /// Objects to which nothing is synced now, with until when.
    pub paused: BTreeMap<ResourceKey, Time>,
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
    pub(crate) async fn reconcile(self: &Arc<Self>, key: &AppKey, level: Level) -> Next {
        let resource_key = ResourceKey::new(names::GROUP, "Application", &key.namespace, &key.name);
        let Some(object) = self.cache.get(&resource_key) else {
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
            Some("hard") => Level::Hard,
            Some(_) => {
                self.ask_anew(key, &app);
                level.max(Level::Sources)
            }
            None => level,
        };
        if app.operation.is_some() && !is_running(&app) {
            self.ask_anew(key, &app);
        }
        let next = self.bring_forward(key, &mut app, level, &object).await;
        self.write(key, &object, &app).await;
        self.mark_seen(key);
        next
    }

    /// Compares, decides about automated sync, and works on the operation if there is one.
    async fn bring_forward(
        self: &Arc<Self>,
        key: &AppKey,
        app: &mut Application,
        level: Level,
        object: &Value,
    ) -> Next {
        let faults = self.spec_faults(app);
        if !faults.is_empty() {
            let invalid = |fault| Condition::new(ConditionType::InvalidSpecError, fault);
            self.set_unknown(app);
            set_conditions(app, faults.into_iter().map(invalid).collect(), self.now());
            self.refuse_operation(key, app);
            return Next::default();
        }
        let place = match self.place_of(app) {
            Ok(place) => place,
            Err(absent) => return self.wait_for_cluster(app, absent),
        };
        let mut conditions = Vec::new();
        let rendering = self.rendering(key, app, level, &place).await;
        let mut compared = self.compare(app, rendering.clone(), &place).await;
        if let Err(error) = &rendering.targets {
            conditions.push(Condition::new(ConditionType::ComparisonError, format!("{error:#}")));
            // The last good state stays in force: what is changed in the cluster is still healed.
            if let Some(good) =
                self.last_good_rendering(key, &rendering).filter(|_| !self.settings.sync.compat)
            {
                compared = self.compare(app, good, &place).await;
            }
        }
        if let Ok(targets) = &rendering.targets {
            self.keep_hook_finalizers(key, app, targets).await;
        }
        let is_stale = rendering.targets.is_err();
        let mut next = self.follow_remotes(key, &rendering);
        self.show(app, compared.as_ref(), level);
        if is_stale {
            app.status.sync.status = SyncStatusCode::Unknown;
        }
        if let Some(compared) = &compared {
            conditions.extend(compared.comparison.conditions.iter().cloned());
            let open = compared.policy.may_begin(app, self.now());
            if open == Ok(false) {
                next.at = earliest(next.at, Some(tiphys_model::time::after(self.now(), WINDOW_LOOK)));
            }
            let decision = self.decide(app, compared, open == Ok(true));
            conditions.extend(open.err().map(|fault| Condition::new(ConditionType::InvalidSpecError, fault)));
            next.at =
                compared.paused.values().fold(next.at, |at, until| earliest(at, Some(until.timestamp())));
            conditions.extend(told_of(compared));
            match decision {
                AutoSync::Start(operation) => {
                    let reverted = drift::reverted(&operation, &compared.comparison, &compared.live);
                    self.tell_of_reverts(key, app, reverted).await;
                    app.operation = Some(*operation);
                }
                AutoSync::Held(at, condition) => {
                    next.at = earliest(next.at, Some(at));
                    conditions.push(condition);
                }
                AutoSync::Refused(condition) => conditions.push(condition),
                AutoSync::Later(at, _) => next.at = earliest(next.at, Some(at)),
                AutoSync::Nothing(_) => {}
            }
        }
        conditions.extend(blockers::conditions(
            &place.cache,
            &self.settings.tracking,
            app.status.operation_state.as_ref(),
        ));
        set_conditions(app, conditions, self.now());
        if app.operation.is_some() || is_running(app) {
            let worked = self.operate(key, app, compared, object, &place).await;
            next.at = earliest(next.at, worked.at);
            next.again |= worked.again;
        }
        next
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
            &compared.rendering.revisions,
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
        place: &Arc<Place>,
    ) -> Option<Compared> {
        let targets = rendering.targets.as_ref().ok()?.clone();
        let policy = self.policy_of(app).ok()?;
        let instance = app.instance_name(&self.settings.namespace);
        let namespace = &app.spec.destination.namespace;
        let also = live::also_concerned(app);
        let installation = self.installation();
        let live = live::gather(&place.cache, &installation, &instance, namespace, &targets, &also).await;
        let predictions = self.predictions(app, &installation, &targets, &live, place).await;
        let kinds = Kinds(place.cache.cluster().discovery());
        let mut wanted = live::target_keys(&targets, namespace, &kinds);
        wanted.extend(also);
        self.index_targets(app, wanted, place);
        let mut comparison = compare(&CompareInput {
            app,
            instance: &instance,
            tracking: &self.settings.tracking,
            own_key: place.is_home.then(|| own_key(app)),
            targets: &targets,
            live: &live,
            kinds: &kinds,
            differ: &|target, live| installation.differ(app, target, live, &predictions),
            permit: &|object, namespaced| policy.permit(object, namespaced),
            excluded: &|kind| installation.excludes(kind, &place.server),
        });
        comparison.conditions.extend(predictions.conditions());
        let orphans = self.orphans(app, &policy, &live, place);
        if !self.settings.sync.compat {
            let key_of = |target: &Value| tiphys_sync::target_key(target, namespace, &kinds);
            let tracking = &self.settings.tracking;
            comparison.claims = owners::claims(&place.cache, app, tracking, &comparison, &key_of);
        }
        let protected = if self.settings.sync.compat {
            BTreeMap::new()
        } else {
            guard::protected(&place.cache, app, &comparison, self.now())
        };
        let paused = pause::paused(app, &live, self.now());
        Some(Compared {
            place: place.clone(),
            policy,
            rendering,
            live,
            comparison,
            protected,
            paused,
            orphans,
        })
    }

    /// The objects of the destination namespace that nobody has, if the project wants to know.
    fn orphans(
        &self,
        app: &Application,
        policy: &Policy,
        live: &BTreeMap<ResourceKey, LiveObject>,
        place: &Place,
    ) -> Option<Vec<ResourceKey>> {
        let managed: BTreeSet<ResourceKey> = live.keys().cloned().collect();
        let is_application = |object: &Value, tracking: &Tracking| {
            tracking.owner(object).is_some_and(|instance| {
                let key = self.app_of(&instance);
                let at = ResourceKey::new(names::GROUP, "Application", &key.namespace, &key.name);
                self.cache.get(&at).is_some()
            })
        };
        let tracking = &self.settings.tracking;
        let orphans = orphans::of(place, policy.project(), app, &managed, &is_application, tracking);
        let namespace = orphans.as_ref().map(|_| app.spec.destination.namespace.as_str());
        place.watch(&AppKey::of(app), namespace);
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

    /// Puts the result of a comparison into the status.
    pub(crate) fn show(&self, app: &mut Application, compared: Option<&Compared>, level: Level) {
        let Some(Compared { comparison, rendering, orphans, .. }) = compared else {
            self.set_unknown(app);
            return;
        };
        let multiple = app.spec.has_multiple_sources();
        let sources = app.spec.effective_sources();
        let first = (!multiple).then(|| rendering.revision().to_owned());
        app.status.sync = SyncStatus {
            status: comparison.sync,
            compared_to: Some(ComparedTo {
                source: if multiple { None } else { sources.first().cloned() },
                sources: if multiple { sources } else { Vec::new() },
                destination: app.spec.destination.clone(),
                ignore_differences: app.spec.ignore_differences.clone(),
            }),
            revision: first.unwrap_or_default(),
            revisions: if multiple { rendering.revisions.clone() } else { Vec::new() },
        };
        app.status.resources.clone_from(&comparison.resources);
        app.status.summary.clone_from(&comparison.summary);
        app.status.source_type = if multiple { None } else { rendering.source_types.first().copied() };
        app.status.source_types = if multiple { rendering.source_types.clone() } else { Vec::new() };
        app.status.tiphys = with_warnings(app.status.tiphys.take(), &rendering.warnings);
        app.status.tiphys = orphans::shown(app.status.tiphys.take(), orphans.as_deref());
        app.status.controller_namespace.clone_from(&self.settings.namespace);
        set_health(
            app,
            comparison.health.as_ref().map_or(HealthCode::Healthy, |health| health.status),
            self.now(),
        );
        if level >= Level::Sources || app.status.reconciled_at.is_none() {
            app.status.reconciled_at = Some(Time::from(self.now()));
        }
    }

    /// Whether a write would say nothing but that somebody looked: thousands of Applications at rest are not
    /// written every few minutes for that.
    fn says_nothing_new(&self, before: &Value, after: &Value) -> bool {
        let mut like_before = after.clone();
        let known = before.at(&["status", "reconciledAt"]);
        if let (Some(known), Some(status)) = (known, like_before.get_mut("status")) {
            status["reconciledAt"] = known.clone();
        }
        !self.settings.sync.compat && like_before == *before
    }

    fn set_unknown(&self, app: &mut Application) {
        app.status.sync.status = SyncStatusCode::Unknown;
        app.status.reconciled_at = Some(Time::from(self.now()));
        set_health(app, HealthCode::Unknown, self.now());
    }

    /// An Application that is not of its type still gets a status that says so.
    async fn report_unreadable(&self, key: &AppKey, object: &Value, fault: &str) {
        let mut after = object.clone();
        after["status"]["sync"] = tiphys_value::json!({"status": "Unknown"});
        after["status"]["health"] = tiphys_value::json!({"status": "Unknown"});
        after["status"]["conditions"] = tiphys_value::json!([{"type": "InvalidSpecError", "message": fault}]);
        if let Err(error) = status::write(&self.cache, key, object, &after).await {
            self.lost_write(key, &error);
        }
        self.mark_seen(key);
    }

    /// Writes what changed of status, operation and the refresh request. `false` if that failed: then the
    /// Application is looked at again later.
    pub(crate) async fn write(&self, key: &AppKey, before: &Value, app: &Application) -> bool {
        let mut after = before.clone();
        let written = app.to_value();
        for field in ["status", "operation"] {
            match (written.get(field), after.as_object_mut()) {
                (Some(value), Some(map)) => {
                    map.insert(field.to_owned(), value.clone());
                }
                (None, Some(map)) => {
                    map.remove(field);
                }
                _ => {}
            }
        }
        if let Some(Value::Object(annotations)) = after.pointer_mut("/metadata/annotations") {
            annotations.remove(names::REFRESH);
            annotations.remove(names::REFRESH_TIMESTAMP);
        }
        if after.get("operation").is_none() && self.was_asked_anew(app, before) {
            // It is served after this one, not taken away with it.
            after["operation"] = before["operation"].clone();
        }
        if self.says_nothing_new(before, &after) {
            return true;
        }
        match status::write(&self.cache, key, before, &after).await {
            Ok(()) => true,
            Err(error) => {
                self.lost_write(key, &error);
                false
            }
        }
    }

    /// Whether somebody asked for another operation while one was taken up.
    fn was_asked_anew(&self, app: &Application, before: &Value) -> bool {
        let Some(taken) = before.get("operation") else { return false };
        let now = self.cache.get(&own_key(app));
        now.is_some_and(|now| now.get("operation").is_some_and(|asked| asked != taken))
    }

    /// Remote repositories tell nobody of new commits; they are asked at intervals that differ from
    /// Application to Application.
    pub(crate) fn follow_remotes(&self, key: &AppKey, rendering: &Rendering) -> Next {
        if !rendering.reads_remotes {
            return Next::default();
        }
        let spread: u64 =
            key.name.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) ^ u64::from(byte)) % 1000;
        let wait =
            self.installation().refresh.mul_f64(1.0 + f64::from(u32::try_from(spread).unwrap_or(0)) / 4000.0);
        self.refresh_later(key, wait);
        Next::default()
    }
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
fn told_of(compared: &Compared) -> Vec<Condition> {
    let paused = compared.paused.iter().map(|(key, until)| {
        Condition::new(ConditionType::Paused, format!("nothing is synced to {key} until {until}"))
    });
    let kept = compared.protected.iter().map(|(key, reason)| {
        Condition::new(ConditionType::PruneProtected, format!("{key} is not pruned: {reason}"))
    });
    let orphans = compared.orphans.as_deref().unwrap_or_default();
    let orphaned = orphans::condition(compared.policy.project(), orphans);
    paused.chain(kept).chain(orphaned).collect()
}

/// What Tiphys adds to a status, with what is odd about the sources.
fn with_warnings(ours: Option<Value>, warnings: &[String]) -> Option<Value> {
    let mut ours = ours.filter(Value::is_object).unwrap_or_else(|| Value::Object(Map::new()));
    if let Some(map) = ours.as_object_mut() {
        map.remove("warnings");
        if !warnings.is_empty() {
            map.insert("warnings".into(), warnings.into());
        }
    }
    ours.as_object().is_some_and(|map| !map.is_empty()).then_some(ours)
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

fn set_health(app: &mut Application, code: HealthCode, now: Timestamp) {
    if app.status.health.status != Some(code) {
        app.status.health.status = Some(code);
        app.status.health.last_transition_time = Some(Time::from(now));
    }
}

/// Replaces the conditions; one that was there before keeps its time.
pub(crate) fn set_conditions(app: &mut Application, conditions: Vec<Condition>, now: Timestamp) {
    let now = Time::from(now);
    let old = std::mem::take(&mut app.status.conditions);
    app.status.conditions = conditions
        .into_iter()
        .map(|mut condition| {
            let known =
                old.iter().find(|known| known.kind == condition.kind && known.message == condition.message);
            condition.last_transition_time = known.and_then(|known| known.last_transition_time).or(Some(now));
            condition
        })
        .collect();
}
