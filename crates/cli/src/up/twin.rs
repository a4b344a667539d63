//! The embedded cluster: the API, what stands behind it, and its address for kubectl.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use tiphys_apiserver::{ApiServer, ApiServerOptions, PodBackend, ServeError, ServiceNetwork};
use tiphys_cluster::Cluster;
use tiphys_model::names;
use tiphys_value::GroupKind;
use tiphys_world::{Driver, Settings};
use tokio::task::JoinHandle;

use super::args::Args;

/// A running embedded cluster. Dropping it ends it.
pub struct Twin {
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
    pub async fn start(args: &Args, network: Option<ServiceNetwork>) -> anyhow::Result<Self> {
        let options = ApiServerOptions {
            state_dir: args.state.clone(),
            service_network: network,
            ..ApiServerOptions::default()
        };
        Self::start_at(options, args.listen, &args.kubeconfig).await
    }

    /// Starts one more beside it, which has its name in the names of its files.
    ///
    /// # Errors
    /// As of [`Self::start`].
    pub async fn start_beside(args: &Args, name: &str) -> anyhow::Result<Self> {
        let state_dir = args.state.as_ref().map(|folder| folder.join("clusters").join(name));
        let options = ApiServerOptions {
            state_dir,
            service_network: args.service_cluster_ip_range,
            ..ApiServerOptions::default()
        };
        let listen = SocketAddr::new(args.listen.ip(), 0);
        Self::start_at(options, listen, &kubeconfig_beside(&args.kubeconfig, name)).await
    }

    async fn start_at(
        options: ApiServerOptions,
        listen: SocketAddr,
        kubeconfig: &Path,
    ) -> anyhow::Result<Self> {
        let start = Instant::now();
        let server = ApiServer::new(options)?;
        let serving = server.bind(listen).await.map_err(listen_error)?;
        make_private_folder(kubeconfig)?;
        serving
            .write_kubeconfig(kubeconfig)
            .with_context(|| format!("cannot write {}", kubeconfig.display()))?;
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
    pub fn answer_in_pods(&self, backend: Arc<dyn PodBackend>) {
        self.server.set_pod_backend(backend);
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Where the kubeconfig of a cluster beside the first, whose kubeconfig is given, is.
pub fn kubeconfig_beside(first: &Path, name: &str) -> PathBuf {
    let mut path = first.to_path_buf().into_os_string();
    path.push(format!(".{name}"));
    path.into()
}

/// The custom resources that somebody attends to: the operators that the cluster plays, and the engine.
pub fn attended() -> BTreeSet<GroupKind> {
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

/// The folder of the kubeconfig; what is in `.tiphys` is no part of the repository.
pub(crate) fn make_private_folder(kubeconfig: &Path) -> anyhow::Result<()> {
    let Some(folder) = kubeconfig.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    std::fs::create_dir_all(folder).with_context(|| {
        format!("cannot create {}; --kubeconfig names a file elsewhere", folder.display())
    })?;
    if folder.ends_with(".tiphys") {
        let ignore = folder.join(".gitignore");
        if !ignore.exists() {
            std::fs::write(&ignore, "*\n").with_context(|| format!("cannot write {}", ignore.display()))?;
        }
    }
    Ok(())
}
