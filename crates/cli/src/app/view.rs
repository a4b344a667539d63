//! Applications as people read them.

use std::fmt::Write as _;

use tiphys_model::{Application, ApplicationSource, Destination, HealthCode, OperationState, pause::Until};
use tiphys_sync::SyncState;
use tiphys_value::Value;

use crate::output::{one_line, table};

/// One line for each source: what it is.
pub(crate) fn source(source: &ApplicationSource) -> String {
    let what = if source.chart.is_empty() { &source.path } else { &source.chart };
    let reference = match source.reference.as_str() {
        "" => String::new(),
        name => format!(" as ${name}"),
    };
    format!("{} {} {what}{reference}", source.repo_url, source.revision_or_head()).trim_end().to_owned()
}

/// A cluster by name or address.
pub(crate) fn cluster(destination: &Destination) -> &str {
    if destination.server.is_empty() { &destination.name } else { &destination.server }
}

/// `Auto-Prune`, `Auto`, `Manual`, as Argo CD's command line has them.
pub(crate) fn policy(app: &Application) -> String {
    let Some(automated) = app.automated_policy() else { return "Manual".into() };
    if automated.prunes() { "Auto-Prune".into() } else { "Auto".into() }
}

/// Health, or a dash before the first look.
pub(crate) fn health(app: &Application) -> &'static str {
    app.status.health.status.map_or("-", HealthCode::as_str)
}

/// The revision that was compared; of several the first.
pub(crate) fn revision(app: &Application) -> &str {
    let sync = &app.status.sync;
    sync.revisions.first().unwrap_or(&sync.revision)
}

/// Kinds of the conditions, or a dash.
pub(crate) fn conditions(app: &Application) -> String {
    let kinds: Vec<String> = app.status.conditions.iter().map(|c| format!("{:?}", c.kind)).collect();
    if kinds.is_empty() { "<none>".into() } else { kinds.join(",") }
}

/// Why an Application is not as it should be, in brackets: its first condition, else how its operation
/// failed, else the first of its objects that is not Healthy. Nothing if none of them says a word.
pub(crate) fn because(app: &Application) -> String {
    let status = &app.status;
    let condition = status.conditions.iter().find(|it| it.kind.is_error()).map(|it| it.message.clone());
    let failed = || {
        let state = status.operation_state.as_ref()?;
        (state.phase.is_completed() && !state.phase.is_successful()).then(|| state.message.clone())
    };
    let object = || {
        let is_ill = |code: HealthCode| !matches!(code, HealthCode::Healthy | HealthCode::Suspended);
        let found =
            status.resources.iter().find(|it| it.health.as_ref().is_some_and(|it| is_ill(it.status)))?;
        let health = found.health.as_ref()?;
        Some(format!("{}/{} is {}: {}", found.kind, found.name, health.status.as_str(), health.message))
    };
    let why = condition.or_else(failed).or_else(object).unwrap_or_default();
    if why.is_empty() { String::new() } else { format!(" ({})", one_line(&why).trim_end_matches([':', ' '])) }
}

/// Everything about an Application that fits on a screen, without its objects.
pub(crate) fn head(app: &Application) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{:<20}{value}", format!("{name}:"));
    };
    line("Name", &format!("{}/{}", app.metadata.namespace, app.metadata.name));
    line("Project", app.project());
    line("Server", cluster(&app.spec.destination));
    line("Namespace", &app.spec.destination.namespace);
    for one in app.spec.effective_sources() {
        line("Source", &source(&one));
    }
    line("Sync Policy", &policy(app));
    if let Some(until) = Until::for_app(app) {
        line("Paused Until", &until.to_string());
    }
    let revision = revision(app);
    let at = if revision.is_empty() { String::new() } else { format!(" to {revision}") };
    line("Sync Status", &format!("{}{at}", app.status.sync.status.as_str()));
    line("Health Status", health(app));
    for condition in &app.status.conditions {
        line("Condition", &format!("{:?}: {}", condition.kind, one_line(&condition.message)));
    }
    if let Some(state) = &app.status.operation_state {
        text.push_str(&operation(state));
    }
    text
}

