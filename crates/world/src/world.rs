//! Who looks at what next.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_value::GroupVersionResource;

use crate::{
    Change, Context, Controller, Key, View, Write,
    controllers::{self, node_address},
    object::resources,
};

/// How long until an object is looked at again after a write for it failed; doubles up to a minute.
const FIRST_RETRY: Duration = Duration::from_millis(20);

/// How the world behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many nodes there are.
    pub nodes: u32,
    /// From a pod's creation until it runs and is Ready.
    pub pod_start: Duration,
    /// How long a Job's pod runs until it ends.
    pub job_run: Duration,
    /// The certificate authority that every namespace's `kube-root-ca.crt` holds, in PEM.
    pub root_ca: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            nodes: 3,
            pod_start: Duration::from_millis(300),
            job_run: Duration::from_millis(500),
            root_ca: String::new(),
        }
    }
}

/// One controller's look at one object, and what it wants done.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The controller's name.
    pub controller: &'static str,
    /// What to do, in order.
    pub writes: Vec<Write>,
    task: Task,
}

type Task = (usize, Key);

/// The controllers and what they have still to look at. The order depends on nothing but what was
/// observed: tasks are taken by controller and key, timers by time.
pub struct World {
    controllers: Vec<Box<dyn Controller>>,
    settings: Settings,
    queue: BTreeSet<Task>,
    timers: BTreeSet<(Timestamp, usize, Key)>,
    failures: BTreeMap<Task, u32>,
}

impl World {
    /// A world with every controller and nothing to do.
    pub fn new(settings: Settings) -> Self {
        Self {
            controllers: controllers::all(),
            settings,
            queue: BTreeSet::new(),
            timers: BTreeSet::new(),
            failures: BTreeMap::new(),
        }
    }

    /// Takes note of a change.
    pub fn observe(&mut self, change: &Change, view: &View<'_>) {
        for (index, controller) in self.controllers.iter().enumerate() {
            self.queue.extend(controller.keys(change, view).into_iter().map(|key| (index, key)));
        }
    }

    /// The next turn, or `None` if nothing is to be done before [`World::next_timer`].
    pub fn next_turn(&mut self, view: &View<'_>, now: Timestamp) -> Option<Turn> {
        self.wake(now);
        loop {
            let task = self.queue.pop_first()?;
            let controller = &self.controllers[task.0];
            let context = Context { view, now, settings: &self.settings };
            let outcome = controller.reconcile(&task.1, &context);
            if let Some(delay) = outcome.requeue_after {
                self.timers.insert((later(now, delay), task.0, task.1.clone()));
            }
            if outcome.writes.is_empty() {
                self.failures.remove(&task);
                continue;
            }
            return Some(Turn { controller: controller.name(), writes: outcome.writes, task });
        }
    }

    /// Tells that every write of a turn was carried out.
    pub fn succeeded(&mut self, turn: &Turn) {
        self.failures.remove(&turn.task);
    }

    /// Tells that a write of a turn failed; its object is looked at again after a while.
    pub fn failed(&mut self, turn: Turn, now: Timestamp) {
        let failures = self.failures.entry(turn.task.clone()).or_insert(0);
        let delay = FIRST_RETRY.saturating_mul(1 << (*failures).min(11)).min(Duration::from_secs(60));
        *failures = failures.saturating_add(1);
        self.timers.insert((later(now, delay), turn.task.0, turn.task.1));
    }

    /// When something is to be looked at again even if nothing changes.
    pub fn next_timer(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, ..)| *at)
    }

    fn wake(&mut self, now: Timestamp) {
        while self.timers.first().is_some_and(|(at, ..)| *at <= now) {
            if let Some((_, index, key)) = self.timers.pop_first() {
                self.queue.insert((index, key));
            }
        }
    }
}

fn later(now: Timestamp, delay: Duration) -> Timestamp {
    now.checked_add(delay).unwrap_or(Timestamp::MAX)
}

/// What stands in a cluster before anybody asks for anything: its nodes and its storage class.
pub fn initial_objects(settings: &Settings) -> Vec<(GroupVersionResource, Value)> {
    let mut objects: Vec<_> =
        (1..=settings.nodes).map(|n| (resources::nodes(), node(&format!("node-{n}")))).collect();
    let class = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "standard",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "tiphys.dev/world",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    objects.push((resources::storage_classes(), class));
    objects
}

fn node(name: &str) -> Value {
    let resources = json!({"cpu": "8", "memory": "32Gi", "pods": "250", "ephemeral-storage": "200Gi"});
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
    });
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        }},
        "spec": {},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": node_address(name)},
                {"type": "Hostname", "address": name},
            ],
            "allocatable": resources,
            "capacity": resources,
            "conditions": [condition],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "v1.36.1",
                "containerRuntimeVersion": "tiphys://0", "kernelVersion": "", "osImage": "Tiphys", "bootID": "",
                "machineID": "", "systemUUID": "", "kubeProxyVersion": "",
            },
        },
    })
}
