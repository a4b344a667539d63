//! The cluster as controllers see it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_apiserver::{ApiServer, Object, ResourceId, Snapshot};
use tiphys_value::{GroupVersionKind, GroupVersionResource, ObjectExt, Value};

use crate::{Key, object::owners};

/// All objects at one moment, and what owns what among them.
pub struct View<'a> {
    pub(crate) snapshot: Snapshot,
    pub(crate) server: &'a ApiServer,
    pub(crate) dependents: &'a Dependents,
}

/// One object came, changed or went.
#[derive(Clone, Debug)]
pub struct Change {
    /// The resource, in the version in which it is stored.
    pub resource: GroupVersionResource,
    /// The object; the last state of one that is gone.
    pub object: Arc<Object>,
    /// Whether it is gone.
    pub is_deleted: bool,
}

/// Which objects have an owner reference to a uid. Kept up to date with every change, because
/// looking at every object for each one that goes would be quadratic.
#[derive(Clone, Debug, Default)]
pub struct Dependents {
    by_owner: BTreeMap<String, BTreeSet<(ResourceId, Key)>>,
}

impl View<'_> {
    /// The objects of a resource, in a namespace or in all, sorted by namespace and name.
    pub fn list(&self, resource: &GroupVersionResource, namespace: Option<&str>) -> Vec<Arc<Object>> {
        self.snapshot.list(&id(resource), namespace).cloned().collect()
    }

    /// One object.
    pub fn get(&self, resource: &GroupVersionResource, key: &Key) -> Option<Arc<Object>> {
        self.snapshot.get(&id(resource), &key.namespace, &key.name).cloned()
    }

    /// The resource that serves a kind, if any does.
    pub fn resource_of(&self, api_version: &str, kind: &str) -> Option<GroupVersionResource> {
        let gvk = GroupVersionKind::from_api_version(api_version, kind);
        let (id, _) = self.server.resource_of_kind(&gvk)?;
        Some(GroupVersionResource::new(gvk.group, gvk.version, id.resource()))
    }

    /// Everything in a namespace, ordered by resource and name.
    pub fn content(&self, namespace: &str) -> Vec<(GroupVersionResource, Arc<Object>)> {
        let of = |id| {
            self.snapshot.list(id, Some(namespace)).map(move |object| (stored_as(id, object), object.clone()))
        };
        self.snapshot.resources().flat_map(of).collect()
    }

    /// The objects with an owner reference to a uid, ordered by resource and name.
    pub fn dependents(&self, uid: &str) -> Vec<(GroupVersionResource, Arc<Object>)> {
        let found = self.dependents.by_owner.get(uid).into_iter().flatten();
        let object = |(id, key): &(ResourceId, Key)| {
            let object = self.snapshot.get(id, &key.namespace, &key.name)?;
            Some((stored_as(id, object), object.clone()))
        };
        found.filter_map(object).collect()
    }
}

impl Dependents {
    /// Takes note of an object's owners in place of those that it had before.
    pub(crate) fn observe(&mut self, id: &ResourceId, before: Option<&Value>, after: Option<&Value>) {
        for (object, is_owned) in before.map(|o| (o, false)).into_iter().chain(after.map(|o| (o, true))) {
            for uid in owners(object).filter_map(|owner| owner.str_at(&["uid"])) {
                let dependents = self.by_owner.entry(uid.to_owned()).or_default();
                match is_owned {
                    true => dependents.insert((id.clone(), Key::of(object))),
                    false => dependents.remove(&(id.clone(), Key::of(object))),
                };
                if dependents.is_empty() {
                    self.by_owner.remove(uid);
                }
            }
        }
    }
}

/// The resource of a stored object, in the version in which it is stored.
pub(crate) fn stored_as(id: &ResourceId, object: &Value) -> GroupVersionResource {
    GroupVersionResource::new(id.group(), object.gvk().version, id.resource())
}

fn id(resource: &GroupVersionResource) -> ResourceId {
    ResourceId::new(&resource.group, &resource.resource)
}
