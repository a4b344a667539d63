//! Pods: put on a node, started, Ready, finished, taken away. The scheduler and the kubelet in one.
//!
//! How a pod fares can be said by annotations on its template, so that a failure can be played
//! without a real container: see [`Fate`].

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::claim::claims_of;
use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    object::{controller_of, created_at, resources, time, with_status},
};

/// The annotation that says how a pod fares: `crash`, `image-not-found`, `never-ready` or `fail`.
const FATE: &str = "world.tiphys.dev/fate";

/// How a pod fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It starts and becomes Ready; in a Job it ends with success.
    Well,
    /// Its container ends at once, again and again.
    Crash,
    /// Its image cannot be pulled.
    ImageNotFound,
    /// It runs and its readiness probe never succeeds.
    NeverReady,
    /// It ends with an error: in a Job a failed pod.
    Fail,
}

/// Schedules and runs pods.
pub struct PodController;

impl Controller for PodController {
    fn name(&self) -> &'static str {
        "pod"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::pods() {
            return vec![Key::of(&change.object)];
        }
        // A pod that could not start may be able to now.
        let watched = [resources::claims(), resources::nodes(), resources::config_maps()];
        if !watched.contains(&change.resource) {
            return Vec::new();
        }
        let namespace = Some(change.object.namespace()).filter(|namespace| !namespace.is_empty());
        let pods = view.list(&resources::pods(), namespace);
        let is_pending =
            |pod: &&Arc<Object>| matches!(pod.str_at(&["status", "phase"]), None | Some("Pending"));
        pods.iter().filter(is_pending).map(|pod| Key::of(pod)).collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(pod) = context.view.get(&resources::pods(), key) else { return Outcome::done() };
        if pod.is_terminating() {
            return Write::Forget {
                resource: resources::pods(),
                key: key.clone(),
                uid: pod.uid().to_owned(),
            }
            .into();
        }
        if matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed")) {
            return Outcome::done();
        }
        if let Some(reason) = unschedulable(&pod, context.view) {
            return update(&pod, pending(&pod, context.now, &reason));
        }
        let Some(node) = pod.str_at(&["spec", "nodeName"]).filter(|node| !node.is_empty()) else {
            return schedule(&pod, context);
        };
        run(&pod, node, context)
    }
}

fn update(pod: &Value, status: Value) -> Outcome {
    let changed = with_status(pod, status);
    changed
        .map(|object| Write::UpdateStatus { resource: resources::pods(), object }.into())
        .unwrap_or_default()
}

/// Why a pod cannot be put on a node: a claim that does not exist or is not bound.
fn unschedulable(pod: &Value, view: &View<'_>) -> Option<String> {
    for key in claims_of(pod) {
        match view.get(&resources::claims(), &key) {
            None => return Some(format!("persistentvolumeclaim \"{}\" not found", key.name)),
            Some(claim) if claim.str_at(&["status", "phase"]) != Some("Bound") => {
                return Some("pod has unbound immediate PersistentVolumeClaims".to_owned());
            }
            Some(_) => {}
        }
    }
    None
}

/// Picks the node with the fewest pods among those that the pod's nodeSelector and tolerations allow.
fn schedule(pod: &Value, context: &Context<'_>) -> Outcome {
    let nodes = context.view.list(&resources::nodes(), None);
    let pods = context.view.list(&resources::pods(), None);
    let load =
        |node: &Value| pods.iter().filter(|p| p.str_at(&["spec", "nodeName"]) == Some(node.name())).count();
    let fitting = nodes.iter().filter(|node| fits(pod, node));
    let Some(node) = fitting.min_by_key(|node| (load(node), node.name().to_owned())) else {
        let reason = format!(
            "0/{} nodes are available: no node matches the pod's node selector and tolerations.",
            nodes.len()
        );
        return update(pod, pending(pod, context.now, &reason));
    };
    Write::Bind { key: Key::of(pod), node: node.name().to_owned() }.into()
}

