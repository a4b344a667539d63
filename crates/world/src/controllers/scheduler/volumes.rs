//! What a pod's claims mean for where it can be.

use std::sync::Arc;

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{affinity, misfit::Misfit};
use crate::{
    Key, View, Write,
    controllers::volume_claims::{
        SELECTED_NODE, claimed, claimed_volume, claims_of, ephemeral_claim_name, is_class_by_hand, matching,
        waits_for_consumer,
    },
    object::resources,
};

/// The claims of a pod.
pub(super) struct Volumes {
    /// Bound volumes that are not everywhere.
    bound: Vec<Arc<Object>>,
    /// Claims that wait for their first consumer.
    waiting: Vec<Arc<Object>>,
}

/// Looks at the claims of a pod; an error says why it can be nowhere.
pub(super) fn claimed_volumes(pod: &Value, view: &View<'_>) -> Result<Volumes, String> {
    let mut volumes = Volumes { bound: Vec::new(), waiting: Vec::new() };
    for key in claims_of(pod) {
        let Some(claim) = view.get(&resources::claims(), &key) else {
            let why = match is_of_ephemeral_volume(pod, &key) {
                true => format!(
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{}\"",
                    key.name
                ),
                false => format!("persistentvolumeclaim \"{}\" not found", key.name),
            };
            return Err(why);
        };
        if claim.is_terminating() {
            return Err(format!("persistentvolumeclaim \"{}\" is being deleted", key.name));
        }
        let volume = claim.str_at(&["spec", "volumeName"]).unwrap_or_default();
        if claim.str_at(&["status", "phase"]) == Some("Lost") {
            let why = format!(
                "persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{volume}\"",
                key.name
            );
            return Err(why);
        }
        if claim.str_at(&["status", "phase"]) == Some("Bound") {
            let found =
                view.get(&resources::volumes(), &Key { namespace: String::new(), name: volume.to_owned() });
            volumes.bound.extend(found.filter(|volume| volume.at(&["spec", "nodeAffinity"]).is_some()));
        } else if waits_for_consumer(&claim, view) {
            volumes.waiting.push(claim);
        } else {
            return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
        }
    }
    Ok(volumes)
}

impl Volumes {
    /// Why the pod may not be on a node.
    pub(super) fn misfit(&self, node: &Value, view: &View<'_>) -> Option<Misfit> {
        let by_hand = self.waiting.iter().filter(|claim| is_class_by_hand(claim, view));
        let mut without_volume = by_hand.filter(|claim| volume_for(claim, node, view).is_none());
        if without_volume.next().is_some() {
            return Some(Misfit::lasting("node(s) didn't find available persistent volumes to bind"));
        }
        (!self.bound.iter().all(|volume| reaches(volume, node)))
            .then(|| Misfit::lasting("node(s) didn't match PersistentVolume's node affinity"))
    }

    /// Whether a claim is not bound yet.
    pub(super) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Has the claims that wait bound: a provisioner is told where the volume is wanted; a volume that
    /// was made by hand is claimed.
    pub(super) fn select(&self, node: &str, view: &View<'_>) -> Vec<Write> {
        let on_node = view.get(&resources::nodes(), &Key { namespace: String::new(), name: node.to_owned() });
        let node_object = on_node.as_ref().map_or(&Value::Null, |node| node.value());
        let selected = self.waiting.iter().filter_map(|claim| {
            if !is_class_by_hand(claim, view) {
                let mut object = claim.value().clone();
                object["metadata"]["annotations"][SELECTED_NODE] = node.into();
                return Some(Write::Update { resource: resources::claims(), object });
            }
            let volume = volume_for(claim, node_object, view)?;
            let is_claimed = volume.str_at(&["spec", "claimRef", "uid"]) == Some(claim.uid());
            (!is_claimed).then(|| claimed(&volume, claim))
        });
        selected.collect()
    }
}

/// Whether a claim is that of an ephemeral volume of a pod.
fn is_of_ephemeral_volume(pod: &Value, key: &Key) -> bool {
    let volumes = pod.at(&["spec", "volumes"]).and_then(Value::as_array).into_iter().flatten();
    let mut ephemeral = volumes.filter(|volume| volume.get("ephemeral").is_some());
    ephemeral.any(|volume| ephemeral_claim_name(pod, volume) == key.name)
}

/// Whether a volume can be used on a node.
fn reaches(volume: &Value, node: &Value) -> bool {
    let required = volume.at(&["spec", "nodeAffinity", "required"]);
    let as_pod = json!({"spec": {"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": required}}}});
    required.is_none() || affinity::wants_node(&as_pod, node)
}

/// The volume that is claimed for a claim already, or the best free one that can be used on a node.
fn volume_for(claim: &Value, node: &Value, view: &View<'_>) -> Option<Arc<Object>> {
    claimed_volume(claim, view).or_else(|| matching(claim, view, |volume| reaches(volume, node)))
}
