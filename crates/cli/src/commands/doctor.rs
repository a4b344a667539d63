//! `tiphys doctor --from FOLDER|FILE…`.

use std::path::PathBuf;

use anyhow::Context as _;
use jiff::Timestamp;
use tiphys_doctor::{Case, Diagnosis, diagnose};

use crate::{
    exit::{Reported, WrongUse},
    output::{Format, print},
};

/// Find the root cause of what is broken in a cluster
///
/// Reads what was saved of a cluster: objects (`kubectl get -o yaml|json`), events, logs, folders of
/// `kubectl cluster-info dump`, must-gather and support bundles.
///
/// Exit codes: 0 nothing is wrong; 1 causes were found; 2 the state cannot be read.
///
/// Examples:
///   tiphys doctor --from dump/
///   tiphys doctor --from dump/ --now 2026-03-10T09:00:00Z --output json
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Folders or files with the saved state.
    #[arg(long, required = true, num_args = 1.., value_name = "FOLDER|FILE")]
    from: Vec<PathBuf>,
    /// When the state was saved; without it, the newest time in the state.
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
    /// Only what is wrong in this namespace, with roots anywhere.
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// Only what is wrong with this Application, with roots anywhere.
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Prints what is wrong in a saved state.
///
/// # Errors
/// The state cannot be read, or something is wrong in it.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut case = Case::read(&args.from).map_err(|error| WrongUse(error.to_string()))?;
    case.at = args.now.or(case.at);
    let diagnosis = diagnose(&case).narrowed_to(args.namespace.as_deref(), args.app.as_deref());
    let value = serde_json::to_value(&diagnosis).context("cannot print the diagnosis")?;
    print(args.output, &text(&diagnosis), &value)?;
    if diagnosis.causes.is_empty() { Ok(()) } else { Err(Reported.into()) }
}

fn text(diagnosis: &Diagnosis) -> String {
    if diagnosis.causes.is_empty() {
        return "Nothing is wrong.\n".to_owned();
    }
    let lines = diagnosis.causes.iter().map(|root| {
        let (cause, object, summary) = (root.cause, &root.object, &root.summary);
        format!("{cause}  {object}: {summary}\n")
    });
    lines.collect()
}
