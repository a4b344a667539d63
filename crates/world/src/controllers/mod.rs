//! The controllers, one file each.

mod adoption;
mod autoscaler;
mod block_storage;
pub(crate) mod cron_job;
mod daemon_set;
mod deployment;
mod disruption_budget;
mod endpoints;
mod endpoints_mirror;
mod ephemeral_volume;
mod event;
mod eviction;
mod garbage_collection;
mod ingress;
mod job;
pub(crate) mod kubelet;
mod namespace;
mod node;
mod operator;
mod policy_engine;
mod quota;
mod replica_set;
mod revision;
mod scheduler;
mod service;
mod stateful_set;
mod status_shape;
mod volume;
mod volume_claims;
pub(crate) mod workload;

use crate::Controller;

/// Every controller, in the order in which they take their turns.
pub(crate) fn all() -> Vec<Box<dyn Controller>> {
    vec![
        Box::new(namespace::NamespaceController),
        Box::new(garbage_collection::GarbageCollector),
        Box::new(node::NodeController),
        Box::new(eviction::TaintEviction),
        Box::new(cron_job::CronJobController),
        Box::new(deployment::DeploymentController),
        Box::new(replica_set::ReplicaController::of_sets()),
        Box::new(replica_set::ReplicaController::of_controllers()),
        Box::new(stateful_set::StatefulSetController),
        Box::new(daemon_set::DaemonSetController),
        Box::new(job::JobController),
        Box::new(job::OrphanController),
        Box::new(ephemeral_volume::EphemeralVolumeController),
        Box::new(volume_claims::ClaimController),
        Box::new(volume::VolumeController),
        Box::new(scheduler::Scheduler),
        Box::new(kubelet::Kubelet),
        Box::new(service::ServiceController),
        Box::new(endpoints::EndpointsController),
        Box::new(endpoints_mirror::EndpointsMirrorController),
        Box::new(ingress::IngressController),
        Box::new(disruption_budget::DisruptionBudgetController),
        Box::new(autoscaler::AutoscalerController),
        Box::new(quota::QuotaController),
        Box::new(operator::OperatorController),
        Box::new(policy_engine::PolicyEngine),
        Box::new(event::EventController),
    ]
}
