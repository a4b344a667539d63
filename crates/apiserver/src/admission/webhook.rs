//! Admission webhooks: who is asked, the review, and what answers and failures mean.

use std::{collections::HashSet, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use tiphys_expr::cel::Environment;
use tiphys_merge::json_patch;
use tiphys_schema::quote;
use tiphys_value::{ObjectExt, Value, json};

use super::{
    Request,
    http::{HttpCall, outside_endpoint},
};
use crate::{
    ApiError, ApiResult, ApiServer, Outbound, WebhookCall,
    ops::{Call, items},
    registry::Resource,
    store::ResourceId,
};

const GROUP: &str = "admissionregistration.k8s.io";

/// Lets the mutating webhooks change an object. Those that ask for it see the object a second time if a
/// later one changed it.
pub(super) fn mutate(request: &Request<'_>, call: &mut Call, object: &mut Value) -> ApiResult<()> {
    let mut seen = HashSet::new();
    let mut again = false;
    for (id, webhook) in configured(request, "mutatingwebhookconfigurations") {
        let changed = ask_and_patch(request, call, &webhook, object)?;
        again |= changed && !seen.is_empty();
        if webhook.str_at(&["reinvocationPolicy"]) == Some("IfNeeded") {
            seen.insert(id);
        }
    }
    if !again {
        return Ok(());
    }
    for (id, webhook) in configured(request, "mutatingwebhookconfigurations") {
        if seen.contains(&id) {
            ask_and_patch(request, call, &webhook, object)?;
        }
    }
    Ok(())
}

/// Whether the webhook changed the object.
fn ask_and_patch(
    request: &Request<'_>,
    call: &mut Call,
    webhook: &Value,
    object: &mut Value,
) -> ApiResult<bool> {
    let Some(resource) = review_version(request, call, webhook, Some(object))? else { return Ok(false) };
    let Some(response) = ask(request, call, webhook, &resource, Some(object), true)? else {
        return Ok(false);
    };
    let Some(patch) = response.str_at(&["patch"]).filter(|p| !p.is_empty()) else { return Ok(false) };
    let failed = |why: String| {
        ApiError::internal(format!("failed calling webhook {}: {why}", quote(webhook.name_of())))
    };
    let undecodable = |e: String| failed(format!("received undecodable patch in webhook response: {e}"));
    let bytes = STANDARD.decode(patch).map_err(|e| undecodable(e.to_string()))?;
    let operations: Value = serde_json::from_slice(&bytes).map_err(|e| undecodable(e.to_string()))?;
    let shown = crate::ops::in_version(request.server, &resource, object)?;
    let mut next = json_patch(&shown, &operations).map_err(|e| ApiError::internal(e.to_string()))?;
    crate::ops::redecode(request.at, &resource, &mut next)?;
    if resource.custom.is_some() && next.api_version() != object.api_version() {
        next = crate::ops::in_version(request.server, &request.at.resource, &next)?;
    }
    let changed = next != *object;
    *object = next;
    Ok(changed)
}

/// The name of a webhook's entry.
trait Entry {
    fn name_of(&self) -> &str;
}

impl Entry for Value {
    fn name_of(&self) -> &str {
        self.str_at(&["name"]).unwrap_or_default()
    }
}

/// Asks the validating webhooks.
pub(super) fn validate(request: &Request<'_>, call: &mut Call, object: Option<&Value>) -> ApiResult<()> {
    for (_, webhook) in configured(request, "validatingwebhookconfigurations") {
        if let Some(resource) = review_version(request, call, &webhook, object)? {
            ask(request, call, &webhook, &resource, object, false)?;
        }
    }
    Ok(())
}

/// All webhooks in order of their configurations' names, each with its identity.
fn configured(request: &Request<'_>, plural: &str) -> Vec<(String, Value)> {
    if request.at.resource.group() == GROUP {
        return Vec::new();
    }
    let snapshot = request.server.snapshot();
    let id = ResourceId::new(GROUP, plural);
    let all = snapshot.list(&id, None).flat_map(|configuration| {
        let webhooks = items(configuration, "/webhooks").enumerate();
        webhooks.map(move |(at, webhook)| (format!("{}/{at}", configuration.name()), webhook.clone()))
    });
    all.collect()
}

/// In which version a webhook wants to see the write, if it does.
fn review_version(
    request: &Request<'_>,
    call: &Call,
    webhook: &Value,
    object: Option<&Value>,
) -> ApiResult<Option<Arc<Resource>>> {
    let rules: Vec<&Value> = items(webhook, "/rules").collect();
    let exact = webhook.str_at(&["matchPolicy"]) == Some("Exact");
    let Some(resource) = request.fits(&rules, exact) else { return Ok(None) };
    if !request.selected(webhook, object) {
        return Ok(None);
    }
    if items(webhook, "/matchConditions").next().is_none() {
        return Ok(Some(resource));
    }
    let environment = Environment::new(request.variables(call, &resource, object));
    match request.conditions_hold(webhook, &environment) {
        Ok(true) => Ok(Some(resource)),
        Ok(false) => Ok(None),
        Err(_) if ignores_failure(webhook) => Ok(None),
        Err(why) => Err(ApiError::forbidden(request.at.resource.object_named(&request.at.name), &why)),
    }
}

fn ignores_failure(webhook: &Value) -> bool {
    webhook.str_at(&["failurePolicy"]) == Some("Ignore")
}

/// Calls a webhook; returns its response if it allows the write, `None` if it failed and may be ignored.
fn ask(
    request: &Request<'_>,
    call: &mut Call,
    webhook: &Value,
    resource: &Resource,
    object: Option<&Value>,
    mutating: bool,
) -> ApiResult<Option<Value>> {
    let name = webhook.name_of();
    if call.dry_run && !matches!(webhook.str_at(&["sideEffects"]), Some("None" | "NoneOnDryRun")) {
        let message = format!("admission webhook {} does not support dry run", quote(name));
        return Err(ApiError::bad_request(message));
    }
    let version = items(webhook, "/admissionReviewVersions").find_map(|v| match v.as_str() {
        Some(known @ ("v1" | "v1beta1")) => Some(known.to_owned()),
        _ => None,
    });
    let version = version.unwrap_or_else(|| "v1".into());
    let asked = request.review(call, resource, object);
    let review = json!({"kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"), "request": asked});
    let answered = send(request.server, webhook, &review)
        .map_err(|why| format!("failed to call webhook: {why}"))
        .and_then(|answer| {
            verify(&answer, &review, &version, mutating)
                .map_err(|why| format!("received invalid webhook response: {why}"))
        });
    let response = match answered {
        Ok(response) => response,
        Err(_) if ignores_failure(webhook) => return Ok(None),
        Err(why) => return Err(ApiError::internal(format!("failed calling webhook {}: {why}", quote(name)))),
    };
    for warning in items(&response, "/warnings").filter_map(Value::as_str) {
        call.warnings.push(warning.to_owned());
    }
    if response["allowed"] == true {
        return Ok(Some(response));
    }
    Err(denied(name, &response))
}

