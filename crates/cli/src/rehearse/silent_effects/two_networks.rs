//! Nodes on which two programs set up the network of pods. Which of them a pod gets is settled by the order
//! of files on its node, so nothing turns red by itself.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause as Id;
use tiphys_stage::{causes::Cause, mechanism::Mechanism};
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::rehearse::{
    strict_world::{network_name, networks_in},
    text::object_name,
};

/// Networks that others are put on top of.
const SHARED: [&str; 1] = ["aws-vpc-cni"];

/// The DaemonSets that are networks, where pods of two run on one node at the end. `before` is how it was
/// before a change: what was so then is not told.
pub(super) fn on_one_node(end: &Snapshot, before: Option<&Snapshot>) -> Option<Cause> {
    let (sets, node) = clash(end)?;
    if before.and_then(clash).is_some_and(|(known, _)| known == sets) {
        return None;
    }
    let names: Vec<String> = sets.iter().map(object_name).collect();
    let text = format!("{} both set up the network of pods on node {node}", names.join(" and "));
    let all: Vec<ResourceKey> = sets.into_iter().collect();
    let mechanism = Mechanism { id: Id::OperatorTwoOwners, objects: all.clone() };
    let cause = Cause::of_object(all[0].clone(), Some(mechanism), text, "is on the nodes of another network");
    Some(Cause { sources: all.iter().cloned().collect(), objects: all, ..cause })
}

fn clash(snapshot: &Snapshot) -> Option<(BTreeSet<ResourceKey>, String)> {
    let sets = networks_in(snapshot).filter(|set| is_whole_network(set, snapshot));
    let sets: BTreeMap<&str, ResourceKey> = sets.map(|set| (set.uid(), set.resource_key())).collect();
    if sets.len() < 2 {
        return None;
    }
    let mut by_node: BTreeMap<&str, BTreeSet<ResourceKey>> = BTreeMap::new();
    for pod in snapshot.list(&ResourceId::new("", "pods"), None).map(|pod| pod.value()) {
        let owner = pod.controller_reference().and_then(|owner| sets.get(owner.str_at(&["uid"])?));
        let node = pod.str_at(&["spec", "nodeName"]).filter(|_| !pod.is_terminating());
        if let (Some(set), Some(node)) = (owner, node) {
            by_node.entry(node).or_default().insert(set.clone());
        }
    }
    let (node, sets) = by_node.into_iter().find(|(_, sets)| sets.len() > 1)?;
    Some((sets, node.to_owned()))
}

/// Whether a DaemonSet gives pods their network by itself: not as a layer of policies over another one.
fn is_whole_network(set: &Value, snapshot: &Snapshot) -> bool {
    network_name(set).is_some_and(|name| !SHARED.contains(&name))
        && !is_policy_only(set)
        && !is_chained(set.namespace(), snapshot)
}

/// Calico without a network of its own.
fn is_policy_only(set: &Value) -> bool {
    let containers = set.at(&["spec", "template", "spec", "containers"]).and_then(Value::as_array);
    let variables = containers.into_iter().flatten().filter_map(|it| it.get("env")?.as_array()).flatten();
    variables.into_iter().any(|variable| {
        variable.str_at(&["name"]) == Some("CALICO_NETWORKING_BACKEND")
            && variable.str_at(&["value"]).is_none_or(|value| value == "none")
    })
}

/// Cilium as it is put on top of another network.
fn is_chained(namespace: &str, snapshot: &Snapshot) -> bool {
    let settings = snapshot.get(&ResourceId::new("", "configmaps"), namespace, "cilium-config");
    let mode = settings.and_then(|it| it.value().str_at(&["data", "cni-chaining-mode"]));
    mode.is_some_and(|mode| !mode.is_empty() && mode != "none")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn a_layer_of_policies_is_no_network() {
        let set =
            |backend: Value| json!({"spec": {"template": {"spec": {"containers": [{"env": [backend]}]}}}});
        assert!(is_policy_only(&set(json!({"name": "CALICO_NETWORKING_BACKEND", "value": "none"}))));
        assert!(!is_policy_only(&set(json!({"name": "CALICO_NETWORKING_BACKEND", "value": "bird"}))));
        assert!(!is_policy_only(&set(json!({"name": "NODENAME", "value": "a"}))));
    }
}
