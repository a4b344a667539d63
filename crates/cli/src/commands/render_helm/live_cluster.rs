//! What templates see of a cluster with `--dry-run=server`: its version, what it serves, and its objects.

use std::sync::Arc;

use tiphys_cluster::{Cluster, ClusterError};
use tiphys_helm::{ClusterLookup, Served};
use tiphys_value::{GroupVersionKind, Value};
use tokio::runtime::Runtime;

use crate::app::cluster_choice::Target;

/// A cluster that is only read.
pub(super) struct Live {
    runtime: Runtime,
    cluster: Cluster,
}

impl Live {
    /// Connects and asks what there is.
    ///
    /// # Errors
    /// There is no usable kubeconfig, or the cluster does not answer.
    pub(super) fn connect(target: &Target) -> anyhow::Result<(Arc<Self>, Served)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (cluster, served) = runtime.block_on(async {
            let cluster = target.connect().await?.connection.cluster.read_only();
            let served = Served {
                kube_version: cluster.version().await?,
                api_versions: cluster.discover().await?.api_versions(),
            };
            anyhow::Ok((cluster, served))
        })?;
        Ok((Arc::new(Self { runtime, cluster }), served))
    }

    fn serves(&self, api_version: &str) -> bool {
        self.cluster.discovery().kinds().any(|resource| resource.gvk.api_version() == api_version)
    }

    async fn find(
        &self,
        gvk: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        let resource = self.cluster.resource(gvk).await?;
        let namespace = if resource.namespaced { namespace } else { "" };
        if !name.is_empty() {
            return self.cluster.get(&resource, namespace, name).await;
        }
        let list = self.cluster.list(&resource, namespace).await?;
        Ok(Some(serde_json::json!({
            "apiVersion": gvk.api_version(),
            "kind": format!("{}List", gvk.kind),
            "metadata": {"resourceVersion": list.resource_version},
            "items": list.items,
        })))
    }
}

impl ClusterLookup for Live {
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, String> {
        let gvk = GroupVersionKind::from_api_version(api_version, kind);
        match self.runtime.block_on(self.find(&gvk, namespace, name)) {
            // Of a group that is served Helm asks for a resource without a name, and finds nothing.
            Err(ClusterError::UnknownKind(_)) if self.serves(api_version) => Ok(None),
            Err(ClusterError::UnknownKind(_)) => Err(format!(
                "unable to get apiresource from unstructured: {api_version}, Kind={kind}: the server could not find the requested resource"
            )),
            other => other.map_err(|error| error.to_string()),
        }
    }
}
