//! What differs between kinds when they are written: which parts a write may set, and validation.

use tiphys_schema::{
    ErrorList, FieldError, Path, validate_crd, validate_create, validate_status_update, validate_update,
};
use tiphys_value::{Map, ObjectExt, Value, json};

use super::At;
use crate::{ApiServer, meta, registry::Resource, rfc3339_seconds};

/// Built-in kinds whose `metadata.generation` counts changes of the desired state.
const WITH_GENERATION: &[&str] = &[
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "ReplicationController",
    "Job",
    "CronJob",
    "Pod",
    "Ingress",
    "IngressClass",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "CustomResourceDefinition",
    "FlowSchema",
    "PriorityLevelConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "EndpointSlice",
    "PriorityClass",
    "DeviceClass",
    "ResourceSlice",
];

/// Pods are bound to nodes by their `binding` only.
const POD_UPDATES: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Kinds whose first status is not empty.
fn initial_status(kind: &str) -> Value {
    match kind {
        "Namespace" => json!({"phase": "Active"}),
        "Pod" => json!({"phase": "Pending"}),
        "PersistentVolume" | "PersistentVolumeClaim" => json!({"phase": "Pending"}),
        "Service" => json!({"loadBalancer": {}}),
        "Ingress" => json!({"loadBalancer": {}}),
        "DaemonSet" => {
            json!({"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0})
        }
        "Deployment" | "Job" | "CronJob" | "Node" | "ResourceQuota" | "CertificateSigningRequest" => {
            json!({})
        }
        "ReplicaSet" | "ReplicationController" => json!({"replicas": 0}),
        "StatefulSet" => json!({"replicas": 0, "availableReplicas": 0}),
        "PodDisruptionBudget" => {
            json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0})
        }
        "HorizontalPodAutoscaler" => json!({"currentMetrics": null, "desiredReplicas": 0}),
        _ => json!({}),
    }
}

fn has_status(resource: &Resource) -> bool {
    resource.subresource("status").is_some()
}

/// Sets what the server decides when an object comes into being.
pub(super) fn prepare_create(server: &ApiServer, resource: &Resource, object: &mut Value) {
    for key in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"] {
        meta::set(object, key, "");
    }
    meta::set(object, "uid", &server.entropy().uuid());
    meta::set(object, "creationTimestamp", &rfc3339_seconds(server.now()));
    if counts_generations(resource) {
        meta::metadata_mut(object).insert("generation".into(), 1.into());
    }
    if has_status(resource) {
        drop_status(resource, object);
    }
    match resource.gvk.kind.as_str() {
        "Pod" if resource.custom.is_none() => {
            let class = super::pod::qos_class(object);
            object["status"]["qosClass"] = class.into();
        }
        "Service" if resource.custom.is_none() => super::service::complete(object, None),
        "Namespace" if resource.custom.is_none() => {
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            let name = object.name().to_owned();
            label(object, "kubernetes.io/metadata.name", &name);
        }
        "APIService" if object.at(&["spec", "service"]).is_none() => {
            let message = "Local APIServices are always available";
            let condition = json!({"type": "Available", "status": "True", "reason": "Local", "message": message, "lastTransitionTime": rfc3339_seconds(server.now())});
            object["status"] = json!({"conditions": [condition]});
        }
        "CustomResourceDefinition" if resource.custom.is_none() => {
            object["status"] = json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored_versions(object)});
        }
        _ => {}
    }
}

fn stored_versions(crd: &Value) -> Vec<Value> {
    super::items(crd, "/spec/versions").filter(|v| v["storage"] == true).map(|v| v["name"].clone()).collect()
}

fn drop_status(resource: &Resource, object: &mut Value) {
    let Some(root) = object.as_object_mut() else { return };
    root.remove("status");
    // A mirror of what the kubelet runs keeps its status; everything else starts empty.
    if resource.custom.is_none() {
        root.insert("status".into(), initial_status(&resource.gvk.kind));
    }
}

fn label(object: &mut Value, key: &str, value: &str) {
    let labels = meta::metadata_mut(object).entry("labels").or_insert_with(|| Value::Object(Map::new()));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(key.into(), value.into());
    }
}

fn counts_generations(resource: &Resource) -> bool {
    resource.custom.is_some() || WITH_GENERATION.contains(&resource.gvk.kind.as_str())
}

/// Takes over from the stored object what this write may not change.
pub(super) fn prepare_update(at: &At, object: &mut Value, current: &Value) {
    for key in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
    ] {
        if key != "generateName" || object.at(&["metadata", key]).is_none() {
            meta::copy(object, current, key);
        }
    }
    match at.subresource.as_deref() {
        Some("status") => keep_all_but_status(at, object, current),
        Some("finalize") => keep_all_but_finalizers(object, current),
        Some("approval") => keep_part(object, current, "spec"),
        Some(_) => {}
        None => {
            if has_status(&at.resource) {
                keep_part(object, current, "status");
            }
            if at.is("", "services") {
                super::service::complete(object, Some(current));
            }
            if at.is("", "namespaces") {
                keep_namespace(object, current);
            }
            if at.is("apiextensions.k8s.io", "customresourcedefinitions") {
                keep_stored_versions(object);
            }
            bump_generation(at, object, current);
        }
    }
}

