//! How operations end: success, failure, termination, a newer revision, a deadline.

use std::time::Duration;

use tiphys_model::{HookDeletePolicy, OperationPhase, ResultCode, Time};

use crate::{
    Ending, SyncSettings, WaitKind, foreign_owners, retry,
    step::{Progress, action, remove_hook_finalizer, result_of},
    task::Task,
    wave,
};

/// How long a running hook keeps a newer revision waiting.
const HOOK_GRACE: Duration = Duration::from_secs(300);

/// How long something is waited for.
pub(crate) fn limit(kind: WaitKind, settings: &SyncSettings) -> Option<Duration> {
    if settings.compat {
        return None;
    }
    match kind {
        WaitKind::Health => Some(settings.health_deadline),
        WaitKind::Hook => Some(settings.hook_deadline),
        WaitKind::Deletion => Some(settings.deletion_deadline),
        WaitKind::Blocked => Some(settings.blocked_deadline),
        WaitKind::PruneConfirmation | WaitKind::WaveDelay | WaitKind::Retry => None,
    }
}

/// Ends the operation.
pub(crate) fn end(progress: &mut Progress<'_, '_>, phase: OperationPhase, message: String) {
    let shown = &mut progress.state.shown;
    shown.phase = phase;
    shown.message = message;
    shown.finished_at = Some(Time::from(progress.input.now));
    progress.state.extension.not_before = None;
    progress.state.extension.held.clear();
    progress.waits.clear();
    if matches!(phase, OperationPhase::Failed | OperationPhase::Error) {
        retry::begin(progress);
    }
    settle_applied(progress);
}

/// What was applied and is no hook is done when the operation has ended: nobody looks at it any more. Argo CD
/// says for ever that it runs.
fn settle_applied(progress: &mut Progress<'_, '_>) {
    if !progress.state.is_completed() || progress.input.settings.compat {
        return;
    }
    let result = progress.state.shown.sync_result.as_mut();
    for one in result.into_iter().flat_map(|result| &mut result.resources) {
        if one.hook_type.is_empty() && one.hook_phase == Some(OperationPhase::Running) {
            one.hook_phase = Some(OperationPhase::Succeeded);
        }
    }
}

/// Ends the operation as failed, or begins another attempt.
pub(crate) fn fail(progress: &mut Progress<'_, '_>, message: &str) {
    end(progress, OperationPhase::Failed, message.to_owned());
}

/// Ends the operation as failed without another attempt: none could succeed as things are.
pub(crate) fn fail_for_good(progress: &mut Progress<'_, '_>, message: &str, ending: Ending) {
    if progress.input.settings.compat {
        return fail(progress, message);
    }
    end_without_retry(progress, message);
    progress.state.extension.ending = Some(ending);
}

/// Ends the operation well.
pub(crate) fn succeed(progress: &mut Progress<'_, '_>, message: &str) {
    delete_hooks(progress, HookDeletePolicy::HookSucceeded);
    let message = format!("{message}{}", foreign_owners::summary(progress));
    end(progress, OperationPhase::Succeeded, message);
}

/// Ends the operation before it is done; running hooks are deleted. No further attempt is made.
pub(crate) fn terminate(progress: &mut Progress<'_, '_>, message: &str, ending: Ending) {
    abandon_hooks(progress);
    end_without_retry(progress, message);
    progress.state.extension.ending = Some(ending);
}

fn end_without_retry(progress: &mut Progress<'_, '_>, message: &str) {
    let shown = &mut progress.state.shown;
    shown.phase = OperationPhase::Failed;
    shown.message = message.to_owned();
    shown.finished_at = Some(Time::from(progress.input.now));
    progress.state.extension.not_before = None;
    progress.state.extension.held.clear();
    progress.waits.clear();
    settle_applied(progress);
}

/// Ends hooks that run, but lets those that have just completed keep their verdict; lets go of all.
fn abandon_hooks(progress: &mut Progress<'_, '_>) {
    let mut batch = Vec::new();
    for at in (0..progress.tasks.len()).filter(|at| progress.tasks[*at].is_hook()) {
        let task = &progress.tasks[at];
        let Some(live) = task.live.filter(|_| !task.is_pending()) else { continue };
        if wave::has_hook_finalizer(live) {
            batch.push(vec![action(task, remove_hook_finalizer(), true)]);
        }
        if !task.is_running() {
            continue;
        }
        let verdict = wave::verdict(progress, task).filter(|(phase, _)| phase.is_completed());
        if verdict.is_none() || task.is_deleted_on(HookDeletePolicy::HookFailed) {
            batch.push(vec![action(task, wave::delete(task, progress, false), true)]);
        }
        let (phase, message) = verdict.unwrap_or((OperationPhase::Failed, "Terminated".into()));
        let template = result_of(task);
        let result = progress.state.result_mut(&task.id, || template);
        result.hook_phase = Some(phase);
        if !message.is_empty() {
            result.message = message;
        }
    }
    progress.batch = batch;
}

