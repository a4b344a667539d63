//! Drains of nodes, as people do them before an upgrade: the node takes no more pods, and those on it are
//! evicted as far as their disruption budgets allow.

use std::time::Duration;

use tiphys_apiserver::{ApiError, ApiServer, Patch, ResourceId};
use tiphys_value::{GroupVersionResource, ObjectExt, ResourceKey, Value, json};

use super::inject::MANAGER;

/// How often pods that their budgets held back are evicted again, as kubectl does.
const AGAIN: Duration = Duration::from_secs(5);
/// How long people try before they give up.
const GIVE_UP: Duration = Duration::from_secs(10 * 60);

/// A pod that a drain could not evict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedEviction {
    /// The node.
    pub node: String,
    /// The pod.
    pub pod: ResourceKey,
    /// Why, in the words of the API server.
    pub why: String,
}

/// A drain at work.
#[derive(Clone, Debug)]
pub(super) struct Drain {
    node: String,
    since: Duration,
    /// When pods are to be evicted next; `None` once all are gone, or it was given up.
    pub next: Option<Duration>,
    /// What keeps the node from being empty.
    pub refused: Option<RefusedEviction>,
}

impl Drain {
    /// Cordons a node.
    pub(super) fn begin(server: &ApiServer, node: &str, now: Duration) -> Result<Self, ApiError> {
        cordon(server, node, true)?;
        Ok(Self { node: node.to_owned(), since: now, next: Some(now), refused: None })
    }

    /// Evicts what is still on the node.
    pub(super) fn go_on(&mut self, server: &ApiServer, now: Duration) {
        let pods = GroupVersionResource::new("", "v1", "pods");
        let client = server.client(MANAGER);
        let left = pods_on(server, &self.node);
        self.refused = None;
        for pod in &left {
            let body = json!({"apiVersion": "policy/v1", "kind": "Eviction",
                "metadata": {"name": pod.name, "namespace": pod.namespace}});
            let evicted = client.create_subresource(&pods, &pod.namespace, &pod.name, "eviction", body);
            if let Err(refused) = evicted {
                let why = refused.to_string();
                self.refused = Some(RefusedEviction { node: self.node.clone(), pod: pod.clone(), why });
            }
        }
        self.next = (!left.is_empty() && now < self.since + GIVE_UP).then_some(now + AGAIN);
    }
}

/// Lets a node take pods, or not.
pub(super) fn cordon(server: &ApiServer, node: &str, is_closed: bool) -> Result<(), ApiError> {
    let nodes = GroupVersionResource::new("", "v1", "nodes");
    let patch = Patch::merge(json!({"spec": {"unschedulable": is_closed.then_some(true)}}));
    server.client(MANAGER).patch(&nodes, "", node, None, &patch).map(drop)
}

/// The pods that a drain evicts: those of DaemonSets and of the node itself stay, and those that go are gone
/// soon.
fn pods_on(server: &ApiServer, node: &str) -> Vec<ResourceKey> {
    let snapshot = server.snapshot();
    let pods = snapshot.list(&ResourceId::new("", "pods"), None).map(|object| object.value());
    let stays =
        |pod: &Value| pod.owner_references().iter().any(|owner| matches!(owner.kind(), "DaemonSet" | "Node"));
    let is_over = |pod: &Value| matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"));
    pods.filter(|pod| pod.str_at(&["spec", "nodeName"]) == Some(node))
        .filter(|pod| !pod.is_terminating() && !stays(pod) && !is_over(pod))
        .map(ObjectExt::resource_key)
        .collect()
}
