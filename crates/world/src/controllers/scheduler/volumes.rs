//! What a pod's claims mean for where it can be.

use std::sync::Arc;

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{Misfit, affinity, claims_of};
use crate::{Key, View, Write, object::resources};

/// The annotation by which the scheduler tells a provisioner where a volume is wanted.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The claims of a pod.
pub struct Volumes {
    /// Bound volumes that are not everywhere.
    bound: Vec<Arc<Object>>,
    /// Claims that wait for their first consumer.
    waiting: Vec<Arc<Object>>,
}

/// Looks at the claims of a pod; an error says why it can be nowhere.
pub fn look(pod: &Value, view: &View<'_>) -> Result<Volumes, String> {
    let mut volumes = Volumes { bound: Vec::new(), waiting: Vec::new() };
    for key in claims_of(pod) {
        let Some(claim) = view.get(&resources::claims(), &key) else {
            return Err(format!("persistentvolumeclaim \"{}\" not found", key.name));
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

/// Whether a claim's class waits with binding until a pod wants the volume.
pub fn waits_for_consumer(claim: &Value, view: &View<'_>) -> bool {
    let class = claim.str_at(&["spec", "storageClassName"]).unwrap_or_default();
    let key = Key { namespace: String::new(), name: class.to_owned() };
    let class = view.get(&resources::storage_classes(), &key);
    class.is_some_and(|class| class.str_at(&["volumeBindingMode"]) == Some("WaitForFirstConsumer"))
}

impl Volumes {
    /// Why the pod may not be on a node.
    pub fn misfit(&self, node: &Value) -> Option<Misfit> {
        let reaches = |volume: &Arc<Object>| {
            let required = volume.at(&["spec", "nodeAffinity", "required"]);
            let as_pod = json!({"spec": {"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": required}}}});
            required.is_none() || affinity::wants_node(&as_pod, node)
        };
        (!self.bound.iter().all(reaches))
            .then(|| Misfit::lasting("node(s) didn't match PersistentVolume's node affinity"))
    }

    /// Tells where the volumes are wanted that wait for it; nothing if none waits or all know.
    pub fn select(&self, node: &str) -> Vec<Write> {
        let selected = self.waiting.iter().map(|claim| {
            let mut object = claim.value().clone();
            object["metadata"]["annotations"][SELECTED_NODE] = node.into();
            Write::Update { resource: resources::claims(), object }
        });
        selected.collect()
    }
}