/// Deletes hooks that have a delete policy and do not run, also those that an earlier sync left, and lets go
/// of all completed ones.
pub(crate) fn delete_hooks(progress: &mut Progress<'_, '_>, policy: HookDeletePolicy) {
    let mut batch = Vec::new();
    for task in progress.tasks.iter().filter(|task| task.is_hook() && !task.is_running()) {
        let Some(live) = task.live else { continue };
        let goes = task.is_deleted_on(policy);
        if wave::has_hook_finalizer(live) && (goes || !task.is_pending()) {
            batch.push(vec![action(task, remove_hook_finalizer(), true)]);
        }
        if goes && !wave::is_terminating(live) && !wave::is_held(progress, task) {
            batch.push(vec![action(task, wave::delete(task, progress, false), true)]);
        }
    }
    progress.batch.extend(batch);
}

/// Yields to a newer revision if the operation does nothing but wait; `true` if it did. A running hook
/// has a grace period.
pub(crate) fn yield_to_newer(progress: &mut Progress<'_, '_>) -> bool {
    let Some(newer) = progress.input.newer_revision else { return false };
    let automated = progress.state.shown.operation.initiated_by.automated;
    if progress.input.settings.compat || !automated || !progress.batch.is_empty() || progress.waits.is_empty()
    {
        return false;
    }
    let now = progress.input.now;
    let hook_has_time = progress.waits.iter().any(|wait| {
        wait.kind == WaitKind::Hook && tiphys_model::time::elapsed(wait.since.timestamp(), now) < HOOK_GRACE
    });
    if hook_has_time {
        return false;
    }
    let waited = progress.waits[0].to_string();
    abandon_hooks(progress);
    end_without_retry(progress, &format!("superseded by revision {newer} while {waited}"));
    true
}

/// Fails the tasks whose deadline has passed.
pub(crate) fn expire(progress: &mut Progress<'_, '_>) {
    let now = progress.input.now;
    let expired: Vec<_> = progress
        .waits
        .iter()
        .filter(|wait| wait.kind != WaitKind::Retry || wait.object.is_some())
        .filter(|wait| wait.deadline.is_some_and(|deadline| deadline.timestamp() <= now))
        .cloned()
        .collect();
    for wait in &expired {
        let message = format!("gave up {wait}");
        let is_meant = |t: &Task<'_>| Some(&t.id.key) == wait.object.as_ref();
        let is_open = |t: &Task<'_>| is_meant(t) && !t.phase().is_some_and(OperationPhase::is_completed);
        let at = progress.tasks.iter().position(is_open).or_else(|| progress.tasks.iter().position(is_meant));
        let Some(at) = at else { continue };
        let task = &mut progress.tasks[at];
        let template = result_of(task);
        let result = progress.state.result_mut(&task.id, || template);
        result.hook_phase = Some(OperationPhase::Failed);
        if wait.kind == WaitKind::Blocked {
            result.status = Some(ResultCode::SyncFailed);
        }
        result.message = message;
        task.result = Some(result.clone());
        let key = task.key_text();
        progress.state.extension.held.remove(&key);
    }
    if !expired.is_empty() && progress.tasks.iter().any(Task::has_failed) {
        progress.waits.clear();
        progress.run_fail_phase();
    }
}

/// `waiting for healthy state of apps/Deployment/web and 2 more resources`, in Argo CD's words.
pub(crate) fn waiting_message(tasks: &[Task<'_>], waiting: &[usize], deletion: bool) -> String {
    let hook = waiting.iter().find(|at| tasks[**at].is_hook());
    let Some(first) = hook.or(waiting.first()).map(|at| &tasks[*at]) else { return String::new() };
    let what = match (deletion, hook) {
        (true, Some(_)) => "deletion of hook",
        (true, None) => "deletion of",
        (false, Some(_)) => "completion of hook",
        (false, None) => "healthy state of",
    };
    let only_hooks = waiting.iter().all(|at| tasks[*at].is_hook());
    let noun = if only_hooks { "hooks" } else { "resources" };
    let more = waiting.len() - 1;
    let tail = if more > 0 { format!(" and {more} more {noun}") } else { String::new() };
    let key = &first.id.key;
    format!("waiting for {what} {}/{}/{}{tail}", key.group, key.kind, key.name)
}
