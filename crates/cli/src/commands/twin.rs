//! `tiphys twin`.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Instant};

use tiphys_apiserver::{ApiServer, ApiServerOptions, KubernetesVersion, Outbound, ServiceNetwork, Serving};
use tiphys_world::{Driver, Settings};

use crate::{
    dump, duration,
    exit::WrongUse,
    local_clusters::{Purpose, Registration},
    output::say,
    up::{Signals, listen_error},
};

/// How many refused objects of a dump are shown.
const SHOWN: usize = 20;

/// Run the embedded cluster alone: a Kubernetes API with simulated controllers, for kubectl, Helm and
/// any other client.
///
/// Once it is ready the kubeconfig is written and a line on stdout says where it listens. It stays until
/// it is interrupted, and then exits with 0. With --from it holds what a dump holds, and nothing changes
/// by itself: no controller runs.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Address to serve the API on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Write the kubeconfig into this file too once the cluster is ready; by default it is only in a folder
    /// of your own, below $XDG_STATE_HOME or ~/.local/state.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Keep the cluster in this folder, and go on with it at the next start.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// How many nodes there are.
    #[arg(long, default_value_t = 3, value_name = "N")]
    nodes: u32,
    /// The Kubernetes minor version to be, such as 1.34.
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<KubernetesVersion>,
    /// The range that Services get their addresses from; one of IPv4. A cluster that is kept with --state
    /// keeps its own.
    #[arg(long, value_name = "CIDR")]
    service_cluster_ip_range: Option<ServiceNetwork>,
    /// Load what `kubectl get -o yaml`, `kubectl cluster-info dump` or must-gather wrote: a file, a folder,
    /// or - for the standard input.
    #[arg(long, value_name = "DUMP", conflicts_with = "nodes")]
    from: Option<PathBuf>,
    /// Call the webhooks outside of the cluster that a dump names. Each call carries an object, to wherever
    /// the dump says.
    #[arg(long, requires = "from")]
    outbound: bool,
}

/// Runs until interrupted.
///
/// # Errors
/// The dump or the state folder cannot be used, or the address not listened on.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut signals = Signals::new()?;
    let registration = Registration::open(Purpose::default(), args.kubeconfig.as_deref())?;
    let objects = args.from.as_deref().map(dump::read_dump).transpose();
    let objects = objects.map_err(|error| WrongUse(format!("{error:#}")))?;
    let server = ApiServer::new(ApiServerOptions {
        state_dir: args.state.clone(),
        kubernetes_version: args.kubernetes_version.unwrap_or_default(),
        service_network: args.service_cluster_ip_range,
        // A dump is somebody else's: it may name any address.
        outbound: match args.from.is_none() || args.outbound {
            true => Outbound::Call,
            false => Outbound::Refuse,
        },
        ..ApiServerOptions::default()
    })?;
    let serving = server.bind(args.listen).await.map_err(listen_error)?;
    let driver = match objects {
        Some(objects) => {
            load(&server, objects);
            None
        }
        None => Some(driver(args, &server, &serving)?),
    };
    registration.note(&serving)?;
    say(format_args!(
        "Kubernetes {} at https://{}, ready in {}; export KUBECONFIG={}",
        args.kubernetes_version.unwrap_or_default(),
        serving.address(),
        duration::humanize(start.elapsed()),
        registration.kubeconfig().display()
    ))?;
    tokio::select! {
        () = serving.run() => {}
        () = work(driver) => {}
        () = signals.wait() => {}
    }
    Ok(())
}

fn driver(args: &Args, server: &ApiServer, serving: &Serving) -> anyhow::Result<Driver> {
    let settings = Settings {
        nodes: args.nodes,
        root_ca: serving.ca_pem().to_owned(),
        probe_delays: false,
        ..Settings::default()
    };
    Driver::new(server, settings).map_err(|error| anyhow::anyhow!("cannot start the cluster: {error}"))
}

/// Runs the controllers; without any, nothing happens by itself.
async fn work(driver: Option<Driver>) {
    match driver {
        Some(driver) => driver.run().await,
        None => std::future::pending().await,
    }
}

/// Loads a dump, and says what of it could not be taken.
fn load(server: &ApiServer, dump: dump::Dump) {
    let imported = server.import(dump.objects);
    eprintln!("{} objects loaded; they stay as they are, no controller runs", imported.objects);
    match dump.repeated.as_slice() {
        [] => {}
        [only] => eprintln!("read more than once, the newest counts: {only}"),
        [first, rest @ ..] => {
            eprintln!("read more than once, the newest of each counts: {first} and {} more", rest.len());
        }
    }
    for why in dump.skipped.iter().take(SHOWN) {
        eprintln!("not read: {why}");
    }
    if dump.skipped.len() > SHOWN {
        eprintln!("not read: {} more files that hold no objects", dump.skipped.len() - SHOWN);
    }
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (object, why) in &imported.refused {
        reasons.entry(why).or_default().push(object);
    }
    for (why, objects) in reasons.iter().take(SHOWN) {
        let more = match objects.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        eprintln!("not loaded: {}{more}: {why}", objects[0]);
    }
}
