//! ReplicaSet: as many pods as it asks for (apps/v1 ReplicaSet).

use serde_json::json;
use tiphys_value::ObjectExt;

use super::{
    own_or_owner,
    workload::{count, delete_pod, is_active, is_ready, pods_of, stable_suffix},
};
use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    object::{pod_from_template, resources, status_of, with_status},
};

/// Keeps the number of a ReplicaSet's pods.
pub struct ReplicaSetController;

impl Controller for ReplicaSetController {
    fn name(&self) -> &'static str {
        "replicaset"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        own_or_owner(change, &resources::replica_sets(), "ReplicaSet")
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(set) = context.view.get(&resources::replica_sets(), key) else { return Outcome::done() };
        if set.is_terminating() {
            return Outcome::done();
        }
        let mut pods = pods_of(&set, context.view);
        pods.retain(|pod| is_active(pod));
        let wanted = set.int_at(&["spec", "replicas"]).unwrap_or(1).max(0) as usize;
        let mut writes = Vec::new();
        if pods.len() < wanted {
            let taken = context.view.list(&resources::pods(), Some(set.namespace()));
            let is_free = |name: &str| taken.iter().all(|pod| pod.name() != name);
            let names = (0..).map(|number: u32| pod_name(set.name(), set.uid(), number));
            for name in names.filter(|name| is_free(name)).take(wanted - pods.len()) {
                let pod = pod_from_template(&set, &set["spec"]["template"], &name);
                writes.push(Write::Create { resource: resources::pods(), object: pod });
            }
        }
        // Pods that are not Ready go first, as in Kubernetes.
        pods.sort_by_key(|pod| is_ready(pod));
        let surplus = pods.len().saturating_sub(wanted);
        writes.extend(pods.iter().take(surplus).map(|pod| delete_pod(pod)));
        let kept = &pods[surplus..];
        let mut status = status_of(&set);
        status.insert("replicas".into(), json!(kept.len()));
        status.insert("fullyLabeledReplicas".into(), json!(kept.len()));
        for field in ["readyReplicas", "availableReplicas"] {
            match count(kept, is_ready) {
                0 => status.remove(field),
                ready => status.insert(field.into(), json!(ready)),
            };
        }
        status.insert("observedGeneration".into(), json!(set.generation()));
        let updated = with_status(&set, status.into());
        writes.extend(
            updated.map(|object| Write::UpdateStatus { resource: resources::replica_sets(), object }),
        );
        writes.into()
    }
}

fn pod_name(set: &str, uid: &str, number: u32) -> String {
    format!("{set}-{}", stable_suffix(&[uid, &number.to_string()], 5))
}
