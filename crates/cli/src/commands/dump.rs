//! `tiphys dump`.

use std::path::PathBuf;

use super::doctor::{Logs, save_live};
use crate::app::cluster_choice::Target;

/// Save the state of a cluster for `tiphys doctor --from`, without credentials
///
/// Writes objects of every kind, events, and the logs of what is not ready into a new folder, or
/// into an archive. Of Secrets only the keys are kept, and the public certificates; everything that
/// looks like a credential is masked, in logs too. Reads only. Look at it before you attach it: what
/// your programs log is your own.
///
/// Exit codes: 0 saved; 2 the cluster cannot be read, or the folder cannot be written.
///
/// Examples:
///   tiphys dump --output-folder state
///   tiphys dump --context prod --output-folder state.tar.gz
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// A new folder, or an archive if it ends with .tar.gz.
    #[arg(long, value_name = "FOLDER|FILE")]
    output_folder: PathBuf,
    /// Where to read if not all namespaces may be read.
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// Which logs are read: of what is in trouble and of the cluster's own components, none, or all.
    #[arg(long, value_enum, default_value_t = Logs::Auto)]
    logs: Logs,
    #[command(flatten)]
    target: Target,
}

/// Saves.
///
/// # Errors
/// The cluster cannot be read, or the folder exists or cannot be written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    save_live(&args.target, args.namespace.as_deref(), args.logs, &args.output_folder)
}
