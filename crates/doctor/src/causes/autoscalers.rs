//! The programs that add nodes where pods find no room, as they are installed.

use crate::{Object, cluster::Cluster};

/// Namespaces and names of the programs that add nodes, as they are installed: one that is ready may be kept
/// from its work, too.
const AUTOSCALER_HOMES: &[(&str, &str)] = &[
    ("kube-system", "cluster-autoscaler"),
    ("kube-system", "cluster-autoscaler-aws-cluster-autoscaler"),
    ("cluster-autoscaler", "cluster-autoscaler"),
    ("kube-system", "karpenter"),
    ("karpenter", "karpenter"),
];

/// Whether a workload adds nodes where pods find no room.
pub(super) fn is_autoscaler(workload: &Object) -> bool {
    AUTOSCALER_HOMES.contains(&(workload.namespace.as_str(), workload.name.as_str()))
}

/// The programs that add nodes here.
pub(super) fn installed<'a>(cluster: &'a Cluster<'_>) -> impl Iterator<Item = Object> + use<'a> {
    let homes = AUTOSCALER_HOMES.iter().map(|(namespace, name)| Object::new("Deployment", namespace, name));
    homes.filter(|it| cluster.live(it).is_some())
}
