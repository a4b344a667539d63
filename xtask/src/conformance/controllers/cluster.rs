//! What a sequence is played on: something with the Kubernetes API and a clock.

use std::time::Duration;

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::sequence::{Action, PodVerb, Sequence};
use crate::conformance::{api_client::Answer, corpus::Exchange};

/// A namespace is still when nothing in it has changed for so long.
pub(super) const STILL: Duration = Duration::from_secs(4);
/// How long to wait for that at most.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Everything that is compared: version, plural, kind.
pub(super) const NAMESPACED: [(&str, &str, &str); 18] = [
    ("v1", "pods", "Pod"),
    ("v1", "services", "Service"),
    ("v1", "endpoints", "Endpoints"),
    ("v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    ("v1", "configmaps", "ConfigMap"),
    ("v1", "secrets", "Secret"),
    ("v1", "serviceaccounts", "ServiceAccount"),
    ("v1", "resourcequotas", "ResourceQuota"),
    ("v1", "replicationcontrollers", "ReplicationController"),
    ("apps/v1", "deployments", "Deployment"),
    ("apps/v1", "replicasets", "ReplicaSet"),
    ("apps/v1", "statefulsets", "StatefulSet"),
    ("apps/v1", "daemonsets", "DaemonSet"),
    ("apps/v1", "controllerrevisions", "ControllerRevision"),
    ("batch/v1", "jobs", "Job"),
    ("batch/v1", "cronjobs", "CronJob"),
    ("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
];
/// The same of a kind whose objects are told from others by a label only.
pub(super) const SLICES: (&str, &str, &str) = ("discovery.k8s.io/v1", "endpointslices", "EndpointSlice");

/// A cluster that a sequence is played on.
pub(super) trait Cluster {
    /// Sends a request.
    async fn send(&mut self, exchange: &Exchange) -> anyhow::Result<Answer>;
    /// Waits until nothing in a namespace has changed for [`STILL`], or [`PATIENCE`] is over.
    async fn settle(&mut self, namespace: &str) -> anyhow::Result<()>;
    /// Lets time pass.
    async fn wait(&mut self, duration: Duration);
    /// Lets time pass until so many seconds past a minute.
    async fn align(&mut self, second: u32);
    /// Silences the kubelet of a node, or lets it speak again.
    async fn silence(&mut self, node: &str, is_silent: bool) -> anyhow::Result<()>;
    /// When an Event was first told, as a number that grows.
    fn moment(&self, event: &Value) -> u128;
}

/// What a sequence came to on one cluster.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct Played {
    /// Code and reason of every answer.
    pub answers: Vec<String>,
    /// Every object, with its kind.
    pub objects: Vec<Value>,
    /// Every Event, in order.
    pub events: Vec<Value>,
}

/// Plays a sequence in a namespace of its own.
///
/// # Errors
/// The cluster does not answer.
pub(super) async fn play<C: Cluster>(sequence: &Sequence, cluster: &mut C) -> anyhow::Result<Played> {
    let namespace = &sequence.name;
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let made = cluster.send(&Exchange::new("POST", "/api/v1/namespaces", &object)).await?;
    anyhow::ensure!(made.code == 201, "no namespace {namespace}: {} {}", made.code, made.body);
    wait_for_account(namespace, cluster).await?;
    let mut answers = Vec::new();
    for action in &sequence.actions {
        match action {
            Action::Request(exchange) => answers.push(in_words(&cluster.send(exchange).await?)),
            Action::Pods { verb, selector, count } => {
                for name in selected(namespace, selector, *count, cluster).await? {
                    let answer = cluster.send(&on_pod(namespace, &name, *verb)).await?;
                    answers.push(in_words(&answer));
                }
            }
            Action::Settle => cluster.settle(namespace).await?,
            Action::Wait(duration) => cluster.wait(*duration).await,
            Action::Align(second) => cluster.align(*second).await,
            Action::Kubelet { node, is_silent } => cluster.silence(node, *is_silent).await?,
        }
    }
    collect(sequence, answers, cluster).await
}

/// Pods are refused until their account is there, and it comes a moment after the namespace.
async fn wait_for_account<C: Cluster>(namespace: &str, cluster: &mut C) -> anyhow::Result<()> {
    const TRIES: usize = 100;
    let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
    for _ in 0..TRIES {
        if cluster.send(&Exchange::new("GET", account.clone(), &Value::Null)).await?.code == 200 {
            return Ok(());
        }
        cluster.wait(Duration::from_millis(100)).await;
    }
    anyhow::bail!("{namespace} gets no account")
}

fn in_words(answer: &Answer) -> String {
    let reason = answer.body["reason"].as_str().filter(|_| answer.code >= 400).unwrap_or_default();
    format!("{} {reason}", answer.code).trim_end().to_owned()
}

async fn selected<C: Cluster>(
    namespace: &str,
    selector: &str,
    count: Option<usize>,
    cluster: &mut C,
) -> anyhow::Result<Vec<String>> {
    let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector={selector}");
    let mut pods = list(&path, cluster).await?;
    pods.retain(|pod| !pod.is_terminating());
    Ok(pods.iter().take(count.unwrap_or(usize::MAX)).map(|pod| pod.name().to_owned()).collect())
}

fn on_pod(namespace: &str, name: &str, verb: PodVerb) -> Exchange {
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    match verb {
        PodVerb::Delete => Exchange::new("DELETE", path, &Value::Null),
        PodVerb::Evict => {
            let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction",
                "metadata": {"name": name, "namespace": namespace}});
            Exchange::new("POST", format!("{path}/eviction"), &eviction)
        }
    }
}

