//! A cluster of plain maps under virtual time: what an API server does for the controllers, and no
//! more.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_value::{GroupVersionResource, ObjectExt};
use tiphys_world::{Change, Key, MapView, Propagation, Settings, View, World, Write, initial_objects};

pub struct Cluster {
    pub view: MapView,
    pub log: Vec<String>,
    world: World,
    now: Timestamp,
    revision: u64,
}

pub fn resource(group: &str, version: &str, plural: &str) -> GroupVersionResource {
    GroupVersionResource::new(group, version, plural)
}

const KINDS: &[(&str, &str, &str, &str, bool)] = &[
    ("Pod", "", "v1", "pods", true),
    ("Service", "", "v1", "services", true),
    ("ConfigMap", "", "v1", "configmaps", true),
    ("ServiceAccount", "", "v1", "serviceaccounts", true),
    ("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", true),
    ("PersistentVolume", "", "v1", "persistentvolumes", false),
    ("Namespace", "", "v1", "namespaces", false),
    ("Node", "", "v1", "nodes", false),
    ("Deployment", "apps", "v1", "deployments", true),
    ("ReplicaSet", "apps", "v1", "replicasets", true),
    ("StatefulSet", "apps", "v1", "statefulsets", true),
    ("DaemonSet", "apps", "v1", "daemonsets", true),
    ("Job", "batch", "v1", "jobs", true),
    ("EndpointSlice", "discovery.k8s.io", "v1", "endpointslices", true),
    ("StorageClass", "storage.k8s.io", "v1", "storageclasses", false),
];

impl Cluster {
    pub fn new() -> Self {
        let settings = Settings::default();
        let mut view = MapView::default();
        for (kind, group, version, plural, is_namespaced) in KINDS {
            view.serve(kind, &resource(group, version, plural), *is_namespaced);
        }
        let world = World::new(settings.clone());
        let mut cluster = Self { view, log: Vec::new(), world, now: Timestamp::UNIX_EPOCH, revision: 0 };
        for (resource, object) in initial_objects(&settings) {
            cluster.create(&resource, object);
        }
        cluster
    }

    pub fn create(&mut self, resource: &GroupVersionResource, mut object: Value) {
        self.revision += 1;
        object["metadata"]["uid"] = format!("uid-{}", self.revision).into();
        object["metadata"]["generation"] = 1.into();
        object["metadata"]["creationTimestamp"] = self.now.to_string().into();
        self.put(resource, object, "create");
    }

    pub fn update(&mut self, resource: &GroupVersionResource, mut object: Value) {
        let before = self.view.get(resource, &Key::of(&object)).expect("updates are of what exists");
        if before["spec"] != object["spec"] {
            object["metadata"]["generation"] = (before.generation() + 1).into();
        }
        let finalizers = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
        if object.is_terminating() && finalizers.is_none_or(Vec::is_empty) {
            return self.remove(resource, &Key::of(&object));
        }
        self.put(resource, object, "update");
    }

    pub fn delete(&mut self, resource: &GroupVersionResource, key: &Key, propagation: Propagation) {
        let Some(object) = self.view.get(resource, key) else { return };
        let mut object = (*object).clone();
        if propagation == Propagation::Foreground {
            object["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
        }
        let is_graceful = resource.resource == "pods" || resource.resource == "namespaces";
        let is_held =
            object.at(&["metadata", "finalizers"]).and_then(Value::as_array).is_some_and(|f| !f.is_empty());
        if !is_graceful && !is_held {
            return self.remove(resource, key);
        }
        object["metadata"]["deletionTimestamp"] = self.now.to_string().into();
        self.put(resource, object, "terminate");
    }

    pub fn run(&mut self, duration: Duration) {
        let end = self.now.checked_add(duration).expect("tests run for hours, not for ages");
        for _ in 0..100_000 {
            while let Some(turn) = self.world.next_turn(&self.view, self.now) {
                for write in turn.writes.clone() {
                    self.carry_out(write);
                }
                self.world.succeeded(&turn);
            }
            match self.world.next_timer() {
                Some(at) if at <= end => self.now = at,
                _ => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("the controllers do not come to rest");
    }

    pub fn get(&self, resource: &GroupVersionResource, namespace: &str, name: &str) -> Option<Value> {
        let key = Key { namespace: namespace.into(), name: name.into() };
        self.view.get(resource, &key).map(|object| (*object).clone())
    }

    pub fn names(&self, resource: &GroupVersionResource) -> Vec<String> {
        self.view.list(resource, None).iter().map(|object| object.name().to_owned()).collect()
    }

    fn carry_out(&mut self, write: Write) {
        match write {
            Write::Create { resource, object } => self.create(&resource, object),
            Write::Update { resource, object } | Write::UpdateStatus { resource, object } => {
                self.update(&resource, object);
            }
            Write::Delete { resource, key, propagation, .. } => self.delete(&resource, &key, propagation),
            Write::Forget { resource, key, .. } => self.remove(&resource, &key),
            Write::Finalize { key } => self.remove(&resource("", "v1", "namespaces"), &key),
        }
    }

    fn put(&mut self, resource: &GroupVersionResource, object: Value, verb: &str) {
        self.log.push(format!("{} {verb} {resource} {}", self.now, object.resource_key()));
        self.view.put(resource, object.clone());
        let change = Change { resource: resource.clone(), object: object.into(), is_deleted: false };
        self.world.observe(&change, &self.view);
    }

    fn remove(&mut self, resource: &GroupVersionResource, key: &Key) {
        let Some(object) = self.view.remove(resource, key) else { return };
        self.log.push(format!("{} delete {resource} {}", self.now, object.resource_key()));
        self.world.observe(&Change { resource: resource.clone(), object, is_deleted: true }, &self.view);
    }
}
