//! Garbage collection by owner references (API concepts, "Garbage Collection").

use std::sync::Arc;

use serde_json::Value;
use tiphys_apiserver::Object;
use tiphys_value::{GroupVersionResource, ObjectExt};

use crate::{Change, Controller, Key, Outcome, Propagation, View, Write, controller::Context};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// Deletes what has lost its owners, and lets owners go once what they own is gone.
///
/// Its keys name a task: `gone/UID` after an object went, `object/GROUP/VERSION/RESOURCE/NAME` for
/// one that has owners or is going.
pub(super) struct GarbageCollector;

impl Controller for GarbageCollector {
    fn name(&self) -> &'static str {
        "garbage-collector"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        let mut keys = Vec::new();
        if change.is_deleted {
            keys.push(Key { namespace: String::new(), name: format!("gone/{}", change.object.uid()) });
            // A terminating owner may have waited for this one.
            let waiting = change
                .object
                .owner_references()
                .iter()
                .filter_map(|owner| find(owner, change.object.namespace(), view));
            keys.extend(waiting.filter(|(_, o)| o.is_terminating()).map(|(r, o)| task(&r, &o)));
        } else if !change.object.owner_references().is_empty() || is_held(&change.object) {
            keys.push(task(&change.resource, &change.object));
            // One that blocks nobody any more may be what its owner waited for.
            let free = change
                .object
                .owner_references()
                .iter()
                .filter(|o| o.get("blockOwnerDeletion") == Some(&Value::Bool(false)));
            let waiting = free.filter_map(|owner| find(owner, change.object.namespace(), view));
            keys.extend(waiting.filter(|(_, o)| is_held(o)).map(|(r, o)| task(&r, &o)));
        }
        keys
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        if let Some(uid) = key.name.strip_prefix("gone/") {
            let dependents = context.view.dependents(uid);
            return dependents
                .iter()
                .filter_map(|(r, o)| collect(r, o, context.view))
                .collect::<Vec<_>>()
                .into();
        }
        let Some((resource, object)) = subject(key, context.view) else { return Outcome::done() };
        if object.is_terminating() {
            return release(&resource, &object, context.view).into();
        }
        collect(&resource, &object, context.view).map(Outcome::from).unwrap_or_default()
    }
}

fn task(resource: &GroupVersionResource, object: &Value) -> Key {
    let GroupVersionResource { group, version, resource } = resource;
    Key {
        namespace: object.namespace().to_owned(),
        name: format!("object/{group}/{version}/{resource}/{}", object.name()),
    }
}

fn subject(key: &Key, view: &View<'_>) -> Option<(GroupVersionResource, Arc<Object>)> {
    let mut parts = key.name.strip_prefix("object/")?.splitn(4, '/');
    let resource = GroupVersionResource::new(parts.next()?, parts.next()?, parts.next()?);
    let key = Key { namespace: key.namespace.clone(), name: parts.next()?.to_owned() };
    let object = view.get(&resource, &key)?;
    Some((resource, object))
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    let finalizers = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    finalizers.is_some_and(|all| all.iter().any(|existing| existing == finalizer))
}

fn is_held(object: &Value) -> bool {
    object.is_terminating() && (has_finalizer(object, FOREGROUND) || has_finalizer(object, ORPHAN))
}

/// The live object that an owner reference means: of the same namespace or cluster-scoped, with the
/// same uid.
fn find(owner: &Value, namespace: &str, view: &View<'_>) -> Option<(GroupVersionResource, Arc<Object>)> {
    let resource = view.resource_of(owner.api_version(), owner.kind())?;
    let name = owner.str_at(&["name"])?.to_owned();
    let in_namespace = [namespace, ""].into_iter().find_map(|namespace| {
        view.get(&resource, &Key { namespace: namespace.to_owned(), name: name.clone() })
    });
    let object = in_namespace.filter(|object| owner.str_at(&["uid"]) == Some(object.uid()))?;
    Some((resource, object))
}

