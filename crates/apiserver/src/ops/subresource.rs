//! Subresources whose body is not the object itself: scale, binding, token.

use std::sync::Arc;

use tiphys_schema::quote;
use tiphys_value::{FieldPath, ObjectExt, Value, json};

use super::{
    At, Call, convert, decode_input, eviction, items, present,
    write::{Failed, PATCH_RETRIES, replace},
};
use crate::{ApiError, ApiResult, ApiServer, Object, auth, meta};

/// Creates a subresource; returns the answer.
pub(crate) fn create_subresource(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    body: Value,
) -> ApiResult<Value> {
    let body = decode_input(call, at, body, &[])?;
    match at.subresource.as_deref() {
        Some("binding") => bind(server, call, at, &body),
        Some("eviction") => eviction::evict(server, call, at, &body),
        Some("token") => auth::issue_token(server, at, body),
        other => Err(ApiError::method_not_supported(at.resource.named(other.unwrap_or_default()), "create")),
    }
}

fn current_of(server: &ApiServer, at: &At) -> ApiResult<Arc<Object>> {
    super::get(server, at)
}

/// The answer to what made no object.
pub(super) fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

fn bind(server: &ApiServer, call: &mut Call, at: &At, body: &Value) -> ApiResult<Value> {
    if body.name() != at.name {
        return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
    }
    let pod = current_of(server, at)?;
    let node = body.str_at(&["target", "name"]).unwrap_or_default();
    if let Some(assigned) = pod.str_at(&["spec", "nodeName"]).filter(|n| !n.is_empty()) {
        let why = format!("pod {} is already assigned to node {}", at.name, quote(assigned));
        return Err(ApiError::conflict(
            crate::Named { group: "", resource: "pods/binding", name: &at.name },
            &why,
        ));
    }
    let mut next = pod.value().clone();
    next["spec"]["nodeName"] = node.into();
    let conditions = &mut next["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    if let Some(list) = conditions.as_array_mut() {
        list.retain(|c| c["type"] != "PodScheduled");
        let now = crate::rfc3339_seconds(server.now());
        list.push(json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}));
    }
    // Whether another node was being cleared for it is of no interest any more.
    drop(next["status"].as_object_mut().map(|status| status.remove("nominatedNodeName")));
    // Being placed is nobody's field.
    call.applied = true;
    replace(server, call, at, &pod, next).map_err(Failed::into_error)?;
    Ok(success())
}

/// Where a resource keeps what its scale subresource shows: paths of spec replicas, status replicas, selector.
fn scale_paths(at: &At) -> (FieldPath, FieldPath, Option<FieldPath>) {
    let path = |text: &str| text.parse::<FieldPath>().unwrap_or_default();
    match at.resource.custom.as_ref().and_then(|c| c.scale.as_ref()) {
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
    let object = current_of(server, at)?;
    Ok(scale_of(at, &object))
}

fn scale_of(at: &At, object: &Arc<Object>) -> Value {
    let object = present(&at.resource, object);
    let (spec, status, selector) = scale_paths(at);
    let value = |path: &FieldPath| path.get(&object).cloned().unwrap_or(Value::Null);
    let selector = selector.map(|path| match value(&path) {
        Value::String(text) => text,
        other => selector_text(&other),
    });
    convert::scale_of(&object, value(&spec), value(&status), selector)
}

/// A label selector in its one-line spelling.
pub(crate) fn selector_text(selector: &Value) -> String {
    let labels = selector.get("matchLabels").or(selector.is_object().then_some(selector));
    let mut terms: Vec<String> = Vec::new();
    if selector.get("matchExpressions").is_none() || selector.get("matchLabels").is_some() {
        let pairs = labels.and_then(Value::as_object).into_iter().flatten();
        terms.extend(pairs.filter_map(|(k, v)| Some(format!("{k}={}", v.as_str()?))));
    }
    for term in items(selector, "/matchExpressions") {
        let key = term.str_at(&["key"]).unwrap_or_default();
        let values: Vec<&str> = items(term, "/values").filter_map(Value::as_str).collect();
        terms.push(match term.str_at(&["operator"]) {
            Some("In") => format!("{key} in ({})", values.join(",")),
            Some("NotIn") => format!("{key} notin ({})", values.join(",")),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    terms.join(",")
}

/// Changes the replicas of an object through its scale. A change that does not say which version it is of
/// is worked out anew after a lost race.
pub(crate) fn update_scale(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    change: &dyn Fn(&mut Call, Value) -> ApiResult<Value>,
    is_patch_of_any_version: bool,
) -> ApiResult<Value> {
    let whole = At { subresource: None, ..at.clone() };
    call.through = Some("scale");
    for _ in 0..PATCH_RETRIES {
        let object = current_of(server, at)?;
        let present = scale_of(at, &object);
        let is_of_present = |scale: &Value| scale.resource_version() == present.resource_version();
        let mut attempt = call.clone();
        let scale = change(&mut attempt, present.clone())?;
        let next = scaled(at, &object, &scale)?;
        match replace(server, &mut attempt, &whole, &object, next) {
            Err(Failed::Changed) if is_patch_of_any_version && is_of_present(&scale) => {}
            Err(Failed::Changed) => break,
            other => {
                call.warnings = attempt.warnings;
                return other.map(|o| scale_of(at, &o)).map_err(Failed::into_error);
            }
        }
    }
    Err(ApiError::modified(at.resource.named(&at.name)))
}

/// Reads a `Scale` that a client sent, or that a patch made, and checks whose it is.
pub(crate) fn decode_scale(
    call: &mut Call,
    at: &At,
    scale: Value,
    patch: Option<&super::Patch>,
) -> ApiResult<Value> {
    let ty = tiphys_schema::Catalog::latest().type_of(&super::expected_kind(at));
    call.patch_text = patch.and_then(|patch| patch.shown(&scale, ty));
    let mut scale = decode_input(call, at, scale, &[])?;
    super::bind_to_url(at, &mut scale)?;
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
    let (spec, _, _) = scale_paths(at);
    set_path(&mut next, &spec, replicas.into());
    match scale.resource_version() {
        "" => {}
        version => meta::set(&mut next, "resourceVersion", version),
    }
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
