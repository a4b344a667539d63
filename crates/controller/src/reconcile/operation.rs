//! The operation that is asked for or under way: how it is taken up, which desired state it is about, and how
//! it ends if that cannot be had.

use jiff::Timestamp;
use tiphys_model::{Application, ApplicationSource, Operation, OperationPhase, SyncOperation, Time};
use tiphys_sync::{Ending, SyncState};

use crate::{metrics::Count, operation_field::is_running, rendering::Rendering, status_writer::bounded};

/// An operation that is worked on.
pub(super) struct TakenUp {
    pub state: SyncState,
    /// It begins, and is about what is in force now.
    pub is_newest: bool,
}

/// The state of the operation: a new one for a request, or the one under way. `newest` are the revisions in
/// force.
pub(super) fn take_up(
    app: &mut Application,
    newest: Option<&Vec<String>>,
    now: Timestamp,
) -> Option<TakenUp> {
    let running = app.status.operation_state.clone().filter(|state| !state.phase.is_completed());
    if let Some(running) = running {
        return Some(TakenUp { state: SyncState::from_operation_state(running), is_newest: false });
    }
    let operation = app.operation.take()?;
    let sync = operation.sync.clone().unwrap_or_default();
    let sources = match (&sync.source, sync.sources.is_empty()) {
        (_, false) => sync.sources.clone(),
        (Some(source), true) => vec![source.clone()],
        (None, true) => app.spec.effective_sources(),
    };
    let multiple = match sync.source.is_some() {
        true => !sync.sources.is_empty(),
        false => !sync.sources.is_empty() || app.spec.has_multiple_sources(),
    };
    let revisions = match (sync.revisions.is_empty(), sync.revision.is_empty()) {
        (false, _) => sync.revisions.clone(),
        (true, false) if !multiple => vec![sync.revision.clone()],
        // What they mean is found out when they are rendered.
        _ if brings_its_own(&sync) => vec![String::new(); sources.len()],
        _ => newest.cloned().unwrap_or_default(),
    };
    let is_newest = newest == Some(&revisions) && !brings_its_own(&sync);
    Some(TakenUp { state: SyncState::begin(operation, &sources, multiple, &revisions, now), is_newest })
}

/// The next attempt of an operation whose retries refresh is one on the newest revision. Returns whether it
/// is about another one than before.
pub(super) fn take_newest(state: &mut SyncState, newest: Option<&Vec<String>>) -> bool {
    let between_attempts = state.shown.finished_at.is_some() && !state.is_completed();
    let Some(newest) = newest else { return false };
    let own_sources = state.shown.operation.sync.as_ref().is_some_and(brings_its_own);
    if !state.shown.operation.retry.refresh || !between_attempts || own_sources {
        return false;
    }
    if let Some(sync) = &mut state.shown.operation.sync {
        sync.revision.clear();
        sync.revisions.clear();
    }
    let Some(result) = &mut state.shown.sync_result else { return false };
    let is_same = match result.revisions.is_empty() {
        true => newest.first() == Some(&result.revision),
        false => *newest == result.revisions,
    };
    if is_same {
        return false;
    }
    match result.revisions.is_empty() {
        true => result.revision = newest.first().cloned().unwrap_or_default(),
        false => result.revisions.clone_from(newest),
    }
    true
}

/// What an operation is to bring about.
pub(super) enum Wanted {
    /// Objects that somebody gives in the place of sources.
    Manifests(Vec<String>),
    /// What is in force.
    InForce,
    /// The Application's sources as they are in this one.
    Rendered(Box<Application>),
}

/// What an operation is to bring about: the desired state of its own revision and sources. `newest` are the
/// revisions in force; `can_render_at` says whether others can be had.
pub(super) fn wanted_state(
    app: &Application,
    state: &SyncState,
    newest: Option<&Vec<String>>,
    can_render_at: impl FnOnce() -> bool,
) -> Wanted {
    let sync = state.shown.operation.sync.clone().unwrap_or_default();
    if !sync.manifests.is_empty() {
        return Wanted::Manifests(sync.manifests);
    }
    let result = state.shown.sync_result.as_ref();
    let revisions =
        result.map(|r| if r.revisions.is_empty() { vec![r.revision.clone()] } else { r.revisions.clone() });
    if !brings_its_own(&sync) && (revisions.as_ref() == newest || !can_render_at()) {
        return Wanted::InForce;
    }
    let app = pinned(app, &sync.source, &sync.sources, revisions.unwrap_or_default());
    Wanted::Rendered(Box::new(app))
}

/// The Application as an operation wants it: with its sources at its revisions.
fn pinned(
    app: &Application,
    source: &Option<ApplicationSource>,
    sources: &[ApplicationSource],
    revisions: Vec<String>,
) -> Application {
    let mut app = app.clone();
    if let Some(source) = source {
        app.spec.source = Some(source.clone());
        app.spec.sources.clear();
    }
    if !sources.is_empty() {
        app.spec.sources = sources.to_vec();
    }
    let all = if app.spec.sources.is_empty() {
        app.spec.source.as_mut_slice()
    } else {
        app.spec.sources.as_mut_slice()
    };
    for (source, revision) in all.iter_mut().zip(revisions) {
        if !revision.is_empty() {
            source.target_revision = revision;
        }
    }
    app
}

