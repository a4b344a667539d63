//! What Argo CD's command line in core mode looks for in a cluster: its settings, and ready Pods that it
//! forwards ports to. Where nothing brings them, they are put there; the engine answers in them.

use std::sync::Arc;

use tiphys_apiserver::PodBackend;
use tiphys_argocd::{Programs, REDIS_PORT, REPO_SERVER_PORT};
use tiphys_cluster::Cluster;
use tiphys_controller::Controller;
use tiphys_model::settings::CONFIG_MAP;
use tiphys_value::{ObjectExt, Value, json};
use tokio::io::DuplexStream;

use super::{FIELD_MANAGER, twin::Twin};
use crate::ENGINE_NAMESPACE;

/// The label that says which program of Argo CD runs in a Pod.
const PROGRAM: &str = "app.kubernetes.io/name";
const REPO_SERVER: &str = "argocd-repo-server";
/// A Redis alone, or what stands before several.
const REDIS: [&str; 2] = ["argocd-redis", "argocd-redis-ha-haproxy"];

/// Argo CD's settings and Secret, which every installation has: manifests may add to them.
///
/// # Errors
/// The cluster refuses one.
pub(super) async fn provide_settings(cluster: &Cluster) -> anyhow::Result<()> {
    for (kind, name) in [("ConfigMap", CONFIG_MAP), ("Secret", "argocd-secret")] {
        create(cluster, &of_argocd(kind, name)).await?;
    }
    Ok(())
}

/// Lets the engine answer in the place of Argo CD's programs.
///
/// # Errors
/// A certificate cannot be made, or the cluster takes something not.
pub(super) async fn provide(twin: &Twin, controller: Arc<Controller>) -> anyhow::Result<()> {
    twin.answer_in_pods(Arc::new(Answers(Programs::new(controller)?)));
    for program in [REPO_SERVER, REDIS[0]] {
        create(&twin.cluster, &pod(program)).await?;
    }
    Ok(())
}

async fn create(cluster: &Cluster, object: &Value) -> anyhow::Result<()> {
    let resource = cluster.resource(&object.gvk()).await?;
    if cluster.get(&resource, object.namespace(), object.name()).await?.is_some() {
        return Ok(());
    }
    match cluster.create(object, FIELD_MANAGER, false).await {
        // An Application that brings it was faster.
        Err(error) if error.is_conflict() => Ok(()),
        created => Ok(created.map(drop)?),
    }
}

fn of_argocd(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind,
        "metadata": {"name": name, "namespace": ENGINE_NAMESPACE,
            "labels": {"app.kubernetes.io/part-of": "argocd"}}})
}

/// What runs in it is the engine, and nothing of it here.
fn pod(program: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("tiphys-{program}"), "namespace": ENGINE_NAMESPACE,
            "labels": {PROGRAM: program}},
        "spec": {"containers": [{"name": "tiphys", "image": "tiphys"}]}})
}

/// What listens in Pods.
struct Answers(Programs);

impl PodBackend for Answers {
    fn connect(&self, pod: &Value, port: u16, connection: DuplexStream) -> bool {
        let programs = self.0.clone();
        match (pod.label(PROGRAM).unwrap_or_default(), port) {
            (REPO_SERVER, REPO_SERVER_PORT) => {
                tokio::spawn(async move { programs.serve_repo_server(connection).await });
                true
            }
            (program, REDIS_PORT) if REDIS.contains(&program) => {
                tokio::spawn(async move { programs.serve_redis(connection).await });
                true
            }
            _ => false,
        }
    }
}
