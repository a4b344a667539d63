//! Requests to sign certificates.

use tiphys_value::{Value, json};

use crate::{auth::User, meta};

/// What is asked for cannot be changed.
pub(super) fn keep(request: &mut Value, current: &Value) {
    meta::keep_part(request, current, "spec");
}

/// What somebody asks to have signed cannot be changed, and so nobody owns it.
pub(super) fn unowned(subresource: Option<&str>) -> Option<&'static [&'static str]> {
    Some(match subresource {
        Some("status") => &["spec", "status.conditions"],
        Some("approval") => &["spec", "status.certificate"],
        _ => &["spec", "status"],
    })
}

/// Who asks for a certificate is said by the server, not by the request.
pub(super) fn name_requester(object: &mut Value, user: &User) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for key in ["username", "uid", "groups", "extra"] {
        spec.remove(key);
    }
    spec.insert("username".into(), user.name.as_str().into());
    if !user.uid.is_empty() {
        spec.insert("uid".into(), user.uid.as_str().into());
    }
    if !user.groups.is_empty() {
        spec.insert("groups".into(), user.groups.clone().into());
    }
    if !user.extra.is_empty() {
        spec.insert("extra".into(), json!(user.extra));
    }
}
