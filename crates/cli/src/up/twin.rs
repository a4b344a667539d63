//! The embedded cluster: the API, what stands behind it, and its address for kubectl.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tiphys_apiserver::{
    ApiServer, ApiServerOptions, Outbound, PodBackend, ServeError, ServiceNetwork, Serving,
};
use tiphys_cluster::Cluster;
use tiphys_model::names;
use tiphys_value::GroupKind;
use tiphys_world::{Driver, Settings};
use tokio::task::JoinHandle;

use super::args::Args;
use crate::local_clusters::Registration;

/// A running embedded cluster. Dropping it ends it.
pub(crate) struct Twin {
    /// The engine's way to it.
    pub cluster: Cluster,
    /// Where kubectl finds it.
    pub address: String,
    /// How long it took to start.
    pub ready_in: Duration,
    server: ApiServer,
    tasks: Vec<JoinHandle<()>>,
}

impl Twin {
    /// Starts it, and writes the kubeconfig.
    ///
    /// # Errors
    /// The state folder cannot be used, or the address not listened on.
    pub(crate) async fn start(
        args: &Args,
        network: Option<ServiceNetwork>,
        registration: &Registration,
    ) -> anyhow::Result<Self> {
        let options = ApiServerOptions {
            state_dir: args.state.clone(),
            service_network: network,
            kubernetes_version: args.kubernetes_version.unwrap_or_default(),
            outbound: outbound(args),
            ..ApiServerOptions::default()
        };
        Self::start_at(options, args.listen, |serving| registration.note(serving)).await
    }

    /// Starts one more beside it, which has its name in the names of its files.
    ///
    /// # Errors
    /// As of [`Self::start`].
    pub(crate) async fn start_beside(
        args: &Args,
        registration: &Registration,
        name: &str,
    ) -> anyhow::Result<Self> {
        let state_dir = args.state.as_ref().map(|folder| folder.join("clusters").join(name));
        let options = ApiServerOptions {
            state_dir,
            service_network: args.service_cluster_ip_range,
            kubernetes_version: args.kubernetes_version.unwrap_or_default(),
            outbound: outbound(args),
            ..ApiServerOptions::default()
        };
        let listen = SocketAddr::new(args.listen.ip(), 0);
        Self::start_at(options, listen, |serving| registration.note_beside(serving, name)).await
    }

    async fn start_at(
        options: ApiServerOptions,
        listen: SocketAddr,
        note: impl FnOnce(&Serving) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let start = Instant::now();
        let server = ApiServer::new(options)?;
        let serving = server.bind(listen).await.map_err(listen_error)?;
        note(&serving)?;
        let settings =
            Settings { root_ca: serving.ca_pem().to_owned(), probe_delays: false, ..Settings::default() };
        let driver = Driver::new(&server, settings)
            .map_err(|error| anyhow::anyhow!("cannot start the cluster: {error}"))?;
        let address = format!("https://{}", serving.address());
        let cluster = Cluster::new(server.service());
        let tasks = vec![tokio::spawn(driver.run()), tokio::spawn(serving.run())];
        Ok(Self { cluster, address, ready_in: start.elapsed(), server, tasks })
    }

    /// Lets something listen in its Pods.
    pub(crate) fn answer_in_pods(&self, backend: Arc<dyn PodBackend>) {
        self.server.set_pod_backend(backend);
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Offline nobody outside is called, and a webhook outside is taken to have no objection: it is no fault of
/// the repository.
fn outbound(args: &Args) -> Outbound {
    if args.offline { Outbound::Assume } else { Outbound::Call }
}

/// The custom resources that somebody attends to: the operators that the cluster plays, and the engine.
pub(crate) fn attended() -> BTreeSet<GroupKind> {
    let own = ["Application", "ApplicationSet", "AppProject"].map(|kind| GroupKind::new(names::GROUP, kind));
    let played = Settings::default().behaviours.operators;
    own.into_iter()
        .chain(played.iter().map(|operator| GroupKind::new(&operator.group, &operator.kind)))
        .collect()
}

/// Why the address cannot be listened on, and what to do.
pub(crate) fn listen_error(error: ServeError) -> anyhow::Error {
    let in_use =
        matches!(&error, ServeError::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse);
    let error = anyhow::Error::new(error);
    if in_use {
        anyhow::anyhow!("{error:#}; choose another address with --listen, port 0 takes a free one")
    } else {
        error
    }
}
