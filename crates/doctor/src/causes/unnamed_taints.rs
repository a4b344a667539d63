//! Taints that the scheduler does not name: since Kubernetes 1.35 it only says "untolerated taint(s)". The
//! nodes tell which.

use std::collections::BTreeMap;

use tiphys_cause::Obstacle;
use tiphys_value::{ObjectExt as _, Value, taint};

use crate::cluster::Cluster;

/// The obstacles of a pod, with the taints of the nodes where the scheduler names none; each node counts for
/// the first that the pod does not tolerate. As they are if no node tells one.
pub(super) fn with_names(
    cluster: &Cluster<'_>,
    pod: &Value,
    obstacles: Vec<(u32, Obstacle)>,
) -> Vec<(u32, Obstacle)> {
    let is_unnamed = |obstacle: &Obstacle| matches!(obstacle, Obstacle::Taint(key) if key.is_empty());
    if !obstacles.iter().any(|(_, obstacle)| is_unnamed(obstacle)) {
        return obstacles;
    }
    let mut nodes_of: BTreeMap<&str, u32> = BTreeMap::new();
    for node in cluster.all("Node").iter() {
        let mut open = taint::untolerated(pod, node, &taint::KEEPS_AWAY);
        if let Some(key) = open.next().and_then(|taint| taint.str_at(&["key"])) {
            *nodes_of.entry(key).or_default() += 1;
        }
    }
    if nodes_of.is_empty() {
        return obstacles;
    }
    let found = nodes_of.into_iter().map(|(key, nodes)| (nodes, Obstacle::Taint(key.to_owned())));
    obstacles.into_iter().filter(|(_, obstacle)| !is_unnamed(obstacle)).chain(found).collect()
}
