//! Whether automated sync starts an operation, and what happens to a status after one
//! (Argo CD docs, "Automated Sync Policy").

use std::time::Duration;

use tiphys_model::{
    Application, Automated, Condition, ConditionType, Operation, OperationInitiator, OperationPhase,
    ResourceStatus, RetryStrategy, RevisionHistory, SyncOperation, SyncOperationResource, SyncStatusCode,
    Time, Timestamp, is_record_of, names,
    pause::Until,
    time::{after, elapsed},
};

use tiphys_value::ResourceKey;

use crate::{
    Comparison, Ending, SyncState,
    compare::{self, differs},
};

/// Attempts of an automated sync whose policy does not say how many.
const DEFAULT_RETRIES: i64 = 5;

/// Settings of automated sync.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoSettings {
    /// Argo CD's behaviour: a failed sync is not tried again before something changes; no brake.
    pub compat: bool,
    /// First pause between self-heals of one object set.
    pub heal_delay: Duration,
    /// Growth of that pause.
    pub heal_factor: u32,
    /// Longest such pause.
    pub heal_cap: Duration,
    /// First pause after a failed sync; doubles from failure to failure.
    pub failure_delay: Duration,
    /// Longest such pause.
    pub failure_cap: Duration,
    /// Pruning at least so many objects, and more than half of all, needs an approval.
    pub prune_brake: usize,
}

impl Default for AutoSettings {
    fn default() -> Self {
        Self {
            compat: false,
            heal_delay: Duration::from_secs(2),
            heal_factor: 3,
            heal_cap: Duration::from_secs(300),
            failure_delay: Duration::from_secs(60),
            failure_cap: Duration::from_secs(1800),
            prune_brake: 20,
        }
    }
}