/// An operation with what it waits for.
pub(crate) fn operation(state: &OperationState) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{:<20}{value}", format!("{name}:"));
    };
    line("Operation", "Sync");
    let result = state.sync_result.as_ref();
    let revision = result.map(|result| result.revisions.first().unwrap_or(&result.revision));
    if let Some(revision) = revision.filter(|revision| !revision.is_empty()) {
        line("Sync Revision", revision);
    }
    line("Phase", &format!("{:?}", state.phase));
    line("Start", &state.started_at.to_string());
    if let Some(finished) = state.finished_at.filter(|_| state.phase.is_completed()) {
        line("Finished", &finished.to_string());
    }
    if !state.message.is_empty() {
        line("Message", &one_line(&state.message));
    }
    if !state.phase.is_completed() {
        for wait in SyncState::from_operation_state(state.clone()).waits() {
            line("Waits", &format!("{wait} since {}", wait.since));
        }
    }
    text
}

/// One row for each object: group, kind, namespace, name, sync status, health, hook, message.
pub(crate) fn resources(app: &Application) -> String {
    let results = app.status.operation_state.as_ref().and_then(|state| state.sync_result.as_ref());
    let results: Vec<_> = results.iter().flat_map(|result| &result.resources).collect();
    let mut rows: Vec<[String; 8]> = Vec::new();
    for one in &app.status.resources {
        let result = results.iter().find(|r| {
            (&r.group, &r.kind, &r.namespace, &r.name) == (&one.group, &one.kind, &one.namespace, &one.name)
        });
        if result.is_some_and(|result| one.hook && !result.hook_type.is_empty()) {
            // Told below, with what became of it.
            continue;
        }
        let health = one.health.as_ref();
        let message = health.map(|health| health.message.as_str()).filter(|message| !message.is_empty());
        let message = message.or(result.map(|result| result.message.as_str())).unwrap_or_default();
        let pruned = if one.requires_pruning && !one.hook { " (to be pruned)" } else { "" };
        rows.push([
            one.group.clone(),
            one.kind.clone(),
            one.namespace.clone(),
            one.name.clone(),
            format!("{}{pruned}", one.status.map(|status| status.as_str()).unwrap_or_default()),
            health.map(|health| health.status.as_str()).unwrap_or_default().to_owned(),
            String::new(),
            one_line(message),
        ]);
    }
    for hook in results.iter().filter(|result| !result.hook_type.is_empty()) {
        rows.push([
            hook.group.clone(),
            hook.kind.clone(),
            hook.namespace.clone(),
            hook.name.clone(),
            hook.hook_phase.map(|phase| format!("{phase:?}")).unwrap_or_default(),
            String::new(),
            hook.hook_type.clone(),
            one_line(&hook.message),
        ]);
    }
    table(["GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "HOOK", "MESSAGE"], &rows)
}

/// Applications as rows, in the order of Argo CD's command line.
pub(crate) fn rows(apps: &[Value]) -> String {
    let mut rows = Vec::new();
    for object in apps {
        let Ok(app) = Application::from_value(object) else { continue };
        let first = app.spec.effective_sources().into_iter().next().unwrap_or_default();
        let path = if first.chart.is_empty() { first.path.clone() } else { first.chart.clone() };
        rows.push([
            format!("{}/{}", app.metadata.namespace, app.metadata.name),
            cluster(&app.spec.destination).to_owned(),
            app.spec.destination.namespace.clone(),
            app.project().to_owned(),
            app.status.sync.status.as_str().to_owned(),
            health(&app).to_owned(),
            policy(&app),
            conditions(&app),
            first.repo_url.clone(),
            path,
            first.target_revision.clone(),
        ]);
    }
    let header = [
        "NAME",
        "CLUSTER",
        "NAMESPACE",
        "PROJECT",
        "STATUS",
        "HEALTH",
        "SYNCPOLICY",
        "CONDITIONS",
        "REPO",
        "PATH",
        "TARGET",
    ];
    table(header, &rows)
}
