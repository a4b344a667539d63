//! Running the tasks of one wave, and judging those that run.

use std::{collections::HashSet, sync::Arc};

use serde_json::Value;
use tiphys_model::{
    DeletionPolicy, HealthCode, HookDeletePolicy, OperationPhase, ResultCode, SyncOptions, SyncPhase, Time,
    names, options::deletion_policy,
};
use tiphys_value::{GroupKind, ObjectExt};

use crate::{
    Action, ApplyMethod, Blocker, Claim, LiveObject, SyncInput, Verb, Wait, WaitKind, operation_end,
    step::{Progress, action, remove_hook_finalizer, result_of},
    task::{self, Task},
};

pub(crate) fn is_terminating(live: &LiveObject) -> bool {
    live.object.is_terminating()
}

pub(crate) fn has_hook_finalizer(live: &LiveObject) -> bool {
    finalizer_list(live).iter().any(|finalizer| finalizer == names::HOOK_FINALIZER)
}

fn finalizer_list(live: &LiveObject) -> Vec<String> {
    let list = live.object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What holds a deletion, in words.
pub(crate) fn finalizers(live: &LiveObject) -> String {
    let list = finalizer_list(live);
    if list.is_empty() { String::new() } else { format!("held by finalizers {}", list.join(", ")) }
}

/// The verdict on a running task: `None` while nothing is known of its live object.
pub(crate) fn verdict(progress: &Progress<'_, '_>, task: &Task<'_>) -> Option<(OperationPhase, String)> {
    let input = progress.input;
    let is_self = input.own_key.as_ref() == Some(&task.id.key);
    let awaited = !is_self && !input.never_await.contains(&task.id.key);
    if !awaited && !task.is_hook() && !input.settings.compat {
        let why = if is_self { ": its health depends on this operation" } else { "" };
        return Some((OperationPhase::Succeeded, format!("applied; not awaited{why}")));
    }
    let health = task.live?.health.as_ref();
    let created = || if task.is_hook() { format!("{} created", task.id.key.name) } else { String::new() };
    let Some(health) = health else { return Some((OperationPhase::Succeeded, created())) };
    if task.is_hook() && health.status == HealthCode::Missing {
        return Some((OperationPhase::Succeeded, created()));
    }
    let phase = match (health.status, task.is_hook()) {
        (HealthCode::Healthy, _) => OperationPhase::Succeeded,
        (HealthCode::Degraded, _) | (HealthCode::Unknown, true) => OperationPhase::Failed,
        _ => OperationPhase::Running,
    };
    // What was done with an object stays to be read until there is a verdict.
    let message = match phase {
        OperationPhase::Running if !task.is_hook() => "",
        // A failure tells its reason: that the object was applied well is none.
        OperationPhase::Failed if health.message.is_empty() && !input.settings.compat => {
            health.status.as_str()
        }
        _ => &health.message,
    };
    Some((phase, message.to_owned()))
}

/// Tries everything without persisting it; `false` if there is nothing to try.
pub(crate) fn dry_run(progress: &mut Progress<'_, '_>) -> bool {
    let input = progress.input;
    let actions: Vec<Action> = progress
        .tasks
        .iter()
        .filter(|task| task.is_pending() && !task.unknown_kind)
        .filter(|task| !progress.is_left_out(task) && !skips_dry_run(task, input))
        .filter(|task| {
            !task.is_prune()
                || (prune_verdict(progress, task).is_ok() && !task.live.is_some_and(is_terminating))
        })
        .filter(|task| !input.settings.compat || is_tried_by_the_server(task, input))
        .map(|task| match &task.target {
            Some(object) => {
                action(task, dry_apply(object, !Options::for_task(task, input).is_off("Validate")), false)
            }
            None => action(task, delete(task, progress, true), false),
        })
        .collect();
    if actions.is_empty() {
        progress.state.extension.dry_run_done = true;
        return false;
    }
    progress.batch.push(actions);
    true
}

/// Argo CD's dry run is kubectl's of the client, which never asks the API server what it makes of an object,
/// unless it is applied on the server's side.
fn is_tried_by_the_server(task: &Task<'_>, input: &SyncInput<'_>) -> bool {
    let own = task.object().map(SyncOptions::of_object).unwrap_or_default();
    !own.has("ServerSideApply", "false")
        && (input.options.is_on("ServerSideApply") || own.is_on("ServerSideApply"))
}

/// The sync options that count for a task: those of its target, of what is live, and of the Application.
struct Options<'a> {
    own: [Option<SyncOptions>; 2],
    app: &'a SyncOptions,
}