/// Whether an operation is about other sources than the Application's.
fn brings_its_own(sync: &SyncOperation) -> bool {
    sync.source.is_some() || !sync.sources.is_empty() || !sync.manifests.is_empty()
}

/// The sources that an operation brings along.
pub(super) fn own_sources(operation: &Operation) -> Vec<ApplicationSource> {
    operation.sync.iter().flat_map(|sync| sync.source.iter().chain(&sync.sources)).cloned().collect()
}

/// Whether an operation is asked for that is to bring about the newest desired state of the sources.
pub(super) fn asks_for_newest(
    app: &Application,
    in_force: Option<&Rendering>,
    can_render_at: impl FnOnce() -> bool,
) -> bool {
    let Some(operation) = app.operation.as_ref().filter(|_| !is_running(app)) else { return false };
    let sync = operation.sync.clone().unwrap_or_default();
    if brings_its_own(&sync) {
        return false;
    }
    let asked = if sync.revisions.is_empty() { vec![sync.revision] } else { sync.revisions };
    if asked.iter().all(String::is_empty) {
        return true;
    }
    // A working tree has nothing but its present under any other name than that of what is in force.
    !can_render_at() && in_force.is_none_or(|in_force| in_force.revisions != asked)
}

/// Why a revision that somebody asks for cannot be had. `newest` are the revisions in force; `has_revisions`
/// says of which repositories there are others.
pub(super) fn revision_fault(
    app: &Application,
    state: &SyncState,
    newest: &[String],
    has_revisions: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let operation = &state.shown.operation;
    let sync = operation.sync.as_ref().filter(|_| !operation.initiated_by.automated)?;
    let own = own_sources(operation);
    let sources = if own.is_empty() { app.spec.effective_sources() } else { own };
    let declared: Vec<String> =
        app.spec.effective_sources().iter().map(|source| source.revision_or_head().to_owned()).collect();
    let asked =
        if sync.revisions.is_empty() { std::slice::from_ref(&sync.revision) } else { &sync.revisions };
    sources.iter().enumerate().find_map(|(at, source)| {
        let named = asked.get(at).filter(|revision| !revision.is_empty());
        let revision = named.map_or(source.revision_or_head(), String::as_str);
        let is_present = revision == "HEAD"
            || newest.get(at).is_some_and(|newest| newest == revision)
            || declared.get(at).is_some_and(|declared| declared == revision);
        (!is_present && !has_revisions(&source.repo_url)).then(|| {
            format!(
                "revision {revision} of {} cannot be had: the repository is taken as it is in the working tree",
                source.repo_url
            )
        })
    })
}

/// Why an operation ends whose desired state cannot be known. Its own sources say more than those of the
/// Application.
pub(super) fn fault_without_targets(
    app: &Application,
    forbidden: Vec<String>,
    own: Option<&Rendering>,
) -> String {
    let faults = app.status.conditions.iter().filter(|condition| condition.kind.is_error());
    let own = own.and_then(|own| own.targets.as_ref().err().map(|error| format!("{error:#}")));
    let fault = forbidden.into_iter().next().or(own);
    let fault = fault.or_else(|| faults.map(|fault| fault.message.clone()).next());
    fault.unwrap_or_else(|| "the sources do not render".to_owned())
}

/// Ends an operation before anything was done for it.
pub(super) fn end_unbegun(
    app: &mut Application,
    state: &mut SyncState,
    message: String,
    now: Timestamp,
) -> Count {
    state.shown.message = bounded(message);
    state.shown.phase = OperationPhase::Error;
    state.extension.ending = Some(Ending::Unbegun);
    state.shown.finished_at = Some(Time::from(now));
    app.status.operation_state = Some(state.to_operation_state());
    Count::sync(app, &state.shown)
}

/// Names in the result what the revisions turned out to mean, and notes what was read of them.
pub(super) fn note_revisions(state: &mut SyncState, rendering: &Rendering) {
    state.extension.inputs.clone_from(&rendering.identity);
    let Some(result) = state.shown.sync_result.as_mut().filter(|_| rendering.targets.is_ok()) else { return };
    match result.sources.is_empty() {
        true => rendering.revision().clone_into(&mut result.revision),
        false => result.revisions.clone_from(&rendering.revisions),
    }
}

/// Notes which metadata the destination namespace is given.
pub(super) fn note_namespace(state: &mut SyncState, app: &Application) {
    let policy = app.spec.sync_policy.as_ref();
    let managed = policy.and_then(|policy| policy.managed_namespace_metadata.clone());
    if let Some(result) = &mut state.shown.sync_result {
        result.managed_namespace_metadata = managed;
    }
}
