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
        let read = kubeconfig.map_or_else(Kubeconfig::read, Kubeconfig::read_from).map_err(fail)?;
        if let Some(fault) = unreadable_file(&read) {
            return Err(ClusterError::Config(fault));
        }
        open(Config::from_custom_kubeconfig(read, &options).await.map_err(fail)?)
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

/// The largest file of a token or certificate, in bytes.
const MAX_CREDENTIAL: u64 = 1 << 20;

/// What is wrong with a file that a kubeconfig names, if one is no file or very large: the client would read
/// a device or a pipe without end. A file that is missing is left to the client, which may not need it.
fn unreadable_file(kubeconfig: &Kubeconfig) -> Option<String> {
    let of_users = kubeconfig.auth_infos.iter().filter_map(|user| user.auth_info.as_ref());
    let of_users = of_users.flat_map(|user| {
        [
            ("tokenFile", &user.token_file),
            ("client-certificate", &user.client_certificate),
            ("client-key", &user.client_key),
        ]
    });
    let of_clusters = kubeconfig.clusters.iter().filter_map(|cluster| cluster.cluster.as_ref());
    let of_clusters = of_clusters.map(|cluster| ("certificate-authority", &cluster.certificate_authority));
    of_users.chain(of_clusters).find_map(|(field, path)| {
        let path = path.as_deref()?;
        let metadata = std::fs::metadata(path).ok()?;
        if !metadata.is_file() {
            return Some(format!("{field} of the kubeconfig: {path} is not a file"));
        }
        let bytes = metadata.len();
        (bytes > MAX_CREDENTIAL).then(|| {
            format!("{field} of the kubeconfig: {path} has {bytes} bytes; at most {MAX_CREDENTIAL} are read")
        })
    })
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
    fn credentials_come_from_files_of_a_bounded_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let large = folder.path().join("large");
        std::fs::File::create(&large).and_then(|file| file.set_len(MAX_CREDENTIAL + 1)).expect("written");
        let fault = |path: &str| {
            let text = format!("users:\n- {{name: u, user: {{tokenFile: {path}}}}}\n");
            unreadable_file(&Kubeconfig::from_yaml(&text).expect("a kubeconfig"))
        };
        assert_eq!(
            fault("/dev/zero").as_deref(),
            Some("tokenFile of the kubeconfig: /dev/zero is not a file")
        );
        assert!(fault(&large.display().to_string()).is_some_and(|it| it.contains("at most 1048576")));
        assert_eq!(fault("/none/at/all"), None);
    }

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
