//! Which Applications belong to an ApplicationSet: those that name it as their controller.

use serde_json::{Value, json};
use tiphys_model::names;
use tiphys_value::ObjectExt;

/// The entry of `ownerReferences` that makes an Application the set's.
pub fn owner_reference(set: &Value) -> Value {
    json!({"apiVersion": names::API_VERSION, "kind": "ApplicationSet", "name": set.name(),
        "uid": set.uid(), "controller": true, "blockOwnerDeletion": true})
}

/// The name of the ApplicationSet that an object belongs to; it stands in the same namespace.
pub fn owner_of(object: &Value) -> Option<&str> {
    let controls = |reference: &&Value| {
        reference.get("controller") == Some(&Value::Bool(true))
            && reference.str_at(&["kind"]) == Some("ApplicationSet")
            && reference.str_at(&["apiVersion"]) == Some(names::API_VERSION)
    };
    object.owner_references().iter().find(controls)?.str_at(&["name"])
}

/// Whether an Application belongs to a set.
pub fn is_owned_by(app: &Value, set: &Value) -> bool {
    app.namespace() == set.namespace() && owner_of(app) == Some(set.name())
}

/// Makes an Application the set's. A reference to a set of its name is made anew: it may be to one that is
/// gone, whose Applications the garbage collector would delete. A set without a uid is one of a file, and can
/// tell nothing of that.
pub(crate) fn take(app: &mut Value, set: &Value) {
    let wanted = owner_reference(set);
    let mut references = app.owner_references().to_vec();
    match references.iter_mut().find(|reference| is_of_name(reference, set.name())) {
        Some(reference) if !set.uid().is_empty() => *reference = wanted,
        Some(_) => return,
        None => references.push(wanted),
    }
    app["metadata"]["ownerReferences"] = references.into();
}

fn is_of_name(reference: &Value, name: &str) -> bool {
    let group = |version: &str| version.split_once('/').map(|(group, _)| group == names::GROUP);
    reference.str_at(&["kind"]) == Some("ApplicationSet")
        && reference.str_at(&["name"]) == Some(name)
        && reference.str_at(&["apiVersion"]).and_then(group) == Some(true)
}
