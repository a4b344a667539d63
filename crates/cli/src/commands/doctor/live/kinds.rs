//! Which kinds are read, and in which order.

use std::collections::BTreeSet;

use tiphys_cluster::{Discovery, Resource};

/// What is read first, in case the time does not suffice for all: `plural.group`.
const FIRST: [&str; 24] = [
    "nodes",
    "namespaces",
    "pods",
    "events",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "services",
    "endpointslices.discovery.k8s.io",
    "configmaps",
    "secrets",
    "persistentvolumeclaims",
    "persistentvolumes",
    "networkpolicies.networking.k8s.io",
    "apiservices.apiregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "leases.coordination.k8s.io",
    "applications.argoproj.io",
    "kustomizations.kustomize.toolkit.fluxcd.io",
    "helmreleases.helm.toolkit.fluxcd.io",
];

/// Groups whose objects are others seen again: `group` shows the kinds that the others also have.
const VIEWS: [(&str, &str); 3] =
    [("events.k8s.io", ""), ("extensions", "networking.k8s.io"), ("extensions", "apps")];

/// `plural.group` of a kind.
pub(super) fn plural_name(resource: &Resource) -> String {
    match resource.gvk.group.as_str() {
        "" => resource.plural.clone(),
        group => format!("{}.{group}", resource.plural),
    }
}

/// The kinds that can be listed, each once, the most telling first.
pub(super) fn readable(discovery: &Discovery) -> Vec<Resource> {
    let names: BTreeSet<(&str, &str)> = discovery
        .kinds()
        .filter(|kind| kind.has_verb("list"))
        .map(|kind| (kind.gvk.group.as_str(), kind.gvk.kind.as_str()))
        .collect();
    let is_view = |kind: &Resource| {
        VIEWS
            .iter()
            .any(|(view, real)| kind.gvk.group == *view && names.contains(&(*real, kind.gvk.kind.as_str())))
    };
    let mut kinds: Vec<Resource> =
        discovery.kinds().filter(|kind| kind.has_verb("list") && !is_view(kind)).cloned().collect();
    kinds.sort_by_cached_key(|kind| {
        let name = plural_name(kind);
        (FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len()), name)
    });
    kinds
}
