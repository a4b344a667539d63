//! Defaults that OpenAPI cannot express, kind by kind as the API server sets them on reading an
//! object. Objects are expected to be decoded; parts of another type are left alone.

mod cluster;
mod core;
mod pod;
mod service;
mod workloads;

use serde_json::{Map, Value};
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

type Object = Map<String, Value>;

/// Sets a field that is missing.
fn set(object: &mut Object, key: &str, value: impl Into<Value>) {
    if object.get(key).is_none_or(Value::is_null) {
        object.insert(key.to_owned(), value.into());
    }
}

/// Sets a text field that is missing or empty.
fn set_text(object: &mut Object, key: &str, value: &str) {
    if object.get(key).and_then(Value::as_str).is_none_or(str::is_empty) {
        object.insert(key.to_owned(), value.into());
    }
}

/// The object in a field, if there is one.
fn child<'a>(object: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    object.get_mut(key)?.as_object_mut()
}

/// The object in a field, made if there is none.
fn made<'a>(object: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    set(object, key, Object::new());
    child(object, key)
}

/// The objects in a list.
fn each<'a>(object: &'a mut Object, key: &str) -> impl Iterator<Item = &'a mut Object> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// A text field, empty if it is missing.
fn text<'a>(object: &'a Object, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
