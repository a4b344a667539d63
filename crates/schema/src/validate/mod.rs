//! Validation of built-in kinds with the API server's texts. `metadata` is the caller's: it is the
//! same for every kind.

pub(crate) mod admission;
mod autoscaler;
mod config;
mod event;
mod field_checks;
mod flow;
mod internal;
mod jobs;
mod limits;
pub mod names;
mod network;
mod placement;
mod pod;
mod policies;
mod rbac;
mod security;
mod service;
mod small_kinds;
mod storage;
mod system;
mod unified_diff;
mod workloads;

use field_checks::{
    annotations, domain_path, faulty, immutable, is_empty_selector, labels, list, not_negative,
    not_negative_field, one_of, selector, selector_fault, text,
};
use serde_json::Value;
use tiphys_value::GroupVersionKind;
pub use workloads::STATEFUL_SET_CHANGEABLE;

use crate::{ErrorList, FieldError, Path};

/// Faults of an object that is to be created, after defaulting, in the server's order.
pub fn validate_create(gvk: &GroupVersionKind, object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, path) = (&object["spec"], Path::new("spec"));
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Pod") => {
            pod::pod(object, &mut errors);
            pod::new_pod(object, &mut errors);
        }
        ("apps", "Deployment") => workloads::deployment(spec, &path, &mut errors),
        ("apps", "ReplicaSet") => workloads::replica_set(spec, &path, &mut errors),
        ("apps", "StatefulSet") => workloads::stateful_set(spec, true, &path, &mut errors),
        ("apps", "DaemonSet") => workloads::daemon_set(spec, &path, &mut errors),
        ("batch", "Job") => jobs::job(object, &mut errors),
        ("batch", "CronJob") => {
            jobs::cron_job(spec, &path, &mut errors);
            // The name of a job is longer by eleven characters.
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if name.len() > 52 {
                let detail = "must be no more than 52 characters";
                errors.push(FieldError::invalid(&Path::new("metadata.name"), name, detail));
            }
        }
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler::autoscaler(spec, &path, &mut errors),
        ("policy", "PodDisruptionBudget") => workloads::disruption_budget(spec, &path, &mut errors),
        ("", "ReplicationController") => workloads::replication_controller(spec, &path, &mut errors),
        ("", "PodTemplate") => pod::template(&object["template"], &Path::new("template"), &mut errors),
        ("", "Node") => small_kinds::node(object, &mut errors),
        ("apps", "ControllerRevision") => system::revision(object, &mut errors),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            system::signing_request(spec, &path, &mut errors);
        }
        ("node.k8s.io", "RuntimeClass") => system::runtime_class(object, &mut errors),
        ("apiregistration.k8s.io", "APIService") => system::api_service(object, &mut errors),
        ("storage.k8s.io", "VolumeAttachment") => system::attachment(spec, &path, &mut errors),
        ("storage.k8s.io", "CSINode") => system::csi_node(spec, &path, &mut errors),
        ("storage.k8s.io", "CSIDriver") => system::csi_driver(spec, &path, &mut errors),
        ("storage.k8s.io", "CSIStorageCapacity") => system::storage_capacity(object, &mut errors),
        ("storage.k8s.io", "VolumeAttributesClass") => system::attributes_class(object, &mut errors),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => flow::schema(object, &mut errors),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => flow::level(object, &mut errors),
        ("", "Service") => service::service(object, &mut errors),
        ("networking.k8s.io", "Ingress") => network::new_ingress(object, &mut errors),
        ("networking.k8s.io", "NetworkPolicy") => network::policy(spec, &path, &mut errors),
        ("networking.k8s.io", "IPAddress") => network::ip_address(spec, &path, &mut errors),
        ("networking.k8s.io", "ServiceCIDR") => network::service_cidr(spec, &path, &mut errors),
        ("", "ConfigMap") => config::config_map(object, &mut errors),
        ("", "Secret") => config::secret(object, &mut errors),
        ("", "PersistentVolumeClaim") => storage::claim(spec, &path, &mut errors),
        ("storage.k8s.io", "StorageClass") => storage::class(object, &mut errors),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => rbac::role(&gvk.kind, object, &mut errors),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            rbac::binding(&gvk.kind, object, &mut errors);
        }
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => {
            admission::webhooks(object, false, &mut errors);
        }
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => {
            admission::webhooks(object, true, &mut errors);
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
            policies::policy(object, &mut errors);
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            policies::binding(spec, &path, &mut errors);
        }
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => {
            policies::mutating_policy(spec, &path, &mut errors);
        }
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding") => {
            policies::common_binding(spec, &path, &mut errors);
        }
        ("", "ResourceQuota") => limits::quota(spec, &path, &mut errors),
        ("", "LimitRange") => limits::range(spec, &path, &mut errors),
        ("", "PersistentVolume") => small_kinds::volume(object, &path, &mut errors),
        ("", "Endpoints") => small_kinds::endpoints(object, &mut errors),
        ("scheduling.k8s.io", "PriorityClass") => small_kinds::priority_class(object, &mut errors),
        ("networking.k8s.io", "IngressClass") => small_kinds::ingress_class(spec, &path, &mut errors),
        ("coordination.k8s.io", "Lease") => small_kinds::lease(spec, &path, &mut errors),
        ("discovery.k8s.io", "EndpointSlice") => small_kinds::endpoint_slice(object, &mut errors),
        _ => {}
    }
    errors
}

