//! `cargo xtask bench world`: virtual time and forks of the embedded cluster.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use anyhow::Context;
use serde_json::json;
use tiphys_apiserver::{ApiServer, ApiServerOptions, ResourceId};
use tiphys_value::GroupVersionResource;
use tiphys_world::{Driver, Settings, VirtualClock};

use super::publish;

/// Options of the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Counted runs.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Pods in the cluster, in Deployments of ten.
    #[arg(long, default_value_t = 500)]
    pods: usize,
}

const REPORT: &str = "docs/benchmarks/world.md";
const FORKS: u32 = 10_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// What one run took.
struct Sample {
    start: Duration,
    day: Duration,
    fork: Duration,
    changes: u64,
    objects: usize,
}

/// Measures and writes the report.
///
/// # Errors
/// The cluster does not come up, or the report cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let mut samples =
        (0..args.runs.max(1)).map(|_| measure(args.pods)).collect::<anyhow::Result<Vec<_>>>()?;
    samples.sort_by_key(|sample| sample.day);
    let median = &samples[samples.len() / 2];
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    let mut report = String::from(
        "# Virtual time\n\nMade by `cargo xtask bench world`. Medians.\n\n| what | result |\n|---|--:|\n",
    );
    writeln!(
        report,
        "| {} pods in Deployments of ten, from nothing to Ready | {:.0} ms |",
        args.pods,
        ms(median.start)
    )?;
    writeln!(report, "| the 24 hours after that | {:.0} ms |", ms(median.day))?;
    writeln!(report, "| changes in the store meanwhile | {} |", median.changes)?;
    writeln!(report, "| objects at the end | {} |", median.objects)?;
    writeln!(report, "| `fork()` of that cluster | {} ns |", median.fork.as_nanos())?;
    publish(REPORT, &report)
}

fn measure(pods: usize) -> anyhow::Result<Sample> {
    let clock = VirtualClock::starting_at(jiff::Timestamp::from_second(1_700_000_000)?);
    let options = ApiServerOptions { clock: Some(clock.clone()), seed: Some(1), ..Default::default() };
    let server = ApiServer::new(options)?;
    let nodes = (pods / 100).max(3).try_into()?;
    let settings = Settings { nodes, most_pods: usize::MAX, ..Settings::default() };
    let mut driver = Driver::new(&server, settings).context("the cluster does not start")?;
    driver.pass(&clock, Duration::from_secs(1));
    let began = Instant::now();
    let client = server.client("bench");
    let deployments = GroupVersionResource::new("apps", "v1", "deployments");
    for number in 0..pods.div_ceil(10) {
        client.create(&deployments, "default", deployment(number))?;
    }
    driver.pass(&clock, Duration::from_secs(60));
    let start = began.elapsed();
    let ready = server
        .snapshot()
        .list(&ResourceId::new("", "pods"), None)
        .filter(|pod| pod["status"]["phase"] == "Running")
        .count();
    anyhow::ensure!(ready >= pods, "only {ready} of {pods} pods run");
    let before = server.revision();
    let began = Instant::now();
    driver.pass(&clock, DAY);
    let day = began.elapsed();
    let changes = server.revision() - before;
    let began = Instant::now();
    for _ in 0..FORKS {
        std::hint::black_box(server.fork());
    }
    let fork = began.elapsed() / FORKS;
    let snapshot = server.snapshot();
    let objects = snapshot.resources().map(|id| snapshot.count(id)).sum();
    Ok(Sample { start, day, fork, changes, objects })
}

fn deployment(number: usize) -> serde_json::Value {
    let name = format!("web-{number}");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 10,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{
                "name": "web", "image": "web:1", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                "readinessProbe": {"httpGet": {"path": "/", "port": 8080}},
            }]}},
        },
    })
}
