//! One step of an operation. Nothing is remembered but the results of tasks: every step builds the tasks
//! anew, looks at the live objects, and decides what to do next.

use std::{collections::BTreeSet, time::Duration};

use tiphys_model::{
    OperationPhase, Propagation, ResourceResult, ResultCode, SyncPhase, Time, Timestamp, names,
};

use crate::{
    Action, Batch, Blocker, Ending, SyncInput, SyncState, SyncStep, Verb, Wait, WaitKind, foreign_owners,
    operation_end::{self, delete_hooks},
    retry,
    task::{self, Task},
    wave,
};

/// How often something blocked is looked at though nothing changed.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// A step in the making.
pub(crate) struct Progress<'a, 'i> {
    pub input: &'a SyncInput<'i>,
    pub state: SyncState,
    pub tasks: Vec<Task<'i>>,
    pub batch: Batch,
    pub waits: Vec<Wait>,
}

/// Takes one step of an operation. A completed operation stays as it is. The step of an operation that
/// has just ended may still carry actions: they clean up, and their outcomes do not matter.
pub fn step(input: &SyncInput<'_>, state: &SyncState) -> SyncStep {
    if state.is_completed() {
        return SyncStep { state: state.clone(), batch: Batch::new(), requeue_at: None };
    }
    let mut state = state.clone();
    let mut progress = Progress {
        tasks: task::build(input, &mut state),
        input,
        state,
        batch: Batch::new(),
        waits: Vec::new(),
    };
    if !progress.ends_early() {
        // Tasks that are settled without an action (skipped prunes) free the next wave at once.
        for _ in 0..=progress.tasks.len() {
            progress.advance();
            if progress.state.is_completed() || !progress.batch.is_empty() || !progress.waits.is_empty() {
                break;
            }
        }
    }
    progress.into_step()
}

impl Progress<'_, '_> {
    /// Terminations, time limits and everything that forbids the operation as a whole.
    fn ends_early(&mut self) -> bool {
        let now = self.input.now;
        let timed_out = self.input.settings.sync_timeout.is_some_and(|limit| {
            tiphys_model::time::elapsed(self.state.shown.started_at.timestamp(), now) > limit
        });
        if self.input.terminate || self.state.shown.phase == OperationPhase::Terminating {
            operation_end::terminate(self, "Operation terminated", Ending::ByPerson);
            return true;
        }
        if timed_out {
            let message = "Operation terminated, triggered by controller sync timeout";
            operation_end::terminate(self, message, Ending::Timeout);
            return true;
        }
        if self.waits_for_retry() {
            return true;
        }
        if let Some(error) = self.input.blocking_error {
            operation_end::end(self, OperationPhase::Error, error.to_owned());
            return true;
        }
        if !self.input.window_open {
            self.state.shown.message = "Sync operation blocked by sync window".into();
            self.wait_blocked(Blocker::SyncWindow, None, "sync window", None);
            operation_end::yield_to_newer(self);
            return true;
        }
        if foreign_owners::fails_on_shared(self) || self.has_invalid_tasks() {
            return true;
        }
        foreign_owners::settle_left_alone(self);
        false
    }

    /// Between two attempts; begins the next attempt when its time has come.
    fn waits_for_retry(&mut self) -> bool {
        let Some(until) = self.state.extension.not_before.filter(|_| self.between_attempts()) else {
            return false;
        };
        if self.input.now < until.timestamp() {
            let told = retry::unread(&self.state.shown.operation.retry);
            self.wait(WaitKind::Retry, None, &told, Some(until));
            operation_end::yield_to_newer(self);
            return true;
        }
        let now = Time::from(self.input.now);
        if let Some(result) = &mut self.state.shown.sync_result {
            result.resources.clear();
        }
        self.state.shown.finished_at = None;
        let inputs = std::mem::take(&mut self.state.extension.inputs);
        self.state.extension =
            crate::Extension { attempt_started_at: Some(now), inputs, ..crate::Extension::default() };
        self.tasks = task::build(self.input, &mut self.state);
        false
    }

    /// An attempt has ended and another is to come: only then has a running operation an end time.
    fn between_attempts(&self) -> bool {
        self.state.shown.finished_at.is_some()
    }

