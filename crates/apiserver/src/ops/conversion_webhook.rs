//! Conversion of custom resources by webhooks (kubernetes.io, "Versions in CustomResourceDefinitions").
//!
//! What is read is converted to the version of the request, what is written to the storage version just
//! before it is stored: all that lies between sees one version only.

use std::sync::Arc;

use tiphys_schema::quote;
use tiphys_value::{Map, ObjectExt, Value, go_type, json};

use super::{At, version_conversion};
use crate::{ApiError, ApiResult, ApiServer, Object, admission, registry::Resource};

/// Seconds that a conversion may take.
const TIMEOUT: u64 = 30;

/// The webhook that converts between the versions of a resource, if one does.
fn webhook_of(resource: &Resource) -> Option<&Value> {
    let definition = &resource.custom.as_ref()?.definition;
    let conversion = definition.at(&["spec", "conversion"])?;
    (conversion.str_at(&["strategy"]) == Some("Webhook")).then(|| &conversion["webhook"])
}

/// Whether a webhook converts between the versions of a resource.
pub(super) fn is_by_webhook(resource: &Resource) -> bool {
    webhook_of(resource).is_some()
}

/// Stored objects in the version of the request.
///
/// # Errors
/// The webhook cannot be reached, refuses, or answers with something else than the objects.
pub(crate) fn convert_by_webhook(
    server: &ApiServer,
    resource: &Resource,
    mut objects: Vec<Arc<Object>>,
) -> ApiResult<Vec<Arc<Object>>> {
    let Some(webhook) = webhook_of(resource) else { return Ok(objects) };
    let wanted = resource.gvk.api_version();
    let other: Vec<usize> =
        (0..objects.len()).filter(|at| objects[*at].value().api_version() != wanted).collect();
    if other.is_empty() {
        return Ok(objects);
    }
    let originals: Vec<&Value> = other.iter().map(|at| objects[*at].value()).collect();
    let converted = ask(server, resource, webhook, &originals, &wanted)?;
    for (at, value) in other.into_iter().zip(converted) {
        let revision = objects[at].revision();
        objects[at] = Arc::new(Object::stamped(value, revision));
    }
    Ok(objects)
}

/// One stored object in the version of the request.
///
/// # Errors
/// As [`seen`].
pub(crate) fn seen_one(
    server: &ApiServer,
    resource: &Resource,
    object: Arc<Object>,
) -> ApiResult<Arc<Object>> {
    if webhook_of(resource).is_none() {
        return Ok(object);
    }
    let fallback = Arc::clone(&object);
    Ok(convert_by_webhook(server, resource, vec![object])?.pop().unwrap_or(fallback))
}

/// An object in the version in which it is stored, if a webhook makes that of it.
///
/// # Errors
/// As [`seen`].
pub(super) fn stored(server: &ApiServer, at: &At, object: &Value) -> ApiResult<Option<Value>> {
    let Some(webhook) = webhook_of(&at.resource) else { return Ok(None) };
    let wanted = format!("{}/{}", at.resource.group(), at.resource.storage_version);
    if object.api_version() == wanted {
        return Ok(None);
    }
    Ok(ask(server, &at.resource, webhook, &[object], &wanted)?.pop())
}

/// An object in the version of a resource, for whoever asked to see it in that one.
///
/// # Errors
/// As [`seen`].
pub(crate) fn in_version(server: &ApiServer, resource: &Resource, object: &Value) -> ApiResult<Value> {
    let wanted = resource.gvk.api_version();
    match webhook_of(resource).filter(|_| object.api_version() != wanted) {
        Some(webhook) => {
            let converted = ask(server, resource, webhook, &[object], &wanted)?.pop();
            Ok(converted.unwrap_or_else(|| object.clone()))
        }
        None => {
            let mut value = object.clone();
            version_conversion::to_version(resource, &mut value);
            Ok(value)
        }
    }
}

/// Whether an object that is stored in another version would be brought to the storage version by a write.
pub(super) fn is_outdated(server: &ApiServer, at: &At) -> bool {
    let wanted = format!("{}/{}", at.resource.group(), at.resource.storage_version);
    is_by_webhook(&at.resource)
        && server
            .snapshot()
            .get(&at.resource.id, &at.namespace, &at.name)
            .is_some_and(|object| object.value().api_version() != wanted)
}