fn fits(pod: &Value, node: &Value) -> bool {
    let selector = pod.at(&["spec", "nodeSelector"]).and_then(Value::as_object);
    let is_selected = selector.into_iter().flatten().all(|(key, value)| node.label(key) == value.as_str());
    let taints = node.at(&["spec", "taints"]).and_then(Value::as_array);
    let holds_off = |taint: &&Value| matches!(taint.str_at(&["effect"]), Some("NoSchedule" | "NoExecute"));
    is_selected && taints.into_iter().flatten().filter(holds_off).all(|taint| tolerates(pod, taint))
}

fn tolerates(pod: &Value, taint: &Value) -> bool {
    let tolerations = pod.at(&["spec", "tolerations"]).and_then(Value::as_array);
    tolerations.into_iter().flatten().any(|toleration| {
        let same = |field: &str| {
            toleration.str_at(&[field]).is_none_or(|value| Some(value) == taint.str_at(&[field]))
        };
        let exists = toleration.str_at(&["operator"]) == Some("Exists");
        same("effect") && same("key") && (exists || toleration.str_at(&["value"]) == taint.str_at(&["value"]))
    })
}

fn fate(pod: &Value) -> Fate {
    match pod.annotation(FATE) {
        Some("crash") => Fate::Crash,
        Some("image-not-found") => Fate::ImageNotFound,
        Some("never-ready") => Fate::NeverReady,
        Some("fail") => Fate::Fail,
        _ => Fate::Well,
    }
}

/// The pod's life once it is on a node: container creating, running, Ready or finished.
fn run(pod: &Value, node: &str, context: &Context<'_>) -> Outcome {
    if let Some(missing) = missing_reference(pod, context.view) {
        return update(pod, waiting(pod, node, context.now, "CreateContainerConfigError", &missing));
    }
    let age = created_at(pod)
        .map_or(Duration::ZERO, |at| Duration::try_from(context.now.duration_since(at)).unwrap_or_default());
    let settings = context.settings;
    let is_run_to_end = controller_of(pod).is_some_and(|owner| owner["kind"] == "Job");
    let due = if is_run_to_end { settings.pod_start + settings.job_run } else { settings.pod_start };
    match fate(pod) {
        Fate::ImageNotFound => {
            let image =
                pod.at(&["spec", "containers"]).and_then(|c| c[0].str_at(&["image"])).unwrap_or_default();
            let message = format!("Back-off pulling image \"{image}\"");
            update(pod, waiting(pod, node, context.now, "ImagePullBackOff", &message))
        }
        Fate::Crash => {
            let message = "back-off 5m0s restarting failed container";
            update(pod, waiting(pod, node, context.now, "CrashLoopBackOff", message))
        }
        _ if age < due => {
            let mut outcome = update(pod, waiting(pod, node, context.now, "ContainerCreating", ""));
            outcome.requeue_after = Some(due - age);
            outcome
        }
        Fate::Fail => update(pod, finished(pod, node, context.now, false)),
        Fate::NeverReady => update(pod, running(pod, node, context.now, false)),
        Fate::Well if is_run_to_end => update(pod, finished(pod, node, context.now, true)),
        Fate::Well => update(pod, running(pod, node, context.now, true)),
    }
}

/// A ConfigMap or Secret that a container needs for its environment and that does not exist.
fn missing_reference(pod: &Value, view: &View<'_>) -> Option<String> {
    let containers = pod.at(&["spec", "containers"]).and_then(Value::as_array);
    let sources = containers.into_iter().flatten().filter_map(|c| c.get("envFrom")?.as_array()).flatten();
    for source in sources {
        let reference = source.get("configMapRef").filter(|r| r.get("optional") != Some(&Value::Bool(true)));
        let Some(name) = reference.and_then(|reference| reference.str_at(&["name"])) else { continue };
        let key = Key { namespace: pod.namespace().to_owned(), name: name.to_owned() };
        if view.get(&resources::config_maps(), &key).is_none() {
            return Some(format!("configmap \"{name}\" not found"));
        }
    }
    None
}