/// Faults of an update, after defaulting: those of the new object and changes that are not allowed.
pub fn validate_update(gvk: &GroupVersionKind, new: &Value, old: &Value) -> ErrorList {
    if (gvk.group.as_str(), gvk.kind.as_str()) == ("", "Pod") {
        return pod::update(new, old);
    }
    let first = match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apps", "DaemonSet") => Some("/spec/selector"),
        ("networking.k8s.io", "IngressClass") => Some("/spec/controller"),
        _ => None,
    };
    if let Some(pointer) = first {
        let mut errors = ErrorList::new();
        immutable(new, old, pointer, &mut errors);
        errors.extend(validate_create(gvk, new));
        return errors;
    }
    let mut errors = match (gvk.group.as_str(), gvk.kind.as_str()) {
        // What is stored may be older than a rule about names; its immutable parts are not judged again.
        ("scheduling.k8s.io", "PriorityClass")
        | ("apps", "ControllerRevision" | "StatefulSet")
        | ("storage.k8s.io", "CSIStorageCapacity" | "VolumeAttributesClass") => ErrorList::new(),
        _ => validate_create(gvk, new),
    };
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet") => immutable(new, old, "/spec/selector", &mut errors),
        ("apps", "StatefulSet") => {
            workloads::stateful_set(&new["spec"], false, &Path::new("spec"), &mut errors);
            workloads::stateful_set_update(new, old, &mut errors);
        }
        ("batch", "Job") => jobs::job_update(new, old, &mut errors),
        ("", "Service") => service::update(new, old, &mut errors),
        ("", "ConfigMap" | "Secret") => config::update(new, old, &mut errors),
        ("", "PersistentVolumeClaim") => storage::claim_update(new, old, &mut errors),
        ("", "PersistentVolume") => small_kinds::volume_update(new, old, &mut errors),
        ("storage.k8s.io", "StorageClass") => storage::class_update(new, old, &mut errors),
        ("apps", "ControllerRevision") => system::revision_update(new, old, &mut errors),
        ("node.k8s.io", "RuntimeClass") => immutable(new, old, "/handler", &mut errors),
        ("storage.k8s.io", "VolumeAttachment") => immutable(new, old, "/spec", &mut errors),
        ("storage.k8s.io", "CSIDriver") => system::csi_driver_update(new, old, &mut errors),
        ("storage.k8s.io", "CSIStorageCapacity") => {
            immutable(new, old, "/nodeTopology", &mut errors);
            immutable(new, old, "/storageClassName", &mut errors);
        }
        ("storage.k8s.io", "VolumeAttributesClass") => {
            system::attributes_class_update(new, old, &mut errors);
        }
        ("discovery.k8s.io", "EndpointSlice") => immutable(new, old, "/addressType", &mut errors),
        ("scheduling.k8s.io", "PriorityClass") => small_kinds::priority_class_update(new, old, &mut errors),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding")
            if new["roleRef"] != old["roleRef"] =>
        {
            let path = Path::new("roleRef");
            let of = |key: &str| Value::from(text(&new["roleRef"], key));
            let shown = format!(
                "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
                of("apiGroup"),
                of("kind"),
                of("name")
            );
            errors.push(FieldError::invalid_as(&path, shown, "cannot change roleRef"));
        }
        _ => {}
    }
    errors
}

/// Faults of a pod whose containers get more or less than before.
pub fn validate_resize(new: &Value, old: &Value) -> ErrorList {
    pod::resize(new, old)
}

/// The difference of two values of a struct inside the server, as messages show it.
pub fn internal_difference(name: &str, old: &Value, new: &Value) -> String {
    unified_diff::difference(&internal::indented(name, old), &internal::indented(name, new))
}

/// Faults of an event in its stored form (core/v1); `old` is the stored one on an update. `modern` is given
/// for events that came through `events.k8s.io`, which asks for more: the faults of the metadata.
pub fn validate_event(event: &Value, old: Option<&Value>, modern: Option<ErrorList>) -> ErrorList {
    let mut errors = ErrorList::new();
    event::common(event, modern.is_some(), &mut errors);
    let Some(metadata) = modern else { return errors };
    errors.extend(metadata.0);
    match old {
        Some(old) => event::modern_update(event, old, &mut errors),
        None => event::modern(event, &mut errors),
    }
    errors
}

/// Faults of an update through the `status` subresource: counts below zero.
pub fn validate_status_update(gvk: &GroupVersionKind, new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let _ = old;
    let is_counted = (gvk.group.as_str(), gvk.kind.as_str()) == ("", "ReplicationController");
    if is_counted || matches!(gvk.group.as_str(), "apps" | "batch" | "autoscaling" | "policy") {
        for (name, value) in new["status"].as_object().into_iter().flatten() {
            if value.is_i64() {
                not_negative(value, &Path::new("status").child(name), &mut errors);
            }
        }
    }
    let status = &new["status"];
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apps", "Deployment") => {
            let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
            workloads::counts(status, &parts, "readyReplicas", &mut errors);
        }
        ("apps", "ReplicaSet") | ("", "ReplicationController") => {
            let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
            workloads::counts(status, &parts, "readyReplicas", &mut errors);
        }
        ("apps", "StatefulSet") => {
            let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
            workloads::counts(status, &parts, "status.readyReplicas", &mut errors);
        }
        _ => {}
    }
    errors
}

#[cfg(test)]
mod tests;
