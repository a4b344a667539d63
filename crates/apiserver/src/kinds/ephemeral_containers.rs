//! Containers for debugging, which are added to a pod that runs.

use tiphys_schema::{ErrorList, FieldError, Path};
use tiphys_value::{ObjectExt, Value, json};

use crate::meta::items;

/// What containers for debugging cannot have.
const NOT_EPHEMERAL: [&str; 6] =
    ["lifecycle", "livenessProbe", "ports", "readinessProbe", "resources", "startupProbe"];

/// Containers that are added to a running pod keep their names apart, and stay.
pub(super) fn validate(pod: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec.ephemeralContainers");
    let name = |container: &Value| container.str_at(&["name"]).unwrap_or_default().to_owned();
    let others = items(pod, "/spec/containers").chain(items(pod, "/spec/initContainers"));
    let mut taken: Vec<String> = others.map(name).collect();
    let regular = taken.clone();
    for (at, container) in items(pod, "/spec/ephemeralContainers").enumerate() {
        let own = name(container);
        let path = path.index(at);
        if own.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if taken.contains(&own) {
            errors.push(FieldError::duplicate(&path.child("name"), own.as_str()));
        }
        if container.str_at(&["image"]).unwrap_or_default().is_empty() {
            errors.push(FieldError::required(&path.child("image"), ""));
        }
        let target = container.str_at(&["targetContainerName"]).unwrap_or_default();
        if !target.is_empty() && !regular.iter().any(|name| name == target) {
            errors.push(FieldError::not_found(&path.child("targetContainerName"), target));
        }
        for field in NOT_EPHEMERAL.into_iter().filter(|field| {
            let given = &container[*field];
            !given.is_null() && *given != json!({}) && *given != json!([])
        }) {
            let detail = "cannot be set for an Ephemeral Container";
            errors.push(FieldError::forbidden(&path.child(field), detail));
        }
        taken.push(own);
    }
    for before in items(old, "/spec/ephemeralContainers") {
        let after = items(pod, "/spec/ephemeralContainers").find(|other| name(other) == name(before));
        if let Some(after) = after.filter(|after| *after != before) {
            let difference = tiphys_schema::internal_difference("EphemeralContainer", before, after);
            let named = tiphys_schema::quote(&name(before));
            let detail = format!("existing ephemeral containers {named} may not be changed\n{difference}");
            errors.push(FieldError::forbidden(&path, detail));
        }
    }
    let gone = items(old, "/spec/ephemeralContainers")
        .map(name)
        .filter(|name| items(pod, "/spec/ephemeralContainers").all(|other| other["name"] != name.as_str()));
    for name in gone {
        let detail =
            format!("existing ephemeral containers {} may not be removed\n", tiphys_schema::quote(&name));
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}
