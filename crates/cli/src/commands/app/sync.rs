//! `tiphys app sync`.

use std::time::Duration;

use tiphys_model::{
    Application, NameValue, Operation, RetryStrategy, SyncOperation, SyncOperationResource, SyncStrategy,
    SyncStrategyMode,
};

use crate::{
    app::{finished, selection::Selection, session::Session},
    duration,
    exit::WrongUse,
    output::Format,
};

/// Bring Applications to the state that their sources describe, and wait for the end.
///
/// Exit codes: 0 every operation succeeded; 1 one failed, or did not end in time; 2 wrong use.
///
/// Examples:
///   tiphys app sync shop
///   tiphys app sync shop --revision v1.2.3 --prune
///   tiphys app sync shop --resource apps:Deployment:cart --dry-run
///   tiphys app sync --selector team=red --async
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Sync to this branch, tag or commit, not to what targetRevision says.
    #[arg(long, value_name = "REV")]
    revision: Option<String>,
    /// Delete what left the sources.
    #[arg(long)]
    prune: bool,
    /// Change nothing: only see whether it would be accepted.
    #[arg(long)]
    dry_run: bool,
    /// Delete and create again where an update is refused.
    #[arg(long)]
    force: bool,
    /// With hooks, or without any.
    #[arg(long, value_parser = ["hook", "apply"], default_value = "hook")]
    strategy: String,
    /// Only these objects: GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME; a leading ! leaves one out.
    #[arg(long, value_name = "OBJECT")]
    resource: Vec<String>,
    /// A sync option in place of the Application's own, such as ServerSideApply=true.
    #[arg(long, value_name = "OPTION")]
    sync_option: Vec<String>,
    /// Apply only what is out of sync.
    #[arg(long)]
    apply_out_of_sync_only: bool,
    /// Apply on the server's side.
    #[arg(long)]
    server_side: bool,
    /// Replace objects in place of applying them.
    #[arg(long)]
    replace: bool,
    /// How many times a failed sync is repeated.
    #[arg(long, value_name = "N")]
    retry_limit: Option<i64>,
    /// A note on the operation: key=value.
    #[arg(long, value_name = "KEY=VALUE")]
    info: Vec<String>,
    /// Do not wait for the end.
    #[arg(long = "async")]
    is_async: bool,
    /// How long to wait for the end.
    #[arg(long, default_value = "10m", value_parser = duration::parse, value_name = "DURATION")]
    timeout: Duration,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Asks for the operations and waits for their end.
///
/// # Errors
/// Nothing to sync, or an operation is refused, fails or does not end.
pub async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    let ids = args.selection.resolve(session).await?;
    let mut asked = Vec::new();
    for id in &ids {
        asked.push(finished::request(session, id, |app| operation(args, app)).await?);
    }
    if args.is_async {
        ids.iter().for_each(|id| eprintln!("sync of {id} was asked for"));
        return Ok(());
    }
    let mut result = Ok(());
    for (id, note) in ids.iter().zip(&asked) {
        let end = finished::follow(session, id, note, args.timeout, args.output).await;
        result = result.and(end);
    }
    result
}

fn operation(args: &Args, app: &Application) -> anyhow::Result<Operation> {
    if let (Some(revision), Some(_)) = (&args.revision, app.automated())
        && !args.dry_run
        && !app.spec.effective_sources().iter().any(|source| source.target_revision == *revision)
    {
        return Err(WrongUse(format!(
            "cannot sync to {revision}: the Application syncs itself to its targetRevision, and would go back at once; change it with `tiphys app set --revision {revision}`"
        ))
        .into());
    }
    let mode = Some(SyncStrategyMode { force: args.force });
    let (apply, hook) = if args.strategy == "apply" { (mode, None) } else { (None, mode) };
    let multiple = app.spec.has_multiple_sources();
    let revision = args.revision.clone().unwrap_or_default();
    let sync = SyncOperation {
        revisions: if multiple && !revision.is_empty() { first_at(app, &revision) } else { Vec::new() },
        revision: if multiple { String::new() } else { revision },
        prune: args.prune,
        dry_run: args.dry_run,
        sync_strategy: Some(SyncStrategy { apply, hook }),
        resources: resources(args, app)?,
        sync_options: options(args, app),
        ..SyncOperation::default()
    };
    Ok(Operation {
        sync: Some(sync),
        info: args.info.iter().map(|note| note_of(note)).collect::<Result<_, _>>()?,
        retry: retry(args, app),
        ..Operation::default()
    })
}

