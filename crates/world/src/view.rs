//! The cluster as controllers see it.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use tiphys_value::{GroupVersionResource, ObjectExt};

use crate::{Key, object::owners};

/// A consistent view of all objects at one moment.
pub trait View {
    /// The objects of a resource, in a namespace or in all, sorted by namespace and name.
    fn list(&self, resource: &GroupVersionResource, namespace: Option<&str>) -> Vec<Arc<Value>>;

    /// One object.
    fn get(&self, resource: &GroupVersionResource, key: &Key) -> Option<Arc<Value>>;

    /// The resource (in the version in which it is stored) that serves a kind, if any does.
    fn resource_of(&self, api_version: &str, kind: &str) -> Option<GroupVersionResource>;

    /// Every resource that is stored, sorted; namespaced ones only if asked.
    fn resources(&self, only_namespaced: bool) -> Vec<GroupVersionResource>;

    /// The objects with an owner reference to a uid. Looks at every object; a view with an index
    /// does better.
    fn dependents(&self, uid: &str) -> Vec<(GroupVersionResource, Arc<Value>)> {
        let owned = |object: &Arc<Value>| owners(object).any(|owner| owner.str_at(&["uid"]) == Some(uid));
        let mut found = Vec::new();
        for resource in self.resources(false) {
            let dependents = self.list(&resource, None).into_iter().filter(owned);
            found.extend(dependents.map(|object| (resource.clone(), object)));
        }
        found
    }
}

/// One object came, changed or went.
#[derive(Clone, Debug)]
pub struct Change {
    /// The resource, in the version in which it is stored.
    pub resource: GroupVersionResource,
    /// The object; the last state of one that is gone.
    pub object: Arc<Value>,
    /// Whether it is gone.
    pub is_deleted: bool,
}

/// A view over plain maps, for tests of controllers.
#[derive(Clone, Debug, Default)]
pub struct MapView {
    objects: BTreeMap<GroupVersionResource, BTreeMap<Key, Arc<Value>>>,
    kinds: BTreeMap<(String, String), (GroupVersionResource, bool)>,
}

impl MapView {
    /// Makes a kind known.
    pub fn serve(&mut self, kind: &str, resource: &GroupVersionResource, is_namespaced: bool) {
        let id = (resource.api_version(), kind.to_owned());
        self.kinds.insert(id, (resource.clone(), is_namespaced));
    }

    /// Adds or replaces an object.
    pub fn put(&mut self, resource: &GroupVersionResource, object: Value) {
        let objects = self.objects.entry(resource.clone()).or_default();
        objects.insert(Key::of(&object), Arc::new(object));
    }

    /// Removes an object.
    pub fn remove(&mut self, resource: &GroupVersionResource, key: &Key) -> Option<Arc<Value>> {
        self.objects.get_mut(resource)?.remove(key)
    }
}

impl View for MapView {
    fn list(&self, resource: &GroupVersionResource, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let objects = self.objects.get(resource).into_iter().flatten();
        let wanted = objects.filter(|(key, _)| namespace.is_none_or(|namespace| key.namespace == namespace));
        wanted.map(|(_, object)| object.clone()).collect()
    }

    fn get(&self, resource: &GroupVersionResource, key: &Key) -> Option<Arc<Value>> {
        self.objects.get(resource)?.get(key).cloned()
    }

    fn resource_of(&self, api_version: &str, kind: &str) -> Option<GroupVersionResource> {
        self.kinds.get(&(api_version.to_owned(), kind.to_owned())).map(|(resource, _)| resource.clone())
    }

    fn resources(&self, only_namespaced: bool) -> Vec<GroupVersionResource> {
        let kinds = self.kinds.values().filter(|(_, is_namespaced)| *is_namespaced || !only_namespaced);
        kinds.map(|(resource, _)| resource.clone()).collect()
    }
}