/// Checks that an answer is one to this question.
fn verify(answer: &Value, review: &Value, version: &str, mutating: bool) -> Result<Value, String> {
    let response = answer.get("response").filter(|r| r.is_object()).ok_or("webhook response was absent")?;
    if version != "v1" {
        return Ok(response.clone());
    }
    let (sent, found) = (&review["request"]["uid"], response["uid"].as_str().unwrap_or_default());
    if *sent != found {
        let sent = sent.as_str().unwrap_or_default();
        return Err(format!("expected response.uid={}, got {}", quote(sent), quote(found)));
    }
    let expected = "admission.k8s.io/v1, Kind=AdmissionReview";
    let gvk = answer.gvk();
    if gvk.to_string() != expected {
        return Err(format!("expected webhook response of {expected}, got {gvk}"));
    }
    let patch = response.str_at(&["patch"]).is_some_and(|p| !p.is_empty());
    match (mutating, patch, response.str_at(&["patchType"])) {
        (false, true, _) => Err("validating webhook may not return response.patch".into()),
        (false, _, Some(_)) => Err("validating webhook may not return response.patchType".into()),
        (true, true, None) => Err("webhook returned response.patch but not response.patchType".into()),
        (true, false, Some(_)) => Err("webhook returned response.patchType but not response.patch".into()),
        (true, _, Some(kind)) if kind != "JSONPatch" => {
            Err(format!("webhook returned invalid response.patchType of {}", quote(kind)))
        }
        _ => Ok(response.clone()),
    }
}

