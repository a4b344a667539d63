//! `tiphys app wait`.

use std::time::{Duration, Instant};

use tiphys_model::{Application, HealthCode, SyncStatusCode};
use tiphys_value::{Value, json};

use super::sync::object;
use crate::{
    app::{
        selection::Selection,
        session::{AppId, Session},
        view,
    },
    duration,
    exit::Reported,
    output::{Format, one_line, print},
};

/// Wait until Applications are Synced and Healthy and nothing is under way.
///
/// Flags narrow what is waited for; several of --health, --suspended and --degraded mean any of them.
///
/// Exit codes: 0 it is so; 1 it is not after --timeout, and what is missing is printed; 2 wrong use.
///
/// Examples:
///   tiphys app wait shop --timeout 5m
///   tiphys app wait --selector team=red --health
///   tiphys app wait shop --delete
///   tiphys app wait --selector team=red --output json
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Wait until it is Synced.
    #[arg(long)]
    sync: bool,
    /// Wait until it is Healthy.
    #[arg(long)]
    health: bool,
    /// Wait until it is Suspended.
    #[arg(long)]
    suspended: bool,
    /// Wait until it is Degraded.
    #[arg(long)]
    degraded: bool,
    /// Wait until no operation is under way.
    #[arg(long)]
    operation: bool,
    /// Wait until it is gone.
    #[arg(long)]
    delete: bool,
    /// Look at these objects only: GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME.
    #[arg(long, value_name = "OBJECT")]
    resource: Vec<String>,
    /// How long to wait.
    #[arg(long, default_value = "10m", value_parser = duration::parse, value_name = "DURATION")]
    timeout: Duration,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Waits for every Application.
///
/// # Errors
/// One is not as it should be in time.
pub(super) async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    for text in &args.resource {
        object(text)?;
    }
    let ids = args.selection.resolve(session).await?;
    let until = Instant::now().checked_add(args.timeout);
    let mut ends = Vec::new();
    for id in &ids {
        if !args.delete {
            session.get(id).await?;
        }
        let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        ends.push(wait(session, args, id, left).await);
    }
    let values = ids.iter().zip(&ends).map(|(id, end)| {
        json!({"namespace": id.namespace, "name": id.name, "met": end.is_ok(),
            "missing": end.as_ref().err()})
    });
    print(args.output, "", &values.collect())?;
    if ends.iter().all(Result::is_ok) { Ok(()) } else { Err(Reported.into()) }
}

/// Waits for one, telling how it ends; what is missing if it is not as it should be.
async fn wait(session: &Session, args: &Args, id: &AppId, left: Duration) -> Result<(), String> {
    let mut missing = String::new();
    let seen = session
        .until(id, left, |object| {
            let Some(object) = object else { return Some(args.delete) };
            match lacking(args, object) {
                None => Some(true),
                Some(lack) => {
                    missing = lack;
                    None
                }
            }
        })
        .await;
    let (told, end) = match seen {
        Some(true) if args.delete => ("is deleted".to_owned(), Ok(())),
        Some(true) => ("is in the state that was waited for".to_owned(), Ok(())),
        Some(false) => ("was deleted".to_owned(), Err("it was deleted".to_owned())),
        None => (format!("timed out after {}: {missing}", duration::humanize(args.timeout)), Err(missing)),
    };
    eprintln!("{id}: {told}");
    end
}

/// What an Application still lacks.
fn lacking(args: &Args, object: &Value) -> Option<String> {
    if args.delete {
        return Some("it is still there".into());
    }
    let app = match Application::from_value(object) {
        Ok(app) => app,
        Err(error) => return Some(error.to_string()),
    };
    let any = args.sync || args.health || args.suspended || args.degraded || args.operation;
    let state = app.status.operation_state.as_ref();
    let running = app.operation.is_some() || state.is_some_and(|state| !state.phase.is_completed());
    if (args.operation || !any) && running {
        let message = state.map(|state| one_line(&state.message)).unwrap_or_default();
        return Some(format!("an operation is under way: {message}"));
    }
    let healthy = [
        (args.health || !any, HealthCode::Healthy),
        (args.suspended, HealthCode::Suspended),
        (args.degraded, HealthCode::Degraded),
    ];
    let healthy: Vec<HealthCode> = healthy.iter().filter(|(on, _)| *on).map(|(_, code)| *code).collect();
    if args.resource.is_empty() {
        let sync = app.status.sync.status;
        if (args.sync || !any) && sync != SyncStatusCode::Synced {
            return Some(format!("it is {}{}", sync.as_str(), view::because(&app)));
        }
        if !healthy.is_empty() && !app.status.health.status.is_some_and(|code| healthy.contains(&code)) {
            return Some(format!("it is {}{}", view::health(&app), view::because(&app)));
        }
        return None;
    }
    args.resource.iter().find_map(|text| resource_lacks(&app, text, args.sync || !any, &healthy))
}

fn resource_lacks(app: &Application, text: &str, sync: bool, healthy: &[HealthCode]) -> Option<String> {
    let wanted = object(text).ok()?;
    let found = app.status.resources.iter().find(|one| {
        (&one.group, &one.kind, &one.name) == (&wanted.group, &wanted.kind, &wanted.name)
            && (wanted.namespace.is_empty() || wanted.namespace == one.namespace)
    });
    let Some(found) = found else { return Some(format!("{text} is no object of it")) };
    if sync && found.status != Some(SyncStatusCode::Synced) {
        return Some(format!("{text} is not Synced"));
    }
    // A kind without health counts as done.
    let health = found.health.as_ref()?;
    (!healthy.is_empty() && !healthy.contains(&health.status))
        .then(|| format!("{text} is {}: {}", health.status.as_str(), one_line(&health.message)))
}
