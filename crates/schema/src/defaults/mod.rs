//! Defaults that OpenAPI cannot express, kind by kind as the API server sets them on reading an
//! object. Objects are expected to be decoded; parts of another type are left alone.

mod cluster;
mod core;
mod fields;
mod pod;
mod service;
mod workloads;

use fields::{Object, child, each, object_or_new, set, set_text, text};
use serde_json::Value;
use tiphys_value::GroupVersionKind;

/// Sets every default that the API server sets on a built-in kind; unknown kinds are left alone.
pub fn apply_defaults(gvk: &GroupVersionKind, object: &mut Value) {
    let Some(object) = object.as_object_mut() else { return };
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Pod") => pod::pod(object),
        ("", "PodTemplate") => pod::template(object, "template"),
        ("", "ReplicationController") => workloads::replication_controller(object),
        ("", "Service") => service::service(object),
        ("", "Endpoints") => service::endpoints(object),
        ("discovery.k8s.io", "EndpointSlice") => service::endpoint_slice(object),
        ("", "Secret") => core::secret(object),
        ("", "Namespace") => core::namespace(object),
        ("", "PersistentVolume") => core::volume(object),
        ("", "PersistentVolumeClaim") => core::claim(object),
        ("", "Node") => core::node(object),
        ("", "LimitRange") => core::limit_range(object),
        ("apps", "Deployment") => workloads::deployment(object),
        ("apps", "ReplicaSet") => workloads::replica_set(object),
        ("apps", "StatefulSet") => workloads::stateful_set(object),
        ("apps", "DaemonSet") => workloads::daemon_set(object),
        ("batch", "Job") => workloads::job(object),
        ("batch", "CronJob") => workloads::cron_job(object),
        ("autoscaling", "HorizontalPodAutoscaler") => workloads::autoscaler(&gvk.version, object),
        ("networking.k8s.io", "NetworkPolicy") => service::network_policy(object),
        ("networking.k8s.io", "IngressClass") => service::ingress_class(object),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => cluster::role_binding(object),
        ("storage.k8s.io", "StorageClass") => core::storage_class(object),
        ("storage.k8s.io", "CSIDriver") => core::csi_driver(object),
        ("scheduling.k8s.io", "PriorityClass") => cluster::priority_class(object),
        ("admissionregistration.k8s.io", kind) => cluster::admission(kind, object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => cluster::custom_resource_definition(object),
        ("flowcontrol.apiserver.k8s.io", kind) => cluster::flow_control(kind, object),
        ("apiregistration.k8s.io", "APIService") => cluster::api_service(object),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
