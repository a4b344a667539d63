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

/// The namespace of a context, as a kubeconfig has it: the given file, else what `KUBECONFIG` names, else
/// `~/.kube/config`; the current context if none is given. `None` where nothing says it.
pub fn context_namespace(kubeconfig: Option<&Path>, context: Option<&str>) -> Option<String> {
    let read = kubeconfig.map_or_else(Kubeconfig::read, Kubeconfig::read_from).ok()?;
    let wanted = context.map(str::to_owned).or(read.current_context)?;
    let named = read.contexts.into_iter().find(|context| context.name == wanted)?;
    named.context?.namespace.filter(|namespace| !namespace.is_empty())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_may_say_a_namespace() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config");
        let text = "current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u, namespace: shop}}\n- {name: b, context: {cluster: c, user: u}}\n";
        std::fs::write(&file, text).expect("written");
        assert_eq!(context_namespace(Some(&file), None).as_deref(), Some("shop"));
        assert_eq!(context_namespace(Some(&file), Some("b")), None);
        assert_eq!(context_namespace(Some(&folder.path().join("none")), None), None);
    }
}
