//! More embedded clusters beside the engine's own: one for each that Applications name, where these would
//! fight over objects in a common one.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use tiphys_cluster::Cluster;
use tiphys_controller::Opener;
use tiphys_model::{Destination, names};
use tiphys_value::json;

use super::{apply_options, args::Args, twin::Twin};
use crate::{
    ENGINE_NAMESPACE,
    clusters::{HOME, cluster_of},
    local_clusters::{Registration, kubeconfig_beside},
};

/// The clusters beside the engine's own. Dropping it ends them.
pub(crate) struct Clusters {
    /// Where their kubeconfigs go.
    registration: Arc<Registration>,
    /// By the address that stands for each.
    opened: Arc<Mutex<BTreeMap<String, Cluster>>>,
    twins: Vec<Twin>,
    known: BTreeSet<(String, String)>,
}

impl Clusters {
    /// None yet; the kubeconfigs of those to come lie beside that of the engine's own.
    pub(crate) fn beside(registration: Arc<Registration>) -> Self {
        Self { registration, opened: Arc::default(), twins: Vec::new(), known: BTreeSet::new() }
    }

    /// Leads the engine to them.
    pub(crate) fn opener(&self) -> Opener {
        let opened = self.opened.clone();
        Opener::new(move |server| opened.lock().get(server).cloned())
    }

    /// Starts the cluster of a destination, and declares it to the engine, unless that was done before.
    /// Returns what is to be told of a new one.
    ///
    /// # Errors
    /// The cluster cannot be started, or the Secret not be written.
    pub(crate) async fn provide(
        &mut self,
        args: &Args,
        home: &Cluster,
        destination: &Destination,
    ) -> anyhow::Result<Option<String>> {
        let Some(beside) = Beside::for_destination(destination) else { return Ok(None) };
        if !self.known.insert((beside.server.clone(), beside.name.clone())) {
            return Ok(None);
        }
        let file = file_name(&beside.name);
        let twin = Twin::start_beside(args, &self.registration, &file).await?;
        self.opened.lock().insert(beside.server.clone(), twin.cluster.clone());
        self.twins.push(twin);
        beside.declare(home).await?;
        let kubeconfig = kubeconfig_beside(&self.registration.kubeconfig(), &file);
        Ok(Some(format!("{}; its kubeconfig is {}", beside.notice(), kubeconfig.display())))
    }
}

/// A cluster beside the engine's own.
pub(crate) struct Beside {
    /// What it is called.
    pub name: String,
    /// The address that stands for it.
    pub server: String,
}

impl Beside {
    /// The cluster of a destination, if it is not the engine's own.
    pub(crate) fn for_destination(destination: &Destination) -> Option<Self> {
        let cluster = Some(cluster_of(destination)).filter(|cluster| *cluster != HOME)?;
        let server = match cluster {
            ("", name) => format!("https://{name}"),
            (server, _) => server.to_owned(),
        };
        Some(Self { name: name_of(cluster), server })
    }

    /// What is to be told of it.
    pub(crate) fn notice(&self) -> String {
        format!(
            "{} is a cluster of its own, as Applications for several clusters have the same objects",
            self.name
        )
    }

    /// Declares it to the engine.
    ///
    /// # Errors
    /// The engine's cluster does not take the Secret.
    pub(crate) async fn declare(&self, home: &Cluster) -> anyhow::Result<()> {
        let Self { name, server } = self;
        let file = file_name(name);
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": format!("cluster-{file}"),
                "namespace": ENGINE_NAMESPACE,
                "labels": {names::SECRET_TYPE: "cluster"},
            },
            "stringData": {"name": name, "server": server, "config": "{}"},
        });
        home.apply(&secret, &apply_options()).await?;
        Ok(())
    }
}

/// Where the kubeconfig of a destination's own cluster is, if it has one beside the first, whose kubeconfig
/// is given.
pub(crate) fn kubeconfig_for(first: &Path, destination: &Destination) -> Option<PathBuf> {
    let cluster = Some(cluster_of(destination)).filter(|cluster| *cluster != HOME)?;
    Some(kubeconfig_beside(first, &file_name(&name_of(cluster))))
}

/// What the cluster of an address or a name is called.
fn name_of(cluster: (&str, &str)) -> String {
    match cluster {
        ("", name) => name.to_owned(),
        (server, _) => host(server),
    }
}

/// The host of an address.
fn host(server: &str) -> String {
    let rest = server.split_once("://").map_or(server, |(_, rest)| rest);
    rest.split(['/', ':']).next().unwrap_or(rest).to_owned()
}

/// A name that files and Secrets may have.
pub(super) fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '-' };
    name.chars().map(plain).collect::<String>().trim_matches('-').to_owned()
}