impl<'a> Options<'a> {
    fn for_task(task: &Task<'_>, input: &SyncInput<'a>) -> Self {
        let own = [task.target.as_deref(), task.live.map(|live| &*live.object)];
        Self { own: own.map(|object| object.map(SyncOptions::of_object)), app: input.options }
    }

    fn is_on(&self, key: &str) -> bool {
        self.own.iter().flatten().any(|options| options.is_on(key)) || self.app.is_on(key)
    }

    /// What is live does not count: it may be what an earlier commit said.
    fn is_off(&self, key: &str) -> bool {
        self.own[0].as_ref().is_some_and(|options| options.has(key, "false")) || self.app.has(key, "false")
    }
}

/// Whether an object may be deleted and created again, by its options or the operation's.
fn is_forced(options: &Options<'_>, input: &SyncInput<'_>) -> bool {
    options.is_on("Force") || input.operation.sync.as_ref().is_some_and(|sync| sync.forces())
}

/// An object that may be replaced, or deleted and created again, says nothing in a dry run of its update.
fn skips_dry_run(task: &Task<'_>, input: &SyncInput<'_>) -> bool {
    if task.target.is_none() {
        return false;
    }
    let options = Options::for_task(task, input);
    let is_update = task.live.is_some();
    is_update && (options.is_on("Replace") || is_forced(&options, input) || task.is_hook())
}

pub(crate) fn dry_apply(object: &Arc<Value>, validate: bool) -> Verb {
    Verb::Apply {
        object: Arc::clone(object),
        method: ApplyMethod::ServerSide,
        keeps_record: false,
        validate,
        force: false,
        dry_run: true,
        share: false,
        migrate_managers: Vec::new(),
    }
}

pub(crate) fn delete(task: &Task<'_>, progress: &Progress<'_, '_>, dry_run: bool) -> Verb {
    Verb::Delete {
        uid: task.live.map(|live| live.object.uid().to_owned()).unwrap_or_default(),
        propagation: progress.input.options.propagation(),
        dry_run,
    }
}

/// Runs the pending tasks of a wave: prunes and hooks to be replaced first, then the rest by kind.
pub(crate) fn run(progress: &mut Progress<'_, '_>, next: (SyncPhase, i64)) {
    let now = progress.input.now;
    if let Some(until) = progress.state.extension.not_before {
        if now < until.timestamp() {
            progress.wait(WaitKind::WaveDelay, None, "", Some(until));
            keep_waits(progress, next);
            operation_end::expire(progress);
            return;
        }
        progress.state.extension.not_before = None;
    }
    let in_wave: Vec<usize> = (0..progress.tasks.len())
        .filter(|at| {
            let task = &progress.tasks[*at];
            task.is_pending() && task.step() == next && !progress.is_left_out(task)
        })
        .collect();
    if needs_confirmation(progress, &in_wave) {
        operation_end::expire(progress);
        return;
    }
    prune(progress, &in_wave);
    if !replaces_hooks(progress, &in_wave) {
        let creatable: Vec<usize> =
            in_wave.iter().copied().filter(|at| !progress.tasks[*at].is_prune()).collect();
        apply(progress, &creatable);
    }
    set_wave_delay(progress, next);
    conclude(progress);
}

/// Says what is waited for, and gives up what has been for too long.
fn conclude(progress: &mut Progress<'_, '_>) {
    describe_waits(progress);
    if progress.batch.is_empty() && !progress.waits.is_empty() {
        operation_end::expire(progress);
    }
}

/// Applies one object before all waves.
pub(crate) fn run_alone(progress: &mut Progress<'_, '_>, at: usize) {
    apply(progress, &[at]);
    conclude(progress);
}

/// During a pause, what was waited for in this wave is still waited for: its deadline goes on.
fn keep_waits(progress: &mut Progress<'_, '_>, next: (SyncPhase, i64)) {
    let pending = |key: &tiphys_value::ResourceKey| {
        progress.tasks.iter().any(|task| task.is_pending() && task.step() == next && task.id.key == *key)
    };
    let earlier = &progress.state.extension.waits;
    let kept: Vec<_> =
        earlier.iter().filter(|wait| wait.object.as_ref().is_some_and(pending)).cloned().collect();
    progress.waits.extend(kept);
}

