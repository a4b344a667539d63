//! Pod Security Standards, chosen by the labels of a namespace (`pod-security.kubernetes.io/…`).

mod baseline;
mod restricted;

use tiphys_schema::quote;
use tiphys_value::{ObjectExt, Value};

use super::{Operation, Request};
use crate::{
    ApiError, ApiResult,
    ops::{Call, items},
    store::ResourceId,
};

/// What a pod violates: the rule and how.
pub(super) type Violation = (&'static str, String);

/// A pod as the rules look at it.
pub(super) struct Pod<'a> {
    pub spec: &'a Value,
    pub annotations: &'a Value,
}

impl<'a> Pod<'a> {
    /// All containers, in the order in which messages name them.
    pub fn containers(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        let of = |list| items(self.spec, list);
        of("/initContainers").chain(of("/containers")).chain(of("/ephemeralContainers"))
    }

    /// Names of the containers that something is true of.
    pub fn names(&self, holds: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        let chosen = self.containers().filter(|container| holds(container));
        chosen.map(|container| container.str_at(&["name"]).unwrap_or_default()).collect()
    }

    pub fn is_windows(&self) -> bool {
        self.spec.str_at(&["os", "name"]) == Some("windows")
    }

    /// Pods in a user namespace of their own may be more than others.
    pub fn has_own_users(&self) -> bool {
        self.spec["hostUsers"] == false
    }
}

/// `one`, or `many` unless there is one.
pub(super) fn plural<'a>(one: &'a str, many: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { many }
}

/// `"a", "b"`.
pub(super) fn quoted<T: AsRef<str>>(names: &[T]) -> String {
    names.iter().map(|name| format!("\"{}\"", name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// `containers "a", "b"`.
pub(super) fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quoted(names))
}

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
    let Some((spec, annotations)) = pod_of(at.resource.group(), &at.resource.plural, object) else {
        return Ok(());
    };
    if request
        .old
        .is_some_and(|old| pod_of(at.resource.group(), &at.resource.plural, old).is_some_and(|o| o.0 == spec))
    {
        return Ok(());
    }
    let snapshot = request.server.snapshot();
    let namespace = snapshot.get(&ResourceId::new("", "namespaces"), "", &at.namespace);
    let Some(labels) = namespace.and_then(|n| n.at(&["metadata", "labels"])) else { return Ok(()) };
    let pod = Pod { spec, annotations };
    if is_pod && let Some((level, why)) = violated(labels, "enforce", &pod) {
        let why = format!("violates PodSecurity {}: {why}", quote(&level));
        return Err(ApiError::forbidden(at.resource.named(object.name()), &why));
    }
    if let Some((level, why)) = violated(labels, "warn", &pod) {
        call.warnings.push(format!("would violate PodSecurity {}: {why}", quote(&level)));
    }
    Ok(())
}

/// The spec and annotations of the pod in an object.
fn pod_of<'a>(group: &str, plural: &str, object: &'a Value) -> Option<(&'a Value, &'a Value)> {
    let template = match (group, plural) {
        ("", "pods") => object,
        ("", "replicationcontrollers")
        | ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => object.at(&["spec", "template"])?,
        ("", "podtemplates") => object.get("template")?,
        ("batch", "cronjobs") => object.at(&["spec", "jobTemplate", "spec", "template"])?,
        _ => return None,
    };
    Some((template.get("spec")?, template.at(&["metadata", "annotations"]).unwrap_or(&Value::Null)))
}

/// What a pod violates of the level that a mode of the namespace names.
fn violated(labels: &Value, mode: &str, pod: &Pod<'_>) -> Option<(String, String)> {
    let label = |suffix: &str| labels.str_at(&[&format!("pod-security.kubernetes.io/{mode}{suffix}")]);
    let level = label("")?;
    let version = label("-version").unwrap_or("latest");
    let violations = match level {
        "baseline" => baseline::violations(pod, false),
        "restricted" => {
            let mut all = baseline::violations(pod, true);
            all.extend(restricted::violations(pod));
            all
        }
        _ => return None,
    };
    if violations.is_empty() {
        return None;
    }
    let texts = violations.into_iter().map(|(reason, detail)| match detail.is_empty() {
        true => reason.to_owned(),
        false => format!("{reason} ({detail})"),
    });
    Some((format!("{level}:{version}"), texts.collect::<Vec<_>>().join(", ")))
}
