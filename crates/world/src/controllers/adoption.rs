//! Adoption: an owner takes up what its selector selects and nobody controls, and lets go of what it no
//! longer selects (Kubernetes documentation, "Owners and Dependents", "ReplicaSet: Non-Template Pod
//! acquisitions").

use std::sync::Arc;

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::{GroupVersionResource, ObjectExt};

use super::workload::is_finished;
use crate::{
    Change, Key, View, Write,
    cluster_view::is_adoptable,
    labels::claims,
    object::{is_controlled_by, owner_reference},
};

/// What an owner has of one resource.
pub(super) struct Claims {
    /// What it controls and selects, sorted by name.
    pub mine: Vec<Arc<Object>>,
    /// What takes up more; it is controlled once that is written.
    pub adopted: Vec<Write>,
    /// What lets go of what is no longer selected.
    pub released: Vec<Write>,
}

/// Looks for what `owner` controls and could control of a resource, among what has the right form.
pub(super) fn claim(
    owner: &Value,
    resource: &GroupVersionResource,
    selector: &Value,
    has_form: impl Fn(&Value) -> bool,
    view: &View<'_>,
) -> Claims {
    let fits = |object: &Value| claims(selector, object) && has_form(object);
    let controlled = view.dependents(owner.uid()).into_iter();
    let controlled = controlled.filter(|(r, object)| r == resource && is_controlled_by(object, owner));
    let (mine, strangers): (Vec<_>, Vec<_>) =
        controlled.map(|(_, object)| object).partition(|object| object.is_terminating() || fits(object));
    let free = view.orphans(resource, owner.namespace()).into_iter();
    let free = free.filter(|object| !object.is_terminating() && !is_finished(object) && fits(object));
    let update = |object: Value| Write::Update { resource: resource.clone(), object };
    Claims {
        mine,
        adopted: free.map(|object| update(adopted(&object, owner))).collect(),
        released: strangers.iter().map(|object| update(released(object, owner))).collect(),
    }
}

fn adopted(object: &Value, owner: &Value) -> Value {
    let mut object = object.clone();
    match object["metadata"]["ownerReferences"].as_array_mut() {
        Some(owners) => {
            owners.retain(|other| other["uid"] != owner.uid());
            owners.push(owner_reference(owner));
        }
        None => object["metadata"]["ownerReferences"] = json!([owner_reference(owner)]),
    }
    object
}

fn released(object: &Value, owner: &Value) -> Value {
    let mut object = object.clone();
    if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
        owners.retain(|other| other["uid"] != owner.uid());
    }
    object
}

/// The keys that a change concerns when a controller watches `own` and what objects of kind `kind`
/// control: the object itself, or the owner of the object.
pub(super) fn own_or_owner(change: &Change, own: &GroupVersionResource, kind: &str) -> Vec<Key> {
    if change.resource == *own {
        return vec![Key::from_object(&change.object)];
    }
    let owner = change.object.controller_reference().filter(|owner| owner["kind"] == kind);
    let name = owner.and_then(|owner| owner.str_at(&["name"]));
    let namespace = change.object.namespace().to_owned();
    name.map(|name| Key { namespace, name: name.to_owned() }).into_iter().collect()
}

/// The owners of a kind that a change concerns: the object itself, the owner of the object, or who may adopt
/// it.
pub(super) fn keys(
    change: &Change,
    own: &GroupVersionResource,
    kind: &str,
    selector: impl Fn(&Value) -> Value,
    view: &View<'_>,
) -> Vec<Key> {
    let keys = own_or_owner(change, own, kind);
    let is_free = keys.is_empty()
        && !change.is_deleted
        && is_adoptable(&change.resource)
        && change.object.controller_reference().is_none();
    if !is_free {
        return keys;
    }
    let owners = view.list(own, Some(change.object.namespace()));
    owners
        .iter()
        .filter(|owner| claims(&selector(owner), &change.object))
        .map(|owner| Key::from_object(owner))
        .collect()
}

/// `spec.selector` of a workload.
pub(super) fn selector_of(owner: &Value) -> Value {
    owner["spec"]["selector"].clone()
}
