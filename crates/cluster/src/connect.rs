//! Connections to real clusters: by kubeconfig, or from within.

use std::path::Path;

use kube::config::{Config, KubeConfigOptions, Kubeconfig};

use tiphys_diag::chain;

use crate::{Cluster, ClusterError};

/// A cluster that was connected to. No request has been made yet.
pub struct Connection {
    /// The cluster.
    pub cluster: Cluster,
    /// Address of its API server.
    pub address: String,
    /// Namespace of the context.
    pub namespace: String,
}

impl Cluster {
    /// Connects by a kubeconfig: the given file, else what `KUBECONFIG` names, else `~/.kube/config`; with
    /// a context of it other than the current one if given. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// There is no such file or context, or it cannot be used.
    pub async fn connect(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
    ) -> Result<Connection, ClusterError> {
        let fail = |error: kube::config::KubeconfigError| ClusterError::Config(chain(&error));
        let options =
            KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
        let config = match kubeconfig {
            Some(file) => {
                let read = Kubeconfig::read_from(file).map_err(fail)?;
                Config::from_custom_kubeconfig(read, &options).await
            }
            None => Config::from_kubeconfig(&options).await,
        };
        open(config.map_err(fail)?)
    }

    /// Connects to the cluster that this process runs in, by its service account.
    ///
    /// # Errors
    /// It runs in none.
    pub async fn connect_within() -> Result<Connection, ClusterError> {
        open(Config::incluster().map_err(|error| ClusterError::Config(chain(&error)))?)
    }
}

fn open(mut config: Config) -> Result<Connection, ClusterError> {
    let (address, namespace) = (config.cluster_url.to_string(), config.default_namespace.clone());
    // What is sent again is decided in one place, for all clusters alike.
    config.default_retry = false;
    let client = kube::Client::try_from(config).map_err(|error| ClusterError::Config(chain(&error)))?;
    Ok(Connection {
        cluster: Cluster::from_client(client),
        address: address.trim_end_matches('/').to_owned(),
        namespace,
    })
}
