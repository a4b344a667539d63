//! The content of a store at one revision. Cloning it copies a pointer.

use std::{ops::Bound, sync::Arc};

use rpds::RedBlackTreeMapSync;
use tiphys_value::{ObjectExt, ResourceKey};

use super::{Object, ResourceId, allocation::Allocations};

type Objects = RedBlackTreeMapSync<Arc<str>, Arc<Object>>;

/// All objects at one revision; immutable and cheap to clone.
#[derive(Clone, Default)]
pub struct Snapshot {
    resources: RedBlackTreeMapSync<ResourceId, Objects>,
    pub(super) allocations: Allocations,
    revision: u64,
}

impl Snapshot {
    /// The newest revision in it.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The network that Services get their addresses from.
    pub fn service_network(&self) -> super::ServiceNetwork {
        self.allocations.network
    }

    /// One object; the namespace is empty for cluster-scoped resources.
    pub fn get(&self, resource: &ResourceId, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.find(resource, &key(namespace, name))
    }

    /// The object of a group, kind, namespace and name, whatever its resource is called.
    pub fn with_key(&self, key: &ResourceKey) -> Option<&Arc<Object>> {
        let ids = self.resources().filter(|id| id.group() == key.group);
        let mut named = ids.filter_map(|id| self.get(id, &key.namespace, &key.name));
        named.find(|object| object.value().kind() == key.kind)
    }

    /// All objects of a resource in one namespace, or in all, ordered by namespace and name.
    pub fn list<'a>(
        &'a self,
        resource: &ResourceId,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        self.range(resource, namespace, None).map(|(_, object)| object)
    }

    /// How many objects of a resource there are in all namespaces.
    pub fn count(&self, resource: &ResourceId) -> usize {
        self.resources.get(resource).map_or(0, RedBlackTreeMapSync::size)
    }

    /// The resources that ever had an object, in order.
    pub fn resources(&self) -> impl Iterator<Item = &ResourceId> {
        self.resources.keys()
    }

    /// The objects of a kind, in whatever version and namespace, or outside of namespaces.
    pub fn of_kind<'a>(&'a self, group: &'a str, kind: &'a str) -> impl Iterator<Item = &'a Arc<Object>> {
        let ids = self.resources().filter(move |id| id.group() == group);
        ids.flat_map(|id| self.list(id, None)).filter(move |object| object.value().kind() == kind)
    }

    /// Keys and objects of a resource in one namespace, or in all, after a key.
    pub(crate) fn range<'a>(
        &'a self,
        resource: &ResourceId,
        namespace: Option<&str>,
        after: Option<&str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Object>)> + use<'a> {
        let prefix: Arc<str> = namespace.map(|n| format!("{n}/")).unwrap_or_default().into();
        let start = match after {
            Some(after) if after >= &*prefix => Bound::Excluded(Arc::from(after)),
            _ => Bound::Included(Arc::clone(&prefix)),
        };
        let objects = self.resources.get(resource);
        let range = objects.into_iter().flat_map(move |o| o.range((start.clone(), Bound::Unbounded)));
        range.take_while(move |(key, _)| key.starts_with(&*prefix))
    }

    pub(crate) fn find(&self, resource: &ResourceId, key: &str) -> Option<&Arc<Object>> {
        self.resources.get(resource)?.get(key)
    }

    pub(super) fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    pub(super) fn insert(&mut self, resource: &ResourceId, key: &str, object: Arc<Object>) {
        let key = Arc::from(key);
        match self.resources.get_mut(resource) {
            Some(objects) => objects.insert_mut(key, object),
            None => {
                let objects = Objects::new_sync().insert(key, object);
                self.resources.insert_mut(resource.clone(), objects);
            }
        }
    }

    pub(super) fn remove(&mut self, resource: &ResourceId, key: &str) {
        if let Some(objects) = self.resources.get_mut(resource) {
            objects.remove_mut(key);
        }
    }
}

/// `namespace/name`, or `name` without a namespace.
pub(crate) fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}
