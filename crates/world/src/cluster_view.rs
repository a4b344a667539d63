//! The cluster as controllers see it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_apiserver::{ApiServer, Object, ResourceId, Snapshot};
use tiphys_value::{GroupVersionKind, GroupVersionResource, ObjectExt, Value};

use crate::{
    Key,
    object::{is_condition_true, resources},
};

/// Whether objects of a resource are taken up by owners.
pub(crate) fn is_adoptable(resource: &GroupVersionResource) -> bool {
    [resources::pods(), resources::replica_sets(), resources::controller_revisions()].contains(resource)
}

/// All objects at one moment, and what owns what among them.
pub struct View<'a> {
    pub(crate) snapshot: Snapshot,
    pub(crate) server: &'a ApiServer,
    pub(crate) index: &'a Index,
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

/// What would be quadratic to look for among all objects at every change: kept up to date instead.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// Which objects have an owner reference to a uid.
    by_owner: BTreeMap<String, BTreeSet<(ResourceId, Key)>>,
    /// Which pods are on a node; under the empty name those that are on none.
    by_node: BTreeMap<String, BTreeSet<Key>>,
    /// Pods that are neither Ready nor finished.
    unready: BTreeSet<Key>,
    /// By namespace, what a workload may adopt because nothing controls it.
    orphans: BTreeMap<String, BTreeSet<(ResourceId, Key)>>,
    /// Of a cluster that was found, the uids of what has gone since; `None` where everything is known.
    gone: Option<BTreeSet<String>>,
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

    /// The pods on a node, or with an empty name those that are on none, sorted by namespace and name.
    pub fn pods_on(&self, node: &str) -> Vec<Arc<Object>> {
        let keys = self.index.by_node.get(node).into_iter().flatten();
        keys.filter_map(|key| self.get(&resources::pods(), key)).collect()
    }

    /// How many pods are on a node.
    pub fn pod_count(&self, node: &str) -> usize {
        self.index.by_node.get(node).map_or(0, BTreeSet::len)
    }

    /// The pods that are neither Ready nor finished.
    pub fn unready_pods(&self) -> impl Iterator<Item = &Key> {
        self.index.unready.iter()
    }

    /// The objects of a resource in a namespace that nothing controls, if workloads adopt such.
    pub fn orphans(&self, resource: &GroupVersionResource, namespace: &str) -> Vec<Arc<Object>> {
        let wanted = id(resource);
        let found = self.index.orphans.get(namespace).into_iter().flatten();
        let found = found.filter(|(id, _)| *id == wanted);
        found.filter_map(|(id, key)| self.snapshot.get(id, &key.namespace, &key.name)).cloned().collect()
    }

    /// All objects, ordered by resource, namespace and name.
    pub fn everything(&self) -> Vec<(GroupVersionResource, Arc<Object>)> {
        let of = |id| self.snapshot.list(id, None).map(move |object| (stored_as(id, object), object.clone()));
        self.snapshot.resources().flat_map(of).collect()
    }

    /// Whether the objects of a kind live in namespaces.
    pub fn is_namespaced(&self, api_version: &str, kind: &str) -> bool {
        let gvk = GroupVersionKind::from_api_version(api_version, kind);
        self.server.resource_of_kind(&gvk).is_some_and(|(_, is_namespaced)| is_namespaced)
    }

    /// Everything in a namespace, ordered by resource and name.
    pub fn content(&self, namespace: &str) -> Vec<(GroupVersionResource, Arc<Object>)> {
        let of = |id| {
            self.snapshot.list(id, Some(namespace)).map(move |object| (stored_as(id, object), object.clone()))
        };
        self.snapshot.resources().flat_map(of).collect()
    }

    /// Whether there is an object of a kind, in whatever version.
    pub fn has_of_kind(&self, group: &str, kind: &str, key: &Key) -> bool {
        let ids = self.snapshot.resources().filter(|id| id.group() == group);
        let mut found = ids.filter_map(|id| self.snapshot.get(id, &key.namespace, &key.name));
        found.any(|object| object.kind() == kind)
    }

    /// The names of the objects of a kind in a namespace, or outside of namespaces, in whatever version.
    pub fn names_of_kind(&self, group: &str, kind: &str, namespace: &str) -> Vec<String> {
        let of_kind = self.snapshot.of_kind(group, kind).filter(|object| object.namespace() == namespace);
        of_kind.map(|object| object.name().to_owned()).collect()
    }

    /// Whether the cluster was found as it is.
    pub fn is_found(&self) -> bool {
        self.index.is_of_found()
    }

    /// Whether what is not there is gone, and not only unknown.
    pub fn is_surely_gone(&self, uid: &str) -> bool {
        self.index.gone.as_ref().is_none_or(|gone| gone.contains(uid))
    }

    /// The objects with an owner reference to a uid, ordered by resource and name.
    pub fn dependents(&self, uid: &str) -> Vec<(GroupVersionResource, Arc<Object>)> {
        let found = self.index.by_owner.get(uid).into_iter().flatten();
        let object = |(id, key): &(ResourceId, Key)| {
            let object = self.snapshot.get(id, &key.namespace, &key.name)?;
            Some((stored_as(id, object), object.clone()))
        };
        found.filter_map(object).collect()
    }
}