/// Deletes an object that has owners and none of them is left; drops the references to those that
/// are gone if others are left. A kind that nothing serves is no proof of absence.
fn collect(resource: &GroupVersionResource, object: &Value, view: &View<'_>) -> Option<Write> {
    if object.is_terminating() {
        return None;
    }
    let is_gone = |owner: &&Value| {
        view.resource_of(owner.api_version(), owner.kind()).is_some()
            && find(owner, object.namespace(), view).is_none()
            && view.is_surely_gone(owner.str_at(&["uid"]).unwrap_or_default())
    };
    let gone: Vec<_> =
        object.owner_references().iter().filter(is_gone).filter_map(|owner| owner.str_at(&["uid"])).collect();
    if gone.is_empty() {
        return None;
    }
    if gone.len() == object.owner_references().len() {
        return Some(Write::Delete {
            resource: resource.clone(),
            key: Key::from_object(object),
            uid: object.uid().to_owned(),
            propagation: Propagation::Background,
        });
    }
    let object = without_owners(object, |uid| gone.contains(&uid));
    Some(Write::Update { resource: resource.clone(), object })
}

fn without_owners(object: &Value, drop: impl Fn(&str) -> bool) -> Value {
    let mut changed = object.clone();
    if let Some(owners) = changed["metadata"]["ownerReferences"].as_array_mut() {
        owners.retain(|owner| !owner.str_at(&["uid"]).is_some_and(&drop));
    }
    changed
}

/// What a terminating owner waits for: with `foregroundDeletion` its dependents go first, with
/// `orphan` they lose their reference; then the finalizer falls.
fn release(resource: &GroupVersionResource, object: &Value, view: &View<'_>) -> Vec<Write> {
    let dependents = view.dependents(object.uid());
    if has_finalizer(object, ORPHAN) && !dependents.is_empty() {
        let orphan = |(resource, dependent): &(GroupVersionResource, Arc<Object>)| Write::Update {
            resource: resource.clone(),
            object: without_owners(dependent, |uid| uid == object.uid()),
        };
        let mut writes: Vec<_> = dependents.iter().map(orphan).collect();
        writes.push(drop_finalizer(resource, object, ORPHAN));
        return writes;
    }
    if has_finalizer(object, ORPHAN) {
        return vec![drop_finalizer(resource, object, ORPHAN)];
    }
    if !has_finalizer(object, FOREGROUND) {
        return Vec::new();
    }
    let blocks = |dependent: &Value| {
        let mut mine =
            dependent.owner_references().iter().filter(|owner| owner.str_at(&["uid"]) == Some(object.uid()));
        mine.any(|owner| owner.get("blockOwnerDeletion") == Some(&Value::Bool(true)))
    };
    if !dependents.iter().any(|(_, dependent)| blocks(dependent)) {
        return vec![drop_finalizer(resource, object, FOREGROUND)];
    }
    let live = dependents.iter().filter(|(_, dependent)| !dependent.is_terminating());
    live.flat_map(|(resource, dependent)| take_away(resource, dependent, object, view)).collect()
}

/// What becomes of a dependent of an owner that waits for it: it goes too, unless another owner keeps it.
fn take_away(
    resource: &GroupVersionResource,
    dependent: &Value,
    owner: &Value,
    view: &View<'_>,
) -> Vec<Write> {
    let is_solid = |reference: &Value| {
        reference.str_at(&["uid"]) != Some(owner.uid())
            && find(reference, dependent.namespace(), view)
                .is_some_and(|(_, other)| !(other.is_terminating() && has_finalizer(&other, FOREGROUND)))
    };
    if dependent.owner_references().iter().any(is_solid) {
        let object = without_owners(dependent, |uid| uid == owner.uid());
        return vec![Write::Update { resource: resource.clone(), object }];
    }
    let delete = Write::Delete {
        resource: resource.clone(),
        key: Key::from_object(dependent),
        uid: dependent.uid().to_owned(),
        propagation: Propagation::Foreground,
    };
    // In a circle each would wait for the next: one that is waited for already blocks nobody.
    let is_circle = view
        .dependents(dependent.uid())
        .iter()
        .any(|(_, next)| next.is_terminating() && has_finalizer(next, FOREGROUND));
    if !is_circle {
        return vec![delete];
    }
    let mut object = dependent.clone();
    for reference in object["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
        reference["blockOwnerDeletion"] = false.into();
    }
    vec![Write::Update { resource: resource.clone(), object }, delete]
}

fn drop_finalizer(resource: &GroupVersionResource, object: &Value, finalizer: &str) -> Write {
    let mut changed = object.clone();
    if let Some(finalizers) = changed["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|existing| existing != finalizer);
    }
    Write::Update { resource: resource.clone(), object: changed }
}
