//! `tiphys app sync`.

use std::time::Duration;

use tiphys_diag::similar_names::similar;
use tiphys_model::{
    Application, NameValue, Operation, ResourceStatus, RetryStrategy, SyncOperation, SyncOperationResource,
    SyncStrategy, SyncStrategyMode, glob,
};

use crate::{
    app::{
        operation_end,
        selection::Selection,
        session::{AppId, Session},
        spec::warn_of_option,
        windows,
    },
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
pub(super) struct Args {
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
    pub(super) dry_run: bool,
    /// Delete and create again where an update is refused.
    #[arg(long)]
    force: bool,
    /// With hooks, or without any.
    #[arg(long, value_parser = ["hook", "apply"], default_value = "hook")]
    strategy: String,
    /// Only these objects: GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME, with * for any text; a leading !
    /// leaves out. No hooks run then.
    #[arg(long, value_name = "OBJECT")]
    resource: Vec<String>,
    /// A sync option beside the Application's own, or in place of the one of that name, such as
    /// ServerSideApply=true.
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
pub(super) async fn run(session: &Session, args: &Args) -> anyhow::Result<()> {
    let ids = args.selection.resolve(session).await?;
    args.sync_option.iter().for_each(|option| warn_of_option(option));
    let mut asked = Vec::new();
    for id in &ids {
        windows::check_open(session, id).await?;
        look_again_for_objects(session, id, args).await?;
        asked.push(operation_end::request(session, id, |app| operation(args, app)).await?);
    }
    if args.is_async {
        ids.iter().for_each(|id| eprintln!("sync of {id} was asked for"));
        return Ok(());
    }
    let mut result = Ok(());
    for (id, note) in ids.iter().zip(&asked) {
        let end = operation_end::follow(session, id, note, args.timeout, args.output).await;
        result = result.and(end);
    }
    result
}

fn operation(args: &Args, app: &Application) -> anyhow::Result<Operation> {
    if let (Some(revision), Some(_)) = (&args.revision, app.automated_policy())
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
    let policy = app.spec.sync_policy.as_ref();
    let own = policy.map(|policy| policy.sync_options.clone()).unwrap_or_default();
    added_to(own, options)
}

/// The Application's own options, with others that take the place of those of the same name.
fn added_to(mut own: Vec<String>, asked: Vec<String>) -> Vec<String> {
    let name = |option: &String| option.split('=').next().unwrap_or_default().to_owned();
    own.retain(|option| !asked.iter().any(|other| name(other) == name(option)));
    own.extend(asked);
    own
}

/// Has the engine look again if it knows nothing yet of an object that is named.
async fn look_again_for_objects(session: &Session, id: &AppId, args: &Args) -> anyhow::Result<()> {
    if args.resource.is_empty() || args.revision.is_some() {
        return Ok(());
    }
    let app = Application::from_value(&session.get(id).await?)?;
    if resources(args, &app).is_err() {
        session.refresh(id, false).await?;
    }
    Ok(())
}

/// The objects of a selective sync. With only exclusions, all others.
fn resources(args: &Args, app: &Application) -> anyhow::Result<Vec<SyncOperationResource>> {
    let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
    for text in &args.resource {
        match text.strip_prefix('!') {
            Some(text) => unwanted.push(object(text)?),
            None => wanted.extend(matching_objects(args, app, text)?),
        }
    }
    if wanted.is_empty() && !unwanted.is_empty() {
        wanted = app.status.resources.iter().filter(|one| !one.hook).map(as_wanted).collect();
    }
    wanted.retain(|one| !unwanted.iter().any(|pattern| fits(pattern, one)));
    if wanted.is_empty() && !args.resource.is_empty() {
        return Err(WrongUse("no object is left to sync".into()).into());
    }
    Ok(wanted)
}

/// The objects of an Application that a pattern names. At another revision than the one that was compared
/// nobody knows which there are.
fn matching_objects(
    args: &Args,
    app: &Application,
    text: &str,
) -> Result<Vec<SyncOperationResource>, WrongUse> {
    let pattern = object(text)?;
    let all = &app.status.resources;
    let (hooks, found): (Vec<_>, Vec<_>) =
        all.iter().filter(|one| fits(&pattern, &as_wanted(one))).partition(|one| one.hook);
    if !found.is_empty() {
        return Ok(found.into_iter().map(as_wanted).collect());
    }
    if !hooks.is_empty() {
        return Err(WrongUse(format!("{text:?} is a hook; a sync of single objects runs none")));
    }
    if args.revision.is_some() && !text.contains('*') {
        return Ok(vec![pattern]);
    }
    let shown = |one: &SyncOperationResource| format!("{}:{}:{}", one.group, one.kind, one.name);
    let all: Vec<SyncOperationResource> = all.iter().filter(|one| !one.hook).map(as_wanted).collect();
    let names = similar(&pattern.name, all.iter().map(|one| one.name.as_str()));
    let like: Vec<String> = all.iter().filter(|one| names.contains(&one.name.as_str())).map(shown).collect();
    let like = match like.is_empty() {
        true => format!("`tiphys app resources {}` lists what it has", app.metadata.name),
        false => format!("did you mean {}?", like.join(" or ")),
    };
    Err(WrongUse(format!("no object of {} is {text:?}; {like}", app.metadata.name)))
}

fn as_wanted(one: &ResourceStatus) -> SyncOperationResource {
    SyncOperationResource {
        group: one.group.clone(),
        kind: one.kind.clone(),
        name: one.name.clone(),
        namespace: one.namespace.clone(),
    }
}

/// Whether an object is one that a pattern names; a pattern without a namespace means all.
fn fits(pattern: &SyncOperationResource, one: &SyncOperationResource) -> bool {
    let namespace = pattern.namespace.is_empty() || glob::matches(&pattern.namespace, &one.namespace);
    namespace
        && glob::matches(&pattern.group, &one.group)
        && glob::matches(&pattern.kind, &one.kind)
        && glob::matches(&pattern.name, &one.name)
}

/// `GROUP:KIND:NAME` or `GROUP:KIND:NAMESPACE/NAME`.
pub(super) fn object(text: &str) -> Result<SyncOperationResource, WrongUse> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_application_stay_beside_those_that_are_asked_for() {
        let list = |options: &[&str]| options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>();
        let own = list(&["CreateNamespace=true", "Replace=false"]);
        assert_eq!(
            added_to(own.clone(), list(&["Replace=true"])),
            list(&["CreateNamespace=true", "Replace=true"])
        );
        assert_eq!(added_to(own.clone(), Vec::new()), own);
    }
}
