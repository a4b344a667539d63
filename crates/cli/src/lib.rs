//! The `tiphys` command as a library, so that manual pages and completions are made from the very
//! definition that parses the command line.

#[macro_use]
mod output;

mod app;
mod check;
mod child_processes;
pub mod cli_reference;
mod clusters;
mod commands;
mod counted;
mod dump;
mod duration;
mod endpoints;
mod exit;
mod fetch;
mod generators;
mod local_clusters;
mod local_repositories;
mod migrate;
mod named_file;
mod plugins;
mod rehearse;
mod repository;
mod revisions;
mod settings;
mod switch_values;
mod templates;
mod up;

use std::{borrow::Cow, path::PathBuf, process::ExitCode};

use clap::{CommandFactory as _, Parser, Subcommand};
use tiphys_diag::sanitize;
use tiphys_value::RenderLimits;

pub use child_processes::serve_parent;
pub use exit::{FAILED, WRONG_USE};

/// Namespace of the engine, where Applications live that name none: Argo CD's.
pub(crate) const ENGINE_NAMESPACE: &str = "argocd";

/// A GitOps engine for Kubernetes in one binary: renders Helm and Kustomize natively, runs Argo CD's
/// Applications, and carries a cluster inside itself.
///
/// Exit codes: 0 done; 1 it did not work, the reason is on stderr; 2 wrong use of the command line.
#[derive(Debug, Parser)]
#[command(name = "tiphys", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Let this config management plugin render the sources that ask for it: NAME=COMMAND, or a file with a
    /// ConfigManagementPlugin. By default no program of others runs. May be repeated.
    #[arg(long, global = true, value_name = "NAME=COMMAND|FILE", help_heading = "Plugins")]
    allow_plugin: Vec<String>,
    /// Let this function (or exec plugin) of kustomizations run: EXECUTABLE as its annotation names it, or
    /// NAME=COMMAND, where NAME is an image, an executable or apiVersion/Kind. Its arguments come from the
    /// repository: allow no shell. May be repeated.
    #[arg(long, global = true, value_name = "EXECUTABLE|NAME=COMMAND", help_heading = "Plugins")]
    allow_function: Vec<String>,
    /// Let Applications name Git repositories below this folder of the machine, by path or file:// address.
    /// By default only the repository that a command is given is read from the machine. May be repeated.
    #[arg(long, global = true, value_name = "DIR", help_heading = "Repositories")]
    local_repositories: Vec<PathBuf>,
    /// Memory that the values and objects of one rendering may fill, in MiB.
    #[arg(long, global = true, value_name = "MIB", default_value_t = RenderLimits::DEFAULT.memory >> 20,
        value_parser = clap::value_parser!(u64).range(1..1 << 20), help_heading = "Limits of one rendering")]
    limit_memory: u64,
    /// How long the templates, generators and programs of one rendering may run.
    #[arg(long, global = true, value_name = "DURATION", default_value = "10s", value_parser = duration::parse,
        help_heading = "Limits of one rendering")]
    limit_time: std::time::Duration,
    /// How many objects one Application may have.
    #[arg(long, global = true, value_name = "N", default_value_t = RenderLimits::DEFAULT.objects,
        help_heading = "Limits of one rendering")]
    limit_objects: usize,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(Box<commands::up::Args>),
    Twin(commands::twin::Args),
    Check(Box<commands::check::Args>),
    Rehearse(Box<commands::rehearse::Args>),
    Graph(commands::graph::Args),
    /// Print what a chart, a kustomization or an Application renders to.
    #[command(subcommand)]
    Render(commands::render::Render),
    /// Tell which file, line and expression made a field of a rendered object.
    Why(commands::why::Args),
    Health(commands::health::Args),
    Doctor(Box<commands::doctor::Args>),
    Dump(commands::dump::Args),
    App(commands::app::Args),
    Appset(commands::appset::Args),
    Diff(commands::diff::Args),
    Controller(Box<commands::controller::Args>),
    Shadow(commands::shadow::Args),
    Migrate(commands::migrate::Args),
    /// Print the version.
    Version,
    /// Print a completion script for a shell.
    Completion(commands::completion::Args),
    Man(commands::man::Args),
}

impl Cli {
    /// Parses the command line of the process, or ends it with the reason why that cannot be done.
    pub fn from_args() -> Self {
        Self::try_parse_from(switch_values::plain(std::env::args_os().collect(), Self::command))
            .unwrap_or_else(|error| refuse(&error))
    }
}

/// Ends the process with what is wrong with its arguments. One may be text of strangers, such as the name of
/// a branch, and the message repeats it.
fn refuse(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    match sanitize::terminal(&text) {
        Cow::Borrowed(_) => error.exit(),
        Cow::Owned(shown) => {
            output::notice(shown.trim_end());
            std::process::exit(error.exit_code())
        }
    }
}

/// Runs a parsed command line.
pub fn run(cli: Cli) -> ExitCode {
    RenderLimits { memory: cli.limit_memory << 20, time: cli.limit_time, objects: cli.limit_objects }.set();
    let allowed = plugins::allow(&cli.allow_plugin, &cli.allow_function);
    if let Err(error) = allowed.and_then(|()| local_repositories::allow(&cli.local_repositories)) {
        return exit::code(Err(error));
    }
    let result = match cli.command {
        Command::Up(args) => commands::up::run(&args),
        Command::Twin(args) => commands::twin::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Rehearse(args) => commands::rehearse::run(&args),
        Command::Graph(args) => commands::graph::run(&args),
        Command::Render(render) => commands::render::run(render),
        Command::Why(args) => commands::why::run(&args),
        Command::App(args) => commands::app::run(&args),
        Command::Appset(args) => commands::appset::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Controller(args) => commands::controller::run(&args),
        Command::Shadow(args) => commands::shadow::run(&args),
        Command::Migrate(args) => commands::migrate::run(&args),
        Command::Health(args) => commands::health::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Dump(args) => commands::dump::run(&args),
        Command::Version => commands::version::run(),
        Command::Completion(args) => commands::completion::run(&args, &mut Cli::command()),
        Command::Man(args) => commands::man::run(&args, Cli::command()),
    };
    exit::code(result)
}

/// The definition of the command line, for manual pages and documentation.
pub fn command() -> clap::Command {
    Cli::command()
}
