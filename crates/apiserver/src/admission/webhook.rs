//! Admission webhooks: matching, the review, and what their answers and failures mean.

use base64::{Engine, engine::general_purpose::STANDARD};
use std::sync::PoisonError;
use tiphys_merge::json_patch;
use tiphys_schema::{LabelSelector, quote};
use tiphys_value::{ObjectExt, Value, json};

use super::Operation;
use crate::{
    ApiError, ApiResult, ApiServer, Object, WebhookCall,
    ops::{At, Call, items},
    store::ResourceId,
};

const GROUP: &str = "admissionregistration.k8s.io";

/// Lets the mutating webhooks change an object.
pub(super) fn mutate(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    operation: Operation,
    object: &mut Value,
    old: Option<&Object>,
) -> ApiResult<()> {
    for webhook in matching(server, at, operation, "mutatingwebhookconfigurations", Some(object), old) {
        let Some(response) = ask(server, call, at, operation, &webhook, Some(object), old)? else { continue };
        let Some(patch) = response.str_at(&["patch"]).filter(|p| !p.is_empty()) else { continue };
        let failed = |why: String| {
            ApiError::internal(format!("failed calling webhook {}: {why}", quote(webhook.name())))
        };
        let bytes = STANDARD.decode(patch).map_err(|e| failed(e.to_string()))?;
        let operations: Value = serde_json::from_slice(&bytes).map_err(|e| failed(e.to_string()))?;
        *object = json_patch(object, &operations).map_err(|e| failed(e.to_string()))?;
        crate::ops::redecode(at, object)?;
    }
    Ok(())
}

/// Asks the validating webhooks.
pub(super) fn validate(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    operation: Operation,
    object: Option<&Value>,
    old: Option<&Object>,
) -> ApiResult<()> {
    for webhook in matching(server, at, operation, "validatingwebhookconfigurations", object, old) {
        ask(server, call, at, operation, &webhook, object, old)?;
    }
    Ok(())
}

/// The webhooks that want to see a write, in order of their configurations' names.
fn matching(
    server: &ApiServer,
    at: &At,
    operation: Operation,
    plural: &str,
    object: Option<&Value>,
    old: Option<&Object>,
) -> Vec<Value> {
    if at.resource.group() == GROUP {
        return Vec::new();
    }
    let snapshot = server.snapshot();
    let id = ResourceId::new(GROUP, plural);
    let all = snapshot.list(&id, None).flat_map(|configuration| items(configuration, "/webhooks"));
    let subject = object.or(old.map(Object::value)).unwrap_or(&Value::Null);
    let namespace = match at.is("", "namespaces") {
        true => subject.at(&["metadata", "labels"]).cloned(),
        false => {
            let found = snapshot.get(&ResourceId::new("", "namespaces"), "", &at.namespace);
            found.and_then(|n| n.at(&["metadata", "labels"]).cloned())
        }
    };
    let scoped = at.resource.namespaced || at.is("", "namespaces");
    let labels = subject.at(&["metadata", "labels"]).unwrap_or(&Value::Null);
    let chosen = all.filter(|webhook| {
        items(webhook, "/rules").any(|rule| rule_matches(rule, at, operation))
            && selects(&webhook["objectSelector"], labels)
            && (!scoped || selects(&webhook["namespaceSelector"], namespace.as_ref().unwrap_or(&Value::Null)))
    });
    chosen.cloned().collect()
}

fn selects(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return true;
    }
    LabelSelector::from_object(selector).ok().flatten().is_none_or(|s| s.matches(labels))
}

fn rule_matches(rule: &Value, at: &At, operation: Operation) -> bool {
    let has = |pointer: &str, wanted: &str| items(rule, pointer).any(|v| v == "*" || v == wanted);
    let plural = at.resource.plural.as_str();
    let resource = match at.subresource.as_deref() {
        None => has("/resources", plural) || items(rule, "/resources").any(|r| r == "*/*"),
        Some(sub) => items(rule, "/resources").filter_map(Value::as_str).any(|r| match r.split_once('/') {
            Some((main, wanted)) => (main == "*" || main == plural) && (wanted == "*" || wanted == sub),
            None => false,
        }),
    };
    let scope = match rule.str_at(&["scope"]) {
        Some("Namespaced") => at.resource.namespaced,
        Some("Cluster") => !at.resource.namespaced,
        _ => true,
    };
    resource
        && scope
        && has("/operations", operation.name())
        && has("/apiGroups", at.resource.group())
        && has("/apiVersions", &at.resource.gvk.version)
}