/// The first source at a revision, the others at theirs.
fn first_at(app: &Application, revision: &str) -> Vec<String> {
    let sources = app.spec.effective_sources();
    let rest = sources.iter().skip(1).map(|source| source.revision_or_head().to_owned());
    std::iter::once(revision.to_owned()).chain(rest).collect()
}

fn note_of(text: &str) -> Result<NameValue, WrongUse> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| WrongUse(format!("{text:?} is not of the form key=value")))?;
    Ok(NameValue { name: name.to_owned(), value: value.to_owned() })
}

fn retry(args: &Args, app: &Application) -> RetryStrategy {
    let own = app.spec.sync_policy.as_ref().and_then(|policy| policy.retry.clone()).unwrap_or_default();
    match args.retry_limit {
        Some(limit) => RetryStrategy { limit, ..own },
        None => own,
    }
}

fn options(args: &Args, app: &Application) -> Vec<String> {
    let mut options = args.sync_option.clone();
    let flags = [
        (args.apply_out_of_sync_only, "ApplyOutOfSyncOnly=true"),
        (args.server_side, "ServerSideApply=true"),
        (args.replace, "Replace=true"),
    ];
    options.extend(flags.iter().filter(|(set, _)| *set).map(|(_, option)| (*option).to_owned()));
    if options.is_empty() {
        let policy = app.spec.sync_policy.as_ref();
        return policy.map(|policy| policy.sync_options.clone()).unwrap_or_default();
    }
    options
}

/// The objects of a selective sync. With only exclusions, all others.
fn resources(args: &Args, app: &Application) -> anyhow::Result<Vec<SyncOperationResource>> {
    let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
    for text in &args.resource {
        match text.strip_prefix('!') {
            Some(text) => unwanted.push(object(text)?),
            None => wanted.push(object(text)?),
        }
    }
    if wanted.is_empty() && !unwanted.is_empty() {
        wanted = app
            .status
            .resources
            .iter()
            .map(|one| SyncOperationResource {
                group: one.group.clone(),
                kind: one.kind.clone(),
                name: one.name.clone(),
                namespace: one.namespace.clone(),
            })
            .collect();
    }
    let is_unwanted = |one: &SyncOperationResource| {
        unwanted.iter().any(|not: &SyncOperationResource| {
            (&not.group, &not.kind, &not.name) == (&one.group, &one.kind, &one.name)
                && (not.namespace.is_empty() || not.namespace == one.namespace)
        })
    };
    wanted.retain(|one| !is_unwanted(one));
    if wanted.is_empty() && !args.resource.is_empty() {
        return Err(WrongUse("no object is left to sync".into()).into());
    }
    Ok(wanted)
}

/// `GROUP:KIND:NAME` or `GROUP:KIND:NAMESPACE/NAME`.
pub fn object(text: &str) -> Result<SyncOperationResource, WrongUse> {
    let parts: Vec<&str> = text.splitn(3, ':').collect();
    let [group, kind, name] = parts[..] else {
        return Err(WrongUse(format!(
            "{text:?} is not of the form GROUP:KIND:NAME; the core group is empty: :Service:cart"
        )));
    };
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    Ok(SyncOperationResource {
        group: group.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        namespace: namespace.to_owned(),
    })
}