fn keep_part(object: &mut Value, current: &Value, part: &str) {
    match current.get(part) {
        Some(value) => object[part] = value.clone(),
        None => drop(object.as_object_mut().map(|root| root.remove(part))),
    }
}

/// A status write changes nothing else, except, for built-in kinds, metadata beside labels and deletion.
fn keep_all_but_status(at: &At, object: &mut Value, current: &Value) {
    let status = object.get("status").cloned();
    let metadata = object.get("metadata").cloned();
    *object = current.clone();
    match status {
        Some(status) => object["status"] = status,
        None => drop(object.as_object_mut().map(|root| root.remove("status"))),
    }
    // Built-in kinds let a status write change annotations, labels and finalizers; custom ones do not.
    let kept: &[&str] = if at.resource.custom.is_some() {
        &["managedFields"]
    } else {
        &["managedFields", "annotations", "labels", "finalizers"]
    };
    if let Some(metadata) = metadata {
        let from = json!({ "metadata": metadata });
        for key in kept {
            meta::copy(object, &from, key);
        }
    }
}

fn keep_all_but_finalizers(object: &mut Value, current: &Value) {
    let finalizers = object.at(&["spec", "finalizers"]).cloned();
    let managed = json!({"metadata": {"managedFields": object.at(&["metadata", "managedFields"]).cloned()}});
    *object = current.clone();
    if object.get("spec").is_none() {
        object["spec"] = json!({});
    }
    match finalizers {
        Some(finalizers) => object["spec"]["finalizers"] = finalizers,
        None => drop(object["spec"].as_object_mut().map(|spec| spec.remove("finalizers"))),
    }
    if !managed["metadata"]["managedFields"].is_null() {
        meta::copy(object, &managed, "managedFields");
    }
}

fn keep_namespace(object: &mut Value, current: &Value) {
    keep_part(object, current, "spec");
    let name = object.name().to_owned();
    label(object, "kubernetes.io/metadata.name", &name);
}

/// Every version that was ever the storage version stays in `status.storedVersions`.
fn keep_stored_versions(crd: &mut Value) {
    let now = stored_versions(crd);
    if let Some(list) = crd.pointer_mut("/status/storedVersions").and_then(Value::as_array_mut) {
        for version in now {
            if !list.contains(&version) {
                list.push(version);
            }
        }
    }
}

fn bump_generation(at: &At, object: &mut Value, current: &Value) {
    if !counts_generations(&at.resource) {
        return;
    }
    let ignores_status = has_status(&at.resource);
    let desired = |value: &Value| {
        let mut root = value.as_object().cloned().unwrap_or_default();
        root.remove("metadata");
        if ignores_status {
            root.remove("status");
        }
        root
    };
    if desired(object) != desired(current) {
        let next = current.generation() + 1;
        meta::metadata_mut(object).insert("generation".into(), next.into());
    }
}

/// Whether an update may leave out `metadata.resourceVersion`.
pub(super) fn allows_unconditional_update(resource: &Resource) -> bool {
    resource.custom.is_none()
        && !matches!(
            resource.gvk.kind.as_str(),
            "CustomResourceDefinition"
                | "APIService"
                | "Lease"
                | "PriorityLevelConfiguration"
                | "FlowSchema"
                | "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "PodDisruptionBudget"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "ServiceCIDR"
                | "IPAddress"
        )
}

/// Whether replacing an object that is not there creates it.
pub(super) fn creates_on_update(resource: &Resource) -> bool {
    resource.custom.is_none()
        && matches!(
            resource.gvk.kind.as_str(),
            "Role"
                | "RoleBinding"
                | "ClusterRole"
                | "ClusterRoleBinding"
                | "Lease"
                | "Endpoints"
                | "Event"
                | "LimitRange"
                | "Service"
                | "Node"
        )
}

/// Checks the CEL rules of a definition's schemas that are new or changed.
fn check_rules(crd: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    if old.is_some_and(|old| old["spec"] == crd["spec"]) {
        return;
    }
    for (schema, path) in tiphys_schema::crd_schemas(crd) {
        errors.extend(tiphys_expr::cel::Rules::check(schema, &path));
    }
}

/// Faults of an object by the rules of its kind.
pub(super) fn validate(at: &At, object: &Value, old: Option<&Value>) -> ErrorList {
    if let Some(custom) = &at.resource.custom {
        let mut errors =
            custom.schema.as_ref().map_or_else(ErrorList::new, |schema| schema.validate(object, old));
        if let Some(rules) = custom.rules.as_ref().filter(|_| !tiphys_schema::prevents_rules(&errors)) {
            errors.extend(rules.validate(object, old));
        }
        return errors;
    }
    let gvk = object.gvk();
    if gvk.kind == "CustomResourceDefinition" && !at.is_status() {
        let mut errors = validate_crd(object, old);
        check_rules(object, old, &mut errors);
        return errors;
    }
    if let Some(old) = old.filter(|_| at.is("", "pods") && at.subresource.is_none())
        && object.str_at(&["spec", "nodeName"]).unwrap_or_default()
            != old.str_at(&["spec", "nodeName"]).unwrap_or_default()
    {
        return ErrorList(vec![FieldError::forbidden(&Path::new("spec"), POD_UPDATES)]);
    }
    match old {
        None => validate_create(&gvk, object),
        Some(old) if at.is_status() => validate_status_update(&gvk, object, old),
        Some(old) => validate_update(&gvk, object, old),
    }
}
