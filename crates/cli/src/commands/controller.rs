//! `tiphys controller`.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use tiphys_argocd::Programs;
use tiphys_cluster::{Cluster, Connection};
use tiphys_controller::{
    Controller, Decision, Destinations, JoinError, Renderers, Replica, Settings, Shadow, Share, replica_name,
};
use tiphys_health::HealthSettings;
use tiphys_render::container_memory;
use tiphys_sync::{AutoSettings, SyncSettings};
use tiphys_worker::Limits;

use crate::{child_processes, duration, endpoints, exit::WrongUse, up::Signals};

/// What nobody asked for in this time is kept in less memory: short beside the work on one Application, so
/// that those that are done make room for the next.
const REST_AFTER: Duration = Duration::from_secs(10);

/// Run the engine on a cluster: the Applications, ApplicationSets and AppProjects in it
///
/// Several controllers of one namespace share its Applications by Leases: each has some, and no two have the
/// same. One that ends or stands still is taken over from within 20 seconds. With --shadow a controller works
/// beside an Argo CD that stays in charge: every decision is told on stdout, one JSON object a line, with
/// where it differs from what Argo CD's status says, and no request that would change anything leaves the
/// process.
///
/// Exit codes: 0 it was asked to end; 1 its Lease or the cluster was lost; 2 wrong use.
///
/// Examples:
///   tiphys controller --kubeconfig ~/.kube/config --shadow
///   tiphys controller --in-cluster --namespace argocd
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Kubeconfig of the cluster; by default $KUBECONFIG, else ~/.kube/config, else the cluster that this
    /// runs in.
    #[arg(long, value_name = "FILE", conflicts_with = "in_cluster")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, value_name = "NAME", conflicts_with = "in_cluster")]
    context: Option<String>,
    /// Work on the cluster that this runs in.
    #[arg(long)]
    in_cluster: bool,
    /// Namespace of the engine: its settings, projects and Applications.
    #[arg(long, short, default_value = crate::ENGINE_NAMESPACE, value_name = "NAMESPACE")]
    namespace: String,
    /// Decide and tell, and write nothing.
    #[arg(long)]
    shadow: bool,
    /// Behave as Argo CD does where Tiphys differs on purpose.
    #[arg(long)]
    compat: bool,
    /// Take every destination for this cluster.
    #[arg(long)]
    all_destinations_here: bool,
    /// Share the Applications with the other controllers of the namespace, and write only while holding a
    /// Lease; false works alone, for whoever is certain that no other one runs.
    #[arg(long, num_args = 0..=1, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set, value_name = "BOOL")]
    leader_elect: bool,
    /// Address of /metrics, /healthz, /readyz and, for Git hosts, /api/webhook; port 0 takes a free one.
    #[arg(long, default_value = "0.0.0.0:8082", value_name = "ADDRESS")]
    metrics: SocketAddr,
    /// Answer Argo CD's command line in core mode in the place of the repo-server at this address of
    /// loopback, as a rule 127.0.0.1:8081: it is reached by forwarding a port to the Pod, and asks for no
    /// login.
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    repo_server: Option<SocketAddr>,
    /// The same in the place of Redis, as a rule 127.0.0.1:6379.
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    redis: Option<SocketAddr>,
    /// How many Applications are worked on at once.
    #[arg(long, default_value_t = 16, value_name = "N")]
    workers: usize,
    /// How many processes render, each within limits of the kernel, so that a chart that fills the memory or
    /// does not end is the error of its Application alone; by default one for each processor, 0 renders in
    /// the controller.
    #[arg(long, value_name = "N")]
    render_processes: Option<usize>,
    /// Memory that one of these processes may take, in MiB; by default 1024, or less where all of them
    /// together would take more than half of what the container has.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(64..1 << 20))]
    render_memory: Option<u64>,
    /// Processor time that one rendering may take.
    #[arg(long, default_value = "30s", value_parser = duration::parse, value_name = "DURATION")]
    render_cpu: Duration,
    /// How often remote repositories are asked for news, unless argocd-cm says.
    #[arg(long, default_value = "2m", value_parser = duration::parse, value_name = "DURATION")]
    refresh: Duration,
    /// How much the log on stderr says.
    #[arg(long, value_enum, default_value_t = LogLevel::Info, value_name = "LEVEL")]
    log_level: LogLevel,
    /// How the log on stderr is written.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    /// Faults of the engine.
    Error,
    /// And of Applications: renderings that fail, objects that are blocked.
    Warn,
    /// And operations, prunes, self-heals.
    Info,
    /// And requests.
    Debug,
    /// And all else.
    Trace,
}

