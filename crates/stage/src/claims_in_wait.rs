//! Claims that are bound only once a pod wants them: the pod tells why they are not.

use std::collections::BTreeSet;

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause;
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::{symptoms::Symptom, unready_servers::class_of};

/// The annotation by which the scheduler says that a pod wants a claim.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Has claims that wait for their first consumer show it, and no consumer show them. One that no pod mounts
/// shows the pods beside it which mount a claim that is not there.
pub(crate) fn show_consumers(found: &mut [Symptom], snapshot: &Snapshot) {
    let waiting: BTreeSet<ResourceKey> =
        found.iter().map(|it| &it.object).filter(|key| waits_for_consumer(key, snapshot)).cloned().collect();
    if waiting.is_empty() {
        return;
    }
    let mounted = mounted_claims(snapshot);
    let mut consumers: Vec<(ResourceKey, ResourceKey)> = Vec::new();
    let mut astray: Vec<ResourceKey> = Vec::new();
    for pod in found.iter_mut().filter(|it| it.object.kind == "Pod") {
        let shown: Vec<ResourceKey> = pod.shows.intersection(&waiting).cloned().collect();
        for claim in shown {
            pod.shows.remove(&claim);
            consumers.push((claim, pod.object.clone()));
        }
        if pod.mechanism.as_ref().is_some_and(|it| it.id == Cause::VolumeClaimMissing) {
            astray.push(pod.object.clone());
        }
    }
    // What the API server says of a refused change of a claim is no word of the claim itself.
    for claim in found.iter_mut().filter(|it| waiting.contains(&it.object) && !it.uid.is_empty()) {
        claim.mechanism = None;
        let own = consumers.iter().filter(|(key, _)| *key == claim.object).map(|(_, pod)| pod.clone());
        claim.shows.extend(own);
        if !mounted.contains(&claim.object) {
            claim.because = "no pod mounts it, and its class binds it only then".to_owned();
            claim.shows.extend(astray.iter().filter(|pod| pod.namespace == claim.object.namespace).cloned());
        }
    }
}

fn waits_for_consumer(key: &ResourceKey, snapshot: &Snapshot) -> bool {
    if key.kind != "PersistentVolumeClaim" {
        return false;
    }
    let claim = snapshot.get(&ResourceId::new("", "persistentvolumeclaims"), &key.namespace, &key.name);
    let Some(claim) = claim.map(|claim| claim.value()) else { return false };
    let class = class_of(claim, snapshot);
    !claim.is_terminating()
        && claim.str_at(&["status", "phase"]) == Some("Pending")
        && claim.annotation(SELECTED_NODE).is_none()
        && class.is_some_and(|it| it.str_at(&["volumeBindingMode"]) == Some("WaitForFirstConsumer"))
}

/// The claims that pods name.
fn mounted_claims(snapshot: &Snapshot) -> BTreeSet<ResourceKey> {
    let pods = snapshot.list(&ResourceId::new("", "pods"), None).map(|pod| pod.value());
    let claims = pods.flat_map(|pod| {
        let volumes = pod.at(&["spec", "volumes"]).and_then(Value::as_array).into_iter().flatten();
        let names = volumes.filter_map(|volume| volume.str_at(&["persistentVolumeClaim", "claimName"]));
        names.map(|name| ResourceKey::new("", "PersistentVolumeClaim", pod.namespace(), name))
    });
    claims.collect()
}
