//! `tiphys app rollback`.

use std::time::Duration;

use anyhow::Context as _;
use tiphys_model::{Application, Operation, RevisionHistory, SyncOperation, SyncStrategy, SyncStrategyMode};

use crate::{
    app::{operation_end, session::Session},
    duration,
    exit::WrongUse,
    output::Format,
};

/// Go back to what was deployed before.
///
/// An Application that syncs itself would go forward again at once; it is refused.
///
/// Examples:
///   tiphys app rollback shop
///   tiphys app rollback shop 3 --prune
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The Application.
    app: String,
    /// Id of an entry of its history; by default the last but one.
    id: Option<i64>,
    /// Delete what that state does not have.
    #[arg(long)]
    prune: bool,
    /// How long to wait for the end.
    #[arg(long, default_value = "10m", value_parser = duration::parse, value_name = "DURATION")]
    timeout: Duration,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Asks for the operation and waits for its end.
///
/// # Errors
/// There is no such entry, the Application syncs itself, or the operation fails.
pub(super) async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    let id = session.id(&args.app)?;
    if session.repository.as_ref().is_some_and(|served| !served.by_revision) {
        return Err(WrongUse(
            "this `tiphys up` serves the files as they are, whatever revision is asked for; start it with --respect-revisions to go back to a commit"
                .into(),
        )
        .into());
    }
    let note = operation_end::request(session, &id, |app| operation(args, app)).await?;
    operation_end::follow(session, &id, &note, args.timeout, args.output).await
}

fn operation(args: &Args, app: &Application) -> anyhow::Result<Operation> {
    if app.automated_policy().is_some() {
        return Err(WrongUse(
            "rollback cannot be performed while the Application syncs itself; `tiphys app set --sync-policy none` switches that off, or revert the commit"
                .into(),
        )
        .into());
    }
    let entry = entry(args, &app.status.history)?;
    let sync = SyncOperation {
        revision: entry.revision.clone(),
        revisions: entry.revisions.clone(),
        source: entry.source.clone(),
        sources: entry.sources.clone(),
        prune: args.prune,
        sync_strategy: Some(SyncStrategy { apply: Some(SyncStrategyMode::default()), hook: None }),
        sync_options: app.spec.sync_policy.as_ref().map(|p| p.sync_options.clone()).unwrap_or_default(),
        ..SyncOperation::default()
    };
    Ok(Operation { sync: Some(sync), ..Operation::default() })
}

fn entry<'a>(args: &Args, history: &'a [RevisionHistory]) -> anyhow::Result<&'a RevisionHistory> {
    let Some(id) = args.id else {
        let before = history.len().checked_sub(2).and_then(|at| history.get(at));
        return before.context("nothing was deployed before the present state");
    };
    history.iter().find(|entry| entry.id == id).ok_or_else(|| {
        let known: Vec<String> = history.iter().map(|entry| entry.id.to_string()).collect();
        WrongUse(format!("the history has no entry {id}; it has {}", known.join(", "))).into()
    })
}