fn set_wave_delay(progress: &mut Progress<'_, '_>, next: (SyncPhase, i64)) {
    let delay = progress.input.settings.wave_delay;
    let remaining = progress.pending().any(|task| task.step() != next);
    if remaining && !progress.batch.is_empty() && !delay.is_zero() {
        let until = tiphys_model::time::after(progress.input.now, delay);
        progress.state.extension.not_before = Some(Time::from(until));
    }
}

fn describe_waits(progress: &mut Progress<'_, '_>) {
    if progress.batch.is_empty()
        && let Some(first) = progress.waits.first()
    {
        let is_hook = |wait: &Wait| {
            let is_meant = |task: &&Task<'_>| task.is_hook() && Some(&task.id.key) == wait.object.as_ref();
            progress.tasks.iter().any(|task| is_meant(&task))
        };
        let text = if first.kind == WaitKind::Deletion && is_hook(first) {
            first.to_string().replacen("deletion of", "deletion of hook", 1)
        } else {
            first.to_string()
        };
        let noun = if progress.waits.iter().all(is_hook) { "hooks" } else { "resources" };
        let more = progress.waits.len() - 1;
        let tail = if more == 0 { String::new() } else { format!(" and {more} more {noun}") };
        progress.state.shown.message = text + &tail;
    } else {
        progress.state.shown.message = String::new();
    }
}

/// Prunes that somebody has to confirm first hold the whole wave.
fn needs_confirmation(progress: &mut Progress<'_, '_>, in_wave: &[usize]) -> bool {
    let prunes = progress.input.operation.sync.as_ref().is_some_and(|sync| sync.prune);
    let approved = progress.input.deletion_approved.is_some_and(|at| at >= progress.state.shown.started_at);
    // Argo CD waits for the approval of prunes that it would skip.
    if approved || !(prunes || progress.input.settings.compat) {
        return false;
    }
    let waiting: Vec<usize> = in_wave
        .iter()
        .copied()
        .filter(|at| {
            let task = &progress.tasks[*at];
            let policy = task.live.map(|live| deletion_policy("Prune", &live.object, progress.input.options));
            task.is_prune() && policy == Some(DeletionPolicy::Confirm)
        })
        .collect();
    for at in &waiting {
        let key = progress.tasks[*at].id.key.clone();
        progress.wait(WaitKind::PruneConfirmation, Some(key), "", None);
    }
    describe_waits(progress);
    !waiting.is_empty()
}

fn prune(progress: &mut Progress<'_, '_>, in_wave: &[usize]) {
    let mut actions = Vec::new();
    let successors = successors_in_wait(progress);
    let stays = |task: &Task<'_>| {
        let key = &task.id.key;
        !successors.is_empty() && successors.contains(&(key.group_kind(), key.name.clone()))
    };
    let prunes: Vec<usize> = in_wave
        .iter()
        .copied()
        .filter(|at| progress.tasks[*at].is_prune() && !stays(&progress.tasks[*at]))
        .collect();
    for at in prunes {
        let task = &progress.tasks[at];
        if is_held(progress, task) {
            hold(progress, at);
            continue;
        }
        let terminating = task.live.is_some_and(is_terminating);
        match prune_verdict(progress, task) {
            Err(reason) => settle(progress, at, ResultCode::PruneSkipped, &reason),
            Ok(()) if terminating => settle(progress, at, ResultCode::Pruned, "pruned"),
            Ok(()) => actions.push(action(task, delete(task, progress, false), false)),
        }
    }
    if !actions.is_empty() {
        progress.batch.push(actions);
    }
}

/// What is to be made in a namespace that is not there, by kind and name. What moves there stays where it is
/// as long as it cannot be made; Argo CD deletes it first.
fn successors_in_wait(progress: &Progress<'_, '_>) -> HashSet<(GroupKind, String)> {
    let absent = &progress.state.extension.absent_namespaces;
    if absent.is_empty() {
        return HashSet::new();
    }
    let namespaces = progress.input.targets.iter().filter(|target| target.kind() == "Namespace");
    let made: HashSet<&str> = namespaces.map(|target| target.name()).collect();
    let waits = |task: &&Task<'_>| {
        let namespace = &task.id.key.namespace;
        !task.is_prune()
            && task.live.is_none()
            && absent.contains(namespace)
            && !made.contains(namespace.as_str())
    };
    let waiting = progress.pending().filter(waits).map(|task| &task.id.key);
    waiting.map(|key| (key.group_kind(), key.name.clone())).collect()
}

