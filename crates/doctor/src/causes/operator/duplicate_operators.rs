//! Two installations of one operator.

use std::collections::BTreeMap;

use tiphys_cause::{Cause, image_parts};
use tiphys_value::ObjectExt as _;

use super::lookup::is_cared_for_by;
use crate::{
    Object,
    cluster::{items, pods, time},
    finding::Finding,
    search_context::Look,
};

/// Components of which a cluster bears one installation only.
const ALONE: &[&str] = &[
    "cert-manager-controller",
    "calico/node",
    "cilium/cilium",
    "tigera/operator",
    "flannel/flannel",
    "coredns/coredns",
    "external-secrets",
    "kube-state-metrics",
    "metrics-server",
    "prometheus-operator",
    "sealed-secrets-controller",
    "keda",
    "strimzi/operator",
    "cluster-autoscaler",
    "karpenter/controller",
    "aws-load-balancer-controller",
    "eks/aws-load-balancer-controller",
];

/// Two installations of one operator.
pub(super) fn two_owners(look: &Look<'_>) -> Vec<Finding> {
    let mut images: BTreeMap<String, Vec<Object>> = BTreeMap::new();
    let kinds = ["Deployment", "DaemonSet", "StatefulSet"];
    let all = kinds.iter().flat_map(|kind| look.cluster.all(kind).iter());
    for live in all.filter(|live| live.kind() == "DaemonSet" || pods::replicas(live) > 0) {
        let Some(image) = pods::spec(live)
            .and_then(|spec| items(spec, &["containers"]).next())
            .and_then(|it| it.str_at(&["image"]))
        else {
            continue;
        };
        let (_, repository, _) = image_parts(image);
        let is_alone = ALONE.iter().any(|name| repository.ends_with(name));
        if is_alone {
            images.entry(repository).or_default().push(Object::from_live(live));
        }
    }
    let pairs =
        images.into_iter().filter(|(_, owners)| owners.iter().any(|it| it.namespace != owners[0].namespace));
    let found = pairs.map(|(repository, owners)| {
        let fights = look.cluster.case.events.iter().any(|event| says_fight(&event.message))
            || look.cluster.case.logs.iter().any(|log| {
                owners.iter().any(|it| log.namespace == it.namespace && log.pod.starts_with(&it.name))
                    && log.last_lines().any(says_fight)
            })
            || look.red.values().any(|symptom| says_fight(symptom));
        let are_red = owners.iter().any(|owner| look.is_red(owner));
        let is_hurt = are_red
            || look.red.keys().any(|object| owners.iter().any(|owner| is_cared_for_by(look, object, owner)));
        let (first, second) = (
            owners[0].clone(),
            owners.iter().find(|it| it.namespace != owners[0].namespace).cloned().unwrap_or_default(),
        );
        let newer = [&first, &second]
            .into_iter()
            .max_by_key(|it| {
                look.cluster.live(it).and_then(|live| time(live, &["metadata", "creationTimestamp"]))
            })
            .cloned()
            .unwrap_or_default();
        let older = if newer == first { second } else { first };
        let confidence = if fights || is_hurt { 0.8 } else { 0.4 };
        Finding::new(
            Cause::OperatorTwoOwners,
            newer.clone(),
            confidence,
            format!(
                "{older} and {newer} are two installations of {repository}, and act upon the same objects"
            ),
        )
        .evidence(older.to_string(), repository.clone())
        .evidence(newer.to_string(), repository)
        .suffers(older, "is doubled")
        .remedy("Remove one of the installations.", &[])
    });
    found.collect()
}

fn says_fight(text: &str) -> bool {
    let low = text.to_ascii_lowercase();
    [
        "already managed by",
        "is managed by another",
        "owned by another",
        "already owned",
        "conflict with another",
        "the object has been modified",
        "another instance",
        "already exists and is not managed",
    ]
    .iter()
    .any(|word| low.contains(word))
}
