//! Which cluster the Applications are in.

use std::path::{Path, PathBuf};

use tiphys_cluster::{Cluster, Connection};

use super::consent::NamedBy;
use crate::{
    exit::WrongUse,
    local_clusters::{LocalCluster, Served},
};

/// Which cluster.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct Target {
    /// Kubeconfig of the cluster that the Applications are in; by default that of a `tiphys up` that
    /// you run for this folder, else $KUBECONFIG, else ~/.kube/config.
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace of Applications that are named without one.
    #[arg(long, short = 'N', global = true, default_value = crate::ENGINE_NAMESPACE, value_name = "NAMESPACE")]
    pub app_namespace: String,
}

/// The cluster that was chosen.
pub(crate) struct Chosen {
    /// The connection.
    pub connection: Connection,
    /// How it was named.
    pub named_by: NamedBy,
    /// The repository that a `tiphys up` serves, if the cluster is one's.
    pub repository: Option<Served>,
    /// The kubeconfig, if the cluster is a `tiphys up`'s.
    pub twin: Option<PathBuf>,
}

impl Target {
    /// Connects.
    ///
    /// # Errors
    /// There is no usable kubeconfig, or several clusters run for this folder.
    pub(crate) async fn connect(&self) -> anyhow::Result<Chosen> {
        let local = self.local_cluster()?;
        let found = local.as_ref().map(LocalCluster::kubeconfig);
        let file = self.kubeconfig.as_deref().or(found.as_deref());
        let connection = Cluster::connect(file, self.context.as_deref()).await;
        let connection = connection.map_err(|error| WrongUse(format!("{error}{}", self.advice(file))))?;
        let from_environment = std::env::var_os("KUBECONFIG").is_some_and(|files| !files.is_empty());
        let named_by = match &local {
            _ if self.kubeconfig.is_some() || self.context.is_some() => NamedBy::Flag,
            Some(_) => NamedBy::LocalCluster,
            None if from_environment => NamedBy::Environment,
            None => NamedBy::Nothing,
        };
        // However its kubeconfig was named: by its address it is one that was started here.
        let local = local.or_else(|| LocalCluster::at_server(&connection.address));
        let repository = local.as_ref().and_then(LocalCluster::served).cloned();
        let twin = local.as_ref().map(LocalCluster::kubeconfig);
        Ok(Chosen { connection, named_by, repository, twin })
    }

    /// What somebody may do who named no cluster, and for whom none was found.
    fn advice(&self, file: Option<&Path>) -> &'static str {
        match (file, &self.context) {
            (None, None) => {
                "; no `tiphys up` runs in this folder or above it: start one, or name a cluster with --kubeconfig"
            }
            _ => "",
        }
    }

    /// The cluster that runs for this folder, unless another one is asked for.
    fn local_cluster(&self) -> anyhow::Result<Option<LocalCluster>> {
        if self.kubeconfig.is_some() || self.context.is_some() {
            return Ok(None);
        }
        LocalCluster::of_folder(Path::new("."))
    }
}
