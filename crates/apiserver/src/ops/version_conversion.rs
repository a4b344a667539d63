//! Between the versions of a resource.

use std::sync::Arc;

use tiphys_value::{Map, ObjectExt, Value, json};

use crate::{Object, registry::Resource};

/// A stored object in the version of a resource.
pub(crate) fn present(resource: &Resource, object: &Arc<Object>) -> Value {
    let mut value = object.value().clone();
    to_version(resource, &mut value);
    // What is stored may be older than a default.
    if let Some(schema) = defaulting(resource) {
        schema.apply_defaults(&mut value);
    }
    value
}

/// Takes from a stored object what its definition does not know any more: that is no fault of whoever changes
/// it.
pub(crate) fn forget_unknown(resource: &Resource, value: &mut Value) {
    let custom = resource.custom.as_ref().filter(|custom| !custom.preserve_unknown);
    if let Some(schema) = custom.and_then(|custom| custom.schema.as_ref()) {
        schema.prune(value);
    }
}

/// The schema of a custom resource if it has defaults, which also hold for what is stored.
fn defaulting(resource: &Resource) -> Option<&tiphys_schema::StructuralSchema> {
    let custom = resource.custom.as_ref().filter(|custom| !custom.preserve_unknown)?;
    custom.schema.as_ref().filter(|schema| schema.has_defaults())
}

/// Whether a stored object is answered as it is.
pub(crate) fn is_shown_as_stored(resource: &Resource, object: &Object) -> bool {
    object.value().api_version() == resource.gvk.api_version() && defaulting(resource).is_none()
}

/// Converts a stored object to the version of a resource.
pub(crate) fn to_version(resource: &Resource, value: &mut Value) {
    let wanted = resource.gvk.api_version();
    if value.api_version() == wanted {
        return;
    }
    match wanted.as_str() {
        "events.k8s.io/v1" => {
            rename(value, &EVENT_FIELDS);
            if let Some(root) = value.as_object_mut() {
                root.retain(|key, part| !key.starts_with("reporting") || *part != "");
            }
        }
        "autoscaling/v1" => hpa_to_v1(value),
        _ => {}
    }
    value["apiVersion"] = wanted.into();
}

/// Whether the version of a resource has other names for fields than the one in which it is stored.
pub(super) fn renames_fields(resource: &Resource) -> bool {
    matches!(resource.gvk.api_version().as_str(), "events.k8s.io/v1" | "autoscaling/v1")
}

/// Converts an object in the version of a resource to the version in which it is stored.
pub(crate) fn to_storage(resource: &Resource, value: &mut Value) {
    match resource.gvk.api_version().as_str() {
        // The webhook is asked when the object is stored.
        _ if super::conversion_webhook::is_by_webhook(resource) => {}
        "events.k8s.io/v1" => {
            rename(value, &EVENT_FIELDS.map(|(core, new)| (new, core)));
            value["apiVersion"] = "v1".into();
        }
        "autoscaling/v1" => {
            hpa_to_v2(value);
            value["apiVersion"] = "autoscaling/v2".into();
        }
        _ if resource.gvk.version != resource.storage_version => {
            value["apiVersion"] = format!("{}/{}", resource.group(), resource.storage_version).into();
            // What the stored version has no field for is lost.
            if let Some(schema) = resource.custom.as_ref().and_then(|custom| custom.storage_schema()) {
                schema.prune(value);
            }
        }
        _ => {}
    }
}

/// Sets the defaults of the version in which an object is stored, if that is another one: nobody owns those.
pub(super) fn default_stored(resource: &Resource, value: &mut Value) {
    let is_other = resource.gvk.version != resource.storage_version;
    let custom =
        resource.custom.as_ref().filter(|_| is_other && !super::conversion_webhook::is_by_webhook(resource));
    if let Some(schema) = custom.and_then(|custom| custom.storage_schema()) {
        schema.apply_defaults(value);
    }
}

/// Fields of core/v1 events and their names in events.k8s.io/v1.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("source", "deprecatedSource"),
    ("reportingComponent", "reportingController"),
];

fn rename(value: &mut Value, fields: &[(&str, &str)]) {
    let Some(root) = value.as_object_mut() else { return };
    for (from, to) in fields {
        if let Some(field) = root.remove(*from) {
            root.insert((*to).into(), field);
        }
    }
}

/// The CPU target that autoscaling/v1 has a field for.
const CPU_TARGET: &str = "targetCPUUtilizationPercentage";

fn hpa_to_v1(value: &mut Value) {
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        status.entry("currentReplicas").or_insert_with(|| 0.into());
        status.remove("currentMetrics");
        status.remove("conditions");
    }
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let metrics = spec.remove("metrics").unwrap_or_default();
    spec.remove("behavior");
    let cpu =
        metrics.as_array().into_iter().flatten().find(|m| m.str_at(&["resource", "name"]) == Some("cpu"));
    if let Some(target) = cpu.and_then(|m| m.at(&["resource", "target", "averageUtilization"])) {
        spec.insert(CPU_TARGET.into(), target.clone());
    }
}

fn hpa_to_v2(value: &mut Value) {
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let Some(target) = spec.remove(CPU_TARGET) else { return };
    let target = json!({"type": "Utilization", "averageUtilization": target});
    let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
    spec.insert("metrics".into(), Value::Array(vec![metric]));
}

/// The `Scale` of an object, from where its resource keeps replicas.
pub(crate) fn scale_of(object: &Value, spec: Value, status: Value, selector: Option<String>) -> Value {
    let mut metadata = Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(field) = object.at(&["metadata", key]) {
            metadata.insert(key.into(), field.clone());
        }
    }
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {}, "status": {"replicas": status.as_i64().unwrap_or(0)},
    });
    if spec.as_i64().is_some_and(|n| n != 0) {
        scale["spec"]["replicas"] = spec;
    }
    if let Some(selector) = selector.filter(|s| !s.is_empty()) {
        scale["status"]["selector"] = selector.into();
    }
    scale
}
