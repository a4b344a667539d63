//! `cargo xtask bench engine`: thousands of Applications to Synced, a commit to a large repository, and what
//! an engine at rest costs.

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
pub(crate) struct Args {
    /// The binary to measure, built with `cargo build --release`.
    #[arg(long, default_value = "target/release/tiphys")]
    tiphys: PathBuf,
    /// How many Applications on the embedded cluster, and of how many objects each (1000 or 1000x10), one run
    /// each; 0 leaves it out.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,10000x10")]
    embedded: Vec<Size>,
    /// The same on kube-apiserver and etcd.
    #[arg(long, value_delimiter = ',', default_value = "1000")]
    real: Vec<Size>,
    /// How many Applications share the repository of the commit; 0 leaves it out.
    #[arg(long, default_value_t = 1000)]
    monorepo: usize,
    /// How long the engine is watched at rest, in seconds: longer than it takes to ask for news.
    #[arg(long, default_value_t = 180)]
    rest: u64,
}

/// How large a run is.
#[derive(Clone, Copy)]
struct Size {
    apps: usize,
    /// How many objects each has.
    objects: usize,
}

impl std::str::FromStr for Size {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (apps, objects) = text.split_once('x').unwrap_or((text, "1"));
        Ok(Self { apps: apps.parse()?, objects: objects.parse()? })
    }
}

const REPORT: &str = "docs/benchmarks/engine.md";

/// Measures and writes the report.
///
/// # Errors
/// The program is missing or fails, the report cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let tiphys = args.tiphys.canonicalize().with_context(|| args.tiphys.display().to_string())?;
    let runtime = tokio::runtime::Runtime::new()?;
    let _inside = runtime.enter();
    let mut rows = Vec::new();
    for (kind, sizes) in [(Kind::Embedded, &args.embedded), (Kind::Real, &args.real)] {
        for &size in sizes.iter().filter(|size| size.apps > 0) {
            rows.push(runtime.block_on(to_synced(args, &tiphys, kind, size))?);
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
    size: Size,
    wall: Duration,
    engine: Used,
    server: Duration,
    requests: f64,
    rest: Used,
    rest_requests: f64,
}

async fn to_synced(args: &Args, tiphys: &Path, kind: Kind, size: Size) -> anyhow::Result<Row> {
    let Size { apps, objects } = size;
    let repository = Repository::new(Shape::Plain { objects }, apps)?;
    let platform = Platform::start(kind, tiphys).await?;
    platform.create_applications(&repository, apps).await?;
    let server = platform.processor_time()?;
    let began = Instant::now();
    let engine = Engine::start(tiphys, platform.kubeconfig(), repository.folder())?;
    let wall = platform.until_synced(apps, "", &engine, began).await?;
    let at_end = engine.usage()?;
    let requests = engine.requests()?;
    let server = platform.processor_time()?.saturating_sub(server);
    tokio::time::sleep(Duration::from_secs(args.rest)).await;
    let later = engine.usage()?;
    let rest = Used { cpu: later.cpu.saturating_sub(at_end.cpu), ..later };
    let rest_requests = engine.requests()? - requests;
    Ok(Row { kind, size, wall, engine: at_end, server, requests, rest, rest_requests })
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
    let (before, rendered) = (engine.usage()?, engine.render_count()?);
    let commit = repository.change_one_line()?;
    let began = Instant::now();
    // What a webhook of the Git host does: one Application is asked to look.
    platform.refresh(apps - 1).await?;
    let wall = platform.until_synced(GROUP, &commit, &engine, began).await?;
    let cpu = engine.usage()?.cpu.saturating_sub(before.cpu);
    Ok(Commit { apps, wall, cpu, rendered: engine.render_count()? - rendered })
}

fn report(args: &Args, rows: &[Row], commit: Option<&Commit>) -> anyhow::Result<String> {
    let mut text = String::from(
        "# The engine\n\nMade by `cargo xtask bench engine`. Applications of as many ConfigMaps as stands there, all in one Git repository and \
         one namespace, automated; created first, then the engine is started. The clock runs from the start of the process until the last \
         one is Synced with an operation that succeeded. Processor time is the engine's own; the API server stands beside it on the same \
         machine.\n\n\
         | cluster | Applications | objects each | seconds | a minute | engine CPU s | peak MiB | API server CPU s | requests a sync |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let mib = |bytes: u64| bytes / (1 << 20);
    for row in rows {
        let seconds = row.wall.as_secs_f64();
        writeln!(
            text,
            "| {} | {} | {} | {seconds:.1} | {:.0} | {:.1} | {} | {:.1} | {:.1} |",
            row.kind.name(),
            row.size.apps,
            row.size.objects,
            row.size.apps as f64 * 60.0 / seconds,
            row.engine.cpu.as_secs_f64(),
            mib(row.engine.peak),
            row.server.as_secs_f64(),
            row.requests / row.size.apps as f64,
        )?;
    }
    writeln!(
        text,
        "\n## At rest\n\nThe {} seconds after that, while the repository is asked for news every two minutes for each Application.\n\n\
         | cluster | Applications | objects each | CPU, share of one core | resident MiB | requests a minute |\n|---|--:|--:|--:|--:|--:|",
        args.rest
    )?;
    for row in rows {
        writeln!(
            text,
            "| {} | {} | {} | {:.1} % | {} | {:.0} |",
            row.kind.name(),
            row.size.apps,
            row.size.objects,
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