    fn has_invalid_tasks(&mut self) -> bool {
        let invalid: Vec<_> = self
            .tasks
            .iter()
            .filter_map(|task| Some((result_of(task), task.id.clone(), task.invalid.clone()?)))
            .collect();
        if invalid.is_empty() {
            return false;
        }
        let mut messages: Vec<String> = Vec::new();
        for (template, id, message) in invalid {
            let result = self.state.result_mut(&id, || template);
            result.status = Some(ResultCode::SyncFailed);
            result.hook_phase = None;
            result.message.clone_from(&message);
            messages.push(message);
        }
        messages.sort();
        messages.dedup();
        let message = format!("one or more synchronization tasks are not valid: {}", messages.join("; "));
        operation_end::fail_for_good(self, &message, Ending::Permanent);
        true
    }

    fn advance(&mut self) {
        if !self.state.extension.dry_run_done && self.makes_namespace() {
            return;
        }
        if !self.state.extension.dry_run_done && wave::dry_run(self) {
            return;
        }
        if !self.state.extension.dry_run_failures.is_empty() {
            let messages: Vec<_> = self.state.extension.dry_run_failures.values().cloned().collect();
            let text = distinct(&messages);
            let message = format!("one or more objects failed to apply (dry run), reason: {text}");
            operation_end::fail_for_good(self, &message, Ending::Permanent);
            return;
        }
        if self.input.operation.sync.as_ref().is_some_and(|sync| sync.dry_run) {
            wave::settle_untried(self);
            operation_end::end(self, OperationPhase::Succeeded, "successfully synced (dry run)".into());
            return;
        }
        if self.is_complete_without_waiting() {
            operation_end::succeed(self, "successfully synced (all tasks run)");
            return;
        }
        self.look_at_running();
        // Argo CD first waits for what else runs, however long that takes.
        if !self.input.settings.compat && self.tasks.iter().any(Task::has_failed) {
            self.run_fail_phase();
            return;
        }
        let next = self.pending().map(Task::step).min();
        let runs = |t: &Task<'_>| !t.is_pending() && !self.is_destination(t);
        let begun = next.filter(|next| self.tasks.iter().any(|t| t.step() == *next && runs(t)));
        if let Some(wave) = begun.filter(|_| !self.input.settings.compat) {
            // What is held in a wave that has begun is tried again while the rest of it is awaited.
            wave::run(self, wave);
            if self.tasks.iter().any(Task::has_failed) {
                return;
            }
        }
        if self.waits_for_running() || self.waits_for_deletions() {
            operation_end::yield_to_newer(self);
            return;
        }
        self.release_hooks();
        if self.tasks.iter().any(Task::has_failed) {
            self.run_fail_phase();
            return;
        }
        match next {
            None => {
                operation_end::succeed(self, "successfully synced (no more tasks)");
                return;
            }
            Some(next) if begun.is_none() || self.input.settings.compat => wave::run(self, next),
            Some(_) => {}
        }
        if self.batch.is_empty() && !self.waits.is_empty() {
            operation_end::yield_to_newer(self);
        }
    }

    /// The destination namespace comes before the dry run, which would find out nothing about what is to live
    /// in it.
    fn makes_namespace(&mut self) -> bool {
        let is_dry = self.input.operation.sync.as_ref().is_some_and(|sync| sync.dry_run);
        let made =
            |task: &Task<'_>| !is_dry && !task.is_prune() && task.live.is_none() && self.is_destination(task);
        let Some(at) = self.tasks.iter().position(made) else { return false };
        let task = &self.tasks[at];
        if task.has_failed() {
            let message = with_reasons("the namespace failed to apply", &[task]);
            self.fail(&message);
            return true;
        }
        if !task.is_pending() {
            return false;
        }
        wave::run_alone(self, at);
        if self.batch.is_empty() && !self.waits.is_empty() {
            operation_end::yield_to_newer(self);
        }
        true
    }

