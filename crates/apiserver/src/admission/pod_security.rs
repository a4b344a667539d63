//! Pod Security Standards, chosen by the labels of a namespace (`pod-security.kubernetes.io/…`).

use tiphys_schema::{pod_security::Level, quote};
use tiphys_value::{ObjectExt, Value};

use super::{Operation, Request};
use crate::{ApiError, ApiResult, ops::Call, registry::Resource, store::ResourceId};

/// Refuses pods that the level of their namespace forbids; warns where the namespace asks for that.
pub(super) fn check(request: &Request<'_>, call: &mut Call, object: &Value) -> ApiResult<()> {
    let at = request.at;
    if at.resource.custom.is_some() || request.operation == Operation::Delete {
        return Ok(());
    }
    let is_pod = at.is("", "pods");
    let ephemeral = at.subresource.as_deref() == Some("ephemeralcontainers");
    if at.subresource.is_some() && !(is_pod && ephemeral) {
        return Ok(());
    }
    let Some((spec, annotations)) = pod_of(&at.resource, object) else {
        return Ok(());
    };
    if request.old.is_some_and(|old| pod_of(&at.resource, old).is_some_and(|o| o.0 == spec)) {
        return Ok(());
    }
    let snapshot = request.server.snapshot();
    let namespace = snapshot.get(&ResourceId::new("", "namespaces"), "", &at.namespace);
    let Some(labels) = namespace.and_then(|n| n.at(&["metadata", "labels"])) else { return Ok(()) };
    let violated = |mode| violated(labels, mode, spec, annotations);
    if is_pod && let Some((level, why)) = violated("enforce") {
        let why = format!("violates PodSecurity {}: {why}", quote(&level));
        return Err(ApiError::forbidden(at.resource.object_named(object.name()), &why));
    }
    if let Some((level, why)) = violated("warn") {
        call.warnings.push(format!("would violate PodSecurity {}: {why}", quote(&level)));
    }
    Ok(())
}

/// The spec and annotations of the pod in an object.
fn pod_of<'a>(resource: &Resource, object: &'a Value) -> Option<(&'a Value, &'a Value)> {
    let template = object.at(resource.kind.pod_template?)?;
    Some((template.get("spec")?, template.at(&["metadata", "annotations"]).unwrap_or(&Value::Null)))
}

/// The level that a mode of the namespace names, and what a pod violates of it.
fn violated(labels: &Value, mode: &str, spec: &Value, annotations: &Value) -> Option<(String, String)> {
    let label = |suffix: &str| labels.str_at(&[&format!("pod-security.kubernetes.io/{mode}{suffix}")]);
    let level = Level::from_label(label("")?)?;
    let violations = level.violations(spec, annotations);
    if violations.is_empty() {
        return None;
    }
    let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
    let version = label("-version").unwrap_or("latest");
    Some((format!("{}:{version}", level.name()), texts.join(", ")))
}
