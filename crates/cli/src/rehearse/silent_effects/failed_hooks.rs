//! Applications that are Synced and Healthy although a hook of their last operation failed: one after the
//! sync fails when everything else is done.

use std::collections::BTreeMap;

use tiphys_apiserver::Snapshot;
use tiphys_cause::Cause as Id;
use tiphys_model::{OperationState, ResourceResult, names};
use tiphys_stage::{applications_in, causes::Cause, mechanism::Mechanism, story::Story};
use tiphys_value::ResourceKey;

use super::hidden_cause::hidden_cause;

/// Those whose operation of this play ended so. What failed before a change is no effect of it.
pub(super) fn applications(story: &Story, before: Option<&Snapshot>, end: &Snapshot) -> Vec<Cause> {
    let known = before.map(operations).unwrap_or_default();
    let is_green = |key: &ResourceKey| {
        let of_story =
            |app: &&tiphys_stage::story::AppEnd| (&app.namespace, &app.name) == (&key.namespace, &key.name);
        story.applications.iter().find(of_story).is_some_and(|app| app.is_green)
    };
    let ended = operations(end).into_iter().filter(|(key, state)| {
        is_green(key) && known.get(key).is_none_or(|old| old.started_at != state.started_at)
    });
    ended
        .filter_map(|(key, state)| {
            let results = state.sync_result.as_ref()?.resources.iter();
            let failed: Vec<&ResourceResult> = results.filter(|it| has_failed(it)).collect();
            let first = failed.first()?;
            let text =
                format!("hook {} {}/{} failed: {}", first.kind, first.namespace, first.name, first.message);
            let objects = failed.iter().map(|it| hook_key(it)).collect();
            let mechanism = Mechanism { id: Id::GitopsHookFailed, objects };
            Some(hidden_cause(key, mechanism, text, "ends with a failed hook"))
        })
        .collect()
}

/// The operations of all Applications.
fn operations(snapshot: &Snapshot) -> BTreeMap<ResourceKey, OperationState> {
    let with_key = applications_in(snapshot).filter_map(|app| {
        let key = ResourceKey::new(names::GROUP, "Application", &app.metadata.namespace, &app.metadata.name);
        Some((key, app.status.operation_state?))
    });
    with_key.collect()
}

fn has_failed(result: &ResourceResult) -> bool {
    let has_ended_badly =
        result.hook_phase.is_some_and(|phase| phase.is_completed() && !phase.is_successful());
    !result.hook_type.is_empty() && has_ended_badly
}

fn hook_key(result: &ResourceResult) -> ResourceKey {
    ResourceKey::new(&result.group, &result.kind, &result.namespace, &result.name)
}