    /// Tasks that have still to run, SyncFail aside.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Task<'_>> {
        self.tasks.iter().filter(|task| {
            task.is_pending() && task.id.phase != SyncPhase::SyncFail && !self.is_left_out(task)
        })
    }

    /// With `ApplyOutOfSyncOnly`, objects that do not differ are not applied.
    pub(crate) fn is_left_out(&self, task: &Task<'_>) -> bool {
        self.input.options.is_on("ApplyOutOfSyncOnly")
            && !task.is_hook()
            && !task.is_prune()
            && !task.is_generated
            && !self.is_made_up(task)
            && !self.input.out_of_sync.contains(&task.id.key)
    }

    fn is_destination(&self, task: &Task<'_>) -> bool {
        let key = &task.id.key;
        key.kind == "Namespace" && key.group.is_empty() && key.name == self.input.destination_namespace
    }

    /// The destination namespace, if no source declares it.
    fn is_made_up(&self, task: &Task<'_>) -> bool {
        use tiphys_value::ObjectExt;
        let name = &task.id.key.name;
        self.is_destination(task)
            && !self.input.targets.iter().any(|t| t.kind() == "Namespace" && t.name() == name)
    }

    /// Sets the phase of running tasks from their live objects.
    fn look_at_running(&mut self) {
        // What is held of a wave may be what its other objects lack (a scale target of a kind that is still
        // to come), and a wave has no verdict before all of it is there.
        let held = self.pending().map(Task::step).min().filter(|_| !self.input.settings.compat);
        for at in 0..self.tasks.len() {
            let task = &self.tasks[at];
            if !task.is_running() {
                continue;
            }
            let mut verdict = wave::verdict(self, task);
            if held == Some(task.step()) && !task.is_hook() {
                verdict = verdict.filter(|(phase, _)| *phase != OperationPhase::Failed);
            }
            let task = &mut self.tasks[at];
            let template = result_of(task);
            let result = self.state.result_mut(&task.id, || template);
            if let Some((phase, message)) = verdict {
                result.hook_phase = Some(phase);
                if !message.is_empty() {
                    result.message = message;
                }
            }
            task.result = Some(result.clone());
        }
    }

    /// A sync whose last wave holds no hook is done as soon as that wave is applied: waves before it were
    /// awaited before it began.
    fn is_complete_without_waiting(&self) -> bool {
        // The destination namespace comes before its wave, which is no wave that something waits for.
        let takes_part = |task: &&Task<'_>| {
            task.id.phase != SyncPhase::SyncFail
                && !(task.is_pending() && self.is_left_out(task))
                && !self.is_destination(task)
        };
        let ordinary = || self.tasks.iter().filter(takes_part);
        let Some(last) = ordinary().map(Task::step).max() else {
            // What was pruned is among the results, and no task any more.
            let is_pruned = |result: &ResourceResult| result.status == Some(ResultCode::Pruned);
            return !self.state.results().is_empty() && self.state.results().iter().all(is_pruned);
        };
        let has_failed = self.tasks.iter().any(|t| t.has_failed() && t.id.phase != SyncPhase::SyncFail);
        self.pending().next().is_none()
            && !has_failed
            && ordinary().all(|task| task.step() == last || !task.is_running())
            && !ordinary().any(|task| task.step() == last && task.is_hook())
    }

    /// Waits for running tasks: for all of them if there is more than one wave, else for hooks only.
    fn waits_for_running(&mut self) -> bool {
        // Hooks for a failure are a step of their own: whether they run is told by what is awaited.
        let declared = self.tasks.iter().filter(|task| !self.is_made_up(task));
        let steps: BTreeSet<_> = declared.map(Task::step).collect();
        let several = steps.len() > 1;
        let running: Vec<usize> = (0..self.tasks.len())
            .filter(|at| self.tasks[*at].is_running() && (several || self.tasks[*at].is_hook()))
            .collect();
        if running.is_empty() {
            return false;
        }
        let mut gets = Vec::new();
        for at in &running {
            let task = &self.tasks[*at];
            let health = task.live.and_then(|live| live.health.as_ref());
            let cause = match (task.live, health) {
                (None, _) => "not seen in the cluster yet".to_owned(),
                (_, health) => health.map(cause_of).unwrap_or_default(),
            };
            if task.live.is_none() && !self.is_paused() {
                gets.push(action(task, Verb::Get, false));
            }
            let kind = if task.is_hook() { WaitKind::Hook } else { WaitKind::Health };
            let key = task.id.key.clone();
            self.wait(kind, Some(key), &cause, None);
        }
        self.state.shown.message = operation_end::waiting_message(&self.tasks, &running, false);
        if gets.is_empty() {
            operation_end::expire(self);
        } else {
            self.batch.push(gets);
        }
        true
    }

    /// Waits for pruned objects that are not gone yet, and says what holds them.
    fn waits_for_deletions(&mut self) -> bool {
        let held: Vec<usize> = (0..self.tasks.len())
            .filter(|at| {
                let task = &self.tasks[*at];
                task.has_status(ResultCode::Pruned) && task.live.is_some_and(wave::is_terminating)
            })
            .collect();
        for at in &held {
            let task = &self.tasks[*at];
            let cause = task.live.map(wave::finalizers).unwrap_or_default();
            let key = task.id.key.clone();
            self.wait(WaitKind::Deletion, Some(key), &cause, None);
        }
        if held.is_empty() {
            return false;
        }
        self.state.shown.message = operation_end::waiting_message(&self.tasks, &held, true);
        operation_end::expire(self);
        true
    }

    /// Lets go of hook objects whose result was seen.
    fn release_hooks(&mut self) {
        if self.is_paused() {
            return;
        }
        let actions: Vec<_> = self
            .tasks
            .iter()
            .filter(|task| task.is_hook() && task.phase().is_some_and(OperationPhase::is_completed))
            .filter(|task| task.live.is_some_and(wave::has_hook_finalizer))
            .map(|task| action(task, remove_hook_finalizer(), true))
            .collect();
        if !actions.is_empty() {
            self.batch.push(actions);
        }
    }

    /// After a failure: the SyncFail hooks, then the end.
    pub(crate) fn run_fail_phase(&mut self) {
        let running: Vec<usize> = (0..self.tasks.len())
            .filter(|at| {
                let task = &self.tasks[*at];
                task.is_running() && task.is_hook() && task.live.is_some()
            })
            .collect();
        for at in &running {
            let key = self.tasks[*at].id.key.clone();
            self.wait(WaitKind::Hook, Some(key), "", None);
        }
        if !running.is_empty() {
            self.state.shown.message = operation_end::waiting_message(&self.tasks, &running, false);
            operation_end::expire(self);
            return;
        }
        let pending = self.tasks.iter().filter(|t| t.id.phase == SyncPhase::SyncFail && t.is_pending());
        if let Some(next) = pending.map(Task::step).min() {
            if !self.is_paused() {
                delete_hooks(self, tiphys_model::HookDeletePolicy::HookFailed);
            }
            wave::run(self, next);
            if !self.batch.is_empty() || !self.waits.is_empty() {
                return;
            }
        }
        delete_hooks(self, tiphys_model::HookDeletePolicy::HookFailed);
        let message = self.failure_message();
        self.fail(&message);
    }

    /// Ends the operation as failed: without another attempt if the API server refused for good all that
    /// failed.
    fn fail(&mut self, message: &str) {
        let mut failed = self.tasks.iter().filter(|task| task.has_failed());
        let for_good = failed.all(|task| self.state.extension.refused.contains(&task.key_text()));
        if for_good {
            operation_end::fail_for_good(self, message, Ending::Permanent);
        } else {
            operation_end::fail(self, message);
        }
    }

    /// Argo CD's words, with the reasons of failed hooks, too.
    fn failure_message(&self) -> String {
        let is_fail_hook = |task: &&Task<'_>| task.id.phase == SyncPhase::SyncFail;
        let (fail_hooks, ordinary): (Vec<_>, Vec<_>) =
            self.tasks.iter().filter(|task| !task.is_pending()).partition(is_fail_hook);
        let failed: Vec<&Task<'_>> = ordinary.iter().copied().filter(|task| task.has_failed()).collect();
        let all_refused = !failed.is_empty() && failed.iter().all(|task| was_refused(task));
        // The destination namespace is made before everything else.
        let is_namespace = |t: &Task<'_>| t.id.phase == SyncPhase::PreSync && !t.is_hook();
        let applied = |t: &Task<'_>| t.has_status(ResultCode::Synced) && !is_namespace(t);
        let begun: BTreeSet<_> =
            ordinary.iter().filter(|task| applied(task)).map(|task| task.step()).collect();
        let others_run = failed.iter().any(|task| begun.contains(&task.step()));
        let what = if all_refused && !others_run && fail_hooks.is_empty() {
            "one or more objects failed to apply"
        } else {
            "one or more synchronization tasks completed unsuccessfully"
        };
        let mut message = with_reasons(what, &failed);
        let failed: Vec<&Task<'_>> = fail_hooks.into_iter().filter(|task| was_refused(task)).collect();
        if !failed.is_empty() {
            message.push('\n');
            message.push_str(&with_reasons("one or more SyncFail hooks failed", &failed));
        }
        message
    }

    /// Whether the next wave, or the repetition of a failed request, has still to wait.
    pub(crate) fn is_paused(&self) -> bool {
        self.state.extension.not_before.is_some_and(|until| self.input.now < until.timestamp())
    }

    /// Notes a wait; one that went on before keeps its beginning and its deadline.
    pub(crate) fn wait(
        &mut self,
        kind: WaitKind,
        object: Option<tiphys_value::ResourceKey>,
        cause: &str,
        deadline: Option<Time>,
    ) {
        let earlier = self.state.extension.waits.iter().find(|w| w.kind == kind && w.object == object);
        let since = earlier.map_or(Time::from(self.input.now), |wait| wait.since);
        let limit = operation_end::limit(kind, self.input.settings);
        let deadline =
            deadline.or_else(|| Some(Time::from(tiphys_model::time::after(since.timestamp(), limit?))));
        self.waits.push(Wait { kind, object, cause: cause.to_owned(), blocker: None, since, deadline });
    }

    /// Notes a wait for what stands in the way.
    pub(crate) fn wait_blocked(
        &mut self,
        blocker: Blocker,
        object: Option<tiphys_value::ResourceKey>,
        cause: &str,
        deadline: Option<Time>,
    ) {
        self.wait(WaitKind::Blocked, object, cause, deadline);
        if let Some(wait) = self.waits.last_mut() {
            wait.blocker = Some(blocker);
        }
    }

    fn into_step(mut self) -> SyncStep {
        let wake = if self.state.is_completed() { None } else { self.wake_up() };
        self.state.extension.waits = if self.state.is_completed() { Vec::new() } else { self.waits };
        SyncStep { state: self.state, batch: self.batch, requeue_at: wake }
    }

    /// The first instant at which a step could go differently though nothing changed.
    fn wake_up(&self) -> Option<Timestamp> {
        let deadlines = self.waits.iter().filter_map(|wait| wait.deadline);
        let held = self.state.extension.held.values().map(|held| held.next);
        let pause = self.state.extension.not_before;
        let timeout = self.input.settings.sync_timeout.map(|limit| {
            Time::from(tiphys_model::time::after(self.state.shown.started_at.timestamp(), limit))
        });
        // Kinds appear without an event that concerns the Application.
        let blocked = self.waits.iter().any(|wait| wait.kind == WaitKind::Blocked);
        let look = blocked.then(|| Time::from(tiphys_model::time::after(self.input.now, LOOK_AGAIN)));
        // What is due and was yet not done waits for something else.
        let all = deadlines.chain(held).chain(pause).chain(timeout).chain(look).map(Time::timestamp);
        all.filter(|at| self.input.now < *at).min()
    }
}

