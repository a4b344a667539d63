//! What a look at an Application writes into its status.

use jiff::Timestamp;
use tiphys_cluster::ClusterError;
use tiphys_model::{
    Application, Condition, ConditionType, HealthCode, SyncStatusCode, Time, names,
    status::{ComparedTo, SyncStatus},
    tiphys_status,
};
use tiphys_sync::AutoSync;
use tiphys_value::{Map, ObjectExt, Value, json};

use crate::{AppKey, Refresh, engine::Engine, orphans, reconcile::Compared, status_writer};

impl Engine {
    /// Puts the result of a comparison into the status.
    pub(crate) fn show(&self, app: &mut Application, compared: Option<&Compared>, level: Refresh) {
        let Some(Compared { comparison, rendering, orphans, policy, .. }) = compared else {
            self.set_unknown(app);
            return;
        };
        let multiple = app.spec.has_multiple_sources();
        let first = (!multiple).then(|| rendering.revision().to_owned());
        app.status.sync = SyncStatus {
            status: comparison.sync,
            compared_to: Some(ComparedTo::from_spec(&app.spec)),
            revision: first.unwrap_or_default(),
            revisions: if multiple { rendering.revisions.clone() } else { Vec::new() },
        };
        app.status.resources.clone_from(&comparison.resources);
        app.status.summary.clone_from(&comparison.summary);
        app.status.source_type = if multiple { None } else { rendering.source_types.first().copied() };
        app.status.source_types = if multiple { rendering.source_types.clone() } else { Vec::new() };
        let mut warnings = rendering.warnings.clone();
        warnings.extend(policy.unknown_zones(app));
        app.status.tiphys = with_warnings(app.status.tiphys.take(), &warnings);
        app.status.tiphys = orphans::with_orphans(app.status.tiphys.take(), orphans.as_deref());
        app.status.controller_namespace.clone_from(&self.settings.namespace);
        set_health(
            app,
            comparison.health.as_ref().map_or(HealthCode::Healthy, |health| health.status),
            self.now(),
        );
        if level >= Refresh::Sources || is_first_look_since(app.status.reconciled_at, ended(app)) {
            app.status.reconciled_at = Some(Time::from(self.now()));
        }
    }

    /// Whether a write would say nothing but that somebody looked: thousands of Applications at rest are not
    /// written every few minutes for that.
    fn says_nothing_new(&self, before: &Value, after: &Value) -> bool {
        let mut like_before = after.clone();
        let known = before.at(&["status", "reconciledAt"]);
        let time = |path: &[&str]| before.at(path).and_then(Value::as_str).and_then(Time::parse);
        let ended = time(&["status", "operationState", "finishedAt"]);
        if is_first_look_since(time(&["status", "reconciledAt"]), ended) {
            // Who waits for an operation, as Argo CD's command line does, waits for the look after it.
            return false;
        }
        if let (Some(known), Some(status)) = (known, like_before.get_mut("status")) {
            status["reconciledAt"] = known.clone();
        }
        !self.settings.sync.compat && like_before == *tiphys_status::put_back(before)
    }

    pub(crate) fn set_unknown(&self, app: &mut Application) {
        app.status.sync.status = SyncStatusCode::Unknown;
        // The spec was looked at, though nothing came of it: who waits for the Application need not wait for
        // that.
        app.status.sync.compared_to = Some(ComparedTo::from_spec(&app.spec));
        app.status.reconciled_at = Some(Time::from(self.now()));
        set_health(app, HealthCode::Unknown, self.now());
    }

    /// An Application that is not of its type still gets a status that says so.
    pub(crate) async fn report_unreadable(&self, key: &AppKey, object: &Value, fault: &str) {
        self.report_unknown(key, object, ConditionType::InvalidSpecError, fault).await;
    }

