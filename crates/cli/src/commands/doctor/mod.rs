//! `tiphys doctor`.

pub(crate) mod archive;
mod input;
mod live;
mod mask;
pub(crate) mod private_files;
mod prove;
mod report;
pub(crate) mod save;
mod watch;
mod written;

use std::{
    io::IsTerminal as _,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use jiff::Timestamp;
use tiphys_doctor::{Diagnosis, diagnose};

use crate::{
    app::cluster_choice::Target,
    exit::{Reported, WrongUse},
    output,
};

pub(crate) use input::State;
pub(crate) use live::Logs;
pub(crate) use mask::{MASKED, mask_object};

use report::{Level, Report};
use written::Declarations;

/// Find the root cause of what is broken in a cluster
///
/// Looks at a running cluster, or at what was saved of one with --from. Reads only: objects of
/// every kind, events, and the logs of what is not ready. Secrets are read without their values.
/// What may not or cannot be read is told. Nothing leaves this machine but the requests to the
/// cluster.
///
/// Exit codes: 0 nothing is wrong; 1 causes, or symptoms without one, were found; 2 it cannot look.
///
/// Examples:
///   tiphys doctor
///   tiphys doctor --context prod -n shop
///   tiphys doctor --output html > report.html
///   tiphys doctor --save state.tar.gz
///   tiphys doctor --from state.tar.gz --output json
///   tiphys doctor --from must-gather/ --now 2026-03-10T09:00:00Z
///   tiphys doctor --repo ~/platform
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Look at what was saved: folders and files of `kubectl get -o yaml|json`, `kubectl cluster-info dump`,
    /// must-gather, `tiphys dump`; archives (.tar.gz) of them.
    #[arg(long, num_args = 1.., value_name = "FOLDER|FILE", conflicts_with_all = ["kubeconfig", "context", "watch", "logs"])]
    from: Vec<PathBuf>,
    /// When the state was saved; without it, what the state says, or the newest time in it.
    #[arg(long, value_name = "TIME", requires = "from")]
    now: Option<Timestamp>,
    /// The repository that the cluster is delivered from, a folder or an address that Git takes: say where
    /// what is at fault is written, and which commits changed it last.
    #[arg(long, value_name = "PATH|GIT_URL")]
    repo: Option<String>,
    /// Do not try out remedies on a copy of the cluster; with --watch they are not.
    #[arg(long)]
    no_prove: bool,
    /// Only what is wrong in this namespace, with roots anywhere.
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// Only what is wrong with this Application, with roots anywhere.
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// Which logs are read: of what is in trouble and of the cluster's own components, none, or all.
    #[arg(long, value_enum, default_value_t = Logs::Auto)]
    logs: Logs,
    /// Save what was looked at in a new folder, or in an archive if it ends with .tar.gz, without
    /// credentials.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Stay, look again every 30 seconds, and print whenever something has changed.
    #[arg(long, conflicts_with = "save")]
    watch: bool,
    /// The form of the output.
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people at a terminal.
    Text,
    /// One JSON object; docs/doctor.md describes it.
    Json,
    /// For an incident channel or an issue.
    Markdown,
    /// One page for a browser that loads nothing.
    Html,
}

/// Looks, and prints what is wrong.
///
/// # Errors
/// Something is wrong (exit code 1), or it cannot look (exit code 2).
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let declarations = args.repo.as_deref().map(Declarations::open).transpose().map_err(cannot_look)?;
    if args.watch {
        return watch::follow(args, declarations.as_ref());
    }
    if let Some(place) = &args.save {
        save::check_new(place).map_err(cannot_look)?;
    }
    let state = read(args).map_err(cannot_look)?;
    if let Some(place) = &args.save {
        let count = save::save(&state.case, &state.source, place).map_err(cannot_look)?;
        eprintln!("{count} files saved in {}", place.display());
    }
    let view = View::new(args, &state, declarations.as_ref());
    output::write(view.text(args.output, &state)?.as_bytes())?;
    if view.report.level == Level::Well { Ok(()) } else { Err(Reported.into()) }
}

/// Reads a running cluster and saves what was read.
///
/// # Errors
/// It cannot be read, or the place exists or cannot be written.
pub(crate) fn save_live(
    target: &Target,
    namespace: Option<&str>,
    logs: Logs,
    place: &Path,
) -> anyhow::Result<()> {
    let saved = || -> anyhow::Result<()> {
        save::check_new(place)?;
        let state = input::runtime()?.block_on(input::live(target, namespace, logs))?;
        let count = save::save(&state.case, &state.source, place)?;
        for unreadable in &state.case.unreadable {
            eprintln!("not seen: {}", report::sanitize(&format!("{}: {}", unreadable.what, unreadable.why)));
        }
        eprintln!("{count} files saved in {}", place.display());
        Ok(())
    };
    saved().map_err(cannot_look)
}

/// Reads what the command line names.
fn read(args: &Args) -> anyhow::Result<State> {
    let mut state = match args.from.as_slice() {
        [] => input::runtime()?.block_on(input::live(&args.target, args.namespace.as_deref(), args.logs))?,
        paths => input::saved(paths)?,
    };
    state.case.at = args.now.or(state.case.at);
    state.place.scope = [("namespace", &args.namespace), ("Application", &args.app)]
        .into_iter()
        .filter_map(|(what, name)| Some(format!("{what} {}", name.as_ref()?)))
        .collect();
    Ok(state)
}

/// It cannot be said whether anything is wrong: exit code 2.
fn cannot_look(error: anyhow::Error) -> anyhow::Error {
    WrongUse(report::visible(&format!("{error:#}"))).into()
}

/// A diagnosis and what is shown of it.
struct View {
    diagnosis: Diagnosis,
    report: Report,
}

impl View {
    fn new(args: &Args, state: &State, declarations: Option<&Declarations>) -> Self {
        let mut diagnosis = diagnose(&state.case).narrowed_to(args.namespace.as_deref(), args.app.as_deref());
        if let Some(declarations) = declarations {
            declarations.locate(&mut diagnosis, &state.case);
        }
        // Who stays would leave a copy that does not end behind with every look.
        if !args.no_prove && !args.watch {
            prove::prove(&mut diagnosis, &state.case);
        }
        let report = Report::new(&diagnosis, &state.case, &state.place);
        Self { diagnosis, report }
    }

    fn text(&self, form: Output, state: &State) -> anyhow::Result<String> {
        Ok(match form {
            Output::Text => {
                // https://no-color.org
                let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                report::text(&self.report, std::io::stdout().is_terminal() && !is_plain)
            }
            Output::Json => report::visible_json(&report::json(&self.diagnosis, &self.report, &state.place)?),
            Output::Markdown => report::markdown(&self.report),
            Output::Html => report::html(&self.report),
        })
    }
}
