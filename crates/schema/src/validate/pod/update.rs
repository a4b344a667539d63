//! What may change in a pod that is there.

use serde_json::Value;

use super::{list, placement, pod, text};
use crate::{
    ErrorList, FieldError, Path,
    validate::{internal, unified_diff},
};

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// A pod's spec hardly changes once it is there.
pub(in crate::validate) fn update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (path, after, before) = (Path::new("spec"), &new["spec"], &old["spec"]);
    pod(new, &mut errors);
    for name in ["containers", "initContainers"] {
        if !container_updates(list(after, name), list(before, name), &path.child(name), &mut errors) {
            return errors;
        }
    }
    if !deadline_update(after, before, &path.child("activeDeadlineSeconds"), &mut errors) {
        return errors;
    }
    toleration_updates(after, before, &path.child("tolerations"), &mut errors);
    let settled = settled(after, before);
    if settled != without_nulls(before) {
        let [before, after] =
            [without_nulls(before), settled].map(|spec| internal::indented("PodSpec", &spec));
        let difference = unified_diff::difference(&before, &after);
        errors.push(FieldError::forbidden(&path, format!("{UPDATABLE}\n{difference}")));
    }
    errors
}

/// A pod's containers get more or less than before.
pub(in crate::validate) fn resize(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (path, after, before) = (Path::new("spec"), &new["spec"], &old["spec"]);
    pod(new, &mut errors);
    for name in ["containers", "initContainers"] {
        let (after, before) = (list(after, name), list(before, name));
        if after.len() != before.len() {
            let detail = "containers may not be added or removed on resize";
            errors.push(FieldError::forbidden(&path.child(name), detail));
            return errors;
        }
        for (at, (after, before)) in after.iter().zip(before).enumerate() {
            one_resize(after, before, &path.child(name).index(at).child("resources"), &mut errors);
        }
    }
    let others = |spec: &Value| {
        let of = |name| list(spec, name).iter().map(without_cpu_and_memory).collect::<Vec<_>>();
        (of("containers"), of("initContainers"))
    };
    if others(after) != others(before) {
        errors.push(FieldError::forbidden(&path, "only cpu and memory resources are mutable"));
    }
    errors
}

fn one_resize(new: &Value, old: &Value, path: &Path, errors: &mut ErrorList) {
    for part in ["requests", "limits"] {
        let gone = ["cpu", "memory"].into_iter().any(|resource| {
            !old["resources"][part][resource].is_null() && new["resources"][part][resource].is_null()
        });
        if gone {
            let detail = format!("resource {part} cannot be removed");
            errors.push(FieldError::forbidden(&path.child(part), detail));
        }
    }
}

fn without_cpu_and_memory(container: &Value) -> Value {
    let mut container = without_nulls(container);
    for part in ["requests", "limits"] {
        let amounts = container.pointer_mut(&format!("/resources/{part}")).and_then(Value::as_object_mut);
        if let Some(amounts) = amounts {
            amounts.retain(|resource, _| !matches!(resource.as_str(), "cpu" | "memory"));
        }
        if let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) {
            resources.retain(|_, amounts| *amounts != serde_json::json!({}));
        }
    }
    container
}

/// Says whether it makes sense to look at more.
fn container_updates(new: &[Value], old: &[Value], path: &Path, errors: &mut ErrorList) -> bool {
    if new.len() != old.len() {
        errors.push(FieldError::forbidden(path, "pod updates may not add or remove containers"));
        return false;
    }
    for (at, container) in new.iter().enumerate() {
        let (path, image) = (path.index(at).child("image"), text(container, "image"));
        if image.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        if image.trim() != image {
            errors.push(FieldError::invalid(&path, image, "must not have leading or trailing whitespace"));
        }
    }
    true
}

fn deadline_update(new: &Value, old: &Value, path: &Path, errors: &mut ErrorList) -> bool {
    let seconds = |spec: &Value| spec["activeDeadlineSeconds"].as_i64();
    let detail = match (seconds(new), seconds(old)) {
        (Some(after), _) if !(0..=i64::from(i32::MAX)).contains(&after) => {
            "must be between 0 and 2147483647, inclusive"
        }
        (Some(after), Some(before)) if after > before => "must be less than or equal to previous value",
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(path, Value::Null, detail));
            return true;
        }
        _ => return true,
    };
    errors.push(FieldError::invalid(path, new["activeDeadlineSeconds"].clone(), detail));
    false
}

fn toleration_updates(new: &Value, old: &Value, path: &Path, errors: &mut ErrorList) {
    let apart_from_seconds = |toleration: &Value| {
        let mut toleration = without_nulls(toleration);
        drop(toleration.as_object_mut().map(|fields| fields.remove("tolerationSeconds")));
        toleration
    };
    let kept: Vec<Value> = list(new, "tolerations").iter().map(apart_from_seconds).collect();
    if !list(old, "tolerations").iter().all(|old| kept.contains(&apart_from_seconds(old))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(path, detail));
        return;
    }
    placement::tolerations(list(new, "tolerations"), path, errors);
}

/// The new spec with the old one's values where it may change.
fn settled(new: &Value, old: &Value) -> Value {
    let mut spec = without_nulls(new);
    for name in ["containers", "initContainers"] {
        let before = list(old, name);
        let containers = spec.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, before) in containers.zip(before) {
            take(container, before, "image");
        }
    }
    for name in ["activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers"] {
        take(&mut spec, old, name);
    }
    if spec["terminationGracePeriodSeconds"] == 1
        && old["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0)
    {
        take(&mut spec, old, "terminationGracePeriodSeconds");
    }
    spec
}

fn take(into: &mut Value, from: &Value, name: &str) {
    let Some(fields) = into.as_object_mut() else { return };
    match from.get(name).filter(|value| !value.is_null()) {
        Some(value) => drop(fields.insert(name.to_owned(), value.clone())),
        None => drop(fields.remove(name)),
    }
}

fn without_nulls(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    value
}
