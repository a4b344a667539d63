//! `tiphys graph [PATH]`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tiphys_check::Survey;
use tiphys_diag::sanitize;
use tiphys_graph::{
    EnvironmentId, Options,
    edges::Edges,
    order::{Order, Plan, PlanView, expectation},
};

use crate::{
    exit::{Reported, WrongUse},
    output::say,
    repository::{self, Given, Repository, out_of_reach, to_run, with_environment},
};

/// Tell in which order a repository is applied, and what its Applications need of each other.
///
/// Exit codes: 0 done; 1 the order is not as expected, or there is none; 2 the repository cannot be read.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tiphys graph\n  tiphys graph --output mermaid\n  \
    tiphys graph --fix-order\n  tiphys graph --output waves > tiphys-order.yaml\n  \
    tiphys graph --expect tiphys-order.yaml")]
pub(crate) struct Args {
    /// The repository: a folder, or an address that Git takes.
    #[arg(default_value = ".", value_name = "PATH_OR_GIT_URL")]
    place: String,
    /// Read this branch, tag or commit in place of the files as they are.
    #[arg(long, alias = "rev", value_name = "REV")]
    revision: Option<String>,
    /// Fetch nothing: charts and repositories that are not in the cache are not seen.
    #[arg(long)]
    offline: bool,
    /// Look for Applications in this folder or file of the repository only.
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// A file with the clusters that ApplicationSets may name: their Secrets, or a YAML list of {name,
    /// server, labels}.
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Only one of several environments that stand side by side: its name, or the end of that.
    #[arg(long, value_name = "NAME")]
    environment: Option<String>,
    /// Show the wave that each Application should have so that everything comes after what it needs, or why
    /// there is no such order.
    #[arg(long)]
    fix_order: bool,
    /// Compare with this file: a YAML mapping from the names of Applications to their waves.
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A tree with waves.
    Text,
    /// A list of JSON objects, one for each environment.
    Json,
    /// For Graphviz.
    Dot,
    /// For Mermaid, as code hosts show it in Markdown.
    Mermaid,
    /// The form that --expect reads.
    Waves,
}

/// Prints the order.
///
/// # Errors
/// It is not as expected, there is none that is right (exit code 1), or the repository or a file cannot be
/// read (exit code 2).
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let survey = read(args).map_err(|error| WrongUse(format!("{error:#}")))?;
    let (edges, order) = (Edges::from_survey(&survey), Order::from_survey(&survey));
    let environments = (0..survey.environments.len()).map(EnvironmentId);
    let plans: Vec<Plan> =
        environments.map(|id| Plan::for_environment(&survey, &edges, &order, id)).collect();
    if plans.is_empty() {
        eprintln!("there are no Applications here");
        out_of_reach(&survey).iter().for_each(|why| eprintln!("note: {why}"));
    }
    for told in repository::notices(&survey).iter().chain(&repository::faults(&survey)) {
        eprintln!("note: {told}");
    }
    if let Some(file) = &args.expect {
        return compare(&survey, &plans, file);
    }
    let shown: Vec<PlanView<'_>> =
        plans.iter().map(|plan| PlanView { survey: &survey, plan, fix: args.fix_order }).collect();
    print(&shown, args.output)?;
    let impossible = args.fix_order && plans.iter().any(|plan| !plan.circles.is_empty());
    if impossible { Err(Reported.into()) } else { Ok(()) }
}

fn print(shown: &[PlanView<'_>], output: Output) -> anyhow::Result<()> {
    let shown = shown.iter();
    let text: String = match output {
        Output::Text => shown.map(|it| it.text() + "\n").collect(),
        Output::Json => {
            let all = serde_json::Value::from(shown.map(PlanView::json).collect::<Vec<_>>());
            return Ok(crate::output::write(crate::output::json_text(&all).as_bytes())?);
        }
        Output::Dot => shown.map(PlanView::dot).collect(),
        Output::Mermaid => shown.map(PlanView::mermaid).collect(),
        Output::Waves => shown.map(PlanView::waves).collect(),
    };
    Ok(crate::output::write(sanitize::terminal(&text).as_bytes())?)
}

fn read(args: &Args) -> anyhow::Result<Survey> {
    let repository = Repository::open(&Given {
        place: &args.place,
        revision: args.revision.as_deref(),
        path: args.path.as_deref(),
        respect_revisions: false,
        offline: args.offline,
    })?;
    let clusters = args.clusters.as_deref().map(crate::clusters::read).transpose()?.unwrap_or_default();
    let options = Options { any_cluster: true, ..to_run() };
    let survey = repository.survey(options, args.environment.as_deref(), &clusters);
    let mut survey = with_environment(survey)?;
    // What Flux applies has an order too.
    Ok(match survey.flux.take() {
        Some(flux) => *flux,
        None => survey,
    })
}

/// Compares the order with a file.
fn compare(survey: &Survey, plans: &[Plan], file: &Path) -> anyhow::Result<()> {
    let read = || -> anyhow::Result<_> {
        let text = crate::named_file::read_text(file)?;
        expectation(&text).map_err(|why| anyhow::anyhow!("{} {why}", file.display()))
    };
    let expected = read().map_err(|error| WrongUse(format!("{error:#}")))?;
    let drifts: Vec<String> =
        plans.iter().flat_map(|plan| plan.drift(survey, &expected)).map(|drift| drift.text()).collect();
    if drifts.is_empty() {
        say(format_args!("the order is as {} says", file.display()))?;
        return Ok(());
    }
    for drift in &drifts {
        say(drift)?;
    }
    Err(Reported.into())
}
