//! What scenarios leave behind on a real API server: nothing there tidies up after them.

use std::time::Duration;

use tiphys_cluster::{Cluster, PatchType, Propagation, Resource};
use tiphys_value::{ObjectExt, Value, json};

/// Objects that every cluster or namespace has by itself.
fn is_given(object: &Value) -> bool {
    let name = object.name();
    matches!(object.namespace(), "kube-system" | "kube-public" | "kube-node-lease" | "default")
        || name == "kube-root-ca.crt"
        || name.ends_with("argoproj.io")
}

/// Whether scenarios make objects of a kind.
fn is_made(resource: &Resource) -> bool {
    const KINDS: [&str; 15] = [
        "Application",
        "ApplicationSet",
        "AppProject",
        "ConfigMap",
        "Secret",
        "Event",
        "PersistentVolumeClaim",
        "Deployment",
        "DaemonSet",
        "CronJob",
        "CSIDriver",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "Widget",
        "CustomResourceDefinition",
    ];
    KINDS.contains(&resource.gvk.kind.as_str()) && resource.has_verb("delete")
}

/// Deletes what scenarios make, namespaces apart: nobody would end them.
pub(crate) async fn everything(cluster: &Cluster) {
    for _ in 0..600 {
        let discovery = cluster.discover().await.unwrap();
        let mut left = 0;
        for resource in discovery.kinds().filter(|resource| is_made(resource)) {
            // A definition that goes takes its kind along while this looks.
            let Ok(list) = cluster.list(resource, "").await else { continue };
            for object in list.items.iter().filter(|object| !is_given(object)) {
                left += 1;
                let name = (object.namespace(), object.name());
                let _ = cluster.delete(resource, name, Propagation::Background, "", false).await;
                if object.kind() != "CustomResourceDefinition" {
                    let freed = json!({"metadata": {"finalizers": null}});
                    let _ = cluster.patch(resource, name, "", PatchType::Merge, &freed, "test").await;
                }
            }
        }
        if left == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the cluster cannot be cleared");
}

/// Whether a workload's controller would still have something to do.
fn is_behind(object: &Value) -> bool {
    matches!(object.kind(), "Deployment" | "DaemonSet")
        && !object.is_terminating()
        && object.at(&["status", "observedGeneration"]) != object.at(&["metadata", "generation"])
}

/// The status of a workload that is where it should be.
fn rolled_out(object: &Value) -> Value {
    let generation = &object["metadata"]["generation"];
    match object.kind() {
        "Deployment" => {
            let replicas = &object["spec"]["replicas"];
            json!({"observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
                "readyReplicas": replicas, "availableReplicas": replicas})
        }
        _ => {
            json!({"observedGeneration": generation, "desiredNumberScheduled": 1, "currentNumberScheduled": 1,
            "updatedNumberScheduled": 1, "numberReady": 1, "numberAvailable": 1, "numberMisscheduled": 0})
        }
    }
}

/// What the garbage collector and the protection of claims hold a deletion for. Nobody else is there to let
/// go.
const HELD_BY_CONTROLLERS: [&str; 3] = ["foregroundDeletion", "orphan", "kubernetes.io/pvc-protection"];
/// How often it is looked for.
const COLLECT: Duration = Duration::from_millis(200);

/// Plays those controllers where an API server runs alone: what is being deleted is let go, and workloads are
/// at once where they should be.
pub(crate) async fn collect(cluster: Cluster) {
    loop {
        // A kind may go while this looks, and an object too.
        if let Ok(discovery) = cluster.discover().await {
            for resource in discovery.kinds().filter(|resource| is_made(resource)) {
                let Ok(list) = cluster.list(resource, "").await else { continue };
                for object in list.items.iter().filter(|object| is_behind(object)) {
                    let name = (object.namespace(), object.name());
                    let status = json!({"status": rolled_out(object)});
                    let _ = cluster.patch(resource, name, "status", PatchType::Merge, &status, "test").await;
                }
                for object in list.items.iter().filter(|object| object.is_terminating()) {
                    let finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
                    let is_foreign =
                        |name: &Value| !name.as_str().is_some_and(|name| HELD_BY_CONTROLLERS.contains(&name));
                    let kept: Vec<Value> =
                        finalizers.iter().filter(|name| is_foreign(name)).cloned().collect();
                    if kept.len() < finalizers.len() {
                        let freed = json!({"metadata": {"finalizers": kept}});
                        let name = (object.namespace(), object.name());
                        let _ = cluster.patch(resource, name, "", PatchType::Merge, &freed, "test").await;
                    }
                }
            }
        }
        tokio::time::sleep(COLLECT).await;
    }
}
