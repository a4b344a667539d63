//! Pods and pod templates: the order of the checks is the API server's.

mod annotations;
mod containers;
mod environment;
mod mounts;
mod network;
mod operating_system;
mod probes;
mod resources;
pub(super) mod sources;
mod update;
mod visit;
mod volumes;

use serde_json::Value;
use visit::every_container;

pub(super) use self::{
    resources::{container_resource_name, quantity, requirements, resource_name_faults},
    update::{resize, update},
};
use super::{faulty, labels, list, names, not_negative_field, one_of, placement, security, text};
use crate::{ErrorList, FieldError, Path};

/// A pod: its annotations and its spec. Names and labels are checked with those of every kind.
pub(super) fn pod(pod: &Value, errors: &mut ErrorList) {
    let (metadata, path) = (&pod["metadata"], Path::new("spec"));
    annotations::of_pod(metadata, &pod["spec"], &Path::new("metadata.annotations"), errors);
    spec(&pod["spec"], Some(metadata), &path, errors);
    account_tokens(&pod["spec"], &path, errors);
    for name in ["containers", "initContainers"] {
        for (at, container) in list(&pod["spec"], name).iter().enumerate() {
            let image = text(container, "image");
            if image.trim() != image {
                let path = path.child(name).index(at).child("image");
                errors.push(FieldError::invalid(
                    &path,
                    image,
                    "must not have leading or trailing whitespace",
                ));
            }
        }
    }
}

/// What only a pod that is new has to keep to.
pub(super) fn new_pod(pod: &Value, errors: &mut ErrorList) {
    let (spec, path) = (&pod["spec"], Path::new("spec"));
    if !list(spec, "ephemeralContainers").is_empty() {
        errors.push(FieldError::forbidden(&path.child("ephemeralContainers"), "cannot be set on create"));
    }
    if !text(spec, "nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&path.child("nodeName"), detail));
    }
    annotations::match_fields(&pod["metadata"], spec, &path, errors);
}

/// A pod template: labels, annotations and spec.
pub(super) fn template(template: &Value, path: &Path, errors: &mut ErrorList) {
    let metadata = &template["metadata"];
    labels(&metadata["labels"], &path.child("labels"), errors);
    super::annotations(&metadata["annotations"], &path.child("annotations"), errors);
    annotations::of_pod(metadata, &template["spec"], &path.child("annotations"), errors);
    let path = path.child("spec");
    spec(&template["spec"], None, &path, errors);
    annotations::match_fields(metadata, &template["spec"], &path, errors);
    if !list(&template["spec"], "ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(&path.child("ephemeralContainers"), detail));
    }
}

/// A spec; `metadata` is given for pods, not for templates.
fn spec(spec: &Value, metadata: Option<&Value>, path: &Path, errors: &mut ErrorList) {
    if spec["terminationGracePeriodSeconds"].is_null() {
        errors.push(FieldError::required(&path.child("terminationGracePeriodSeconds"), ""));
    }
    let volumes = volumes::volumes(list(spec, "volumes"), metadata, &path.child("volumes"), errors);
    resources::claims(spec, metadata, &path.child("resourceClaims"), errors);
    let pod = containers::Pod::new(spec, &volumes);
    containers::containers(&pod, &path.child("containers"), errors);
    containers::init_containers(&pod, &path.child("initContainers"), errors);
    containers::ephemeral_containers(&pod, &path.child("ephemeralContainers"), errors);
    resources::of_pod(spec, path, errors);
    network::host_ports(spec, metadata.is_some(), path, errors);
    let policies = ["Always", "OnFailure", "Never"];
    one_of(text(spec, "restartPolicy"), &policies, &path.child("restartPolicy"), errors);
    let dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(text(spec, "dnsPolicy"), &dns, &path.child("dnsPolicy"), errors);
    labels(&spec["nodeSelector"], &path.child("nodeSelector"), errors);
    security::pod(spec, &path.child("securityContext"), errors);
    placement::affinity(&spec["affinity"], &path.child("affinity"), errors);
    network::dns(spec, &path.child("dnsConfig"), errors);
    gates(spec, path, errors);
    let spread = path.child("topologySpreadConstraints");
    placement::spread(list(spec, "topologySpreadConstraints"), &spread, errors);
    operating_system::host_processes(spec, path, errors);
    own_users(spec, path, errors);
    network::hostname_override(spec, &path.child("hostnameOverride"), errors);
    given_names(spec, path, errors);
    operating_system::fields(spec, path, errors);
    environment::file_volumes(spec, path, errors);
}

