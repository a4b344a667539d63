//! The kubelets of all nodes: pods that are on a node are started, become Ready, end, are started again
//! and are taken away (Kubernetes documentation, "Pod Lifecycle").
//!
//! All that a kubelet knows of a pod stands in the pod's status, so a fork of the cluster goes on where it
//! was.

mod container;
mod probe;
mod program;
mod pull;
mod references;
mod status;
mod user;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use self::container::{Kind, Life};
pub use self::references::missing_configuration;
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    behaviour::NodeState,
    controller::Context,
    controllers::{
        block_storage,
        scheduler::{share_host_port, wants_host_port},
        workload::is_finished,
    },
    object::{finalizers, resources, time, with_status},
};

/// How a program ends that is told to (128 and the number of SIGTERM).
const KILLED: i64 = 143;
/// How long until mounting a volume is tried again.
const MOUNT_RETRY: Duration = Duration::from_secs(122);

/// Runs pods.
pub(super) struct Kubelet;

impl Controller for Kubelet {
    fn name(&self) -> &'static str {
        "kubelet"
    }

    fn manager(&self) -> &'static str {
        "kubelet"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::pods() {
            let is_placed = change.object.str_at(&["spec", "nodeName"]).is_some_and(|node| !node.is_empty());
            return (is_placed && !change.is_deleted)
                .then(|| Key::from_object(&change.object))
                .into_iter()
                .collect();
        }
        if change.resource == resources::nodes() {
            return view.pods_on(change.object.name()).iter().map(|pod| Key::from_object(pod)).collect();
        }
        // What gets through to running pods may be another now.
        if change.object.kind().ends_with("NetworkPolicy") {
            let namespace = change.object.namespace();
            let pods =
                view.list(&resources::pods(), Some(namespace).filter(|namespace| !namespace.is_empty()));
            return pods.iter().map(|pod| Key::from_object(pod)).collect();
        }
        // What a pod could not start without may be there now.
        let watched = [resources::config_maps(), resources::secrets(), resources::claims()];
        if !watched.contains(&change.resource) || change.is_deleted {
            return Vec::new();
        }
        let mut waiting: Vec<Key> =
            view.unready_pods().filter(|key| key.namespace == change.object.namespace()).cloned().collect();
        // In a cluster that was found only those move that name the object.
        if view.is_found() {
            let names_it = |key: &Key| {
                let pod = view.get(&resources::pods(), key);
                pod.is_some_and(|pod| has_text(pod.get("spec"), change.object.name()))
            };
            waiting.retain(names_it);
        }
        waiting
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(pod) = context.view.get(&resources::pods(), key) else { return Outcome::done() };
        let node_name = pod.str_at(&["spec", "nodeName"]).unwrap_or_default();
        let node_key = Key { namespace: String::new(), name: node_name.to_owned() };
        let Some(node) = context.view.get(&resources::nodes(), &node_key) else { return Outcome::done() };
        if matches!(context.behaviours.node_state(node_name), Some(NodeState::Unreachable {})) {
            return Outcome::done();
        }
        if pod.is_terminating() {
            return stop(&pod, context);
        }
        if matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed")) {
            return Outcome::done();
        }
        Sync { pod: &pod, node: &node, context, told: Vec::new(), again: None }.run()
    }
}

/// Whether a text stands anywhere in a value.
fn has_text(value: Option<&Value>, text: &str) -> bool {
    match value {
        Some(Value::String(own)) => own == text,
        Some(Value::Array(items)) => items.iter().any(|item| has_text(Some(item), text)),
        Some(Value::Object(fields)) => fields.values().any(|field| has_text(Some(field), text)),
        _ => false,
    }
}