/// The decision.
#[derive(Clone, Debug, PartialEq)]
pub enum AutoSync {
    /// Nothing to do; why.
    Nothing(&'static str),
    /// Something is out of sync, and stays so; why.
    Left(String),
    /// Not before an instant; why.
    Later(Timestamp, &'static str),
    /// Not before an instant; the condition to show.
    Held(Timestamp, Condition),
    /// Something forbids it: the condition to show.
    Refused(Condition),
    /// Start this operation.
    Start(Box<Operation>),
}

/// What a desired state was made from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs<'a> {
    /// One for each source.
    pub revisions: &'a [String],
    /// A text that differs whenever what was read of them differs; empty if that is not known.
    pub identity: &'a str,
}

/// Decides about automated sync after a comparison with a desired state.
pub fn auto_sync(
    app: &Application,
    comparison: &Comparison,
    inputs: Inputs<'_>,
    window_open: bool,
    settings: &AutoSettings,
    now: Timestamp,
) -> AutoSync {
    let Some(automated) = app.automated_policy() else { return AutoSync::Nothing("not automated") };
    if app.operation.is_some() {
        return AutoSync::Nothing("an operation is pending");
    }
    let running = app.status.operation_state.as_ref().is_some_and(|state| !state.phase.is_completed());
    if running {
        return AutoSync::Nothing("an operation is running");
    }
    if app.is_terminating() {
        return AutoSync::Nothing("the Application is being deleted");
    }
    if comparison.sync != SyncStatusCode::OutOfSync {
        return AutoSync::Nothing("not out of sync");
    }
    if let Some(until) = Until::for_app(app).filter(|until| !until.is_over(now)) {
        let message = format!("nothing is synced by itself until {until}");
        let condition = Condition::new(ConditionType::Paused, message);
        return match until.timestamp() {
            Some(end) => AutoSync::Held(end, condition),
            None => AutoSync::Refused(condition),
        };
    }
    if !window_open {
        let project = if app.spec.project.is_empty() { "default" } else { &app.spec.project };
        return AutoSync::Left(format!("a sync window of project '{project}' forbids automated sync"));
    }
    let differing = || comparison.resources.iter().filter(|resource| differs(resource));
    let only_extra = differing().all(|resource| resource.requires_pruning);
    if !automated.prunes() && only_extra && comparison.namespace_differs.is_empty() {
        return AutoSync::Left("only prunes are due, and automated sync does not prune".to_owned());
    }
    let decision = weigh(app, *automated, comparison, inputs, settings, now);
    let refused = || refuses_deletions(app, comparison, inputs.revisions, settings);
    match decision {
        AutoSync::Start(operation) => match refused() {
            None => AutoSync::Start(operation),
            Some(refusal) => without_prunes(*operation, comparison).unwrap_or(AutoSync::Refused(refusal)),
        },
        other => other,
    }
}

/// The operation without its prunes, which need somebody's approval first; `None` if it has nothing else to
/// do.
fn without_prunes(mut operation: Operation, comparison: &Comparison) -> Option<AutoSync> {
    let is_extra = |resource: &&ResourceStatus| resource.requires_pruning;
    let rest = |resource: &&ResourceStatus| {
        let key = compare::key_of(resource);
        differs(resource) && !is_extra(resource) && !comparison.left_alone.contains_key(&key)
    };
    let has_rest = comparison.resources.iter().any(|resource| rest(&resource));
    if !has_rest && comparison.namespace_differs.is_empty() {
        return None;
    }
    let extras: Vec<_> = comparison.resources.iter().filter(is_extra).map(compare::key_of).collect();
    let sync = operation.sync.get_or_insert_default();
    sync.prune = false;
    let is_selective = sync.is_selective();
    let is_kept = |one: &SyncOperationResource| {
        !extras.contains(&ResourceKey::new(&one.group, &one.kind, &one.namespace, &one.name))
    };
    sync.resources.retain(is_kept);
    (!is_selective || sync.is_selective()).then(|| AutoSync::Start(Box::new(operation)))
}

/// What the last attempt leaves to be done.
fn weigh(
    app: &Application,
    automated: Automated,
    comparison: &Comparison,
    inputs: Inputs<'_>,
    settings: &AutoSettings,
    now: Timestamp,
) -> AutoSync {
    let operation = whole_sync(app, inputs.revisions, automated.prunes());
    match last_attempt(app, inputs) {
        None => AutoSync::Start(Box::new(operation)),
        Some(last) if last.phase.is_successful() => {
            after_success(operation, automated, comparison, &last, settings, now)
        }
        Some(last) if last.ending == Some(Ending::Owned) && comparison.shared.is_empty() => {
            AutoSync::Start(Box::new(operation))
        }
        Some(last) => after_failure(operation, &last, settings, now),
    }
}

/// After a sync of the same desired state: self-heal, and what other owners have let go since.
fn after_success(
    mut operation: Operation,
    automated: Automated,
    comparison: &Comparison,
    last: &LastAttempt,
    settings: &AutoSettings,
    now: Timestamp,
) -> AutoSync {
    let free = |resource: &&ResourceStatus| {
        let key = compare::key_of(resource);
        // What is made anew with each sync of the whole is no drift.
        differs(resource) && !comparison.left_alone.contains_key(&key) && !comparison.generated.contains(&key)
    };
    let was_left = |resource: &&ResourceStatus| last.left_alone.contains(&compare::key_of(resource));
    let is_due = |resource: &&ResourceStatus| {
        (automated.heals() || was_left(resource) || (last.held_prunes && resource.requires_pruning))
            && (automated.prunes() || !resource.requires_pruning)
    };
    let due: Vec<_> = comparison.resources.iter().filter(free).filter(is_due).collect();
    let heals_namespace = automated.heals() && !comparison.namespace_differs.is_empty();
    if due.is_empty() && !heals_namespace {
        return AutoSync::Left(why_left(comparison));
    }
    let count = last.attempts;
    // The first one comes at once: the pauses are those between self-heals.
    let pause = match count {
        ..=0 => Duration::ZERO,
        _ => grown(settings.heal_delay, settings.heal_factor, count - 1, settings.heal_cap),
    };
    if let Some(at) = too_early(last, pause, now) {
        return AutoSync::Later(at, "self-heal back-off");
    }
    let sync = operation.sync.get_or_insert_default();
    sync.auto_heal_attempts_count = count + 1;
    sync.resources = due
        .into_iter()
        .map(|resource| SyncOperationResource {
            group: resource.group.clone(),
            kind: resource.kind.clone(),
            name: resource.name.clone(),
            namespace: if settings.compat { String::new() } else { resource.namespace.clone() },
        })
        .collect();
    AutoSync::Start(Box::new(operation))
}

/// Why what differs stays so after a sync that succeeded.
fn why_left(comparison: &Comparison) -> String {
    let owner = |resource| comparison.left_alone.get(&compare::key_of(resource));
    let mut differing = comparison.resources.iter().filter(|resource| differs(resource)).peekable();
    let owned =
        differing.peek().and_then(|first| Some((first.kind.clone(), first.name.clone(), owner(first)?)));
    match owned.filter(|_| differing.all(|resource| owner(resource).is_some())) {
        Some((kind, name, owner)) => format!("{kind}/{name} belongs to {owner}"),
        None => "this revision was synced, and automated sync does not heal itself".to_owned(),
    }
}

/// The last operation, if it was about the same revisions and sources.
struct LastAttempt {
    /// What it was to; empty if it ended before that was known.
    revisions: Vec<String>,
    phase: OperationPhase,
    message: String,
    finished_at: Option<Time>,
    attempts: i64,
    ending: Option<Ending>,
    /// Objects of other owners that it did not write.
    left_alone: Vec<ResourceKey>,
    /// It was automated and left out the prunes, which were not approved.
    held_prunes: bool,
}

fn last_attempt(app: &Application, inputs: Inputs<'_>) -> Option<LastAttempt> {
    let state = SyncState::from_operation_state(app.status.operation_state.clone()?);
    let (shown, extension) = (&state.shown, &state.extension);
    let attempted = match &shown.sync_result {
        // It ended before there was anything to say of it: whatever made it so would do so again at once.
        None => shown.phase.is_completed().then(Vec::new)?,
        Some(result) => {
            let multiple = !result.revisions.is_empty();
            let synced = if multiple { result.revisions.clone() } else { vec![result.revision.clone()] };
            let is_by_person = !shown.operation.initiated_by.automated;
            let is_unbegun = extension.ending == Some(Ending::Unbegun) && is_by_person;
            if is_unbegun || shown.phase.is_completed() && synced.iter().all(String::is_empty) {
                return last_deployed(app, inputs.revisions);
            }
            let sources =
                if multiple { result.sources.clone() } else { result.source.clone().into_iter().collect() };
            let same_source = sources.is_empty() || is_record_of(&sources, &app.spec.effective_sources());
            let same_inputs = !inputs.identity.is_empty() && extension.inputs == inputs.identity;
            (same_source && (same_inputs || synced == inputs.revisions)).then_some(synced)?
        }
    };
    Some(LastAttempt {
        revisions: attempted,
        phase: shown.phase,
        message: shown.message.clone(),
        finished_at: shown.finished_at,
        attempts: shown.operation.sync.as_ref().map_or(0, |sync| sync.auto_heal_attempts_count),
        ending: extension.ending,
        left_alone: extension.left_alone.clone(),
        held_prunes: shown.operation.initiated_by.automated
            && shown.operation.sync.as_ref().is_some_and(|sync| !sync.prune),
    })
}

/// The last operation that succeeded, if it was about the same revisions and sources. It is what counts where
/// the last one ended before its desired state was known.
fn last_deployed(app: &Application, revisions: &[String]) -> Option<LastAttempt> {
    let last = app.status.history.last()?;
    let multiple = !last.revisions.is_empty();
    let synced = if multiple { last.revisions.clone() } else { vec![last.revision.clone()] };
    let sources = if multiple { last.sources.clone() } else { last.source.clone().into_iter().collect() };
    (synced == revisions && is_record_of(&sources, &app.spec.effective_sources())).then(|| LastAttempt {
        revisions: synced,
        phase: OperationPhase::Succeeded,
        message: String::new(),
        finished_at: Some(last.deployed_at),
        attempts: 0,
        ending: None,
        left_alone: Vec::new(),
        held_prunes: false,
    })
}

fn too_early(last: &LastAttempt, pause: Duration, now: Timestamp) -> Option<Timestamp> {
    let finished = last.finished_at?.timestamp();
    (elapsed(finished, now) < pause).then(|| after(finished, pause))
}

/// `base` × `factor`^`count`, at most `cap`.
fn grown(base: Duration, factor: u32, count: i64, cap: Duration) -> Duration {
    let power = factor.checked_pow(u32::try_from(count).unwrap_or(u32::MAX)).unwrap_or(u32::MAX);
    base.checked_mul(power).unwrap_or(cap).min(cap)
}

/// A failed attempt on the same commit: Argo CD gives up, we try again at growing intervals, because what
/// failed may have been somebody else's fault. What a person ended stays ended.
fn after_failure(
    mut operation: Operation,
    last: &LastAttempt,
    settings: &AutoSettings,
    now: Timestamp,
) -> AutoSync {
    if settings.compat || last.ending == Some(Ending::ByPerson) {
        let message = format!("Failed last sync attempt to [{}]: {}", last.revisions.join(" "), last.message);
        return AutoSync::Refused(Condition::new(ConditionType::SyncError, message));
    }
    if matches!(last.ending, Some(Ending::Permanent | Ending::Owned)) {
        let at = after(last.finished_at.map_or(now, Time::timestamp), settings.failure_cap);
        if now < at {
            let message = format!(
                "Failed last sync attempt to [{}]: {}. It is not repeated before {} unless something changes.",
                last.revisions.join(" "),
                last.message,
                Time::from(at)
            );
            return AutoSync::Held(at, Condition::new(ConditionType::SyncError, message));
        }
    }
    let pause = grown(settings.failure_delay, 2, last.attempts, settings.failure_cap);
    if let Some(at) = too_early(last, pause, now) {
        return AutoSync::Later(at, "the last attempt on this revision failed");
    }
    operation.sync.get_or_insert_default().auto_heal_attempts_count = last.attempts + 1;
    AutoSync::Start(Box::new(operation))
}

/// Deleting everything, or most of a lot, needs more than a commit: why an operation may not prune.
fn refuses_deletions(
    app: &Application,
    comparison: &Comparison,
    revisions: &[String],
    settings: &AutoSettings,
) -> Option<Condition> {
    let automated = app.automated_policy()?;
    let counted = || comparison.resources.iter().filter(|resource| !resource.hook);
    let (all, pruned) = (counted().count(), counted().filter(|resource| resource.requires_pruning).count());
    if !automated.prunes() || automated.allows_empty() || pruned == 0 {
        return None;
    }
    if pruned == all {
        let message = format!(
            "Skipping sync attempt to [{}]: auto-sync will wipe out all resources",
            revisions.join(" ")
        );
        return Some(Condition::new(ConditionType::SyncError, message));
    }
    let last = app.status.operation_state.as_ref().and_then(|state| state.finished_at);
    let approved = app.annotation(names::DELETION_APPROVED).and_then(Time::parse);
    let is_approved = approved.is_some_and(|at| last.is_none_or(|last| at >= last));
    if settings.compat || pruned < settings.prune_brake || pruned * 2 <= all || is_approved {
        return None;
    }
    let message = format!(
        "Skipping prunes: {pruned} of {all} resources would be deleted; approve it with the annotation {}",
        names::DELETION_APPROVED
    );
    Some(Condition::new(ConditionType::SyncError, message))
}

fn whole_sync(app: &Application, revisions: &[String], prune: bool) -> Operation {
    let policy = app.spec.sync_policy.clone().unwrap_or_default();
    let mut sync = SyncOperation { prune, sync_options: policy.sync_options, ..SyncOperation::default() };
    if app.spec.has_multiple_sources() {
        sync.revisions = revisions.to_vec();
    } else {
        sync.revision = revisions.first().cloned().unwrap_or_default();
    }
    Operation {
        sync: Some(sync),
        initiated_by: OperationInitiator { username: String::new(), automated: true },
        retry: policy
            .retry
            .unwrap_or_else(|| RetryStrategy { limit: DEFAULT_RETRIES, ..RetryStrategy::default() }),
        ..Operation::default()
    }
}

/// Adds a finished operation to the history, if it belongs there: a whole sync of sources (not of given
/// manifests, to which nobody can go back) that succeeded and was no dry run. The oldest entries go.
pub fn record_history(app: &mut Application) {
    let limit = app.spec.history_limit();
    let Some(state) = &app.status.operation_state else { return };
    let counts = state.operation.sync.as_ref().is_some_and(|sync| {
        !sync.is_selective() && !sync.dry_run && sync.manifests.is_empty() && state.phase.is_successful()
    });
    let (Some(result), Some(finished), true) = (&state.sync_result, state.finished_at, counts) else {
        return;
    };
    let entry = RevisionHistory {
        revision: result.revision.clone(),
        deployed_at: finished,
        id: app.status.history.last().map_or(0, |last| last.id.wrapping_add(1)),
        source: result.source.clone(),
        deploy_started_at: Some(state.started_at),
        sources: result.sources.clone(),
        revisions: result.revisions.clone(),
        initiated_by: state.operation.initiated_by.clone(),
    };
    app.status.history.push(entry);
    let extra = app.status.history.len().saturating_sub(limit);
    app.status.history.drain(..extra);
}
