//! ReplicaSet and ReplicationController: so many pods of one template (apps/v1, core/v1).

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tiphys_apiserver::Object;
use tiphys_value::{GroupVersionResource, ObjectExt};

use super::{
    adoption,
    workload::{
        Availability, BURST, count, created, delete_pod, deleted, failed_create, going_first, is_active,
        is_ready, stable_suffix,
    },
};
use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    labels::claims,
    object::{pod_from_template, remove_condition, resources, set_condition, status_of, with_status},
};

/// Keeps the pods of one of the two kinds.
pub(super) struct ReplicaController {
    name: &'static str,
    kind: &'static str,
    signature: &'static str,
    resource: fn() -> GroupVersionResource,
}

impl ReplicaController {
    /// For ReplicaSets.
    pub(super) fn of_sets() -> Self {
        Self {
            name: "replicaset",
            kind: "ReplicaSet",
            signature: "replicaset-controller",
            resource: resources::replica_sets,
        }
    }

    /// For ReplicationControllers.
    pub(super) fn of_controllers() -> Self {
        Self {
            name: "replicationcontroller",
            kind: "ReplicationController",
            signature: "replication-controller",
            resource: resources::replication_controllers,
        }
    }

    /// The selector in the form of ReplicaSets; that of ReplicationControllers is a plain map.
    fn selector(&self, set: &Value) -> Value {
        match self.kind {
            "ReplicaSet" => adoption::selector_of(set),
            _ => json!({"matchLabels": set["spec"]["selector"]}),
        }
    }
}

impl Controller for ReplicaController {
    fn name(&self) -> &'static str {
        self.name
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        adoption::keys(change, &(self.resource)(), self.kind, |set| self.selector(set), view)
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(set) = context.view.get(&(self.resource)(), key) else { return Outcome::done() };
        let claims = adoption::claim(&set, &resources::pods(), &self.selector(&set), |_| true, context.view);
        if !claims.adopted.is_empty() && !set.is_terminating() {
            return claims.adopted.into();
        }
        let mut pods = claims.mine;
        let terminating = count(&pods, |pod| pod.is_terminating());
        pods.retain(|pod| is_active(pod));
        // One that is going makes and deletes nothing, and still counts what is left of it.
        let wanted = match set.is_terminating() {
            true => pods.len(),
            false => set.int_at(&["spec", "replicas"]).unwrap_or(1).max(0) as usize,
        };
        let surplus = pods.len().saturating_sub(wanted);
        if surplus > 0 {
            pods.sort_by_cached_key(going_first);
        }
        let availability = Availability::from_owner(&set, context.now);
        let mut status = status(&set, &pods[surplus..], availability);
        if self.kind == "ReplicaSet" {
            // Those that go now are on their way when the status is read.
            status.insert("terminatingReplicas".into(), (terminating + surplus as i64).into());
        }
        let mut writes = if set.is_terminating() { Vec::new() } else { claims.released };
        match context.failure {
            Some(why) => {
                let condition = json!({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": why});
                set_condition(&mut status, condition, context.now);
                writes.push(failed_create(&set, self.signature, why));
            }
            None => remove_condition(&mut status, "ReplicaFailure"),
        }
        // The status goes first: it has to be told even if a pod cannot be made.
        let updated = with_status(&set, status.into());
        writes.extend(updated.map(|object| Write::UpdateStatus { resource: (self.resource)(), object }));
        for pod in &pods[..surplus] {
            writes.extend([delete_pod(pod), deleted(&set, self.signature, pod.name())]);
        }
        let missing = wanted.saturating_sub(pods.len()).min(BURST);
        for name in free_names(&set, missing, context.view) {
            let mut pod = pod_from_template(&set, &set["spec"]["template"], &name);
            pod["metadata"]["generateName"] = format!("{}-", set.name()).into();
            writes.push(Write::Create { resource: resources::pods(), object: pod });
            writes.push(created(&set, self.signature, &name));
        }
        Outcome::from(writes).requeue_after(availability.next(&pods))
    }
}

/// Names for new pods that no pod has, terminating ones included.
fn free_names(set: &Value, number: usize, view: &View<'_>) -> Vec<String> {
    let is_free = |name: &String| {
        let key = Key { namespace: set.namespace().to_owned(), name: name.clone() };
        view.get(&resources::pods(), &key).is_none()
    };
    let names =
        (0u32..).map(|n| format!("{}-{}", set.name(), stable_suffix(&[set.uid(), &n.to_string()], 5)));
    names.filter(is_free).take(number).collect()
}

fn status(set: &Value, pods: &[Arc<Object>], availability: Availability) -> Map<String, Value> {
    let mut status = status_of(set);
    let labels = set.at(&["spec", "template", "metadata", "labels"]).and_then(Value::as_object);
    let selector = json!({"matchLabels": labels});
    let counts = [
        ("replicas", pods.len() as i64),
        ("fullyLabeledReplicas", count(pods, |pod| claims(&selector, pod))),
        ("readyReplicas", count(pods, is_ready)),
        ("availableReplicas", count(pods, |pod| availability.has(pod))),
    ];
    for (field, count) in counts {
        match (field, count) {
            (_, 0) if field != "replicas" => status.remove(field),
            (_, count) => status.insert(field.into(), count.into()),
        };
    }
    status.insert("observedGeneration".into(), set.generation().into());
    status
}