/// Ends a pod that is being deleted: at once, or when its slowest program has ended.
fn stop(pod: &Arc<Object>, context: &Context<'_>) -> Outcome {
    let grace = pod.int_at(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
    let until = pod.str_at(&["metadata", "deletionTimestamp"]).and_then(|at| at.parse::<Timestamp>().ok());
    let containers = pod.at(&["spec", "containers"]).and_then(Value::as_array);
    let slowest = containers.into_iter().flatten().filter_map(|container| {
        let rules = &context.behaviours.containers;
        rules.iter().find(|rule| rule.is_about(pod, container)).map(|rule| rule.stops.0)
    });
    let takes = slowest.max().unwrap_or_default().min(Duration::from_secs(grace.unsigned_abs()));
    let asked = until.and_then(|at| at.checked_sub(Duration::from_secs(grace.unsigned_abs())).ok());
    if let Some(left) = asked.and_then(|at| remaining(at, takes, context.now)) {
        return Outcome::after(left);
    }
    let is_held = finalizers(pod).next().is_some();
    if is_held && grace == 0 && is_finished(pod) {
        return Outcome::done();
    }
    let mut writes: Vec<Write> = running(pod).map(|name| killing(pod, name)).collect();
    if is_held && !is_finished(pod) {
        // Who holds the pod waits for its end; of others nobody would see it.
        let ended = with_status(pod, stopped(pod, context.now));
        writes.extend(ended.map(|object| Write::UpdateStatus { resource: resources::pods(), object }));
    }
    writes.push(Write::Forget {
        resource: resources::pods(),
        key: Key::from_object(pod),
        uid: pod.uid().to_owned(),
    });
    writes.into()
}

/// The status of a pod whose programs were told to end.
fn stopped(pod: &Value, now: Timestamp) -> Value {
    let mut status = pod.get("status").cloned().unwrap_or_default();
    status["phase"] = "Failed".into();
    not_ready(&mut status, now);
    for container in status["containerStatuses"].as_array_mut().into_iter().flatten() {
        container["ready"] = false.into();
        container["started"] = false.into();
        if let Some(running) = container.at(&["state", "running"]).cloned() {
            let mut terminated = json!({"exitCode": KILLED, "reason": "Error", "finishedAt": time(now)});
            terminated["startedAt"] = running["startedAt"].clone();
            terminated["containerID"] = container["containerID"].clone();
            container["state"] = json!({"terminated": terminated});
        }
    }
    status
}

fn not_ready(status: &mut Value, now: Timestamp) {
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        if (condition["type"] == "Ready" || condition["type"] == "ContainersReady")
            && condition["status"] != "False"
        {
            condition["status"] = "False".into();
            condition["reason"] = "PodFailed".into();
            condition["lastTransitionTime"] = time(now);
        }
    }
}

fn running(pod: &Value) -> impl Iterator<Item = &str> {
    let statuses = pod.at(&["status", "containerStatuses"]).and_then(Value::as_array);
    let running = statuses.into_iter().flatten().filter(|s| s.at(&["state", "running"]).is_some());
    running.filter_map(|status| status.str_at(&["name"]))
}

fn killing(pod: &Value, container: &str) -> Write {
    let node = pod.str_at(&["spec", "nodeName"]).unwrap_or_default().to_owned();
    let event =
        Event::normal(pod, Reporter::Kubelet(node), "Killing", format!("Stopping container {container}"));
    event.at(&format!("spec.containers{{{container}}}")).into()
}

/// What is left of a time that began at some moment.
fn remaining(began: Timestamp, takes: Duration, now: Timestamp) -> Option<Duration> {
    let due = began.checked_add(takes).ok()?;
    Duration::try_from(due.duration_since(now)).ok().filter(|left| !left.is_zero())
}

/// One look of a kubelet at one pod.
struct Sync<'a> {
    pod: &'a Arc<Object>,
    node: &'a Value,
    context: &'a Context<'a>,
    told: Vec<Write>,
    again: Option<Duration>,
}