/// Whether an object may be pruned, and if not, why.
fn prune_verdict(progress: &Progress<'_, '_>, task: &Task<'_>) -> Result<(), String> {
    let input = progress.input;
    if !input.operation.sync.as_ref().is_some_and(|sync| sync.prune) {
        return Err("ignored (requires pruning)".into());
    }
    let policy = task.live.map(|live| deletion_policy("Prune", &live.object, input.options));
    if policy == Some(DeletionPolicy::Forbidden) {
        return Err("ignored (no prune)".into());
    }
    match input.protected.get(&task.id.key) {
        Some(reason) if !input.settings.compat => Err(format!("ignored (protected: {reason})")),
        _ => Ok(()),
    }
}

fn settle(progress: &mut Progress<'_, '_>, at: usize, code: ResultCode, message: &str) {
    let task = &mut progress.tasks[at];
    let template = result_of(task);
    let result = progress.state.result_mut(&task.id, || template);
    result.status = Some(code);
    result.hook_phase = Some(OperationPhase::Succeeded);
    result.message = message.to_owned();
    task.result = Some(result.clone());
}

/// What a dry run did not ask the API server about: it would be done, or left alone by the rules of pruning.
pub(crate) fn settle_untried(progress: &mut Progress<'_, '_>) {
    for at in 0..progress.tasks.len() {
        let task = &progress.tasks[at];
        if !task.is_pending() || progress.is_left_out(task) {
            continue;
        }
        let is_there = task.live.is_some();
        let (code, message) = match task.is_prune().then(|| prune_verdict(progress, task)) {
            Some(Err(reason)) => (ResultCode::PruneSkipped, reason),
            Some(Ok(())) => (ResultCode::Pruned, "pruned (dry run)".into()),
            None if is_there => (ResultCode::Synced, "configured (dry run)".into()),
            None => (ResultCode::Synced, "created (dry run)".into()),
        };
        settle(progress, at, code, &message);
    }
}

/// Hooks left by an earlier sync go first: nothing of the wave is applied before they are gone. `true` if
/// there are any.
fn replaces_hooks(progress: &mut Progress<'_, '_>, in_wave: &[usize]) -> bool {
    let mut actions = Vec::new();
    let mut found = false;
    for at in in_wave.iter().copied() {
        let task = &progress.tasks[at];
        let gives_way = |live: &&LiveObject| {
            task.is_hook()
                && (task.is_deleted_on(HookDeletePolicy::BeforeHookCreation) || is_terminating(live))
        };
        let Some(live) = task.live.filter(gives_way) else { continue };
        found = true;
        let waits = is_held(progress, task);
        if has_hook_finalizer(live) && !waits {
            actions.push(action(task, remove_hook_finalizer(), true));
        }
        if !is_terminating(live) && !waits {
            actions.push(action(task, delete(task, progress, false), true));
        }
        let held = progress.state.extension.held.get(&task.key_text());
        let cause = held.map_or_else(|| finalizers(live), |held| held.cause.clone());
        let key = task.id.key.clone();
        progress.wait(WaitKind::Deletion, Some(key), &cause, None);
    }
    // One after the other: an object must lose its finalizer before its deletion is looked at.
    progress.batch.extend(actions.into_iter().map(|action| vec![action]));
    found
}

/// Applies in groups of consecutive equal kinds.
fn apply(progress: &mut Progress<'_, '_>, creatable: &[usize]) {
    let mut group: Vec<Action> = Vec::new();
    let defined = task::defined_kinds(progress.input.targets);
    for at in creatable.iter().copied() {
        if let Some((blocker, cause)) = unserved(progress, &progress.tasks[at], &defined) {
            let key = progress.tasks[at].id.key.clone();
            progress.wait_blocked(blocker, Some(key), &cause, None);
            continue;
        }
        if is_held(progress, &progress.tasks[at]) {
            hold(progress, at);
            continue;
        }
        let task = &progress.tasks[at];
        let Some(object) = &task.target else { continue };
        let next = action(task, apply_verb(progress, task, object), false);
        if group.last().is_some_and(|last| last.task.key.group_kind() != next.task.key.group_kind()) {
            progress.batch.push(std::mem::take(&mut group));
        }
        group.push(next);
    }
    if !group.is_empty() {
        progress.batch.push(group);
    }
}