    /// An Application of which nothing is known but why.
    pub(crate) async fn report_unknown(
        &self,
        key: &AppKey,
        object: &Value,
        kind: ConditionType,
        fault: &str,
    ) {
        let mut after = object.clone();
        set_unknown_because(&mut after, kind, &status_writer::bounded(fault.to_owned()));
        if let Err(error) = status_writer::write(&self.cache, key, object, &after).await {
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
        if app.operation.is_none()
            && let Some(shown) = self.shown_operation(app, before)
        {
            after["operation"] = shown;
        }
        if self.says_nothing_new(before, &after) {
            return true;
        }
        let follows = self.version_to_follow(key);
        match status_writer::write_after(&self.cache, key, before, &after, follows).await {
            Ok(version) => {
                self.note_written(key, version);
                self.note_changes(key, before, app);
                true
            }
            Err(error) => {
                self.lost_write(key, &error);
                if error.is_too_large() {
                    self.report_too_large(key, before, &after, &error).await;
                }
                false
            }
        }
    }

    /// An Application whose status does not fit in an object still gets one that says so; what it did ends
    /// there, for nobody could follow it.
    async fn report_too_large(&self, key: &AppKey, before: &Value, full: &Value, error: &ClusterError) {
        let objects = full.at(&["status", "resources"]).and_then(Value::as_array).map_or(0, Vec::len);
        let message = status_writer::bounded(format!(
            "the status of {objects} objects does not fit in the Application: {error}; make several Applications of it"
        ));
        let mut after = before.clone();
        after["status"] = Value::Null;
        set_unknown_because(&mut after, ConditionType::ComparisonError, &message);
        if let Some(state) = full.at(&["status", "operationState"]) {
            let mut state = json!({"phase": "Error", "message": message, "operation": state["operation"],
                "startedAt": state["startedAt"], "finishedAt": state["finishedAt"]});
            if state["finishedAt"].is_null() {
                state["finishedAt"] = json!(Time::from(self.now()));
            }
            after["status"]["operationState"] = state;
        }
        if let Some(map) = after.as_object_mut() {
            map.remove("operation");
        }
        if let Err(error) = status_writer::write(&self.cache, key, before, &after).await {
            self.lost_write(key, &error);
        }
        self.mark_seen(key);
    }
}

/// Makes the state of an Application unknown, for a reason.
fn set_unknown_because(app: &mut Value, kind: ConditionType, why: &str) {
    let status = &mut app["status"];
    status["sync"] = json!({"status": "Unknown"});
    status["health"] = json!({"status": "Unknown"});
    status["conditions"] = json!([{"type": kind, "message": why}]);
}

/// When the last operation of an Application ended.
fn ended(app: &Application) -> Option<Time> {
    app.status.operation_state.as_ref().filter(|state| state.phase.is_completed())?.finished_at
}

/// Whether nobody has looked at an Application since its last operation ended, or ever.
fn is_first_look_since(looked: Option<Time>, ended: Option<Time>) -> bool {
    looked.is_none_or(|looked| ended.is_some_and(|ended| looked < ended))
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

/// Notes that automated sync leaves an Application out of sync, and why: nothing else says it.
pub(crate) fn note_left(app: &mut Application, decision: &AutoSync) {
    let mut ours =
        app.status.tiphys.take().filter(Value::is_object).unwrap_or_else(|| Value::Object(Map::new()));
    if let Some(map) = ours.as_object_mut() {
        map.remove(names::LEFT_OUT_OF_SYNC);
        if let AutoSync::Left(why) = decision {
            map.insert(names::LEFT_OUT_OF_SYNC.to_owned(), why.as_str().into());
        }
    }
    app.status.tiphys = ours.as_object().is_some_and(|map| !map.is_empty()).then_some(ours);
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
            condition.message = status_writer::bounded(condition.message);
            let known =
                old.iter().find(|known| known.kind == condition.kind && known.message == condition.message);
            condition.last_transition_time = known.and_then(|known| known.last_transition_time).or(Some(now));
            condition
        })
        .collect();
}