/// Calls a webhook; returns its response if it allows the write, `None` if it failed and may be ignored.
fn ask(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    operation: Operation,
    webhook: &Value,
    object: Option<&Value>,
    old: Option<&Object>,
) -> ApiResult<Option<Value>> {
    let name = webhook.str_at(&["name"]).unwrap_or_default();
    if call.dry_run && !matches!(webhook.str_at(&["sideEffects"]), Some("None" | "NoneOnDryRun")) {
        return Err(ApiError::bad_request(format!(
            "admission webhook {} does not support dry run",
            quote(name)
        )));
    }
    let review = review_of(server, call, at, operation, object, old);
    let url = url_of(webhook);
    let backend = server.inner.webhooks.read().unwrap_or_else(PoisonError::into_inner).clone();
    let snapshot = server.snapshot();
    let request = WebhookCall { webhook, url: &url, review: &review, snapshot: &snapshot };
    let answered = match &backend {
        Some(backend) => backend.call(&request),
        None => Err(unreachable(webhook, &url)),
    };
    let answer = match answered {
        Ok(answer) => answer,
        Err(why) => {
            if webhook.str_at(&["failurePolicy"]) == Some("Ignore") {
                return Ok(None);
            }
            return Err(ApiError::internal(format!(
                "failed calling webhook {}: failed to call webhook: {why}",
                quote(name)
            )));
        }
    };
    let response = answer.get("response").cloned().unwrap_or_default();
    for warning in items(&response, "/warnings").filter_map(Value::as_str) {
        call.warnings.push(warning.to_owned());
    }
    if response["allowed"] == true {
        return Ok(Some(response));
    }
    Err(denied(name, &response))
}

fn denied(name: &str, response: &Value) -> ApiError {
    let status = &response["status"];
    let code =
        status.int_at(&["code"]).and_then(|c| u16::try_from(c).ok()).filter(|c| *c >= 400).unwrap_or(403);
    let text = status.str_at(&["message"]).or_else(|| status.str_at(&["reason"])).filter(|t| !t.is_empty());
    let message = match text {
        Some(text) => format!("admission webhook {} denied the request: {text}", quote(name)),
        None => format!("admission webhook {} denied the request without explanation", quote(name)),
    };
    let reason = match code {
        400 => "BadRequest",
        409 => "Conflict",
        422 => "Invalid",
        _ => "Forbidden",
    };
    ApiError::new(code, reason, message)
}

fn url_of(webhook: &Value) -> String {
    let timeout = webhook.int_at(&["timeoutSeconds"]).unwrap_or(10);
    if let Some(url) = webhook.str_at(&["clientConfig", "url"]) {
        return format!("{url}?timeout={timeout}s");
    }
    let of = |key| webhook.str_at(&["clientConfig", "service", key]).unwrap_or_default();
    let port = webhook.int_at(&["clientConfig", "service", "port"]).unwrap_or(443);
    let path = of("path");
    let path = if path.is_empty() { "/" } else { path };
    format!("https://{}.{}.svc:{port}{path}?timeout={timeout}s", of("name"), of("namespace"))
}

fn unreachable(webhook: &Value, url: &str) -> String {
    match webhook.str_at(&["clientConfig", "service", "name"]) {
        Some(service) => {
            format!("Post {}: no endpoints available for service {}", quote(url), quote(service))
        }
        None => format!("Post {}: webhooks outside of the cluster cannot be reached from here", quote(url)),
    }
}

fn review_of(
    server: &ApiServer,
    call: &Call,
    at: &At,
    operation: Operation,
    object: Option<&Value>,
    old: Option<&Object>,
) -> Value {
    let gvk = &at.resource.gvk;
    let kind = json!({"group": gvk.group, "version": gvk.version, "kind": gvk.kind});
    let resource = json!({"group": gvk.group, "version": gvk.version, "resource": at.resource.plural});
    let mut request = json!({
        "uid": server.entropy().uuid(), "kind": kind, "resource": resource, "requestKind": kind,
        "requestResource": resource, "name": at.name, "operation": operation.name(),
        "userInfo": {"username": call.user.name, "groups": call.user.groups},
        "object": object, "oldObject": old.map(Object::value), "dryRun": call.dry_run, "options": null,
    });
    if at.resource.namespaced {
        request["namespace"] = at.namespace.as_str().into();
    }
    if let Some(sub) = &at.subresource {
        request["subResource"] = sub.as_str().into();
    }
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
}
