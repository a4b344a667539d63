//! Pods: what they are made of, and how they do.

use jiff::Timestamp;
use tiphys_value::{ObjectExt as _, Value};

use super::{Cluster, conditions, has_condition, items, time};
use crate::Object;

/// The specification of the pods of a workload, or of a pod.
pub(crate) fn spec(object: &Value) -> Option<&Value> {
    match object.kind() {
        "Pod" => object.get("spec"),
        "CronJob" => object.at(&["spec", "jobTemplate", "spec", "template", "spec"]),
        _ => object.at(&["spec", "template", "spec"]),
    }
}

/// The containers of a specification, those of the start first.
pub(crate) fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    items(spec, &["initContainers"]).chain(items(spec, &["containers"]))
}

/// The ports that the containers name.
pub(crate) fn ports(spec: &Value) -> impl Iterator<Item = &Value> {
    containers(spec).flat_map(|container| items(container, &["ports"]))
}

/// The numbers of the ports on which the containers are probed.
pub(crate) fn probed_ports(spec: &Value) -> impl Iterator<Item = i64> {
    const PROBES: &[&str] = &["readinessProbe", "livenessProbe", "startupProbe"];
    const WAYS: &[&str] = &["httpGet", "tcpSocket", "grpc"];
    let probes = containers(spec).flat_map(|it| PROBES.iter().filter_map(|probe| it.get(*probe)));
    let named = probes.flat_map(|probe| WAYS.iter().filter_map(|way| probe.at(&[way, "port"])));
    named.filter_map(|port| match port {
        Value::String(name) => {
            ports(spec).find(|it| it.str_at(&["name"]) == Some(name))?.int_at(&["containerPort"])
        }
        number => number.as_i64(),
    })
}

/// The statuses of all containers, those of the start first.
pub(crate) fn statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    items(pod, &["status", "initContainerStatuses"]).chain(items(pod, &["status", "containerStatuses"]))
}

/// Whether a pod has ended and will not run again.
pub(crate) fn has_ended(pod: &Value) -> bool {
    matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"))
}

/// Whether a pod serves. One of which only the phase was saved is taken at its word.
pub(crate) fn is_ready(pod: &Value) -> bool {
    let is_running = || pod.str_at(&["status", "phase"]) == Some("Running");
    !pod.is_terminating() && says_ready(pod).unwrap_or_else(is_running)
}

/// Whether a pod says that it is ready, by its condition, or by its containers where conditions were left
/// out.
fn says_ready(pod: &Value) -> Option<bool> {
    if let Some(ready) = super::condition(pod, "Ready") {
        return Some(ready.str_at(&["status"]) == Some("True"));
    }
    let mut told = items(pod, &["status", "containerStatuses"])
        .filter_map(|status| status.at(&["ready"]).and_then(Value::as_bool))
        .peekable();
    told.peek()?;
    Some(told.all(|is_ready| is_ready))
}

/// The condition of a pod that is not placed.
pub(crate) fn unscheduled(pod: &Value) -> Option<&Value> {
    let is_placed = pod.str_at(&["spec", "nodeName"]).is_some_and(|node| !node.is_empty());
    let found = conditions(pod)
        .find(|it| it.str_at(&["type"]) == Some("PodScheduled") && it.str_at(&["status"]) == Some("False"));
    found.filter(|_| !is_placed)
}

/// Why a container waits, if it does.
pub(crate) fn waiting(status: &Value) -> Option<(&str, &str)> {
    let waiting = status.at(&["state", "waiting"])?;
    Some((waiting.str_at(&["reason"]).unwrap_or_default(), waiting.str_at(&["message"]).unwrap_or_default()))
}

/// How a container ended last: now or before it was started again.
pub(crate) fn ended(status: &Value) -> Option<&Value> {
    status.at(&["state", "terminated"]).or_else(|| status.at(&["lastState", "terminated"]))
}

/// When a pod's present trouble began.
pub(crate) fn red_since(pod: &Value) -> Option<Timestamp> {
    let found = conditions(pod).find(|it| {
        matches!(it.str_at(&["type"]), Some("Ready" | "PodScheduled"))
            && it.str_at(&["status"]) == Some("False")
    });
    found
        .and_then(|it| time(it, &["lastTransitionTime"]))
        .or_else(|| time(pod, &["metadata", "creationTimestamp"]))
}

/// What is left of a start that others call starting.
const GRACE: i64 = 60;
/// How long a node that was ordered may take until it is there.
const NODE_START: i64 = 10 * 60;
/// A container that ended in this time and was started again is not well.
const RECENT: i64 = 15 * 60;

