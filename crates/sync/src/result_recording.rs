//! Taking up what became of the actions of a step.

use std::time::Duration;

use tiphys_model::{OperationPhase, ResultCode, Time, Timestamp, time::after};

use crate::{
    Blocker, ErrorClass, Failure, Held, Outcome, SyncSettings, SyncState, Verb, classify,
    failure_class::explained, task::task_key,
};

/// How often a transient failure of one object is repeated before it counts.
const TRANSIENT_ATTEMPTS: u32 = 8;
/// How often what the authorizer refused is repeated: authorizers see new rules within seconds.
const FORBIDDEN_ATTEMPTS: u32 = 3;

/// Pause after a failed read or clean-up.
const PAUSE: Duration = Duration::from_secs(3);

/// Takes up what became of the actions of a step. Call it once for each batch, then step again. Before
/// that, put every [`crate::Done::live`] into the cache that the next input is made from.
pub fn record(state: &mut SyncState, outcomes: &[Outcome], settings: &SyncSettings, now: Timestamp) {
    for outcome in outcomes {
        let is_replaced = is_replaced_hook(state, outcome);
        if outcome.action.is_dry_run() {
            record_dry_run(state, outcome, settings);
        } else if is_replaced {
            record_replaced_hook(state, outcome, settings, now);
        } else if !outcome.action.silent {
            record_one(state, outcome, settings, now);
        }
        // Housekeeping and reads that fail are repeated, but not at once.
        let repeated = outcome.action.silent && !is_replaced || outcome.action.verb == Verb::Get;
        if repeated && outcome.result.is_err() {
            state.extension.not_before = Some(Time::from(after(now, PAUSE)));
        }
    }
    if outcomes.iter().any(|outcome| outcome.action.is_dry_run()) {
        state.extension.dry_run_done = true;
    }
}

/// A dry run finds out what can never work; what another object stands in the way of is judged later.
fn record_dry_run(state: &mut SyncState, outcome: &Outcome, settings: &SyncSettings) {
    let failure = match &outcome.result {
        Ok(done) => return record_tried(state, outcome, &done.message),
        Err(failure) => failure,
    };
    let class = classify(failure);
    let says_nothing = class != ErrorClass::Permanent || failure.message.contains("does not support dry run");
    // Argo CD's dry run does not ask the cluster, so a namespace that is to come cannot be missing.
    if let ErrorClass::Blocked(Blocker::MissingNamespace { .. }) = class {
        if !settings.compat {
            state.extension.absent_namespaces.insert(outcome.action.task.key.namespace.clone());
        }
        return;
    }
    if !settings.compat && says_nothing {
        return;
    }
    let action = &outcome.action;
    let message = if settings.compat { failure.message.clone() } else { explained(failure) };
    state.extension.dry_run_failures.insert(task_key(&action.task), message.clone());
    let result = state.result_mut(&action.task, || action.result_template());
    result.status = Some(ResultCode::SyncFailed);
    result.hook_phase = Some(OperationPhase::Failed);
    result.message = message;
}

/// Of an operation that is itself a dry run, what would be done is the result.
fn record_tried(state: &mut SyncState, outcome: &Outcome, message: &str) {
    if !state.shown.operation.sync.as_ref().is_some_and(|sync| sync.dry_run) {
        return;
    }
    let (code, message) = match outcome.action.verb {
        Verb::Delete { .. } => (ResultCode::Pruned, "pruned (dry run)"),
        _ => (ResultCode::Synced, message),
    };
    finish(state, outcome, code, OperationPhase::Succeeded, message.to_owned());
}

