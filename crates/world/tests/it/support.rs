//! An embedded API server with the world behind it, under a clock that the test sets.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tiphys_apiserver::{ApiServer, ApiServerOptions, Client, DeleteOptions, ListOptions, Propagation};
use tiphys_value::{GroupVersionResource, ObjectExt, Value, json};
use tiphys_world::{Driver, Settings, Start, VirtualClock};

pub(crate) struct Cluster {
    pub server: ApiServer,
    pub client: Client,
    driver: Driver,
    clock: Arc<VirtualClock>,
}

pub(crate) fn resource(group: &str, version: &str, plural: &str) -> GroupVersionResource {
    GroupVersionResource::new(group, version, plural)
}

pub(crate) fn deployments() -> GroupVersionResource {
    resource("apps", "v1", "deployments")
}

pub(crate) fn pods() -> GroupVersionResource {
    resource("", "v1", "pods")
}

pub(crate) fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": image}]}})
}

pub(crate) fn workload(kind: &str, name: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template("web:1")},
    })
}

pub(crate) fn daemon_set(name: &str) -> Value {
    let mut set = workload("DaemonSet", name, 0);
    set["spec"].as_object_mut().unwrap().remove("replicas");
    set
}

/// Longer than most of what is waited for here takes.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

impl Cluster {
    /// A cluster with the namespace `shop`.
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    /// A cluster of a kind, with the namespace `shop`.
    pub(crate) fn with(settings: Settings) -> Self {
        let clock = VirtualClock::starting_at(Timestamp::from_second(1_700_000_000).unwrap());
        let options = ApiServerOptions { clock: Some(clock.clone()), seed: Some(7), ..Default::default() };
        let server = ApiServer::new(options).unwrap();
        let driver = Driver::new(&server, settings).unwrap();
        let client = server.client("test");
        let mut cluster = Self { server, client, driver, clock };
        let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        cluster.create(&resource("", "v1", "namespaces"), shop);
        cluster.run(Duration::from_secs(1));
        cluster
    }

    /// A cluster that was found with these objects, and the namespace `shop`.
    pub(crate) fn found(objects: Vec<Value>) -> Self {
        let clock = VirtualClock::starting_at(Timestamp::from_second(1_700_000_000).unwrap());
        let options = ApiServerOptions { clock: Some(clock.clone()), seed: Some(7), ..Default::default() };
        let server = ApiServer::new(options).unwrap();
        let imported = server.import(objects);
        assert!(imported.refused.is_empty(), "{imported:?}");
        let driver = Driver::new(&server, Settings { start: Start::Found, ..Settings::default() }).unwrap();
        let client = server.client("test");
        Self { server, client, driver, clock }
    }

    /// An independent cluster that goes on from here under a clock of its own.
    pub(crate) fn fork(&self) -> Self {
        let clock = VirtualClock::starting_at(self.server.now());
        let server = self.server.fork_with_clock(clock.clone());
        let driver = Driver::new(&server, Settings::default()).unwrap();
        let client = server.client("test");
        Self { server, client, driver, clock }
    }

    pub(crate) fn create(&self, resource: &GroupVersionResource, object: Value) {
        let namespace = object.namespace().to_owned();
        self.client.create(resource, &namespace, object).unwrap();
    }

    /// Puts rules in force.
    pub(crate) fn behave(&mut self, rules: &str) {
        let (namespace, name) = ("kube-system", "tiphys-world");
        let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace}, "data": {"rules.yaml": rules}});
        let config_maps = resource("", "v1", "configmaps");
        match self.get(&config_maps, namespace, name) {
            Some(_) => self.update(&config_maps, config_map),
            None => self.create(&config_maps, config_map),
        }
        self.run(Duration::ZERO);
    }

    /// Reason and message of every Event about an object, in the order of their names.
    pub(crate) fn events(&self, namespace: &str, name: &str) -> Vec<(String, String)> {
        let events = resource("", "v1", "events");
        let list = self.client.list(&events, Some(namespace), &ListOptions::default()).unwrap();
        let about = list.items.iter().filter(|event| event["involvedObject"]["name"] == name);
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        about.map(|event| (text(event, "reason"), text(event, "message"))).collect()
    }

    pub(crate) fn update(&self, resource: &GroupVersionResource, object: Value) {
        self.client.update(resource, object).unwrap();
    }

    pub(crate) fn update_at(&self, resource: &GroupVersionResource, object: Value, subresource: &str) {
        self.client.update_subresource(resource, object, subresource).unwrap();
    }

    pub(crate) fn delete(
        &self,
        resource: &GroupVersionResource,
        namespace: &str,
        name: &str,
        propagation: Propagation,
    ) {
        let options = DeleteOptions { propagation: Some(propagation), ..Default::default() };
        self.client.delete(resource, namespace, name, &options).unwrap();
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, duration: Duration) {
        self.driver.pass(&self.clock, duration);
    }

    pub(crate) fn get(&self, resource: &GroupVersionResource, namespace: &str, name: &str) -> Option<Value> {
        self.client.get(resource, namespace, name).ok().map(|object| object.value().clone())
    }

    pub(crate) fn names(&self, resource: &GroupVersionResource, namespace: &str) -> Vec<String> {
        let list = self.client.list(resource, Some(namespace), &ListOptions::default()).unwrap();
        list.items.iter().map(|object| object.name().to_owned()).collect()
    }

    /// Every change that the server still remembers, a line each.
    pub(crate) fn history(&self) -> Vec<String> {
        let changes = self.server.changes_since(0, usize::MAX).unwrap_or_default();
        let line = |change: &Arc<tiphys_apiserver::Change>| {
            format!("{:?} {} {}", change.kind, change.resource, change.object.value())
        };
        changes.iter().map(line).collect()
    }
}