impl LogLevel {
    fn filter(self) -> tracing_subscriber::filter::LevelFilter {
        use tracing_subscriber::filter::LevelFilter;
        match self {
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// How long what is being worked on may take when the controller is asked to end: Kubernetes kills it after
/// 30 seconds.
const FINISH: Duration = Duration::from_secs(15);

/// Runs until interrupted, or until the Lease is lost.
///
/// # Errors
/// No cluster, or it was lost.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    log(args.log_format, args.log_level);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let mut signals = Signals::new()?;
        work(args, &mut signals).await
    });
    runtime.shutdown_background();
    result
}

fn log(format: LogFormat, level: LogLevel) {
    let builder = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false);
    let builder = builder.with_max_level(level.filter());
    // A second subscriber in one process is refused; the first one stays.
    let _ = match format {
        LogFormat::Text => builder.with_ansi(false).try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}

/// What a controller has before it works.
struct Begun {
    cluster: Cluster,
    /// Where it answers, for now without an engine.
    engine: endpoints::Engine,
    bound: SocketAddr,
    /// This one among the replicas; `None` works alone.
    replica: Option<Replica>,
}

async fn work(args: &Args, signals: &mut Signals) -> anyhow::Result<()> {
    let Begun { cluster, engine, bound, replica } = tokio::select! {
        begun = begin(args) => begun?,
        () = signals.wait() => return Ok(()),
    };
    let share = replica.as_ref().map(Replica::share);
    // In a task of its own: to read a large cluster must not keep the Lease from being renewed.
    let serving = serve(args.clone(), cluster, share.clone(), engine, bound);
    let mut working = tokio::spawn(async move {
        match serving.await {
            Ok(()) => std::future::pending().await,
            failed => failed,
        }
    });
    let (Some(mut replica), Some(share)) = (replica, share) else {
        return tokio::select! {
            failed = &mut working => failed?,
            () = signals.wait() => Ok(()),
        };
    };
    tokio::select! {
        lost = replica.keep() => bail!("the Lease was lost: {lost}"),
        failed = &mut working => return failed?,
        () = signals.wait() => {}
    }
    let is_finished = tokio::select! {
        lost = replica.keep() => bail!("the Lease was lost: {lost}"),
        is_finished = share.finish(FINISH) => is_finished,
    };
    match is_finished {
        true => replica.leave().await,
        false => {
            tracing::warn!(
                "what is being worked on does not end: other replicas wait for the Lease to expire"
            );
        }
    }
    Ok(())
}

async fn begin(args: &Args) -> anyhow::Result<Begun> {
    let Connection { cluster, address, .. } = connect(args).await?;
    cluster.discover().await.with_context(|| format!("the cluster at {address}"))?;
    tracing::info!(cluster = %address, namespace = %args.namespace, shadow = args.shadow, "connected");
    let engine = endpoints::Engine::default();
    let bound = endpoints::serve(args.metrics, engine.clone()).await?;
    tracing::info!(address = %bound, "listens");
    // A shadow writes nothing, not even a Lease, and disturbs no other.
    let replica = match args.leader_elect && !args.shadow {
        false => None,
        true => {
            let wait = |holder: &str| tracing::info!(%holder, "waiting for the Lease");
            let joined = Replica::join(&cluster, &args.namespace, &replica_name(&identity()), wait).await;
            let is_forbidden = joined.as_ref().is_err_and(JoinError::is_forbidden);
            let replica = joined.with_context(|| match is_forbidden {
                true => format!(
                    "cannot have a Lease; give it create, get, list, update and delete on leases of \
                     coordination.k8s.io in namespace {}",
                    args.namespace
                ),
                false => "cannot have a Lease".to_owned(),
            })?;
            tracing::info!(name = %replica.name(), "holds its Lease");
            Some(replica)
        }
    };
    Ok(Begun { cluster, engine, bound, replica })
}

/// Starts the engine, and answers for it.
async fn serve(
    args: Args,
    cluster: Cluster,
    share: Option<Arc<Share>>,
    engine: endpoints::Engine,
    bound: SocketAddr,
) -> anyhow::Result<()> {
    let controller = Arc::new(start(&args, cluster, share).await?);
    // It is set once, here.
    let _ = engine.set(controller.clone());
    tracing::info!(address = %bound, "serves /metrics, /healthz, /readyz and /api/webhook");
    programs(&args, &controller).await
}

