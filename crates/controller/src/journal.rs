//! What happened to an Application between two writes of its status, as log lines and Kubernetes Events with
//! Argo CD's reasons: nobody has to ask at the right moment to learn of it.

use std::collections::BTreeSet;

use tiphys_model::{
    Application, HealthCode, OperationPhase, OperationState, ResultCode, SyncStatusCode, status::Condition,
};
use tiphys_sync::{SyncState, WaitKind};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The machine-readable reason, such as `OperationStarted`.
    pub reason: String,
    /// Whether somebody should look.
    pub is_warning: bool,
    /// For people.
    pub message: String,
}

impl Entry {
    pub(crate) fn normal(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), is_warning: false, message: message.into() }
    }

    fn warning(reason: &str, message: impl Into<String>) -> Self {
        Self { is_warning: true, ..Self::normal(reason, message) }
    }
}

/// What happened from one status to the next, in the order in which it is told.
pub(crate) fn entries(before: Option<&Application>, after: &Application) -> Vec<Entry> {
    let (old, new) = (before.map(|app| &app.status), &after.status);
    let mut all = Vec::new();
    let old_state = old.and_then(|status| status.operation_state.as_ref());
    if let Some(state) = &new.operation_state {
        // An operation that began at another time is another one.
        let same = old_state.filter(|old| old.started_at == state.started_at);
        operation(same, state, &mut all);
    }
    conditions(old.map_or(&[][..], |status| &status.conditions), &new.conditions, &mut all);
    let sync = old.map_or(SyncStatusCode::Unknown, |status| status.sync.status);
    if sync != new.sync.status {
        let message = format!("Updated sync status: {} -> {}", sync.as_str(), new.sync.status.as_str());
        all.push(Entry::normal("ResourceUpdated", message));
    }
    let health = |status: Option<HealthCode>| status.map_or("Unknown", HealthCode::as_str);
    let (old, new) = (health(old.and_then(|status| status.health.status)), health(new.health.status));
    if old != new {
        all.push(Entry::normal("ResourceUpdated", format!("Updated health status: {old} -> {new}")));
    }
    all
}

fn operation(before: Option<&OperationState>, after: &OperationState, all: &mut Vec<Entry>) {
    let revision = revision_of(after);
    if before.is_none() {
        all.push(Entry::normal("OperationStarted", started(after, &revision)));
    }
    removed(before, after, all);
    report_held(before, after, all);
    let ended = |state: &OperationState| state.phase.is_completed();
    if !ended(after) || before.is_some_and(ended) {
        return;
    }
    all.push(match after.phase {
        OperationPhase::Succeeded => {
            Entry::normal("OperationCompleted", format!("Sync operation to {revision} succeeded"))
        }
        _ => Entry::warning(
            "OperationCompleted",
            format!("Sync operation to {revision} failed: {}", after.message),
        ),
    });
}

fn revision_of(state: &OperationState) -> String {
    let result = state.sync_result.as_ref().map(|result| (&result.revision, &result.revisions));
    let asked = state.operation.sync.as_ref().map(|sync| (&sync.revision, &sync.revisions));
    let found = [result, asked].into_iter().flatten().find_map(|(one, many)| match many.is_empty() {
        true => (!one.is_empty()).then(|| one.clone()),
        false => Some(many.join(", ")),
    });
    found.unwrap_or_else(|| "the newest revision".to_owned())
}

fn started(state: &OperationState, revision: &str) -> String {
    let by = &state.operation.initiated_by;
    let is_heal = state.operation.sync.as_ref().is_some_and(|sync| sync.auto_heal_attempts_count > 0);
    match (by.automated, by.username.as_str()) {
        (true, _) if is_heal => format!("Initiated automated sync to '{revision}' (self-heal)"),
        (true, _) => format!("Initiated automated sync to '{revision}'"),
        (false, "") => format!("Initiated sync to '{revision}'"),
        (false, user) => format!("{user} initiated sync to '{revision}'"),
    }
}

/// Objects that a sync has pruned since.
fn removed(before: Option<&OperationState>, after: &OperationState, all: &mut Vec<Entry>) {
    let pruned = |state: &OperationState| -> BTreeSet<String> {
        let results = state.sync_result.iter().flat_map(|result| &result.resources);
        let pruned = results.filter(|result| result.status == Some(ResultCode::Pruned));
        pruned.map(|one| object_name(&one.group, &one.kind, &one.namespace, &one.name)).collect()
    };
    let known = before.map(pruned).unwrap_or_default();
    for object in pruned(after).difference(&known) {
        all.push(Entry::normal("ResourceDeleted", format!("Pruned {object}")));
    }
}

