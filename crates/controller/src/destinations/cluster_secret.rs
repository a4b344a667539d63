//! What a cluster Secret says.

use tiphys_appset::ClusterInfo;
use tiphys_cluster::{Access, ClusterError, WatchScope};
use tiphys_model::{Destination, names};
use tiphys_value::{ObjectExt, Value};

use crate::clusters::{declared_cluster, secret_text};

/// A declared cluster.
#[derive(Clone, PartialEq)]
pub(crate) struct Declared {
    /// Name, address, project.
    pub info: ClusterInfo,
    /// The part of it that is followed.
    pub scope: WatchScope,
    /// `config`: credentials.
    config: String,
}

impl Declared {
    /// Reads a Secret; `None` if it names no address, or is to be left alone.
    pub(crate) fn read(secret: &Value) -> Option<Self> {
        let mut info = declared_cluster(secret);
        if info.server.is_empty() || secret.annotation(names::SKIP_RECONCILE) == Some("true") {
            return None;
        }
        // What generators see of it does not concern the connection.
        info.labels.clear();
        info.annotations.clear();
        let text = |key: &str| secret_text(secret, key).unwrap_or_default();
        let listed = text("namespaces");
        let namespaces = listed.split(',').map(str::trim).filter(|name| !name.is_empty());
        let scope = WatchScope {
            namespaces: namespaces.map(str::to_owned).collect(),
            cluster_resources: text("clusterResources") == "true",
        };
        Some(Self { info, scope, config: text("config") })
    }

    /// All of it that is followed, as a project lists destinations.
    pub(crate) fn destinations(&self) -> Vec<Destination> {
        let to = |namespace: &str| Destination {
            server: self.info.server.clone(),
            name: String::new(),
            namespace: namespace.to_owned(),
        };
        match self.scope.namespaces.as_slice() {
            [] => vec![to("*")],
            listed => listed.iter().map(|namespace| to(namespace)).collect(),
        }
    }

    /// How it is reached.
    pub(crate) fn access(&self) -> Result<Access, ClusterError> {
        Access::parse(&self.info.server, &self.config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn a_secret_is_read_and_labels_do_not_break_a_connection() {
        let secret = |label: &str| {
            json!({"kind": "Secret", "metadata": {"name": "s", "labels": {"env": label}},
            "stringData": {"name": "prod", "server": "https://prod/", "namespaces": "a, b", "config": "{}"}})
        };
        let read = Declared::read(&secret("x")).expect("has an address");
        assert_eq!(read.info.server, "https://prod");
        assert_eq!(
            read.scope,
            WatchScope { namespaces: vec!["a".into(), "b".into()], cluster_resources: false }
        );
        assert!(Declared::read(&secret("y")).as_ref() == Some(&read));
        let skipped = json!({"metadata": {"annotations": {"argocd.argoproj.io/skip-reconcile": "true"}},
            "stringData": {"server": "https://prod"}});
        assert!(Declared::read(&skipped).is_none());
    }
}