fn pending(pod: &Value, now: Timestamp, reason: &str) -> Value {
    let condition = condition(pod, "PodScheduled", false, Some(("Unschedulable", reason)), now);
    json!({"phase": "Pending", "qosClass": "Burstable", "conditions": [condition]})
}

fn waiting(pod: &Value, node: &str, now: Timestamp, reason: &str, message: &str) -> Value {
    let state = match message {
        "" => json!({"waiting": {"reason": reason}}),
        message => json!({"waiting": {"reason": reason, "message": message}}),
    };
    status(pod, node, "Pending", now, false, &state)
}

fn running(pod: &Value, node: &str, now: Timestamp, is_ready: bool) -> Value {
    status(pod, node, "Running", now, is_ready, &json!({"running": {"startedAt": started(pod, now)}}))
}

fn finished(pod: &Value, node: &str, now: Timestamp, is_success: bool) -> Value {
    let (phase, reason, code) =
        if is_success { ("Succeeded", "Completed", 0) } else { ("Failed", "Error", 1) };
    let terminated = json!({"terminated": {
        "exitCode": code, "reason": reason, "startedAt": started(pod, now), "finishedAt": time(now),
    }});
    status(pod, node, phase, now, false, &terminated)
}

fn started(pod: &Value, now: Timestamp) -> Value {
    let statuses = pod.at(&["status", "containerStatuses"]).and_then(Value::as_array);
    let before = statuses.and_then(|all| all.first()?.at(&["state", "running", "startedAt"]).cloned());
    before.unwrap_or_else(|| time(now))
}

fn status(pod: &Value, node: &str, phase: &str, now: Timestamp, is_ready: bool, state: &Value) -> Value {
    let containers = pod.at(&["spec", "containers"]).and_then(Value::as_array);
    let is_running = state.get("running").is_some();
    let container = |container: &Value| {
        json!({
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": is_ready,
            "started": is_running,
            "restartCount": 0,
            "lastState": {},
            "state": state,
        })
    };
    let why = (!is_ready).then_some(("ContainersNotReady", "containers with unready status"));
    let ready = |kind| condition(pod, kind, is_ready, why, now);
    let address = pod_address(pod);
    json!({
        "phase": phase,
        "qosClass": "Burstable",
        "hostIP": node_address(node),
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": pod.at(&["status", "startTime"]).cloned().unwrap_or_else(|| time(now)),
        "conditions": [
            condition(pod, "Initialized", true, None, now),
            ready("Ready"),
            ready("ContainersReady"),
            condition(pod, "PodScheduled", true, None, now),
        ],
        "containerStatuses": containers.into_iter().flatten().map(container).collect::<Vec<_>>(),
    })
}

fn condition(pod: &Value, kind: &str, holds: bool, why: Option<(&str, &str)>, now: Timestamp) -> Value {
    let status = if holds { "True" } else { "False" };
    let conditions = pod.at(&["status", "conditions"]).and_then(Value::as_array);
    let same = conditions.into_iter().flatten().find(|c| c["type"] == kind && c["status"] == status);
    let since = same.map_or_else(|| time(now), |condition| condition["lastTransitionTime"].clone());
    let mut condition =
        json!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": since});
    if let Some((reason, message)) = why {
        condition["reason"] = reason.into();
        condition["message"] = message.into();
    }
    condition
}

/// An address in 10.244.0.0/16 that depends on the pod's uid alone.
fn pod_address(pod: &Value) -> String {
    let hash = pod.uid().bytes().fold(0u16, |hash, byte| hash.wrapping_mul(31).wrapping_add(u16::from(byte)));
    let [high, low] = hash.to_be_bytes();
    format!("10.244.{high}.{}", low.clamp(2, 254))
}

/// The address of a node: 192.168.0.10 and up, by the number at the end of its name.
pub fn node_address(node: &str) -> String {
    let number: u32 = node.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    format!("192.168.{}.{}", number / 200, 10 + number % 200)
}
