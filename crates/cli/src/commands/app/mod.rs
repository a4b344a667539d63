//! `tiphys app`: Applications of a cluster.

mod actions;
mod adopt;
mod create;
mod delete;
mod diff;
mod get;
mod history;
mod list;
mod manifests;
mod pause;
mod resources;
mod rollback;
mod set;
mod sync;
mod terminate;
mod undo;
mod wait;

use clap::Subcommand;

use crate::app::{cluster_choice::Target, consent::before_change, session::Session};

/// Applications of a cluster: list, compare, sync and change them.
///
/// The commands read and write the Application objects, so that they work with any engine that follows
/// Argo CD's API: Tiphys, or Argo CD itself. An Application is named `NAME` or `NAMESPACE/NAME`.
///
/// Exit codes: 0 done; 1 it did not work, the reason is on stderr; 2 wrong use of the command line. `diff`
/// and `wait` say more in their own help.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    /// Change the cluster without asking: one that was not named, and what `delete` would delete.
    #[arg(long, short, global = true)]
    yes: bool,
    #[command(subcommand)]
    command: App,
}

#[derive(Clone, Debug, Subcommand)]
enum App {
    List(list::Args),
    Get(get::Args),
    Diff(diff::Args),
    Sync(Box<sync::Args>),
    Wait(wait::Args),
    History(history::Args),
    Rollback(rollback::Args),
    #[command(alias = "terminate-op")]
    Terminate(terminate::Args),
    Resources(resources::Args),
    Manifests(manifests::Args),
    Delete(delete::Args),
    Create(Box<create::Args>),
    Set(Box<set::Args>),
    Pause(pause::Args),
    Resume(pause::ResumeArgs),
    Adopt(adopt::Args),
    Undo(undo::Args),
    Actions(actions::Args),
}

/// Runs one of the commands.
///
/// # Errors
/// Those of the command, and that the cluster cannot be reached.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let session = Session::open(&args.target).await?;
        if args.command.changes_the_cluster() {
            before_change(&session.address, session.named_by, args.yes)?;
        }
        tokio::select! {
            result = dispatch(&session, args) => result,
            () = interrupted() => anyhow::bail!("interrupted"),
        }
    });
    // A rendering that still runs on a thread of its own must not hold the exit.
    runtime.shutdown_background();
    result
}

async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl App {
    /// Whether it writes. Deleting asks by itself, with what would be deleted.
    fn changes_the_cluster(&self) -> bool {
        match self {
            Self::List(_)
            | Self::Get(_)
            | Self::Diff(_)
            | Self::Wait(_)
            | Self::History(_)
            | Self::Resources(_)
            | Self::Manifests(_)
            | Self::Delete(_) => false,
            Self::Sync(args) => !args.dry_run,
            Self::Undo(args) => !args.dry_run,
            Self::Actions(args) => args.runs_one(),
            Self::Rollback(_)
            | Self::Terminate(_)
            | Self::Create(_)
            | Self::Set(_)
            | Self::Pause(_)
            | Self::Resume(_) => true,
            Self::Adopt(args) => !args.dry_run,
        }
    }
}

async fn dispatch(session: &Session, args: &Args) -> anyhow::Result<()> {
    match &args.command {
        App::List(args) => list::run(session, args).await,
        App::Get(args) => get::run(session, args).await,
        App::Diff(args) => diff::run(session, args).await,
        App::Sync(args) => sync::run(session, args).await,
        App::Wait(args) => wait::run(session, args).await,
        App::History(args) => history::run(session, args).await,
        App::Rollback(args) => rollback::run(session, args).await,
        App::Terminate(args) => terminate::run(session, args).await,
        App::Resources(args) => resources::run(session, args).await,
        App::Manifests(args) => manifests::run(session, args).await,
        App::Delete(delete) => delete::run(session, delete, args.yes).await,
        App::Create(args) => create::run(session, args).await,
        App::Set(args) => set::run(session, args).await,
        App::Pause(args) => pause::pause(session, args).await,
        App::Undo(args) => undo::run(session, args).await,
        App::Actions(args) => actions::run(session, args).await,
        App::Adopt(adopt) => adopt::run(session, adopt, args.yes).await,
        App::Resume(args) => pause::resume(session, args).await,
    }
}
