//! Taints that a program takes off a node once it is ready there, and whose task that is. While such a taint
//! stays, it is that program which does not work, and no toleration is missing.

use tiphys_value::ObjectExt as _;

use crate::{Object, cluster::Cluster, dependencies::drivers};

/// The ends of the keys of such taints.
const ENDS: &[&str] = &["agent-not-ready", "not-ready", "unregistered", "uninitialized"];
/// Domains of keys, and the workloads that take those taints off; drivers of storage are found by name.
const AGENTS: &[(&str, &[&str])] = &[
    ("node.cilium.io", &["cilium"]),
    ("cni.istio.io", &["istio-cni-node"]),
    ("karpenter.sh", &["karpenter"]),
    ("node.cluster.x-k8s.io", &["capi-controller-manager"]),
];

/// Whether a taint is one that a program takes off when it is ready.
pub(super) fn is_of_startup(key: &str) -> bool {
    key.split_once('/').is_some_and(|(_, end)| ENDS.contains(&end))
}

/// The workloads that should take a taint off.
pub(super) fn agents(cluster: &Cluster<'_>, key: &str) -> Vec<Object> {
    let domain = key.split('/').next().unwrap_or_default();
    let Some((_, names)) = AGENTS.iter().find(|(known, _)| *known == domain) else {
        return drivers(cluster, domain);
    };
    let all = ["DaemonSet", "Deployment"].iter().flat_map(|kind| cluster.all(kind).iter());
    all.filter(|live| names.contains(&live.name())).map(|live| Object::from_live(live)).collect()
}