impl Sync<'_> {
    fn run(mut self) -> Outcome {
        let pod = self.pod;
        if let Some(outcome) = self.deadline() {
            return outcome;
        }
        if pod.at(&["status", "startTime"]).is_none() {
            let status = self.rejected().unwrap_or_else(|| self.accepted());
            return self.write(status);
        }
        if let Some(why) = self.not_yet() {
            return self.write(why);
        }
        let lives = self.containers();
        let mut status = status::pod_status(self.pod, self.node, &lives, self.context);
        self.ephemeral(&mut status);
        self.write(status)
    }

    /// Starts the containers that somebody looks into a pod with (`kubectl debug`); they run until the pod
    /// ends.
    fn ephemeral(&mut self, status: &mut Value) {
        const FIELD: &str = "ephemeralContainerStatuses";
        let mut statuses = status.get(FIELD).and_then(Value::as_array).cloned().unwrap_or_default();
        for spec in status::list(self.pod, "ephemeralContainers") {
            if statuses.iter().any(|known| known["name"] == spec["name"]) {
                continue;
            }
            let field = format!("spec.ephemeralContainers{{{}}}", spec.str_at(&["name"]).unwrap_or_default());
            self.tell(false, "Created", "Container created".to_owned(), Some(&field));
            self.tell(false, "Started", "Container started".to_owned(), Some(&field));
            statuses.push(container::begun(self.pod, spec, self.context.now));
        }
        if !statuses.is_empty() {
            status[FIELD] = statuses.into();
        }
    }

    /// Writes the status if it changed, and tells what there is to tell.
    fn write(mut self, status: Value) -> Outcome {
        let changed = with_status(self.pod, status);
        let mut writes = std::mem::take(&mut self.told);
        writes.extend(changed.map(|object| Write::UpdateStatus { resource: resources::pods(), object }));
        Outcome::from(writes).requeue_after(self.again)
    }

    fn tell(&mut self, is_warning: bool, reason: &str, message: String, field: Option<&str>) {
        let reporter = Reporter::Kubelet(self.node.name().to_owned());
        let event = match is_warning {
            true => Event::warning(self.pod, reporter, reason, message),
            false => Event::normal(self.pod, reporter, reason, message),
        };
        self.told.push(match field {
            Some(field) => event.at(field).into(),
            None => event.into(),
        });
    }

    fn look_again(&mut self, delay: Duration) {
        self.again = Some(self.again.map_or(delay, |earlier| earlier.min(delay)));
    }

    /// Fails a pod that has run longer than it may.
    fn deadline(&mut self) -> Option<Outcome> {
        let seconds = self.pod.int_at(&["spec", "activeDeadlineSeconds"])?;
        let began = self.pod.str_at(&["status", "startTime"])?.parse().ok()?;
        if let Some(left) = remaining(began, Duration::from_secs(seconds.unsigned_abs()), self.context.now) {
            self.look_again(left);
            return None;
        }
        let message = "Pod was active on the node longer than the specified deadline";
        let mut status = self.pod.get("status").cloned().unwrap_or_default();
        status["phase"] = "Failed".into();
        status["reason"] = "DeadlineExceeded".into();
        status["message"] = message.into();
        not_ready(&mut status, self.context.now);
        let reporter = Reporter::Kubelet(self.node.name().to_owned());
        let event = Event::normal(self.pod, reporter, "DeadlineExceeded", message);
        let write = with_status(self.pod, status)
            .map(|object| Write::UpdateStatus { resource: resources::pods(), object });
        Some(write.into_iter().chain([event.into()]).collect::<Vec<_>>().into())
    }

    /// The status of a pod that was put on the node past the scheduler and wants a port that another one has.
    fn rejected(&mut self) -> Option<Value> {
        if !wants_host_port(self.pod) {
            return None;
        }
        let on_node = self.context.view.pods_on(self.node.name());
        let is_taken = on_node.iter().any(|other| {
            other.uid() != self.pod.uid()
                && other.at(&["status", "startTime"]).is_some()
                && !is_finished(other)
                && share_host_port(self.pod, other)
        });
        if !is_taken {
            return None;
        }
        let why = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
        self.tell(true, "NodePorts", why.to_owned(), None);
        let mut status = self.pod.get("status").cloned().unwrap_or_default();
        status["phase"] = "Failed".into();
        status["reason"] = "NodePorts".into();
        status["message"] = format!("Pod was rejected: {why}").into();
        status["startTime"] = time(self.context.now);
        Some(status)
    }

    /// The status of a pod that has just come to its node.
    fn accepted(&self) -> Value {
        let mut lives = self.waiting("ContainerCreating");
        if !status::list(self.pod, "initContainers").is_empty() {
            lives = self.waiting("PodInitializing");
        }
        let mut status = status::pod_status(self.pod, self.node, &lives, self.context);
        status["startTime"] = time(self.context.now);
        status
    }

    fn waiting(&self, reason: &str) -> Vec<Life> {
        let all = [Kind::Init, Kind::App].into_iter();
        let all =
            all.flat_map(|kind| status::list(self.pod, kind.field()).into_iter().map(move |c| (kind, c)));
        let life = |(kind, container): (Kind, &Value)| Life {
            kind,
            status: container::blank(container, json!({"waiting": {"reason": reason}})),
        };
        all.map(life).collect()
    }

    /// What holds a whole pod up: its node's network, or a volume.
    fn not_yet(&mut self) -> Option<Value> {
        let has_begun = self.pod.at(&["status", "podIP"]).is_some();
        if has_begun {
            return None;
        }
        if let Some(cause) = references::network(self.pod, self.node) {
            self.tell(true, "NetworkNotReady", cause.to_string(), None);
        } else if let Some((volume, message)) = references::volume(self.pod, &self.context.view.snapshot) {
            let text = format!("MountVolume.SetUp failed for volume \"{volume}\" : {message}");
            self.tell(true, "FailedMount", text, None);
        } else {
            let text = block_storage::attached_elsewhere(self.pod, self.context.view)?;
            self.tell(true, "FailedAttachVolume", text, None);
        }
        self.look_again(MOUNT_RETRY);
        self.pod.get("status").cloned()
    }

    /// Moves every container on, init containers first and one after the other.
    fn containers(&mut self) -> Vec<Life> {
        let mut lives = Vec::new();
        let mut may_start = true;
        for kind in [Kind::Init, Kind::App] {
            for spec in status::list(self.pod, kind.field()) {
                let kind = match spec.str_at(&["restartPolicy"]) {
                    Some("Always") if kind == Kind::Init => Kind::Sidecar,
                    _ => kind,
                };
                let status = self.container(kind, spec, may_start);
                may_start &= match kind {
                    Kind::Init => status.int_at(&["state", "terminated", "exitCode"]) == Some(0),
                    Kind::Sidecar => status["started"] == true,
                    Kind::App => true,
                };
                lives.push(Life { kind, status });
            }
        }
        lives
    }
}
