//! The command line of `tiphys rehearse`.

use std::{path::PathBuf, time::Duration};

use clap::ValueEnum;
use tiphys_stage::fault::Timed;

use crate::{duration, revisions::Range, up::placeholder_kinds};

/// Play a repository, or a change of it, on an embedded cluster under virtual time: hours in milliseconds.
///
/// Without --diff everything is brought up from an empty cluster, until all Applications are Synced and
/// Healthy or nothing moves any more. With --diff the state before the change is brought up first; the change
/// is then played in a fork of that cluster, and what is told is what the change does.
///
/// No cluster is needed, and none is reached: only sources are fetched. The same repository, options and
/// --seed give the same output.
///
/// Exit codes: 0 it ends green, and with --diff nothing that was green is red; 1 it does not; 2 the rehearsal
/// could not run.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tiphys rehearse\n  tiphys rehearse --diff main..HEAD --output markdown\n  tiphys rehearse --from dump/ --output html > change.html\n  \
    tiphys rehearse --fault registry=ghcr.io:401@1m+10m\n  tiphys rehearse --explore\n  \
    tiphys rehearse --environment dev --argo-cd"
)]
pub(crate) struct Args {
    /// The repository: a folder, or an address that Git takes.
    #[arg(default_value = ".", value_name = "PATH_OR_GIT_URL")]
    pub place: String,
    /// Rehearse the change between two revisions: BASE..HEAD, BASE...HEAD (from their common commit), or BASE
    /// (to the files as they are).
    #[arg(long, value_name = "BASE[..HEAD]", value_parser = Range::parse, conflicts_with = "revision")]
    pub diff: Option<Range>,
    /// Rehearse this branch, tag or commit in place of the files as they are.
    #[arg(long, alias = "rev", value_name = "REV")]
    pub revision: Option<String>,
    /// The state before is a real cluster's, as it was saved: a folder, file or archive of `tiphys dump`,
    /// `kubectl get -o yaml|json` or a collector. It stands still, and what this repository changes in it is
    /// told.
    #[arg(long, value_name = "DUMP", conflicts_with = "diff")]
    pub from: Option<PathBuf>,
    /// One of several environments that stand side by side: its name, or the end of that.
    #[arg(long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Look for Applications in this folder or file of the repository only.
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// A file with clusters that ApplicationSets may select, beside those that the repository declares: their
    /// Secrets, or a YAML list of {name, server, labels, annotations}.
    #[arg(long, value_name = "FILE")]
    pub clusters: Option<PathBuf>,
    /// What goes wrong: kind=target[:how][@start][+duration], as in node=node-2@5m+10m, drain=node-1, zone=a,
    /// registry=ghcr.io:401, git=HOST, webhook=NAME:down, operator=KIND:down, cert=late:5m,
    /// pod=NAMESPACE/NAME:crash, quota=NAMESPACE, dns, cni, api:latency=2s, api:429@1m+30s, engine:kill@90s.
    /// May be repeated.
    #[arg(long = "fault", value_name = "SPEC", value_parser = fault)]
    pub faults: Vec<Timed>,
    /// A YAML file with a list of faults, each as --fault takes it, or as {fault, start, duration}.
    #[arg(long, value_name = "FILE", conflicts_with = "explore")]
    pub fault_file: Option<PathBuf>,
    /// Play one fork for every single fault of every component that the repository depends on, at most N of
    /// them, and rank them.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "100", conflicts_with = "faults")]
    pub explore: Option<usize>,
    /// How much virtual time passes at most.
    #[arg(long, default_value = "2h", value_parser = some_time, value_name = "DURATION", allow_hyphen_values = true)]
    pub until: Duration,
    /// Fail also if a workload or Service that was there is unavailable for longer.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "explore", allow_hyphen_values = true)]
    pub max_unavailable: Option<Duration>,
    /// Draws uids, generated names, and how long images take to be pulled.
    #[arg(long, default_value_t = 0, value_name = "N", allow_hyphen_values = true)]
    pub seed: u64,
    /// Go by Argo CD's rules in place of Tiphys' safer ones: health of Applications counts only if a script
    /// gives them one, waits have no end, failed syncs are repeated as often as Argo CD does.
    #[arg(long)]
    pub argo_cd: bool,
    /// Sync Applications without an automated policy too, as a person would who presses the button.
    #[arg(long)]
    pub sync_all: bool,
    /// What stands in for what nothing in reach brings, as for `tiphys up`.
    #[arg(long, value_enum, default_value_t = placeholder_kinds::When::Auto, value_name = "WHEN")]
    pub stand_ins: placeholder_kinds::When,
    /// Fetch nothing: repositories other than this one fail.
    #[arg(long)]
    pub offline: bool,
    /// Write the engine's cluster as it is at the end into a new folder, for `tiphys doctor` and --from.
    /// Values of Secrets are left out.
    #[arg(long, value_name = "FOLDER", conflicts_with = "explore")]
    pub save: Option<PathBuf>,
    /// How the story is told.
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

/// How the story is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people: a verdict, what happens, causes with consequences, and what is not known.
    Text,
    /// One JSON object with every moment.
    Json,
    /// For a pull request: one screen, details folded.
    Markdown,
    /// One page that asks for nothing else: a slider of time over the Applications and their objects.
    Html,
}

/// A length of time in which something can happen.
fn some_time(text: &str) -> Result<Duration, String> {
    let parsed = duration::parse(text)?;
    if parsed.is_zero() { Err("nothing happens in no time; write 2h, or 10m".to_owned()) } else { Ok(parsed) }
}

fn fault(text: &str) -> Result<Timed, String> {
    Timed::parse(text, duration::parse)
}
