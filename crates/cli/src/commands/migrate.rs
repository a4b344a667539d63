//! `tiphys migrate`: from Argo CD to Tiphys.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use crate::{
    app::cluster_choice::Target,
    exit::Reported,
    migrate::{installation::Installation, plan::Plan},
    output,
};

/// Move an installation of Argo CD to Tiphys.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    Plan(PlanArgs),
}

/// Say, Application by Application, what would be the same, what would differ, and what is not supported.
///
/// Reads an installation of Argo CD and writes nothing. What differs is told in the words of the page
/// "Differences from Argo CD", by the options that an Application really uses. At the end come the commands
/// that take the installation over, and back.
///
/// Exit codes: 0 everything that is used works; 1 an Application or ApplicationSet uses what is not
/// supported, or the cluster cannot be read; 2 wrong use.
///
/// Examples:
///   tiphys migrate plan --context prod
///   argocd admin export > backup.yaml; tiphys migrate plan --from backup.yaml --output markdown
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct PlanArgs {
    /// Read files in place of a cluster: what `argocd admin export`, `kubectl get -o yaml` or `tiphys dump`
    /// wrote, or - for the standard input. May be repeated.
    #[arg(long, value_name = "FOLDER|FILE", num_args = 1.., conflicts_with_all = ["kubeconfig", "context"])]
    from: Vec<PathBuf>,
    /// How the plan is written.
    #[arg(long, short, value_enum, default_value_t = Form::Text)]
    output: Form,
    #[command(flatten)]
    target: Target,
}

/// The form of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people.
    Text,
    /// One JSON text.
    Json,
    /// For a pull request or a wiki.
    Markdown,
}

/// Runs the command.
///
/// # Errors
/// The installation cannot be read, or uses what is not supported.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Command::Plan(args) = &args.command;
    let namespace = &args.target.app_namespace;
    let installation = match args.from.is_empty() {
        false => Installation::from_files(&args.from, namespace)
            .map_err(|error| crate::exit::WrongUse(format!("{error:#}")))?,
        true => {
            let runtime = tokio::runtime::Runtime::new()?;
            runtime.block_on(async {
                let chosen = args.target.connect().await?;
                Installation::from_cluster(&chosen.connection.cluster, namespace).await
            })?
        }
    };
    let plan = Plan::new(&installation);
    match args.output {
        Form::Text => output::say(plan.text().trim_end())?,
        Form::Markdown => output::say(plan.markdown().trim_end())?,
        Form::Json => output::write(output::json_text(&serde_json::to_value(&plan)?).as_bytes())?,
    }
    match plan.has_unsupported() {
        true => Err(Reported.into()),
        false => Ok(()),
    }
}
