//! What differs between kinds when they are written: which parts a write may set, and validation.

use tiphys_schema::{
    ErrorList, FieldError, FieldRule, Path, validate_crd, validate_create, validate_resize,
    validate_status_update, validate_update,
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
    "PodTemplate",
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

/// Where a field of an older version of `DaemonSet` lives on: how often its template has changed.
pub(super) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Counts the changes of a DaemonSet's template; `current` is the stored one.
pub(super) fn count_template(at: &At, object: &mut Value, current: Option<&Value>) {
    if !at.is("apps", "daemonsets") {
        return;
    }
    let before = current.map_or(0, |current| {
        current.annotation(TEMPLATE_GENERATION).and_then(|text| text.parse::<i64>().ok()).unwrap_or(1)
    });
    let is_same = current.is_some_and(|current| current["spec"]["template"] == object["spec"]["template"]);
    let number = if is_same { before } else { before + 1 };
    meta::annotations_mut(object).insert(TEMPLATE_GENERATION.into(), number.to_string().into());
}

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
        "VolumeAttachment" => json!({"attached": false}),
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
    // A node may say of itself what it is from the start.
    if has_status(resource) && (resource.custom.is_some() || resource.gvk.kind != "Node") {
        drop_status(resource, object);
    }
    match resource.gvk.kind.as_str() {
        "Pod" if resource.custom.is_none() => {
            if object.int_at(&["spec", "terminationGracePeriodSeconds"]).is_some_and(|seconds| seconds < 0) {
                object["spec"]["terminationGracePeriodSeconds"] = 1.into();
            }
            super::pod::select_by_own_labels(object);
            let class = super::pod::qos_class(object);
            object["status"]["qosClass"] = class.into();
        }
        "Service" if resource.custom.is_none() => super::service::complete(object, None),
        "Job" if resource.custom.is_none() => select_own_pods(object),
        "PersistentVolume" if resource.custom.is_none() => {
            object["status"]["lastPhaseTransitionTime"] = rfc3339_seconds(server.now()).into();
        }
        "PersistentVolumeClaim" if resource.custom.is_none() => name_source_twice(object),
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

/// Who asks for a certificate is said by the server, not by the request.
pub(super) fn name_requester(at: &At, user: &crate::auth::User, object: &mut Value) {
    if !at.is("certificates.k8s.io", "certificatesigningrequests") {
        return;
    }
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for key in ["username", "uid", "groups", "extra"] {
        spec.remove(key);
    }
    spec.insert("username".into(), user.name.as_str().into());
    if !user.uid.is_empty() {
        spec.insert("uid".into(), user.uid.as_str().into());
    }
    if !user.groups.is_empty() {
        spec.insert("groups".into(), user.groups.clone().into());
    }
    if !user.extra.is_empty() {
        spec.insert("extra".into(), json!(user.extra));
    }
}

/// Works out what depends on what admission made of a new object.
pub(super) fn after_admission(at: &At, object: &mut Value) {
    if at.is("", "pods") && object["status"].is_object() {
        object["status"]["qosClass"] = super::pod::qos_class(object).into();
    }
}

/// A claim's source has two names, of which one is equivalent to the other within a namespace.
fn name_source_twice(claim: &mut Value) {
    drop_sources(claim);
    for (from, to) in [("dataSourceRef", "dataSource"), ("dataSource", "dataSourceRef")] {
        let source = claim.at(&["spec", from]).filter(|source| source.get("namespace").is_none()).cloned();
        if let Some(source) = source.filter(|_| claim.at(&["spec", to]).is_none()) {
            claim["spec"][to] = source;
        }
    }
}

/// Sources that no claim can have: of another namespace, which is behind a feature gate that is off, and by
/// the old name anything but claims and snapshots.
fn drop_sources(claim: &mut Value) {
    let of = |claim: &Value, path: &[&str]| claim.str_at(path).unwrap_or_default().to_owned();
    let has_new = claim.at(&["spec", "dataSourceRef"]).is_some_and(Value::is_object);
    let known = matches!(
        (
            of(claim, &["spec", "dataSource", "apiGroup"]).as_str(),
            of(claim, &["spec", "dataSource", "kind"]).as_str()
        ),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    );
    let crosses = !of(claim, &["spec", "dataSourceRef", "namespace"]).is_empty();
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if crosses {
        spec.remove("dataSourceRef");
    }
    if !known && (crosses || !has_new) {
        spec.remove("dataSource");
    }
}

/// A job without labels has those of its template. Says whether it got them.
pub(super) fn take_template_labels(at: &At, job: &mut Value) -> bool {
    let is_bare = at.is("batch", "jobs")
        && job["metadata"]["labels"].as_object().is_none_or(|labels| labels.is_empty());
    let labels =
        job.at(&["spec", "template", "metadata", "labels"]).filter(|labels| labels.is_object()).cloned();
    let Some(labels) = labels.filter(|_| is_bare) else { return false };
    meta::metadata_mut(job).insert("labels".into(), labels);
    true
}

/// A job selects its pods by labels of its own, unless its author knows better.
fn select_own_pods(job: &mut Value) {
    if job["spec"]["manualSelector"] == true || !job["spec"]["template"].is_object() {
        return;
    }
    let (name, uid) = (job.name().to_owned(), job.uid().to_owned());
    let labels = json!({
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
        "controller-uid": uid, "job-name": name,
    });
    let template = &mut job["spec"]["template"];
    for (key, value) in labels.as_object().into_iter().flatten() {
        label(template, key, value.as_str().unwrap_or_default());
    }
    let all = job["spec"]["template"]["metadata"]["labels"].clone();
    if job.at(&["metadata", "labels"]).is_none() {
        meta::metadata_mut(job).insert("labels".into(), all);
    }
    let selector = &mut job["spec"]["selector"];
    if !selector.is_object() {
        *selector = json!({});
    }
    selector["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid.into();
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
    meta::set(object, "selfLink", "");
    match at.subresource.as_deref() {
        Some("status") => keep_all_but_status(at, object, current),
        Some("finalize") => keep_all_but_finalizers(object, current),
        Some("approval") => keep_part(object, current, "spec"),
        Some("ephemeralcontainers") => {
            keep_all_but_ephemeral(object, current);
            bump_generation(at, object, current);
        }
        Some("resize") => {
            keep_all_but_resources(object, current);
            bump_generation(at, object, current);
        }
        Some(_) => {}
        None => {
            if has_status(&at.resource) {
                keep_part(object, current, "status");
            }
            if at.is("", "pods") {
                keep_priority(object, current);
            }
            if at.is("", "services") {
                super::service::complete(object, Some(current));
            }
            if at.is("", "namespaces") {
                keep_namespace(object, current);
            }
            if at.is("certificates.k8s.io", "certificatesigningrequests") {
                keep_part(object, current, "spec");
            }
            if at.is("apiextensions.k8s.io", "customresourcedefinitions") {
                keep_stored_versions(object);
            }
            bump_generation(at, object, current);
        }
    }
}

/// What admission made of a pod's priority stays where a writer does not say it again.
fn keep_priority(pod: &mut Value, current: &Value) {
    for field in ["priority", "preemptionPolicy"] {
        if let (None, Some(value)) = (pod.at(&["spec", field]), current.at(&["spec", field])) {
            pod["spec"][field] = value.clone();
        }
    }
}

/// Debugging adds containers beside those of the pod.
fn keep_all_but_ephemeral(pod: &mut Value, current: &Value) {
    let added = pod.at(&["spec", "ephemeralContainers"]).cloned();
    keep_part(pod, current, "spec");
    keep_part(pod, current, "status");
    match added {
        Some(added) => pod["spec"]["ephemeralContainers"] = added,
        None => drop(pod["spec"].as_object_mut().map(|spec| spec.remove("ephemeralContainers"))),
    }
}

/// A resize changes what containers get and nothing else; other containers than before are refused later.
fn keep_all_but_resources(pod: &mut Value, current: &Value) {
    let names = |pod: &Value, list: &str| -> Vec<Value> {
        super::items(pod, &format!("/spec/{list}")).map(|container| container["name"].clone()).collect()
    };
    let lists = ["containers", "initContainers"];
    if lists.iter().any(|list| names(pod, list) != names(current, list)) {
        return;
    }
    let before = pod["spec"].clone();
    keep_part(pod, current, "spec");
    keep_part(pod, current, "status");
    for list in lists {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (at, container) in containers.enumerate() {
            for field in ["resources", "resizePolicy"] {
                match before[list][at].get(field) {
                    Some(value) => container[field] = value.clone(),
                    None => drop(container.as_object_mut().map(|fields| fields.remove(field))),
                }
            }
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
    let kept: &[&str] = if at.resource.custom.is_some() || super::managed_fields::resets_metadata(at) {
        &["managedFields"]
    } else if at.is("apps", "deployments") {
        &["managedFields", "annotations", "finalizers"]
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
    // That of a PriorityClass is set once.
    if !counts_generations(&at.resource) || at.is("scheduling.k8s.io", "priorityclasses") {
        return;
    }
    let ignores_status = has_status(&at.resource);
    let ty = super::managed_fields::type_of(at, &object.gvk()).filter(|_| at.resource.custom.is_none());
    let desired = |value: &Value| {
        let mut value = value.clone();
        // An empty list says no more than none.
        if let Some(ty) = ty {
            tiphys_schema::forget_empty(ty, &mut value);
        }
        let mut root = value.as_object().cloned().unwrap_or_default();
        root.remove("metadata");
        if ignores_status {
            root.remove("status");
        }
        root
    };
    let part = match at.resource.gvk.kind.as_str() {
        "Deployment" => "annotations",
        "EndpointSlice" => "labels",
        _ => "",
    };
    let is_relabelled = !part.is_empty() && object["metadata"][part] != current["metadata"][part];
    if is_relabelled || desired(object) != desired(current) {
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
                | "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "PodDisruptionBudget"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
                | "LeaseCandidate"
                | "RuntimeClass"
                | "ClusterTrustBundle"
                | "PodCertificateRequest"
                | "StorageVersion"
                | "StorageVersionMigration"
                | "CSIDriver"
                | "CSINode"
                | "CSIStorageCapacity"
                | "VolumeAttachment"
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
                | "RuntimeClass"
                | "LeaseCandidate"
        )
}

/// Containers that are added to a running pod keep their names apart, and stay.
/// What containers for debugging cannot have.
const NOT_EPHEMERAL: [&str; 6] =
    ["lifecycle", "livenessProbe", "ports", "readinessProbe", "resources", "startupProbe"];

fn check_ephemeral(pod: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec.ephemeralContainers");
    let name = |container: &Value| container.str_at(&["name"]).unwrap_or_default().to_owned();
    let others = super::items(pod, "/spec/containers").chain(super::items(pod, "/spec/initContainers"));
    let mut taken: Vec<String> = others.map(name).collect();
    let regular = taken.clone();
    for (at, container) in super::items(pod, "/spec/ephemeralContainers").enumerate() {
        let own = name(container);
        let path = path.index(at);
        if own.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if taken.contains(&own) {
            errors.push(FieldError::duplicate(&path.child("name"), own.as_str()));
        }
        if container.str_at(&["image"]).unwrap_or_default().is_empty() {
            errors.push(FieldError::required(&path.child("image"), ""));
        }
        let target = container.str_at(&["targetContainerName"]).unwrap_or_default();
        if !target.is_empty() && !regular.iter().any(|name| name == target) {
            errors.push(FieldError::not_found(&path.child("targetContainerName"), target));
        }
        for field in NOT_EPHEMERAL.into_iter().filter(|field| {
            let given = &container[*field];
            !given.is_null() && *given != json!({}) && *given != json!([])
        }) {
            let detail = "cannot be set for an Ephemeral Container";
            errors.push(FieldError::forbidden(&path.child(field), detail));
        }
        taken.push(own);
    }
    for before in super::items(old, "/spec/ephemeralContainers") {
        let after = super::items(pod, "/spec/ephemeralContainers").find(|other| name(other) == name(before));
        if let Some(after) = after.filter(|after| *after != before) {
            let difference = tiphys_schema::internal_difference("EphemeralContainer", before, after);
            let named = tiphys_schema::quote(&name(before));
            let detail = format!("existing ephemeral containers {named} may not be changed\n{difference}");
            errors.push(FieldError::forbidden(&path, detail));
        }
    }
    let gone = super::items(old, "/spec/ephemeralContainers").map(name).filter(|name| {
        super::items(pod, "/spec/ephemeralContainers").all(|other| other["name"] != name.as_str())
    });
    for name in gone {
        let detail =
            format!("existing ephemeral containers {} may not be removed\n", tiphys_schema::quote(&name));
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

/// The number of replicas that a custom resource's scale shows.
fn check_scale(path: &str, object: &Value, errors: &mut ErrorList) {
    let Ok(place) = path.parse::<tiphys_value::FieldPath>() else { return };
    let shown = Path::new(format!(".{}", path.trim_start_matches('.')));
    match place.get(object) {
        Some(Value::Number(number)) if number.is_i64() => {
            if let Some(replicas) = number.as_i64().filter(|replicas| *replicas < 0) {
                errors.push(FieldError::invalid(&shown, replicas, "should be a non-negative integer"));
            }
        }
        None | Some(Value::Null) => {}
        Some(other) => {
            let (text, kind) = match other {
                Value::String(text) => (text.clone(), "string"),
                Value::Number(number) => (number.to_string(), "float64"),
                Value::Bool(on) => (on.to_string(), "bool"),
                Value::Array(_) => (other.to_string(), "[]interface {}"),
                _ => (other.to_string(), "map[string]interface {}"),
            };
            let detail = format!("{shown} accessor error: {text} is of the type {kind}, expected int64");
            errors.push(FieldError::invalid(&shown, 0, detail));
        }
    }
}

/// Checks the CEL expressions of policies and of webhooks' match conditions.
fn check_expressions(kind: &str, group: &str, object: &Value, errors: &mut ErrorList) {
    if group != "admissionregistration.k8s.io" {
        return;
    }
    let is_policy = kind.ends_with("AdmissionPolicy");
    let variables: Vec<&str> =
        super::items(object, "/spec/variables").filter_map(|variable| variable.str_at(&["name"])).collect();
    let mut check = |holder: &Value, list: &str, key: &str, path: &Path| {
        for (at, entry) in super::items(holder, &format!("/{list}")).enumerate() {
            let Some(source) = entry.str_at(&[key]).filter(|source| !source.trim().is_empty()) else {
                continue;
            };
            let path = path.child(list).index(at).child(key);
            match crate::admission::compile(source) {
                Err(why) => errors.push(FieldError::invalid(&path, source, why)),
                Ok(expression) => {
                    let before = variables.get(..at).filter(|_| list == "variables").unwrap_or(&variables);
                    let fault = expression.undefined_member("variables", before);
                    if let Some(fault) = fault.filter(|_| list != "matchConditions" && is_policy) {
                        errors.push(FieldError::invalid(
                            &path,
                            source,
                            format!("compilation failed: {fault}"),
                        ));
                        continue;
                    }
                    let kind =
                        expression.kind().filter(|_| matches!(list, "validations" | "matchConditions"));
                    // A variable has the type of its own expression.
                    let kind = kind.filter(|_| !source.trim_start().starts_with("variables."));
                    if let Some(kind) = kind.filter(|kind| key == "expression" && *kind != "bool") {
                        let detail = format!("must evaluate to bool but got {kind}");
                        errors.push(FieldError::invalid(&path, source, detail));
                    }
                }
            }
        }
    };
    if kind.ends_with("WebhookConfiguration") {
        for (at, webhook) in super::items(object, "/webhooks").enumerate() {
            check(webhook, "matchConditions", "expression", &Path::new("webhooks").index(at));
        }
    } else if kind == "ValidatingAdmissionPolicy" {
        let path = Path::new("spec");
        check(&object["spec"], "matchConditions", "expression", &path);
        check(&object["spec"], "variables", "expression", &path);
        check(&object["spec"], "validations", "expression", &path);
        check(&object["spec"], "validations", "messageExpression", &path);
        check(&object["spec"], "auditAnnotations", "valueExpression", &path);
    }
}

/// Checks the CEL rules of a definition's schemas that are new or changed.
fn check_rules(crd: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    if old.is_some_and(|old| old["spec"] == crd["spec"]) {
        return;
    }
    let known = old.map(tiphys_schema::crd_schemas).unwrap_or_default();
    for (schema, path) in tiphys_schema::crd_schemas(crd) {
        // Rules about a schema that is not understood would only be misunderstood.
        let start = path.to_string();
        if !errors.iter().any(|error| error.field.starts_with(&start)) {
            let is_known = known.iter().any(|(other, _)| *other == schema);
            errors.extend(tiphys_expr::cel::Rules::check(schema, &path, is_known));
        }
    }
}

/// Faults of an event, which both groups keep in the same form; those of its metadata stand in between.
pub(super) fn validate_event(at: &At, event: &Value, old: Option<&Value>) -> ErrorList {
    let is_modern = at.is("events.k8s.io", "events");
    let metadata = super::metadata::validate(at, event, old);
    if is_modern {
        return tiphys_schema::validate_event(event, old, Some(metadata));
    }
    let errors = tiphys_schema::validate_event(event, old, None);
    if errors.is_empty() { metadata } else { errors }
}

/// Faults of an object by the rules of its kind.
pub(super) fn validate(at: &At, object: &Value, old: Option<&Value>) -> ErrorList {
    if let Some(custom) = &at.resource.custom {
        let mut errors =
            custom.schema.as_ref().map_or_else(ErrorList::new, |schema| schema.validate(object, old));
        if let Some(scale) = custom.scale.as_ref().filter(|_| !at.is_status()) {
            // That rules were not looked at is said last.
            let unchecked = errors.0.pop_if(|error| error.rule == Some(FieldRule::UncheckedRules));
            check_scale(&scale.spec_replicas, object, &mut errors);
            errors.extend(unchecked);
        }
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
    if at.subresource.as_deref() == Some("ephemeralcontainers") {
        return check_ephemeral(object, old.unwrap_or(&Value::Null));
    }
    let mut expressions = ErrorList::new();
    check_expressions(&gvk.kind, at.resource.group(), object, &mut expressions);
    if !expressions.is_empty() {
        return expressions;
    }
    match at.subresource.as_deref().filter(|_| at.is("", "pods")) {
        // Where a pod goes is decided there and nothing else.
        Some("binding") => return ErrorList::new(),
        Some("resize") => return validate_resize(object, old.unwrap_or(&Value::Null)),
        _ => {}
    }
    match old {
        None => validate_create(&gvk, object),
        Some(old) if at.is_status() => validate_status_update(&gvk, object, old),
        Some(old) => validate_update(&gvk, object, old),
    }
}