fn object_name(group: &str, kind: &str, namespace: &str, name: &str) -> String {
    let group = if group.is_empty() { String::new() } else { format!("{group}/") };
    let namespace = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    format!("{group}{kind} {namespace}{name}")
}

/// Objects that an operation cannot go past since.
fn report_held(before: Option<&OperationState>, after: &OperationState, all: &mut Vec<Entry>) {
    let blocked = |state: &OperationState| -> BTreeSet<String> {
        if state.phase.is_completed() {
            return BTreeSet::new();
        }
        let state = SyncState::from_operation_state(state.clone());
        let waits = state.waits().iter().filter(|wait| wait.kind == WaitKind::Blocked);
        waits.map(ToString::to_string).collect()
    };
    let known = before.map(blocked).unwrap_or_default();
    for wait in blocked(after).difference(&known) {
        all.push(Entry::warning("ResourceBlocked", wait.clone()));
    }
}

/// Errors that were not there before: a rendering that fails, a spec that cannot be used.
fn conditions(before: &[Condition], after: &[Condition], all: &mut Vec<Entry>) {
    let is_new = |condition: &&Condition| {
        !before.iter().any(|old| old.kind == condition.kind && old.message == condition.message)
    };
    for condition in after.iter().filter(|condition| condition.kind.is_error()).filter(is_new) {
        all.push(Entry::warning(&format!("{:?}", condition.kind), condition.message.clone()));
    }
}

#[cfg(test)]
mod tests {
    use tiphys_value::{Value, json};

    use super::*;

    fn app(status: Value) -> Application {
        let object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "argocd"}, "spec": {}, "status": status});
        Application::from_value(&object).unwrap()
    }

    fn changes_between(before: &Application, after: &Application) -> Vec<String> {
        let all = entries(Some(before), after).into_iter();
        all.map(|entry| {
            format!("{}{}: {}", if entry.is_warning { "! " } else { "" }, entry.reason, entry.message)
        })
        .collect()
    }

    #[test]
    fn an_operation_is_told_once_when_it_begins_and_once_when_it_ends() {
        let state = |phase: &str, message: &str| {
            json!({"phase": phase, "message": message, "startedAt": "2026-01-02T03:04:05Z",
                "operation": {"initiatedBy": {"automated": true}, "sync": {"revision": "abc"}},
                "syncResult": {"revision": "abc", "resources": [
                    {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "old", "status": "Pruned"}]}})
        };
        let idle = app(json!({"sync": {"status": "OutOfSync"}}));
        let running = app(json!({"sync": {"status": "OutOfSync"}, "operationState": state("Running", "")}));
        let expected = [
            "OperationStarted: Initiated automated sync to 'abc'",
            "ResourceDeleted: Pruned ConfigMap shop/old",
        ];
        assert_eq!(changes_between(&idle, &running), expected);
        assert_eq!(changes_between(&running, &running), [""; 0]);
        let done = app(json!({"sync": {"status": "Synced"}, "operationState": state("Succeeded", "")}));
        let expected = [
            "OperationCompleted: Sync operation to abc succeeded",
            "ResourceUpdated: Updated sync status: OutOfSync -> Synced",
        ];
        assert_eq!(changes_between(&running, &done), expected);
        let failed = app(json!({"sync": {"status": "OutOfSync"}, "operationState": state("Failed", "no")}));
        assert_eq!(
            changes_between(&running, &failed),
            ["! OperationCompleted: Sync operation to abc failed: no"]
        );
    }

    #[test]
    fn a_rendering_that_fails_is_told_until_it_says_something_else() {
        let broken =
            |message: &str| app(json!({"conditions": [{"type": "ComparisonError", "message": message}]}));
        assert_eq!(changes_between(&app(json!({})), &broken("no chart")), ["! ComparisonError: no chart"]);
        assert_eq!(changes_between(&broken("no chart"), &broken("no chart")), [""; 0]);
        assert_eq!(
            changes_between(&broken("no chart"), &broken("no values")),
            ["! ComparisonError: no values"]
        );
    }
}