fn record_one(state: &mut SyncState, outcome: &Outcome, settings: &SyncSettings, now: Timestamp) {
    let action = &outcome.action;
    let key = task_key(&action.task);
    match (&outcome.result, &action.verb) {
        (Ok(done), Verb::Get) => {
            if done.live.is_none() {
                let key = &action.task.key;
                let message = format!(
                    "Resource {}/{}/{} is missing, it might have been deleted",
                    key.group, key.kind, key.name
                );
                finish(state, outcome, ResultCode::SyncFailed, OperationPhase::Error, message);
            }
        }
        (Ok(_), Verb::Delete { .. }) => {
            finish(state, outcome, ResultCode::Pruned, OperationPhase::Succeeded, "pruned".into());
        }
        (Ok(done), Verb::Apply { .. }) => {
            state.extension.held.remove(&key);
            finish(state, outcome, ResultCode::Synced, OperationPhase::Running, done.message.clone());
        }
        (Ok(_), Verb::RemoveFinalizer { .. }) | (Err(_), Verb::Get | Verb::RemoveFinalizer { .. }) => {}
        (Err(failure), Verb::Apply { .. } | Verb::Delete { .. }) => {
            if !hold(state, &key, failure, settings, now) {
                if classify(failure) == ErrorClass::Permanent {
                    state.extension.refused.insert(key);
                }
                let message = if settings.compat { failure.message.clone() } else { explained(failure) };
                finish(state, outcome, ResultCode::SyncFailed, OperationPhase::Failed, message);
            }
        }
    }
}

/// Whether the action deletes a hook that an earlier sync left, and that is to be created again.
fn is_replaced_hook(state: &SyncState, outcome: &Outcome) -> bool {
    let action = &outcome.action;
    let is_deletion = action.silent && matches!(action.verb, Verb::Delete { .. });
    is_deletion && state.result(&action.task).is_none() && !state.is_completed()
}

/// Where the API server refuses for good to delete such a hook, it cannot run.
fn record_replaced_hook(state: &mut SyncState, outcome: &Outcome, settings: &SyncSettings, now: Timestamp) {
    let key = task_key(&outcome.action.task);
    match &outcome.result {
        Ok(_) => {
            state.extension.held.remove(&key);
        }
        Err(failure) if hold(state, &key, failure, settings, now) => {}
        Err(failure) => {
            let message = format!("failed to delete resource: {}", failure.message);
            finish(state, outcome, ResultCode::SyncFailed, OperationPhase::Error, message);
        }
    }
}

/// Keeps the task for another attempt; `false` if the failure counts.
fn hold(
    state: &mut SyncState,
    key: &str,
    failure: &Failure,
    settings: &SyncSettings,
    now: Timestamp,
) -> bool {
    let class = classify(failure);
    let most = match class {
        _ if settings.compat => return false,
        ErrorClass::Permanent => return false,
        ErrorClass::Forbidden => FORBIDDEN_ATTEMPTS,
        ErrorClass::Transient => TRANSIENT_ATTEMPTS,
        // They end by the deadline of what waits for them.
        ErrorClass::Unanswered | ErrorClass::Blocked(_) => u32::MAX,
    };
    let earlier = state.extension.held.get(key);
    let attempts = earlier.map_or(0, |held| held.attempts).saturating_add(1);
    if attempts > most {
        state.extension.held.remove(key);
        return false;
    }
    let since = earlier.map_or(Time::from(now), |held| held.since);
    let pause = Duration::from_secs(1 << attempts.min(6)).min(Duration::from_secs(60));
    let held = Held {
        cause: failure.message.clone(),
        since,
        next: Time::from(after(now, pause)),
        attempts,
        blocker: match class {
            ErrorClass::Blocked(blocker) => Some(blocker),
            _ => None,
        },
    };
    state.extension.held.insert(key.to_owned(), held);
    true
}

fn finish(
    state: &mut SyncState,
    outcome: &Outcome,
    code: ResultCode,
    phase: OperationPhase,
    message: String,
) {
    let template = || outcome.action.result_template();
    let result = state.result_mut(&outcome.action.task, template);
    result.status = Some(code);
    result.hook_phase = Some(phase);
    result.message = message;
}