fn denied(name: &str, response: &Value) -> ApiError {
    let status = &response["status"];
    let given = status.int_at(&["code"]).and_then(|c| u16::try_from(c).ok());
    let code = given.filter(|c| (400..600).contains(c)).unwrap_or(400);
    let reason = status.str_at(&["reason"]).unwrap_or_default();
    let text =
        status.str_at(&["message"]).filter(|t| !t.is_empty()).or(Some(reason).filter(|r| !r.is_empty()));
    let start = format!("admission webhook {} denied the request", quote(name));
    let message = match text {
        Some(text) => format!("{start}: {text}"),
        None => format!("{start} without explanation"),
    };
    ApiError::new(code, crate::error::known_reason(reason), message)
}

fn url_of(webhook: &Value) -> String {
    let timeout = webhook.int_at(&["timeoutSeconds"]).unwrap_or(10);
    if let Some(url) = webhook.str_at(&["clientConfig", "url"]) {
        let joint = if url.contains('?') { '&' } else { '?' };
        return format!("{url}{joint}timeout={timeout}s");
    }
    let of = |key| webhook.str_at(&["clientConfig", "service", key]).unwrap_or_default();
    let port = port_of(webhook);
    let path = of("path");
    let slash = if path.starts_with('/') { "" } else { "/" };
    format!("https://{}.{}.svc:{port}{slash}{path}?timeout={timeout}s", of("name"), of("namespace"))
}

fn port_of(webhook: &Value) -> i64 {
    webhook.int_at(&["clientConfig", "service", "port"]).unwrap_or(443)
}

/// What a webhook answers that has no objection: the object as it is, or converted by its version alone.
fn allowing(review: &Value) -> Value {
    let uid = &review["request"]["uid"];
    if review["kind"] != "ConversionReview" {
        let response = json!({"uid": uid, "allowed": true});
        return json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    }
    let mut objects = review["request"]["objects"].as_array().cloned().unwrap_or_default();
    for object in &mut objects {
        object["apiVersion"] = review["request"]["desiredAPIVersion"].clone();
    }
    let response = json!({"uid": uid, "result": {"status": "Success"}, "convertedObjects": objects});
    json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response})
}

/// Sends a review: over the network to what lies outside of the simulated cluster, if such calls are made,
/// otherwise to what simulates it.
pub(crate) fn send(server: &ApiServer, webhook: &Value, review: &Value) -> Result<Value, String> {
    let url = url_of(webhook);
    let snapshot = server.snapshot();
    let service = webhook.at(&["clientConfig", "service"]).filter(|s| s.is_object());
    let address = service.and_then(|service| {
        let of = |key| service.str_at(&[key]).unwrap_or_default();
        outside_endpoint(&snapshot, of("namespace"), of("name"), port_of(webhook))
    });
    if service.is_none() || address.is_some() {
        match server.inner.outbound {
            Outbound::Call => {}
            Outbound::Refuse => {
                return Err(format!("Post {}: nothing outside of this cluster is called", quote(&url)));
            }
            Outbound::Assume => return Ok(allowing(review)),
        }
        let seconds = webhook.int_at(&["timeoutSeconds"]).and_then(|s| u64::try_from(s).ok()).unwrap_or(10);
        let ca_bundle = webhook.str_at(&["clientConfig", "caBundle"]).unwrap_or_default().to_owned();
        let timeout = Duration::from_secs(seconds.clamp(1, 30));
        return HttpCall { url, address, ca_bundle, timeout, body: review.clone() }.run();
    }
    let backend = server.inner.webhooks.read().clone();
    match backend {
        Some(backend) => backend.call(&WebhookCall { webhook, url: &url, review, snapshot: &snapshot }),
        None => {
            let name = service.and_then(|s| s.str_at(&["name"])).unwrap_or_default();
            Err(format!("Post {}: no endpoints available for service {}", quote(&url), quote(name)))
        }
    }
}
