//! What could not be looked at: kinds that were not saved, logs that are missing, requests that failed.

use tiphys_value::ObjectExt as _;

use crate::search_context::Look;

/// Kinds without which a whole family of causes cannot be judged.
const KINDS: &[(&str, &str)] = &[
    ("Node", "scheduling and nodes"),
    ("Pod", "containers"),
    ("Service", "addresses"),
    ("NetworkPolicy", "network policies"),
    ("StorageClass", "volumes"),
    ("ClusterRole", "rights"),
    ("Lease", "the control plane"),
    ("Secret", "missing Secrets and certificates"),
];

/// One sentence for each thing that was not seen.
pub(crate) fn not_seen(look: &Look<'_>) -> Vec<String> {
    let case = look.cluster.case;
    let mut found = Vec::new();
    for (kind, about) in KINDS.iter().filter(|(kind, _)| !look.cluster.has_kind(kind)) {
        found.push(format!("No {kind} was saved: nothing can be said about {about}."));
    }
    if !look.cluster.knows_makers() && look.cluster.has_kind("Pod") {
        found.push(
            "Little but workloads and Services was saved, as `kubectl cluster-info dump` does: who should make a missing Secret or Service, and what Argo CD, Flux and operators say, is not known. `tiphys dump` saves all of it."
                .to_owned(),
        );
    }
    if case.events.is_empty() && !case.listed.contains("Event") {
        found.push("No event was saved: what components say about objects is not known.".to_owned());
    }
    for ill in &look.ill {
        let has_log = ill.pods.iter().any(|pod| !look.cluster.logs(pod.namespace(), pod.name()).is_empty());
        let has_run = ill
            .pods
            .iter()
            .flat_map(|pod| crate::cluster::pods::statuses(pod))
            .any(|status| crate::cluster::pods::ended(status).is_some());
        if !has_log && has_run {
            found.push(format!("No log of {} was saved: why it ends is told there.", ill.workload));
        }
    }
    found.extend(
        case.unreadable
            .iter()
            .map(|it| format!("{} could not be read: {}.", it.what, it.why.trim_end_matches('.'))),
    );
    found
}