/// The fields of a spec that name something, and what stands between them.
fn given_names(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let name = |field: &str, faults: fn(&str) -> Vec<String>, errors: &mut ErrorList| {
        let value = text(spec, field);
        if !value.is_empty() {
            faulty(faults(value), value, &path.child(field), errors);
        }
    };
    name("serviceAccountName", names::dns1123_subdomain, errors);
    name("nodeName", names::dns1123_subdomain, errors);
    let deadline = spec["activeDeadlineSeconds"].as_i64();
    if let Some(seconds) = deadline.filter(|seconds| !(1..=i64::from(i32::MAX)).contains(seconds)) {
        let detail = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(&path.child("activeDeadlineSeconds"), seconds, detail));
    }
    name("hostname", names::dns1123_label, errors);
    name("subdomain", names::dns1123_label, errors);
    placement::tolerations(list(spec, "tolerations"), &path.child("tolerations"), errors);
    network::host_aliases(list(spec, "hostAliases"), &path.child("hostAliases"), errors);
    name("priorityClassName", names::dns1123_subdomain, errors);
    if let Some(class) = spec["runtimeClassName"].as_str() {
        faulty(names::dns1123_subdomain(class), class, &path.child("runtimeClassName"), errors);
    }
    if let Some(policy) = spec["preemptionPolicy"].as_str() {
        let known = ["PreemptLowerPriority", "Never"];
        one_of(policy, &known, &path.child("preemptionPolicy"), errors);
    }
    if spec["overhead"].is_object() {
        resources::overhead(&spec["overhead"], &path.child("overhead"), errors);
    }
}

fn gates(spec: &Value, path: &Path, errors: &mut ErrorList) {
    for (at, gate) in list(spec, "readinessGates").iter().enumerate() {
        let kind = text(gate, "conditionType");
        let path = path.child("readinessGates").index(at).child("conditionType");
        faulty(names::qualified_name(kind), kind, &path, errors);
    }
    let gates = list(spec, "schedulingGates");
    for (at, gate) in gates.iter().enumerate() {
        let (name, path) = (text(gate, "name"), path.child("schedulingGates").index(at));
        faulty(names::qualified_name(name), name, &path, errors);
        if gates[..at].iter().any(|other| text(other, "name") == name) {
            errors.push(FieldError::duplicate(&path, name));
        }
    }
}

/// A pod with users of its own shares no namespace of the host.
fn own_users(spec: &Value, path: &Path, errors: &mut ErrorList) {
    if spec["hostUsers"] != false {
        return;
    }
    const WHY: &str = "when `hostUsers` is false";
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec[field] == true {
            errors.push(FieldError::forbidden(&path.child(shown), WHY));
        }
    }
    for (container, path) in every_container(spec, path) {
        if !list(container, "volumeDevices").is_empty() {
            errors.push(FieldError::forbidden(&path.child("volumeDevices"), WHY));
        }
    }
}

/// Tokens are of an account that is named.
fn account_tokens(spec: &Value, path: &Path, errors: &mut ErrorList) {
    if !text(spec, "serviceAccountName").is_empty() {
        return;
    }
    for (at, volume) in list(spec, "volumes").iter().enumerate() {
        for (index, source) in list(&volume["projected"], "sources").iter().enumerate() {
            if source["serviceAccountToken"].is_object() {
                let path = path.child("volumes").index(at).child("projected").child("sources").index(index);
                let detail = "must not be specified when serviceAccountName is not set";
                errors.push(FieldError::forbidden(&path.child("serviceAccountToken"), detail));
            }
        }
    }
}
