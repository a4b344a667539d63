//! The status of a pod from the statuses of its containers.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use tiphys_value::ObjectExt;

use super::container::{Kind, Life};
use crate::{
    bootstrap::{node_address, node_number},
    controller::Context,
    object::{set_condition, status_of},
};

/// The containers in a list of a pod's spec.
pub(super) fn list<'a>(pod: &'a Value, field: &str) -> Vec<&'a Value> {
    pod.at(&["spec", field]).and_then(Value::as_array).into_iter().flatten().collect()
}

/// The pod's status.
pub(super) fn pod_status(pod: &Value, node: &Value, lives: &[Life], context: &Context<'_>) -> Value {
    let mut status = status_of(pod);
    let statuses = |is_app: bool| {
        let chosen = lives.iter().filter(move |life| (life.kind == Kind::App) == is_app);
        chosen.map(|life| life.status.clone()).collect::<Vec<_>>()
    };
    let init = statuses(false);
    if !init.is_empty() {
        status.insert("initContainerStatuses".into(), init.into());
    }
    status.insert("containerStatuses".into(), statuses(true).into());
    let phase = phase(pod, lives);
    status.insert("phase".into(), phase.into());
    let host = node_address(node.name());
    status.insert("hostIP".into(), host.clone().into());
    status.insert("hostIPs".into(), json!([{"ip": host}]));
    let has_sandbox = lives.iter().any(|life| {
        life.status
            .str_at(&["state", "waiting", "reason"])
            .is_none_or(|reason| !matches!(reason, "ContainerCreating" | "PodInitializing"))
    });
    if has_sandbox && !status.contains_key("podIP") {
        let address = address(pod, node, context);
        status.insert("podIPs".into(), json!([{"ip": address}]));
        status.insert("podIP".into(), address.into());
    }
    if pod.generation() > 0 {
        status.insert("observedGeneration".into(), pod.generation().into());
    }
    conditions(&mut status, pod, phase, lives, context);
    status.into()
}

fn has_ended(life: &Life) -> bool {
    life.status.at(&["state", "terminated"]).is_some()
}

fn exit_code(life: &Life) -> Option<i64> {
    life.status.int_at(&["state", "terminated", "exitCode"])
}

fn phase(pod: &Value, lives: &[Life]) -> &'static str {
    let policy = pod.str_at(&["spec", "restartPolicy"]).unwrap_or("Always");
    let failed = |life: &&Life| exit_code(life).is_some_and(|code| code != 0);
    if policy == "Never" && lives.iter().filter(|life| life.kind == Kind::Init).any(|life| failed(&life)) {
        return "Failed";
    }
    let apps = || lives.iter().filter(|life| life.kind == Kind::App);
    let may_end = |life: &Life| match policy {
        "Never" => true,
        "OnFailure" => exit_code(life) == Some(0),
        _ => false,
    };
    if apps().all(|life| has_ended(life) && may_end(life)) {
        return if apps().any(|life| failed(&life)) { "Failed" } else { "Succeeded" };
    }
    let has_run = |life: &Life| {
        life.status.at(&["state", "running"]).is_some()
            || has_ended(life)
            || life.status.at(&["lastState", "terminated"]).is_some()
    };
    if apps().any(has_run) { "Running" } else { "Pending" }
}

fn conditions(
    status: &mut Map<String, Value>,
    pod: &Value,
    phase: &str,
    lives: &[Life],
    context: &Context<'_>,
) {
    let is_over = matches!(phase, "Succeeded" | "Failed");
    let over = if phase == "Succeeded" { "PodCompleted" } else { "PodFailed" };
    let mut set = |kind: &str, holds: bool, why: Option<(&str, String)>| {
        let mut condition =
            json!({"type": kind, "status": if holds { "True" } else { "False" }, "lastProbeTime": null});
        if let Some((reason, message)) = why {
            condition["reason"] = reason.into();
            if !message.is_empty() {
                condition["message"] = message.into();
            }
        }
        if pod.generation() > 0 {
            condition["observedGeneration"] = pod.generation().into();
        }
        set_condition(status, condition, context.now);
    };
    let has_address = lives.iter().any(|life| life.status.at(&["containerID"]).is_some());
    set("PodReadyToStartContainers", has_address && !is_over, None);
    let waits = |life: &&Life| match life.kind {
        Kind::Init => exit_code(life) != Some(0),
        Kind::Sidecar => life.status["started"] != true,
        Kind::App => false,
    };
    let incomplete = names(lives.iter().filter(waits));
    let why = (!incomplete.is_empty())
        .then(|| ("ContainersNotInitialized", format!("containers with incomplete status: {incomplete}")));
    let completed = (phase == "Succeeded").then(|| ("PodCompleted", String::new()));
    set("Initialized", incomplete.is_empty(), why.or(completed));
    let counts = |life: &&Life| life.kind != Kind::Init && life.status["ready"] != true;
    let unready = names(lives.iter().filter(counts));
    let why = match is_over {
        true => Some((over, String::new())),
        false => (!unready.is_empty())
            .then(|| ("ContainersNotReady", format!("containers with unready status: {unready}"))),
    };
    let are_ready = unready.is_empty() && !is_over;
    let gate = if are_ready { closed_gate(pod) } else { None };
    let ready_why = why.clone().or_else(|| gate.clone().map(|message| ("ReadinessGatesNotReady", message)));
    set("Ready", are_ready && gate.is_none(), ready_why);
    set("ContainersReady", are_ready, why);
    set("PodScheduled", true, None);
}

/// `[a b]`, as Go prints a list.
fn names<'a>(lives: impl Iterator<Item = &'a Life>) -> String {
    let names: Vec<_> = lives.filter_map(|life| life.status.str_at(&["name"])).collect();
    if names.is_empty() { String::new() } else { format!("[{}]", names.join(" ")) }
}

/// Why a readiness gate holds the pod back.
fn closed_gate(pod: &Value) -> Option<String> {
    let gates = list(pod, "readinessGates");
    let conditions = pod.at(&["status", "conditions"]).and_then(Value::as_array);
    gates.iter().filter_map(|gate| gate.str_at(&["conditionType"])).find_map(|kind| {
        let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
        match found.map(|condition| condition["status"] == "True") {
            Some(true) => None,
            Some(false) => {
                Some(format!("the status of pod readiness gate \"{kind}\" is not \"True\", but False"))
            }
            None => Some(format!("corresponding condition of pod readiness gate \"{kind}\" does not exist.")),
        }
    })
}

/// An address in the node's part of 10.244.0.0/16 that no other pod on the node has; that of the node for
/// pods of the host's network.
fn address(pod: &Value, node: &Value, context: &Context<'_>) -> String {
    if pod.at(&["spec", "hostNetwork"]) == Some(&Value::Bool(true)) {
        return node_address(node.name());
    }
    let others = context.view.pods_on(node.name());
    let taken: BTreeSet<_> = others.iter().filter_map(|pod| pod.str_at(&["status", "podIP"])).collect();
    let net = node_number(node.name()) % 256;
    let address = |host: u32| format!("10.244.{net}.{host}");
    (2..=254).map(address).find(|address| !taken.contains(address.as_str())).unwrap_or_else(|| address(255))
}
