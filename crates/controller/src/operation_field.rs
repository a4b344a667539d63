//! The field `operation` of an Application. As Argo CD leaves it, it stays until the operation ends
//! (controller `setOperationState`): by it other programs know that one is under way, and who takes it away
//! wants to be rid of it.

use std::sync::Arc;

use tiphys_model::{Application, Operation, OperationPhase, names};
use tiphys_value::{ObjectExt, Value, json};

/// Whether an operation is under way.
pub(crate) fn is_running(app: &Application) -> bool {
    app.status.operation_state.as_ref().is_some_and(|state| !state.phase.is_completed())
}

/// The operation that an object asks for, if it can be read.
fn requested_operation(object: &Value) -> Option<Operation> {
    serde_json::from_value(object.get("operation")?.clone()).ok()
}

/// Whether an operation is under way by the status of an object.
fn is_under_way(object: &Value) -> bool {
    matches!(object.str_at(&["status", "operationState", "phase"]), Some("Running" | "Terminating"))
}

/// Whether the operation that an object asks for is the one that is under way, as the engine writes it.
pub(crate) fn asks_for_its_own(object: &Value) -> bool {
    is_under_way(object) && object.get("operation") == object.at(&["status", "operationState", "operation"])
}

/// Whether an operation that is asked for is the one that is under way, whose retries may have taken another
/// revision.
fn is_same(asked: &Operation, running: &Operation) -> bool {
    let without_revision = |operation: &Operation| {
        let mut operation = operation.clone();
        if let Some(sync) = &mut operation.sync {
            sync.revision.clear();
            sync.revisions.clear();
        }
        operation
    };
    match running.retry.refresh {
        true => without_revision(asked) == without_revision(running),
        false => asked == running,
    }
}

/// The operation that somebody took away between two states of an Application: its state, or the request for
/// it.
pub(crate) fn taken_away(old: &Value, new: &Value) -> Option<Operation> {
    let without_state = new.at(&["status", "operationState"]).is_none_or(Value::is_null);
    let is_gone = match without_state {
        true => new.get("operation").is_some(),
        false => old.get("operation").is_some() && new.get("operation").is_none() && is_under_way(new),
    };
    if !is_gone || !is_under_way(old) {
        return None;
    }
    let state = old.at(&["status", "operationState", "operation"])?;
    serde_json::from_value(state.clone()).ok()
}

/// Takes out of an Application the request for what is under way, so that what is left of it is asked for
/// since.
pub(crate) fn without_running(app: &mut Application) {
    let state = app.status.operation_state.as_ref().filter(|state| !state.phase.is_completed());
    if state.zip(app.operation.as_ref()).is_some_and(|(state, asked)| is_same(asked, &state.operation)) {
        app.operation = None;
    }
}

/// Takes out of an object that was just written what was asked for since: another operation than the one that
/// is under way, and a refresh, as the write took away what was asked before it. What compares with this
/// object then leaves both alone.
pub(crate) fn without_newer(object: &mut Arc<Value>, running: &Operation) {
    let is_newer = requested_operation(object).is_some_and(|asked| !is_same(&asked, running));
    if is_newer && let Some(map) = Arc::make_mut(object).as_object_mut() {
        map.remove("operation");
    }
    for request in [names::REFRESH, names::REFRESH_TIMESTAMP] {
        if object.annotation(request).is_some()
            && let Some(Value::Object(all)) = Arc::make_mut(object).pointer_mut("/metadata/annotations")
        {
            all.remove(request);
        }
    }
}

/// What the field is to be in an Application that asks for nothing else: `before` is what a look began with,
/// `now` what is there now.
pub(crate) fn after_write(app: &Application, before: &Value, now: Option<&Value>) -> Option<Value> {
    let there = before.get("operation");
    let now = now.and_then(|now| now.get("operation"));
    let state = app.status.operation_state.as_ref().filter(|_| is_running(app));
    match (there, state) {
        (Some(there), Some(_)) => Some(there.clone()),
        // What is there now was asked for since: it is served after this one.
        (None, Some(state)) => now.is_none().then(|| json!(state.operation)),
        (Some(there), None) => now.is_some_and(|now| now != there).then(|| there.clone()),
        (None, None) => None,
    }
}

/// Ends what somebody has taken away of an Application: without its state it is not begun again, without the
/// request it is terminated. `false` if the object is of before that.
pub(crate) fn end_withdrawn(app: &mut Application, gone: &Operation) -> bool {
    let is_asked = app.operation.as_ref().is_some_and(|asked| is_same(asked, gone));
    match app.status.operation_state.as_mut().filter(|state| !state.phase.is_completed()) {
        Some(state) if !is_asked => state.phase = OperationPhase::Terminating,
        Some(_) => return false,
        None if is_asked => app.operation = None,
        None => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(operation: Value, phase: &str) -> Value {
        let state = json!({"operation": {"sync": {"prune": true}}, "phase": phase,
            "startedAt": "2026-01-01T00:00:00Z"});
        json!({"operation": operation, "status": {"operationState": state}})
    }

    #[test]
    fn what_people_take_away_is_told_from_what_the_engine_ends() {
        let running = app(json!({"sync": {"prune": true}}), "Running");
        let without = |path: &[&str]| {
            let mut object = running.clone();
            path.iter().for_each(|field| {
                let holder = if *field == "operation" { &mut object } else { &mut object["status"] };
                holder.as_object_mut().unwrap().remove(*field);
            });
            object
        };
        assert!(taken_away(&running, &without(&["operationState"])).is_some());
        assert!(taken_away(&running, &without(&["operation"])).is_some());
        assert!(taken_away(&running, &running).is_none());
        let mut ended = app(Value::Null, "Succeeded");
        ended.as_object_mut().unwrap().remove("operation");
        assert!(taken_away(&running, &ended).is_none(), "the end takes the request along");
        assert!(taken_away(&ended, &without(&["operationState"])).is_none());
        assert!(
            taken_away(&running, &without(&["operation", "operationState"])).is_none(),
            "nothing would begin again"
        );
    }

    #[test]
    fn what_is_asked_for_after_a_write_is_left_alone_by_the_next() {
        let running = serde_json::from_value::<Operation>(json!({"sync": {"prune": true}})).unwrap();
        let mut newer = app(json!({"sync": {"revision": "b"}}), "Running");
        newer["metadata"] = json!({"annotations": {"argocd.argoproj.io/refresh": "hard", "note": "x"}});
        let mut written = Arc::new(newer);
        without_newer(&mut written, &running);
        assert_eq!(
            (written.get("operation"), &written["metadata"]),
            (None, &json!({"annotations": {"note": "x"}}))
        );
        let same = app(json!({"sync": {"prune": true}}), "Running");
        let mut written = Arc::new(same.clone());
        without_newer(&mut written, &running);
        assert_eq!(*written, same);
    }

    #[test]
    fn another_request_is_not_what_is_under_way() {
        let read = |sync: Value| serde_json::from_value::<Operation>(json!({"sync": sync})).unwrap();
        let (plain, newer) = (read(json!({"revision": "a"})), read(json!({"revision": "b"})));
        assert!(is_same(&plain, &plain) && !is_same(&newer, &plain));
        let mut refreshing = newer.clone();
        refreshing.retry.refresh = true;
        let mut asked = plain.clone();
        asked.retry.refresh = true;
        assert!(is_same(&asked, &refreshing), "its retries took another revision");
    }
}
