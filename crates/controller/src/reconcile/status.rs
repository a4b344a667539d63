//! What a look at an Application puts into its status. Nothing here is written, and nothing is asked.

use jiff::Timestamp;
use tiphys_cluster::ClusterError;
use tiphys_model::{
    Application, Condition, ConditionType, HealthCode, SyncStatusCode, Time, names,
    status::{ComparedTo, SyncStatus},
    tiphys_status,
};
use tiphys_sync::{AutoSync, Comparison, SyncState};
use tiphys_value::{Map, ObjectExt, Value, json};

use super::compare::Compared;
use crate::{
    Refresh,
    operation_field::{self, is_running},
    orphans,
    status_writer::bounded,
};

/// Puts the result of a comparison into the status.
pub(crate) fn show(
    app: &mut Application,
    compared: Option<&Compared>,
    level: Refresh,
    engine_namespace: &str,
    now: Timestamp,
) {
    let Some(Compared { comparison, rendering, orphans, policy, .. }) = compared else {
        set_unknown(app, now);
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
    engine_namespace.clone_into(&mut app.status.controller_namespace);
    set_health(app, comparison.health.as_ref().map_or(HealthCode::Healthy, |health| health.status), now);
    if level >= Refresh::Sources || is_first_look_since(app.status.reconciled_at, ended(app)) {
        app.status.reconciled_at = Some(Time::from(now));
    }
}

/// Whether a write would say nothing but that somebody looked: thousands of Applications at rest are not
/// written every few minutes for that.
pub(super) fn says_nothing_new(before: &Value, after: &Value) -> bool {
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
    like_before == *tiphys_status::put_back(before)
}

/// Nothing is known of an Application's state.
pub(crate) fn set_unknown(app: &mut Application, now: Timestamp) {
    app.status.sync.status = SyncStatusCode::Unknown;
    // The spec was looked at, though nothing came of it: who waits for the Application need not wait for
    // that.
    app.status.sync.compared_to = Some(ComparedTo::from_spec(&app.spec));
    app.status.reconciled_at = Some(Time::from(now));
    set_health(app, HealthCode::Unknown, now);
}

/// The object of an Application with its status, its operation, and without the request for a refresh.
/// `there` is the object as it is known now.
pub(super) fn written(before: &Value, app: &Application, there: Option<&Value>) -> Value {
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
        && let Some(shown) = operation_field::after_write(app, before, there)
    {
        after["operation"] = shown;
    }
    after
}

/// An Application whose status does not fit in an object still gets one that says so; what it did ends there,
/// for nobody could follow it.
pub(super) fn too_large(before: &Value, full: &Value, error: &ClusterError, now: Timestamp) -> Value {
    let objects = full.at(&["status", "resources"]).and_then(Value::as_array).map_or(0, Vec::len);
    let message = bounded(format!(
        "the status of {objects} objects does not fit in the Application: {error}; make several Applications of it"
    ));
    let mut after = before.clone();
    after["status"] = Value::Null;
    set_unknown_because(&mut after, ConditionType::ComparisonError, &message);
    if let Some(state) = full.at(&["status", "operationState"]) {
        let mut state = json!({"phase": "Error", "message": message, "operation": state["operation"],
            "startedAt": state["startedAt"], "finishedAt": state["finishedAt"]});
        if state["finishedAt"].is_null() {
            state["finishedAt"] = json!(Time::from(now));
        }
        after["status"]["operationState"] = state;
    }
    if let Some(map) = after.as_object_mut() {
        map.remove("operation");
    }
    after
}

/// Makes the state of an Application unknown, for a reason.
pub(super) fn set_unknown_because(app: &mut Value, kind: ConditionType, why: &str) {
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
            condition.message = bounded(condition.message);
            let known =
                old.iter().find(|known| known.kind == condition.kind && known.message == condition.message);
            condition.last_transition_time = known.and_then(|known| known.last_transition_time).or(Some(now));
            condition
        })
        .collect();
}

/// Notes that an operation has made the objects whose names are generated.
pub(super) fn note_generated(app: &mut Application, state: &SyncState, comparison: &Comparison) {
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
pub(super) fn remember_reverts(ours: &mut Option<Value>, entry: Value) {
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

/// Whether an Application is as its sources say, healthy, and nothing is told of it.
pub(super) fn is_at_rest(app: &Application) -> bool {
    app.status.sync.status == SyncStatusCode::Synced
        && app.status.health.status == Some(HealthCode::Healthy)
        && app.status.conditions.is_empty()
        && app.operation.is_none()
        && !is_running(app)
}
