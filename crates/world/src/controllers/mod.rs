//! The controllers, one file each.

mod autoscaler;
mod claim;
mod daemon_set;
mod deployment;
mod disruption_budget;
mod endpoint_slice;
mod garbage;
mod ingress;
mod job;
mod namespace;
mod pod;
mod replica_set;
mod service;
mod stateful_set;
mod workload;

pub use pod::node_address;

use crate::{Change, Controller, Key};
use tiphys_value::{GroupVersionResource, ObjectExt};

/// Every controller, in the order in which they take their turns.
pub fn all() -> Vec<Box<dyn Controller>> {
    vec![
        Box::new(namespace::NamespaceController),
        Box::new(garbage::GarbageCollector),
        Box::new(deployment::DeploymentController),
        Box::new(replica_set::ReplicaSetController),
        Box::new(stateful_set::StatefulSetController),
        Box::new(daemon_set::DaemonSetController),
        Box::new(job::JobController),
        Box::new(claim::ClaimController),
        Box::new(pod::PodController),
        Box::new(service::ServiceController),
        Box::new(endpoint_slice::EndpointSliceController),
        Box::new(ingress::IngressController),
        Box::new(disruption_budget::DisruptionBudgetController),
        Box::new(autoscaler::AutoscalerController),
    ]
}

/// The keys that a change concerns when a controller watches `own` and what objects of kind `kind`
/// control: the object itself, or the owner of the object.
fn own_or_owner(change: &Change, own: &GroupVersionResource, kind: &str) -> Vec<Key> {
    if change.resource == *own {
        return vec![Key::of(&change.object)];
    }
    let owner = crate::object::controller_of(&change.object).filter(|owner| owner["kind"] == kind);
    let name = owner.and_then(|owner| owner.str_at(&["name"]));
    let namespace = change.object.namespace().to_owned();
    name.map(|name| Key { namespace, name: name.to_owned() }).into_iter().collect()
}
