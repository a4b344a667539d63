//! The scale of an object: replicas under a form that is the same for all kinds, with owners of its own
//! (apimachinery, `util/managedfields/scalehandler.go`).

use std::sync::Arc;

use tiphys_schema::{Catalog, TypeRef};
use tiphys_value::{FieldPath, ObjectExt, Value, json};

use super::{
    At, Call, Patch, bind_to_url,
    commit::Failed,
    decode_input, managed_fields, present, selector_text, version_conversion,
    write::{PATCH_RETRIES, replace},
};
use crate::{ApiError, ApiResult, ApiServer, Object, meta};

/// The version that scales are in.
const VERSION: &str = "autoscaling/v1";

/// What a client wants of a scale.
pub(crate) enum ScaleChange<'a> {
    /// To be patched.
    Patch(&'a Patch),
    /// To be replaced by this one.
    Put(&'a Value),
}

/// Where a resource keeps what its scale shows: paths of spec replicas, status replicas, selector.
fn paths(at: &At) -> (FieldPath, FieldPath, Option<FieldPath>) {
    let path = |text: &str| text.parse::<FieldPath>().unwrap_or_default();
    match at.resource.custom.as_ref().and_then(|custom| custom.scale.as_ref()) {
        Some(custom) => (
            path(&custom.spec_replicas),
            path(&custom.status_replicas),
            custom.label_selector.as_deref().map(path),
        ),
        None => (path("spec.replicas"), path("status.replicas"), Some(path("spec.selector"))),
    }
}

/// The `Scale` of an object.
pub(crate) fn get_scale(server: &ApiServer, at: &At) -> ApiResult<Value> {
    Ok(scale_of(at, &super::get(server, at)?))
}

fn scale_of(at: &At, object: &Arc<Object>) -> Value {
    let object = present(&at.resource, object);
    let (spec, status, selector) = paths(at);
    let value = |path: &FieldPath| path.get(&object).cloned().unwrap_or(Value::Null);
    let selector = selector.map(|path| match value(&path) {
        Value::String(text) => text,
        other => selector_text(&other),
    });
    version_conversion::scale_of(&object, value(&spec), value(&status), selector)
}

/// Changes the replicas of an object through its scale. A patch that does not say which version it is of is
/// worked out anew after a lost race.
pub(crate) fn update_scale(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    change: &ScaleChange<'_>,
) -> ApiResult<Value> {
    let whole = At { subresource: None, ..at.clone() };
    for _ in 0..PATCH_RETRIES {
        let object = super::get(server, at)?;
        let mut before = scale_of(at, &object);
        set_owners(&mut before, owners_of_scale(at, &object));
        let mut attempt = call.clone();
        let scale = changed(server, &mut attempt, at, &before, change)?;
        let next = scaled(at, &object, &scale)?;
        attempt.applied = true;
        let is_of_any_version =
            matches!(change, ScaleChange::Patch(_)) && scale.resource_version() == before.resource_version();
        match replace(server, &mut attempt, &whole, &object, next) {
            Err(Failed::Changed) if is_of_any_version => {}
            Err(Failed::Changed) => break,
            other => {
                call.warnings = attempt.warnings;
                return other.map(|object| scale_of(at, &object)).map_err(Failed::into_error);
            }
        }
    }
    Err(ApiError::modified(at.resource.object_named(&at.name)))
}

/// The type of scales.
fn scale_type(at: &At) -> Option<TypeRef<'static>> {
    Catalog::latest().type_of(&super::expected_kind(at))
}

/// The scale that a change makes of one, with its owners.
fn changed(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    before: &Value,
    change: &ScaleChange<'_>,
) -> ApiResult<Value> {
    let mut scale = match change {
        ScaleChange::Put(sent) => decode_input(call, at, (*sent).clone(), &[])?,
        ScaleChange::Patch(patch) => {
            super::patch::read_patched(server, call, (at, at), Some(before), patch, scale_type(at))?
        }
    };
    bind_to_url(at, &mut scale)?;
    // None at all is not written down.
    if scale.int_at(&["spec", "replicas"]) == Some(0) {
        drop(scale["spec"].as_object_mut().map(|spec| spec.remove("replicas")));
    }
    if !call.applied {
        managed_fields::record_scale(server, call, scale_type(at), before, &mut scale);
    }
    Ok(scale)
}

/// The object with the replicas of a scale.
fn scaled(at: &At, object: &Object, scale: &Value) -> ApiResult<Value> {
    let replicas = scale.int_at(&["spec", "replicas"]).unwrap_or(0);
    if replicas < 0 {
        let path = tiphys_schema::Path::new("spec.replicas");
        let fault = tiphys_schema::FieldError::invalid(&path, replicas, "must be greater than or equal to 0");
        let kind = tiphys_value::GroupKind::new("autoscaling", "Scale");
        return Err(ApiError::invalid(&kind, &at.name, &tiphys_schema::ErrorList(vec![fault])));
    }
    let mut next = object.value().clone();
    let (spec, _, _) = paths(at);
    set_path(&mut next, &spec, replicas.into());
    match scale.resource_version() {
        "" => {}
        version => meta::set(&mut next, "resourceVersion", version),
    }
    set_owners(&mut next, owners_of_object(at, object, scale));
    Ok(next)
}

