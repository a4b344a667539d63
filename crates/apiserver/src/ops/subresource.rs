//! Subresources whose body is not the object itself: binding, eviction, token.

use std::sync::Arc;

use tiphys_schema::quote;
use tiphys_value::{ObjectExt, Value, json};

use super::{At, Call, commit::Failed, decode_input, eviction, items, write::replace};
use crate::{ApiError, ApiResult, ApiServer, Object, auth};

/// Creates a subresource; returns the answer.
pub(crate) fn create_subresource(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    body: Value,
) -> ApiResult<Value> {
    let mut body = body;
    // Evictions are still taken in the version that they came in first.
    if at.subresource.as_deref() == Some("eviction") && body["apiVersion"] == "policy/v1beta1" {
        body["apiVersion"] = "policy/v1".into();
    }
    let body = decode_input(call, at, body, &[])?;
    match at.subresource.as_deref() {
        Some("binding") => bind(server, call, at, &body),
        Some("eviction") => eviction::evict(server, call, at, &body),
        Some("token") => auth::issue_token(server, at, body),
        other => {
            Err(ApiError::method_not_supported(at.resource.object_named(other.unwrap_or_default()), "create"))
        }
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
    super::write::check_uid(at, pod.uid(), body)?;
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