async fn list<C: Cluster>(path: &str, cluster: &mut C) -> anyhow::Result<Vec<Value>> {
    let answer = cluster.send(&Exchange::new("GET", path, &Value::Null)).await?;
    anyhow::ensure!(answer.code == 200, "GET {path}: {} {}", answer.code, answer.body);
    Ok(answer.body["items"].as_array().cloned().unwrap_or_default())
}

async fn collect<C: Cluster>(
    sequence: &Sequence,
    answers: Vec<String>,
    cluster: &mut C,
) -> anyhow::Result<Played> {
    let namespace = &sequence.name;
    let mut objects = Vec::new();
    for (version, plural, kind) in NAMESPACED.into_iter().chain([SLICES]) {
        let root = if version.contains('/') { "apis" } else { "api" };
        let found = list(&format!("/{root}/{version}/namespaces/{namespace}/{plural}"), cluster).await?;
        objects.extend(found.into_iter().map(|object| with_kind(object, version, kind)));
    }
    let path = format!("/api/v1/namespaces/{namespace}");
    let own = cluster.send(&Exchange::new("GET", path, &Value::Null)).await?;
    if own.code == 200 {
        objects.push(own.body);
    }
    let volumes = list("/api/v1/persistentvolumes", cluster).await?;
    let is_own = |volume: &Value| {
        volume.name().starts_with(namespace.as_str())
            || volume.str_at(&["spec", "claimRef", "namespace"]) == Some(namespace)
    };
    let volumes = volumes.into_iter().filter(is_own);
    objects.extend(volumes.map(|volume| with_kind(volume, "v1", "PersistentVolume")));
    let mut events = list(&format!("/api/v1/namespaces/{namespace}/events"), cluster).await?;
    if sequence.is_alone {
        let nodes = list("/api/v1/nodes", cluster).await?;
        objects.extend(nodes.into_iter().map(|node| with_kind(node, "v1", "Node")));
    }
    events.sort_by_key(|event| cluster.moment(event));
    Ok(Played { answers, objects, events })
}

fn with_kind(mut object: Value, version: &str, kind: &str) -> Value {
    object["apiVersion"] = version.into();
    object["kind"] = kind.into();
    object
}