/// Has objects of the same kind converted; the answers stand in the order of the objects.
fn ask(
    server: &ApiServer,
    resource: &Resource,
    webhook: &Value,
    objects: &[&Value],
    wanted: &str,
) -> ApiResult<Vec<Value>> {
    let from = objects.first().map(|object| object.gvk().to_string()).unwrap_or_default();
    let fail = |why: String| ApiError::new(500, "", format!("conversion webhook for {from} {why}"));
    let versions = super::items(webhook, "/conversionReviewVersions").filter_map(Value::as_str);
    let Some(version) = versions.into_iter().find(|version| matches!(*version, "v1" | "v1beta1")) else {
        return Err(ApiError::new(500, "", "no supported conversion review versions"));
    };
    let uid = server.entropy().uuid();
    let review = json!({
        "kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{version}"),
        "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
    });
    let definition = resource.custom.as_ref().map_or("", |custom| custom.crd.as_str());
    let entry = json!({
        "name": format!("conversion_webhook_for_{definition}"), "timeoutSeconds": TIMEOUT,
        "clientConfig": webhook["clientConfig"],
    });
    let answer = admission::send(server, &entry, &review).map_err(|why| fail(format!("failed: {why}")))?;
    let converted = verify(&answer, version, &uid).map_err(|why| fail(format!("failed: {why}")))?;
    if converted.len() != objects.len() {
        return Err(fail(format!("returned {} objects, expected {}", converted.len(), objects.len())));
    }
    let pairs = objects.iter().zip(converted).enumerate();
    pairs.map(|(at, (original, converted))| restored(original, converted, wanted, at).map_err(fail)).collect()
}

/// The converted objects of an answer, if it is one to this question.
fn verify(answer: &Value, version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let is_v1 = version == "v1";
    let expected = "apiextensions.k8s.io/v1, Kind=ConversionReview";
    let found = answer.gvk().to_string();
    if is_v1 && found != expected {
        return Err(format!("expected webhook response of {expected}, got {found}"));
    }
    let response = answer.get("response").filter(|r| r.is_object()).ok_or("no response provided")?;
    let named = response.str_at(&["uid"]).unwrap_or_default();
    if is_v1 && named != uid {
        return Err(format!("expected response.uid={}, got {}", quote(uid), quote(named)));
    }
    let status = response.str_at(&["result", "status"]).unwrap_or_default();
    if status != "Success" {
        let told = response.str_at(&["result", "message"]).filter(|message| !message.is_empty());
        return Err(told
            .map_or_else(|| format!("response.result.status was '{status}', not 'Success'"), str::to_owned));
    }
    Ok(response["convertedObjects"].as_array().cloned().unwrap_or_default())
}

/// A converted object with the metadata of the original one, of which only labels and annotations may change.
fn restored(original: &Value, mut converted: Value, wanted: &str, at: usize) -> Result<Value, String> {
    let invalid = |why: String| format!("returned invalid object at index {at}: {why}");
    let (expected, got) = (wanted, converted.api_version());
    if expected != got {
        return Err(invalid(format!("invalid groupVersion (expected {expected}, received {got})")));
    }
    let (expected, got) = (original.kind(), converted.kind());
    if expected != got {
        return Err(invalid(format!("invalid kind (expected {expected}, received {got})")));
    }
    for (what, expected, got) in [
        ("name", original.name(), converted.name()),
        ("namespace", original.namespace(), converted.namespace()),
        ("UID", original.uid(), converted.uid()),
    ] {
        if expected != got {
            return Err(format!("returned invalid object: must have the same {what}: {expected} != {got}"));
        }
    }
    let metadata = merged(original, &converted).map_err(|why| format!("returned invalid metadata: {why}"))?;
    converted["metadata"] = metadata.into();
    Ok(converted)
}

fn merged(original: &Value, converted: &Value) -> Result<Map<String, Value>, String> {
    let answered = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".into()),
        Some(Value::Object(map)) => map,
        Some(other) => {
            return Err(format!("invalid metadata of type {} in converted object", go_type(other)));
        }
    };
    let mut metadata = original.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match answered.get(field) {
            None | Some(Value::Null) => drop(metadata.remove(field)),
            Some(Value::Object(map)) => {
                if let Some((key, value)) = map.iter().find(|(_, value)| !value.is_string()) {
                    let ty = go_type(value);
                    return Err(format!(
                        "metadata.{field}[{key}] must be a string, but is {ty} in converted object"
                    ));
                }
                metadata.insert(field.into(), map.clone().into());
            }
            Some(other) => {
                let ty = go_type(other);
                return Err(format!("invalid metadata.{field} of type {ty} in converted object"));
            }
        }
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests;