/// Listens where Argo CD's command line looks for programs of Argo CD.
async fn programs(args: &Args, controller: &Arc<Controller>) -> anyhow::Result<()> {
    if args.repo_server.is_none() && args.redis.is_none() {
        return Ok(());
    }
    let programs = Programs::new(controller.clone())?;
    if let Some(address) = args.repo_server {
        let bound = endpoints::repo_server(address, programs.clone()).await?;
        tracing::info!(address = %bound, "answers in the place of Argo CD's repo-server");
    }
    if let Some(address) = args.redis {
        let bound = endpoints::redis(address, programs).await?;
        tracing::info!(address = %bound, "answers in the place of Argo CD's Redis");
    }
    Ok(())
}

/// An address that only programs of the same machine or Pod reach.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|error| format!("{error}; write ADDRESS:PORT"))?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => {
            Err("it has to be one of loopback: whoever reaches it may ask for what sources render to"
                .to_owned())
        }
    }
}

async fn connect(args: &Args) -> anyhow::Result<Connection> {
    let given = args.kubeconfig.is_some() || args.context.is_some();
    let found = if args.in_cluster {
        Cluster::connect_within().await
    } else {
        match Cluster::connect(args.kubeconfig.as_deref(), args.context.as_deref()).await {
            Err(_) if !given => Cluster::connect_within().await,
            found => found,
        }
    };
    found.map_err(|error| WrongUse(error.to_string()).into())
}

/// A name that no other engine has: of the Pod or machine, and of this process.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    let host = host.map(|host| host.trim().to_owned()).filter(|host| !host.is_empty());
    format!("{}_{}", host.as_deref().unwrap_or("tiphys"), std::process::id())
}

async fn start(args: &Args, cluster: Cluster, share: Option<Arc<Share>>) -> anyhow::Result<Controller> {
    let fetcher = crate::fetch::fetcher_asking(args.refresh, false);
    let repositories = Arc::new(tiphys_source::Repositories::new(Some(fetcher), true));
    let settings = Settings {
        namespace: args.namespace.clone(),
        sync: if args.compat { SyncSettings::compat() } else { SyncSettings::default() },
        auto: AutoSettings { compat: args.compat, ..AutoSettings::default() },
        health: HealthSettings { compat: args.compat, ..HealthSettings::default() },
        destinations: match args.all_destinations_here {
            true => Destinations::AllHere,
            false => Destinations::InCluster,
        },
        workers: args.workers.max(1),
        renderers: renderers(args)?,
        refresh: args.refresh,
        rest_after: Some(REST_AFTER),
        events: !args.shadow,
        share,
        shadow: args.shadow.then(|| Shadow::new(tell)),
        ..Settings::default()
    };
    Controller::start(cluster, repositories, settings).await.context("cannot follow the cluster")
}

/// The processes that render; `None` if that is done here.
fn renderers(args: &Args) -> anyhow::Result<Option<Renderers>> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let most = args.render_processes.unwrap_or(processors);
    if most == 0 {
        return Ok(None);
    }
    let memory = args.render_memory.map_or_else(|| memory_of_each(container_memory(), most), |mib| mib << 20);
    let limits = Limits { memory, cpu: args.render_cpu };
    Ok(Some(Renderers(Arc::new(child_processes::workers(limits, most)?))))
}

/// The memory of one of some processes that render, in bytes, in a container that has so much: whoever goes
/// over that ends all processes in it.
fn memory_of_each(container: Option<u64>, processes: usize) -> u64 {
    const LEAST: u64 = 192 << 20;
    let most = Limits::default().memory;
    let share = |all: u64| all / 2 / u64::try_from(processes.max(1)).unwrap_or(u64::MAX);
    container.map_or(most, |all| share(all).clamp(LEAST, most))
}

/// One decision as a line. That stdout is closed ends nobody's work.
fn tell(decision: &Decision) {
    use std::io::Write as _;
    if let Ok(text) = serde_json::to_string(decision) {
        let _ = writeln!(std::io::stdout().lock(), "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_render_leave_half_of_a_container_to_the_controller() {
        assert_eq!(memory_of_each(None, 8), 1 << 30);
        assert_eq!(memory_of_each(Some(2 << 30), 2), 512 << 20);
        assert_eq!(memory_of_each(Some(64 << 30), 2), 1 << 30, "no more than is good for anything");
        assert_eq!(memory_of_each(Some(256 << 20), 4), 192 << 20, "less renders nothing");
    }
}
