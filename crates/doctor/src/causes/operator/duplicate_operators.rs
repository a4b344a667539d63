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
    "external-dns/external-dns",
];
/// Arguments by which two installations of a program keep out of each other's way.
const PARTING: &[&str] = &["--txt-owner-id", "--domain-filter", "--namespace", "--ingress-class"];

/// Two installations of one operator.
pub(super) fn two_owners(look: &Look<'_>) -> Vec<Finding> {
    let mut images: BTreeMap<(String, Vec<String>), Vec<Object>> = BTreeMap::new();
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
            let key = (repository, parting_arguments(live));
            images.entry(key).or_default().push(Object::from_live(live));
        }
    }
    let pairs =
        images.into_iter().filter(|(_, owners)| owners.iter().any(|it| it.namespace != owners[0].namespace));
    let found = pairs.map(|((repository, _), owners)| {
        let fights = undoes(look, &owners)
            || look.cluster.case.events.iter().any(|event| says_fight(&event.message))
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

/// The arguments of a workload that tell whom it cares for.
fn parting_arguments(live: &tiphys_value::Value) -> Vec<String> {
    let containers = pods::spec(live).into_iter().flat_map(|spec| items(spec, &["containers"]));
    let arguments = containers.flat_map(|it| items(it, &["args"])).filter_map(tiphys_value::Value::as_str);
    let parting = arguments.filter(|it| PARTING.iter().any(|name| it.starts_with(name)));
    let mut parting: Vec<String> = parting.map(str::to_owned).collect();
    parting.sort();
    parting
}

/// Whether one installation makes what the other takes away, as their logs tell.
fn undoes(look: &Look<'_>, owners: &[Object]) -> bool {
    let says = |owner: &Object, word: &str| -> Vec<String> {
        let logs = look.cluster.case.logs.iter();
        let own = logs.filter(|log| log.namespace == owner.namespace && log.pod.starts_with(&owner.name));
        let lines = own.flat_map(|log| log.last_lines());
        let changes = lines.filter_map(|line| line.split_once("Desired change: ").map(|(_, change)| change));
        changes.filter_map(|change| change.strip_prefix(word).map(|rest| rest.trim().to_owned())).collect()
    };
    owners.iter().any(|maker| {
        let made = says(maker, "CREATE");
        let others = owners.iter().filter(|other| *other != maker);
        others.flat_map(|other| says(other, "DELETE")).any(|gone| made.contains(&gone))
    })
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
