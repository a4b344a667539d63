//! `cargo xtask bench engine`: thousands of Applications to Synced, a commit to a large repository, and what an
//! engine at rest costs.

mod platform;
mod process;
mod repository;
mod watching;

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context;

use super::publish;
use platform::{Kind, Platform};
use process::{Engine, Used};
use repository::{GROUP, Repository, Shape};

/// Options of the suite.
#[derive(clap::Args)]
pub struct Args {
    /// The binary to measure, built with `cargo build --release`.
    #[arg(long, default_value = "target/release/tiphys")]
    tiphys: PathBuf,
    /// How many Applications on the embedded cluster, one run each; 0 leaves it out.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
    embedded: Vec<usize>,
    /// How many Applications on kube-apiserver and etcd, one run each; 0 leaves it out.
    #[arg(long, value_delimiter = ',', default_value = "1000")]
    real: Vec<usize>,
    /// How many Applications share the repository of the commit; 0 leaves it out.
    #[arg(long, default_value_t = 1000)]
    monorepo: usize,
    /// How many objects each Application has.
    #[arg(long, default_value_t = 1)]
    objects: usize,
    /// How long the engine is watched at rest, in seconds: longer than it takes to ask for news.
    #[arg(long, default_value_t = 180)]
    rest: u64,
}

const REPORT: &str = "docs/benchmarks/engine.md";

/// Measures and writes the report.
///
/// # Errors
/// The program is missing or fails, the report cannot be written.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let tiphys = args.tiphys.canonicalize().with_context(|| args.tiphys.display().to_string())?;
    let runtime = tokio::runtime::Runtime::new()?;
    let _inside = runtime.enter();
    let mut rows = Vec::new();
    for (kind, counts) in [(Kind::Embedded, &args.embedded), (Kind::Real, &args.real)] {
        for &count in counts.iter().filter(|count| **count > 0) {
            rows.push(runtime.block_on(to_synced(args, &tiphys, kind, count))?);
        }
    }
    let commit = match args.monorepo {
        0 => None,
        count => Some(runtime.block_on(one_commit(&tiphys, count))?),
    };
    publish(REPORT, &report(args, &rows, commit.as_ref())?)
}

/// What one run took.
struct Row {
    kind: Kind,
    apps: usize,
    wall: Duration,
    engine: Used,
    server: Duration,
    requests: f64,
    rest: Used,
    rest_requests: f64,
}

async fn to_synced(args: &Args, tiphys: &Path, kind: Kind, apps: usize) -> anyhow::Result<Row> {
    let repository = Repository::new(Shape::Plain { objects: args.objects }, apps)?;
    let platform = Platform::start(kind, tiphys).await?;
    platform.create_applications(&repository, apps).await?;
    let server = platform.processor_time()?;
    let began = Instant::now();
    let engine = Engine::start(tiphys, platform.kubeconfig(), repository.folder())?;
    let wall = platform.until_synced(apps, "", &engine, began).await?;
    let at_end = engine.used()?;
    let requests = engine.requests()?;
    let server = platform.processor_time()?.saturating_sub(server);
    tokio::time::sleep(Duration::from_secs(args.rest)).await;
    let later = engine.used()?;
    let rest = Used { cpu: later.cpu.saturating_sub(at_end.cpu), ..later };
    let rest_requests = engine.requests()? - requests;
    Ok(Row { kind, apps, wall, engine: at_end, server, requests, rest, rest_requests })
}

/// What a commit took.
struct Commit {
    apps: usize,
    wall: Duration,
    cpu: Duration,
    rendered: f64,
}

async fn one_commit(tiphys: &Path, apps: usize) -> anyhow::Result<Commit> {
    let repository = Repository::new(Shape::Overlays, apps)?;
    let platform = Platform::start(Kind::Embedded, tiphys).await?;
    platform.create_applications(&repository, apps).await?;
    let engine = Engine::start(tiphys, platform.kubeconfig(), repository.folder())?;
    platform.until_synced(apps, "", &engine, Instant::now()).await?;
    let (before, rendered) = (engine.used()?, engine.rendered()?);
    let commit = repository.change_one_line()?;
    let began = Instant::now();
    // What a webhook of the Git host does: one Application is asked to look.
    platform.refresh(apps - 1).await?;
    let wall = platform.until_synced(GROUP, &commit, &engine, began).await?;
    let cpu = engine.used()?.cpu.saturating_sub(before.cpu);
    Ok(Commit { apps, wall, cpu, rendered: engine.rendered()? - rendered })
}

fn report(args: &Args, rows: &[Row], commit: Option<&Commit>) -> anyhow::Result<String> {
    let mut text = format!(
        "# The engine\n\nMade by `cargo xtask bench engine`. Applications of {} ConfigMap{} each, all in one Git repository and one \
         namespace, automated; created first, then the engine is started. The clock runs from the start of the process until the last one \
         is Synced with an operation that succeeded. Processor time is the engine's own; the API server stands beside it on the same machine.\n\n\
         | cluster | Applications | seconds | a minute | engine CPU s | peak MiB | API server CPU s | requests a sync |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n",
        args.objects,
        if args.objects == 1 { "" } else { "s" }
    );
    let mib = |bytes: u64| bytes / (1 << 20);
    for row in rows {
        let seconds = row.wall.as_secs_f64();
        writeln!(
            text,
            "| {} | {} | {seconds:.1} | {:.0} | {:.1} | {} | {:.1} | {:.1} |",
            row.kind.name(),
            row.apps,
            row.apps as f64 * 60.0 / seconds,
            row.engine.cpu.as_secs_f64(),
            mib(row.engine.peak),
            row.server.as_secs_f64(),
            row.requests / row.apps as f64,
        )?;
    }
    writeln!(
        text,
        "\n## At rest\n\nThe {} seconds after that, while the repository is asked for news every two minutes for each Application.\n\n\
         | cluster | Applications | CPU, share of one core | resident MiB | requests a minute |\n|---|--:|--:|--:|--:|",
        args.rest
    )?;
    for row in rows {
        writeln!(
            text,
            "| {} | {} | {:.1} % | {} | {:.0} |",
            row.kind.name(),
            row.apps,
            row.rest.cpu.as_secs_f64() * 100.0 / args.rest.max(1) as f64,
            mib(row.rest.resident),
            row.rest_requests * 60.0 / args.rest.max(1) as f64,
        )?;
    }
    if let Some(commit) = commit {
        writeln!(
            text,
            "\n## A commit of one line\n\n{} Kustomize overlays in one repository, {GROUP} of them of one base; the commit changes that base, and one \
             Application that it does not touch is asked to refresh, as a webhook would. Until the {GROUP} are Synced to the commit: {:.0} ms, \
             {:.0} ms of processor time. Rendered anew: {:.0} Applications.",
            commit.apps,
            commit.wall.as_secs_f64() * 1e3,
            commit.cpu.as_secs_f64() * 1e3,
            commit.rendered,
        )?;
    }
    Ok(text)
}