impl Index {
    /// How many pods there are.
    pub(crate) fn pods(&self) -> usize {
        self.by_node.values().map(BTreeSet::len).sum()
    }

    /// Of a cluster that was found as it is.
    pub(crate) fn of_found(snapshot: &Snapshot) -> Self {
        let mut index = Self { gone: Some(BTreeSet::new()), ..Self::default() };
        index.rebuild(snapshot);
        index
    }

    /// Whether the cluster was found as it is.
    pub(crate) fn is_of_found(&self) -> bool {
        self.gone.is_some()
    }

    /// Takes note of everything anew.
    pub(crate) fn rebuild(&mut self, snapshot: &Snapshot) {
        *self = Self { gone: self.gone.take(), ..Self::default() };
        for id in snapshot.resources() {
            for object in snapshot.list(id, None) {
                self.observe(id, None, Some(object));
            }
        }
    }

    /// Takes note of an object in place of what it was before.
    pub(crate) fn observe(&mut self, id: &ResourceId, before: Option<&Value>, after: Option<&Value>) {
        if let (Some(gone), Some(before), None) = (&mut self.gone, before, after) {
            gone.insert(before.uid().to_owned());
        }
        for (object, is_there) in before.map(|o| (o, false)).into_iter().chain(after.map(|o| (o, true))) {
            for uid in object.owner_references().iter().filter_map(|owner| owner.str_at(&["uid"])) {
                change(&mut self.by_owner, uid, (id.clone(), Key::from_object(object)), is_there);
            }
            if object.controller_reference().is_none() && is_adoptable(&stored_as(id, object)) {
                change(
                    &mut self.orphans,
                    object.namespace(),
                    (id.clone(), Key::from_object(object)),
                    is_there,
                );
            }
            if id.resource() == "pods" && id.group().is_empty() {
                self.observe_pod(object, is_there);
            }
        }
    }

    fn observe_pod(&mut self, pod: &Value, is_there: bool) {
        let node = pod.str_at(&["spec", "nodeName"]).unwrap_or_default();
        change(&mut self.by_node, node, Key::from_object(pod), is_there);
        let is_finished = matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"));
        if is_there && !is_finished && !is_condition_true(pod, "Ready") {
            self.unready.insert(Key::from_object(pod));
        } else {
            self.unready.remove(&Key::from_object(pod));
        }
    }
}

/// Puts an entry under a name, or takes it away.
fn change<T: Ord>(map: &mut BTreeMap<String, BTreeSet<T>>, name: &str, entry: T, is_there: bool) {
    if is_there {
        map.entry(name.to_owned()).or_default().insert(entry);
    } else if let Some(entries) = map.get_mut(name) {
        entries.remove(&entry);
        if entries.is_empty() {
            map.remove(name);
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