/// Why the cluster cannot take an object of this kind yet.
fn unserved(
    progress: &Progress<'_, '_>,
    task: &Task<'_>,
    defined: &HashSet<(&str, &str)>,
) -> Option<(Blocker, String)> {
    if progress.input.settings.compat {
        return None;
    }
    let key = &task.id.key;
    if defined.contains(&(key.group.as_str(), key.kind.as_str())) {
        let crd = progress.input.live.values().find(|live| {
            live.object.kind() == "CustomResourceDefinition"
                && live.object.str_at(&["spec", "group"]) == Some(key.group.as_str())
                && live.object.str_at(&["spec", "names", "kind"]) == Some(key.kind.as_str())
        });
        let healthy =
            |live: &&LiveObject| live.health.as_ref().is_none_or(|h| h.status == HealthCode::Healthy);
        if crd.filter(healthy).is_none() {
            let cause = format!("CustomResourceDefinition of {} is not established", key.group_kind());
            return Some((Blocker::UnestablishedKind, cause));
        }
    }
    task.unknown_kind.then(|| (Blocker::MissingKind, task::missing_kind(&task.gvk, key)))
}

/// Whether a request for the task failed and is not to be repeated yet.
pub(crate) fn is_held(progress: &Progress<'_, '_>, task: &Task<'_>) -> bool {
    let held = progress.state.extension.held.get(&task.key_text());
    held.is_some_and(|held| progress.input.now < held.next.timestamp())
}

fn hold(progress: &mut Progress<'_, '_>, at: usize) {
    let task = &progress.tasks[at];
    let Some(held) = progress.state.extension.held.get(&task.key_text()) else { return };
    let (key, held) = (task.id.key.clone(), held.clone());
    let since = held.since;
    let limit = operation_end::limit(WaitKind::Blocked, progress.input.settings);
    let deadline = limit.map(|limit| Time::from(tiphys_model::time::after(since.timestamp(), limit)));
    match held.blocker {
        Some(blocker) => progress.wait_blocked(blocker, Some(key), &held.cause, deadline),
        None => progress.wait(WaitKind::Retry, Some(key), &held.cause, deadline),
    }
    // Each try is a wait of its own, but it is the first failure that tells how long it has been so.
    if let Some(wait) = progress.waits.last_mut() {
        wait.since = since;
    }
}

fn apply_verb(progress: &Progress<'_, '_>, task: &Task<'_>, object: &Arc<Value>) -> Verb {
    let options = Options::for_task(task, progress.input);
    let force = is_forced(&options, progress.input);
    let share = progress.input.claims.get(&task.id.key) == Some(&Claim::Shared);
    let keeps_identity = matches!(object.kind(), "CustomResourceDefinition" | "Namespace");
    let method = match (options.is_on("Replace"), task.live.is_some(), force && !keeps_identity) {
        (false, ..) => ApplyMethod::ServerSide,
        (true, false, _) => ApplyMethod::Create,
        (true, true, true) => ApplyMethod::Recreate,
        (true, true, false) => ApplyMethod::Replace,
    };
    let keeps_record = progress.input.settings.compat
        && method == ApplyMethod::ServerSide
        && !is_tried_by_the_server(task, progress.input);
    Verb::Apply {
        object: Arc::clone(object),
        method,
        keeps_record,
        validate: !options.is_off("Validate"),
        force: force && !keeps_identity,
        dry_run: false,
        share,
        migrate_managers: match share || options.is_off("ClientSideApplyMigration") {
            true => Vec::new(),
            false => migrated(progress.input, task),
        },
    }
}

/// Managers whose fields are taken over: kubectl's and Argo CD's, those named by annotation, and those of a
/// tool whose object is adopted.
fn migrated(input: &SyncInput<'_>, task: &Task<'_>) -> Vec<String> {
    let known = [names::CLIENT_SIDE_APPLY_MANAGER, names::ARGO_CD_MANAGER].map(str::to_owned);
    let named = input.migration_manager.into_iter().flat_map(|list| list.split(','));
    let named = named.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let adopted = match input.claims.get(&task.id.key) {
        Some(Claim::Adopted(managers)) => managers.clone(),
        _ => Vec::new(),
    };
    known.into_iter().chain(named).chain(adopted).collect()
}
