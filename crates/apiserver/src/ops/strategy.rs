//! What differs between kinds when they are written: which parts a write may set, and validation.

use tiphys_schema::{
    ErrorList, FieldError, FieldRule, Path, validate_create, validate_status_update, validate_update,
};
use tiphys_value::{ObjectExt, Value, json};

use super::At;
use crate::{ApiServer, kinds::Generation, meta, registry::Resource, rfc3339_seconds};

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
    let kind = resource.kind;
    if kind.generation != Generation::None {
        meta::metadata_mut(object).insert("generation".into(), 1.into());
    }
    if has_status(resource) && !kind.says_own_status {
        drop_status(resource, object);
    }
    (kind.on_create)(object, server.now());
}

fn drop_status(resource: &Resource, object: &mut Value) {
    let Some(root) = object.as_object_mut() else { return };
    root.remove("status");
    // A mirror of what the kubelet runs keeps its status; everything else starts empty.
    if resource.custom.is_none() {
        root.insert("status".into(), (resource.kind.first_status)());
    }
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
        Some("approval") => meta::keep_part(object, current, "spec"),
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
                meta::keep_part(object, current, "status");
            }
            (at.resource.kind.on_update)(object, current);
            bump_generation(at, object, current);
        }
    }
}

/// Debugging adds containers beside those of the pod.
fn keep_all_but_ephemeral(pod: &mut Value, current: &Value) {
    let added = pod.at(&["spec", "ephemeralContainers"]).cloned();
    meta::keep_part(pod, current, "spec");
    meta::keep_part(pod, current, "status");
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
    meta::keep_part(pod, current, "spec");
    meta::keep_part(pod, current, "status");
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

/// A status write changes nothing else, except, for built-in kinds, metadata beside labels and deletion.
fn keep_all_but_status(at: &At, object: &mut Value, current: &Value) {
    let status = object.get("status").cloned();
    let metadata = object.get("metadata").cloned();
    *object = current.clone();
    match status {
        Some(status) => object["status"] = status,
        None => drop(object.as_object_mut().map(|root| root.remove("status"))),
    }
    if let Some(metadata) = metadata {
        let from = json!({ "metadata": metadata });
        for key in at.resource.kind.status_write.metadata {
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

fn bump_generation(at: &At, object: &mut Value, current: &Value) {
    let part = match at.resource.kind.generation {
        Generation::None | Generation::Once => return,
        Generation::Spec => "",
        Generation::SpecAnd(part) => part,
    };
    let ignores_status = has_status(&at.resource);
    let ty = super::managed_fields::type_of(at, &object.gvk()).filter(|_| at.resource.custom.is_none());
    let undesired: &[&str] = if ignores_status { &["metadata", "status"] } else { &["metadata"] };
    // An empty list says no more than none.
    let filled = |value: &Value, ty| {
        let mut value = value.clone();
        tiphys_schema::forget_empty(ty, &mut value);
        value
    };
    let is_desired_otherwise = || {
        !meta::equal_without(object, current, undesired)
            && ty.is_none_or(|ty| !meta::equal_without(&filled(object, ty), &filled(current, ty), undesired))
    };
    let is_relabelled = !part.is_empty() && object["metadata"][part] != current["metadata"][part];
    if is_relabelled || is_desired_otherwise() {
        let next = current.generation() + 1;
        meta::metadata_mut(object).insert("generation".into(), next.into());
    }
}

/// Containers that are added to a running pod keep their names apart, and stay.
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
    if let Some(errors) = (at.resource.kind.validate)(at.subresource.as_deref(), object, old) {
        return errors;
    }
    let gvk = object.gvk();
    match old {
        None => validate_create(&gvk, object),
        Some(old) if at.is_status() => validate_status_update(&gvk, object, old),
        Some(old) => validate_update(&gvk, object, old),
    }
}