fn cause_of(health: &tiphys_model::HealthStatus) -> String {
    if health.message.is_empty() {
        health.status.as_str().to_owned()
    } else {
        format!("{}: {}", health.status.as_str(), health.message)
    }
}

fn was_refused(task: &Task<'_>) -> bool {
    task.has_status(ResultCode::SyncFailed)
}

fn with_reasons(what: &str, failed: &[&Task<'_>]) -> String {
    let messages: Vec<_> = failed.iter().map(|task| task.message().to_owned()).collect();
    match distinct(&messages) {
        reasons if reasons.is_empty() => what.to_owned(),
        reasons => format!("{what}, reason: {reasons}"),
    }
}

/// Texts joined, each once, in order.
pub(crate) fn distinct(texts: &[String]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for text in texts.iter().map(String::as_str).filter(|text| !text.is_empty()) {
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen.join(",")
}

/// An action for a task's object.
pub(crate) fn action(task: &Task<'_>, verb: Verb, silent: bool) -> Action {
    let hook_type = task.hook.map(|hook| hook.as_str().to_owned()).unwrap_or_default();
    Action { task: task.id.clone(), gvk: task.gvk.clone(), verb, hook_type, silent }
}

pub(crate) fn remove_hook_finalizer() -> Verb {
    Verb::RemoveFinalizer { finalizer: names::HOOK_FINALIZER.into() }
}

/// An entry of the sync result for a task.
pub(crate) fn result_of(task: &Task<'_>) -> ResourceResult {
    let verb = match &task.target {
        Some(object) => wave::dry_apply(object, true),
        None => Verb::Delete { uid: String::new(), propagation: Propagation::default(), dry_run: true },
    };
    action(task, verb, false).result_template()
}