fn set_path(object: &mut Value, path: &FieldPath, value: Value) {
    let mut node = object;
    for segment in &path.0 {
        let tiphys_value::Segment::Key(key) = segment else { return };
        if !node.is_object() {
            *node = json!({});
        }
        node = &mut node[key.as_str()];
    }
    *node = value;
}

fn owners(object: &Value) -> Vec<Value> {
    let list = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    list.cloned().unwrap_or_default()
}

fn set_owners(object: &mut Value, owners: Vec<Value>) {
    let metadata = meta::metadata_mut(object);
    match owners.is_empty() {
        true => drop(metadata.remove("managedFields")),
        false => drop(metadata.insert("managedFields".into(), owners.into())),
    }
}

/// A path as sets of owned fields spell it.
fn spelt(path: &FieldPath) -> Vec<String> {
    let keys = path.0.iter().filter_map(|segment| match segment {
        tiphys_value::Segment::Key(key) => Some(format!("f:{key}")),
        _ => None,
    });
    keys.collect()
}

fn owns(entry: &Value, path: &[String]) -> bool {
    path.iter().try_fold(&entry["fieldsV1"], |fields, step| fields.get(step)).is_some()
}

/// A set of fields with one in it.
fn only(path: &[String]) -> Value {
    path.iter().rev().fold(json!({}), |inner, step| json!({ step.as_str(): inner }))
}

/// A set of fields without one; nothing that is empty is left.
fn without(fields: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else { return };
    let Some(map) = fields.as_object_mut() else { return };
    if let Some(inner) = map.get_mut(first).filter(|_| !rest.is_empty()) {
        without(inner, rest);
        if inner.as_object().is_some_and(|inner| !inner.is_empty()) {
            return;
        }
    }
    map.remove(first);
}

/// Who an owner is; appliers are the same in every version.
fn identity(entry: &Value) -> [&str; 4] {
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    let version = if text("operation") == "Apply" { "" } else { text("apiVersion") };
    [text("manager"), text("operation"), version, text("subresource")]
}

/// Whoever owns the replicas of an object owns those of its scale.
fn owners_of_scale(at: &At, object: &Value) -> Vec<Value> {
    let version = at.resource.gvk.api_version();
    let path = spelt(&paths(at).0);
    let mut entries = owners(object);
    entries.retain(|entry| entry["apiVersion"] == version.as_str() && owns(entry, &path));
    for entry in &mut entries {
        entry["apiVersion"] = VERSION.into();
        entry["fieldsV1"] = only(&["f:spec".to_owned(), "f:replicas".to_owned()]);
    }
    entries
}

/// The owners of an object after its scale was changed: who lost the replicas there loses them here.
fn owners_of_object(at: &At, object: &Value, scale: &Value) -> Vec<Value> {
    let version = at.resource.gvk.api_version();
    let path = spelt(&paths(at).0);
    let of_scale = ["f:spec".to_owned(), "f:replicas".to_owned()];
    let mut scaling: Vec<Value> = owners(scale);
    let mut result: Vec<Value> = Vec::new();
    let before = owners(object);
    for entry in &before {
        let is_known = entry["apiVersion"] == version.as_str();
        if !is_known && at.resource.custom.is_none() {
            continue;
        }
        let mut entry = entry.clone();
        if is_known && owns(&entry, &path) {
            let kept = scaling.iter().position(|other| identity(other) == identity(&entry));
            match kept {
                Some(at) => drop(scaling.remove(at)),
                None => without(&mut entry["fieldsV1"], &path),
            }
        }
        if entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty()) {
            result.push(entry);
        }
    }
    for mut entry in scaling.into_iter().filter(|entry| owns(entry, &of_scale)) {
        let same = before.iter().find(|other| identity(other) == identity(&entry));
        let time = same.and_then(|other| other.get("time").cloned());
        entry["apiVersion"] = version.as_str().into();
        entry["fieldsV1"] = only(&path);
        if let Some(map) = entry.as_object_mut() {
            map.remove("time");
            map.extend(time.map(|time| ("time".to_owned(), time)));
        }
        result.push(entry);
    }
    result.sort_by(|a, b| order(a).cmp(&order(b)));
    result
}

/// The order of owners: appliers first, then by time, those without one first.
fn order(entry: &Value) -> [&str; 5] {
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    [text("operation"), text("time"), text("manager"), text("apiVersion"), text("subresource")]
}