/// What is wrong with a pod, in a clause; `None` if nothing is.
pub(crate) fn trouble(cluster: &Cluster<'_>, pod: &Value) -> Option<String> {
    let phase = pod.str_at(&["status", "phase"]).unwrap_or_default();
    if pod.is_terminating() || phase == "Succeeded" {
        return None;
    }
    if phase == "Failed" {
        let reason = pod.str_at(&["status", "reason"]).unwrap_or("Failed");
        return Some(reason.to_owned());
    }
    for status in statuses(pod) {
        if let Some((reason, _)) = waiting(status)
            && !matches!(reason, "ContainerCreating" | "PodInitializing" | "")
        {
            return Some(reason.to_owned());
        }
    }
    if let Some(condition) = unscheduled(pod) {
        let since = time(condition, &["lastTransitionTime"]).and_then(|time| cluster.seconds_since(time));
        let is_gated = condition.str_at(&["reason"]) == Some("SchedulingGated");
        let waits = since.is_none_or(|since| since >= GRACE / 2) && !awaits_node(cluster, pod, condition);
        return (waits || is_gated).then(|| "not scheduled".to_owned());
    }
    if is_ready(pod) {
        return flapping(cluster, pod);
    }
    let since = red_since(pod).and_then(|time| cluster.seconds_since(time));
    if phase == "Pending" || phase == "Unknown" || phase.is_empty() {
        let is_known = !phase.is_empty() || pod.get("status").is_some();
        return (is_known && since.is_none_or(|since| since >= GRACE))
            .then(|| format!("phase {phase}").trim().to_owned());
    }
    if is_starting(cluster, pod) {
        return None;
    }
    let unready = says_ready(pod) == Some(false);
    let is_long = unready && since.is_none_or(|since| since >= GRACE);
    is_long.then(|| "not ready".to_owned()).or_else(|| flapping(cluster, pod))
}

/// Whether a node was ordered for a pod, not so long ago that it must be there.
fn awaits_node(cluster: &Cluster<'_>, pod: &Value, condition: &Value) -> bool {
    let is_new = |time: Option<Timestamp>| {
        time.and_then(|time| cluster.seconds_since(time)).is_some_and(|since| since < NODE_START)
    };
    let object = Object::from_live(pod);
    let is_told = cluster.events(&object).any(|event| {
        matches!(event.reason.as_str(), "TriggeredScaleUp" | "Nominated")
            && is_new(event.first.or(event.last))
    });
    let lacks_room =
        || condition.str_at(&["message"]).is_some_and(|message| message.contains("Insufficient "));
    is_told
        || lacks_room()
            && is_new(time(condition, &["lastTransitionTime"]))
            && cluster.all("NodeClaim").iter().any(|claim| {
                is_new(time(claim, &["metadata", "creationTimestamp"]))
                    && has_condition(claim, "Launched", "True")
                    && !has_condition(claim, "Ready", "True")
            })
}

/// Whether the containers of a pod run for the first time, and not for long.
fn is_starting(cluster: &Cluster<'_>, pod: &Value) -> bool {
    let mut running = items(pod, &["status", "containerStatuses"]).map(|status| {
        let started = time(status, &["state", "running", "startedAt"]);
        let age = started.and_then(|started| cluster.seconds_since(started));
        status.int_at(&["restartCount"]).unwrap_or(0) == 0 && age.is_some_and(|age| age < GRACE)
    });
    running.next().is_some_and(|first| first && running.all(|next| next))
}

/// A pod that runs again for the moment, after several ends of late.
fn flapping(cluster: &Cluster<'_>, pod: &Value) -> Option<String> {
    let found = statuses(pod).find(|status| {
        let ended = status.at(&["lastState", "terminated"]);
        let is_bad = ended.is_some_and(|ended| ended.int_at(&["exitCode"]).unwrap_or(0) != 0);
        let since =
            ended.and_then(|ended| time(ended, &["finishedAt"])).and_then(|time| cluster.seconds_since(time));
        is_bad
            && status.int_at(&["restartCount"]).unwrap_or(0) >= 3
            && since.is_some_and(|since| since < RECENT)
    });
    found.map(|status| format!("restarted {} times", status.int_at(&["restartCount"]).unwrap_or(0)))
}

/// What a workload wants and what it has; `None` where a status does not tell.
pub(crate) fn shortage(workload: &Value) -> Option<(i64, i64)> {
    let status = workload.get("status")?;
    let (wanted, has) = match workload.kind() {
        "DaemonSet" => (
            status.int_at(&["desiredNumberScheduled"])?,
            status.int_at(&["numberAvailable"]).or(status.int_at(&["numberReady"])).unwrap_or(0),
        ),
        "StatefulSet" => (
            workload.int_at(&["spec", "replicas"]).unwrap_or(1),
            status.int_at(&["readyReplicas"]).unwrap_or(0),
        ),
        _ => (
            workload.int_at(&["spec", "replicas"]).unwrap_or(1),
            status.int_at(&["availableReplicas"]).unwrap_or(0),
        ),
    };
    (has < wanted).then_some((wanted, has))
}

/// The replicas that a workload asks for.
pub(crate) fn replicas(workload: &Value) -> i64 {
    workload.int_at(&["spec", "replicas"]).unwrap_or(1)
}

/// The pods of a workload, through its ReplicaSets and Jobs.
pub(crate) fn of_workload<'a>(cluster: &Cluster<'a>, workload: &Object) -> Vec<&'a Value> {
    let mut pods = Vec::new();
    let mut open = vec![workload.clone()];
    for _ in 0..4 {
        let mut next = Vec::new();
        for owner in open {
            for child in cluster.owned(&owner) {
                if child.kind() == "Pod" { pods.push(*child) } else { next.push(Object::from_live(child)) }
            }
        }
        open = next;
    }
    pods
}
