//! Pods and what makes them.

use jiff::Timestamp;
use tiphys_value::{ObjectExt, Value};

use super::{NONE, Printer, container_images, container_names, go_bool, name, number, row, selector, text};
use crate::{
    http::table::cells::{age, duration, since},
    ops::items,
};

const TEMPLATE_CONTAINERS: &str = "/spec/template/spec/containers";

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "Pod" => (
            &[
                "Name",
                "Ready",
                "Status",
                "Restarts",
                "Age",
                "!IP",
                "!Node",
                "!Nominated Node",
                "!Readiness Gates",
            ],
            pod,
        ),
        "Deployment" => (
            &["Name", "Ready", "Up-to-date", "Available", "Age", "!Containers", "!Images", "!Selector"],
            deployment,
        ),
        "ReplicaSet" | "ReplicationController" => (
            &[
                "Name",
                "Desired:integer",
                "Current:integer",
                "Ready:integer",
                "Age",
                "!Containers",
                "!Images",
                "!Selector",
            ],
            replica_set,
        ),
        "StatefulSet" => (&["Name", "Ready", "Age", "!Containers", "!Images"], stateful_set),
        "DaemonSet" => (
            &[
                "Name",
                "Desired:integer",
                "Current:integer",
                "Ready:integer",
                "Up-to-date:integer",
                "Available:integer",
                "Node Selector",
                "Age",
                "!Containers",
                "!Images",
                "!Selector",
            ],
            daemon_set,
        ),
        "Job" => (
            &["Name", "Status", "Completions", "Duration", "Age", "!Containers", "!Images", "!Selector"],
            job,
        ),
        "CronJob" => (
            &[
                "Name",
                "Schedule",
                "Timezone",
                "Suspend:boolean",
                "Active:integer",
                "Last Schedule",
                "Age",
                "!Containers",
                "!Images",
                "!Selector",
            ],
            cron_job,
        ),
        "HorizontalPodAutoscaler" => {
            (&["Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"], autoscaler)
        }
        "PodDisruptionBudget" => {
            (&["Name", "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"], budget)
        }
        "PodTemplate" => (&["Name", "Containers", "Images", "Pod Labels"], |o, _| {
            row([
                name(o),
                container_names(o, "/template/spec/containers"),
                container_images(o, "/template/spec/containers"),
                super::labels(o.at(&["template", "metadata", "labels"])),
            ])
        }),
        "ControllerRevision" => (&["Name", "Controller", "Revision", "Age"], revision),
        _ => return None,
    })
}

fn pod(pod: &Value, now: Timestamp) -> Vec<Value> {
    let total = items(pod, "/spec/containers").count();
    let ready = items(pod, "/status/containerStatuses").filter(|c| c["ready"] == true).count();
    let gates = items(pod, "/spec/readinessGates").count();
    let gate = if gates == 0 { NONE.to_owned() } else { format!("{}/{gates}", open_gates(pod)) };
    row([
        name(pod),
        format!("{ready}/{total}").into(),
        pod_status(pod).into(),
        restarts(pod, now).into(),
        age(pod, now),
        text(pod, &["status", "podIP"]),
        text(pod, &["spec", "nodeName"]),
        text(pod, &["status", "nominatedNodeName"]),
        gate.into(),
    ])
}

fn open_gates(pod: &Value) -> usize {
    let open = |gate: &Value| {
        items(pod, "/status/conditions").any(|c| c["type"] == gate["conditionType"] && c["status"] == "True")
    };
    items(pod, "/spec/readinessGates").filter(|gate| open(gate)).count()
}

fn restarts(pod: &Value, now: Timestamp) -> String {
    let count: i64 = items(pod, "/status/containerStatuses").map(|c| number(c, &["restartCount"])).sum();
    let last = items(pod, "/status/containerStatuses")
        .filter_map(|c| c.str_at(&["lastState", "terminated", "finishedAt"]))
        .max();
    match last.filter(|_| count > 0) {
        Some(at) => format!("{count} ({} ago)", since(at, now)),
        None => count.to_string(),
    }
}

/// What the STATUS column says: the phase, or what holds the pod up.
fn pod_status(pod: &Value) -> String {
    let mut status = pod.str_at(&["status", "reason"]).filter(|r| !r.is_empty());
    status = status.or_else(|| pod.str_at(&["status", "phase"]));
    let mut status = status.unwrap_or_default().to_owned();
    let gated = items(pod, "/status/conditions")
        .any(|c| c["type"] == "PodScheduled" && c["reason"] == "SchedulingGated");
    if gated {
        status = "SchedulingGated".into();
    }
    match initializing(pod) {
        Some(text) => status = text,
        None => {
            let mut running = false;
            for container in items(pod, "/status/containerStatuses").collect::<Vec<_>>().into_iter().rev() {
                match container_status(container) {
                    Some(text) => status = text,
                    None => {
                        running |= container["ready"] == true && container.at(&["state", "running"]).is_some()
                    }
                }
            }
            if status == "Completed" && running {
                let ready =
                    items(pod, "/status/conditions").any(|c| c["type"] == "Ready" && c["status"] == "True");
                status = if ready { "Running" } else { "NotReady" }.into();
            }
        }
    }
    if pod.is_terminating() {
        return if pod.str_at(&["status", "reason"]) == Some("NodeLost") { "Unknown" } else { "Terminating" }
            .into();
    }
    status
}

fn container_status(container: &Value) -> Option<String> {
    if let Some(reason) = container.str_at(&["state", "waiting", "reason"]).filter(|r| !r.is_empty()) {
        return Some(reason.to_owned());
    }
    let ended = container.at(&["state", "terminated"])?;
    Some(end_of(ended))
}

fn end_of(ended: &Value) -> String {
    match (ended.str_at(&["reason"]).unwrap_or_default(), number(ended, &["signal"])) {
        ("", 0) => format!("ExitCode:{}", number(ended, &["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// `Init:...` while init containers are not through.
fn initializing(pod: &Value) -> Option<String> {
    let total = items(pod, "/spec/initContainers").count();
    for (at, container) in items(pod, "/status/initContainerStatuses").enumerate() {
        let always = items(pod, "/spec/initContainers")
            .any(|c| c["name"] == container["name"] && c["restartPolicy"] == "Always");
        let ended = container.at(&["state", "terminated"]);
        match ended {
            Some(end) if number(end, &["exitCode"]) == 0 => continue,
            Some(end) => return Some(format!("Init:{}", end_of(end))),
            None if always && container["started"] == true => continue,
            None => {}
        }
        let waiting = container
            .str_at(&["state", "waiting", "reason"])
            .filter(|r| !r.is_empty() && *r != "PodInitializing");
        return Some(waiting.map_or_else(|| format!("Init:{at}/{total}"), |reason| format!("Init:{reason}")));
    }
    None
}

fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    row([
        name(object),
        format!("{}/{}", number(object, &["status", "readyReplicas"]), number(object, &["spec", "replicas"]))
            .into(),
        number(object, &["status", "updatedReplicas"]).into(),
        number(object, &["status", "availableReplicas"]).into(),
        age(object, now),
        container_names(object, TEMPLATE_CONTAINERS),
        container_images(object, TEMPLATE_CONTAINERS),
        selector(object.at(&["spec", "selector"])),
    ])
}

fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    row([
        name(object),
        number(object, &["spec", "replicas"]).into(),
        number(object, &["status", "replicas"]).into(),
        number(object, &["status", "readyReplicas"]).into(),
        age(object, now),
        container_names(object, TEMPLATE_CONTAINERS),
        container_images(object, TEMPLATE_CONTAINERS),
        selector(object.at(&["spec", "selector"])),
    ])
}

fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    row([
        name(object),
        format!("{}/{}", number(object, &["status", "readyReplicas"]), number(object, &["spec", "replicas"]))
            .into(),
        age(object, now),
        container_names(object, TEMPLATE_CONTAINERS),
        container_images(object, TEMPLATE_CONTAINERS),
    ])
}

fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let status = |key: &str| Value::from(number(object, &["status", key]));
    row([
        name(object),
        status("desiredNumberScheduled"),
        status("currentNumberScheduled"),
        status("numberReady"),
        status("updatedNumberScheduled"),
        status("numberAvailable"),
        selector(object.at(&["spec", "template", "spec", "nodeSelector"])),
        age(object, now),
        container_names(object, TEMPLATE_CONTAINERS),
        container_images(object, TEMPLATE_CONTAINERS),
        selector(object.at(&["spec", "selector"])),
    ])
}

fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let succeeded = number(object, &["status", "succeeded"]);
    let completions = match (object.int_at(&["spec", "completions"]), object.int_at(&["spec", "parallelism"]))
    {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, Some(parallel)) if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
        _ => format!("{succeeded}/1"),
    };
    let moment = |key: &str| object.str_at(&["status", key]).and_then(|t| t.parse::<Timestamp>().ok());
    let lasted = moment("startTime")
        .map(|start| duration(moment("completionTime").unwrap_or(now).as_second() - start.as_second()));
    row([
        name(object),
        job_status(object).into(),
        completions.into(),
        lasted.unwrap_or_default().into(),
        age(object, now),
        container_names(object, TEMPLATE_CONTAINERS),
        container_images(object, TEMPLATE_CONTAINERS),
        selector(object.at(&["spec", "selector"])),
    ])
}

fn job_status(job: &Value) -> &'static str {
    let is =
        |kind: &str| items(job, "/status/conditions").any(|c| c["type"] == kind && c["status"] == "True");
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if job.is_terminating() {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    const CONTAINERS: &str = "/spec/jobTemplate/spec/template/spec/containers";
    let last =
        object.str_at(&["status", "lastScheduleTime"]).map_or_else(|| NONE.to_owned(), |at| since(at, now));
    row([
        name(object),
        text(object, &["spec", "schedule"]),
        text(object, &["spec", "timeZone"]),
        go_bool(object.at(&["spec", "suspend"]) == Some(&Value::Bool(true))).into(),
        items(object, "/status/active").count().into(),
        last.into(),
        age(object, now),
        container_names(object, CONTAINERS),
        container_images(object, CONTAINERS),
        selector(object.at(&["spec", "jobTemplate", "spec", "selector"])),
    ])
}

fn autoscaler(object: &Value, now: Timestamp) -> Vec<Value> {
    let target = object.at(&["spec", "scaleTargetRef"]).cloned().unwrap_or_default();
    let minimum = object.int_at(&["spec", "minReplicas"]).map_or_else(|| UNSET.to_owned(), |n| n.to_string());
    row([
        name(object),
        format!("{}/{}", target.kind(), target.str_at(&["name"]).unwrap_or_default()).into(),
        metrics(object).into(),
        minimum.into(),
        number(object, &["spec", "maxReplicas"]).into(),
        number(object, &["status", "currentReplicas"]).into(),
        age(object, now),
    ])
}

const UNSET: &str = super::UNSET;

/// The first metrics with their present values.
fn metrics(object: &Value) -> String {
    let current = |name: &str| {
        items(object, "/status/currentMetrics")
            .find(|m| m.str_at(&["resource", "name"]) == Some(name))
            .and_then(|m| m.at(&["resource", "current"]))
    };
    let shown = |metric: &Value| {
        let name = metric.str_at(&["resource", "name"])?;
        let target = metric.at(&["resource", "target"])?;
        if let Some(wanted) = target.int_at(&["averageUtilization"]) {
            let now = current(name).and_then(|c| c.int_at(&["averageUtilization"]));
            return Some(format!(
                "{name}: {}/{wanted}%",
                now.map_or("<unknown>".into(), |n| format!("{n}%"))
            ));
        }
        let wanted = target.str_at(&["averageValue"])?;
        let now = current(name).and_then(|c| c.str_at(&["averageValue"])).unwrap_or("<unknown>");
        Some(format!("{name}: {now}/{wanted}"))
    };
    let all: Vec<String> =
        items(object, "/spec/metrics").map(|m| shown(m).unwrap_or_else(|| "<unknown>".into())).collect();
    match all.len() {
        0 => NONE.into(),
        1..=2 => all.join(", "),
        more => format!("{} + {} more...", all[..2].join(", "), more - 2),
    }
}

fn budget(object: &Value, now: Timestamp) -> Vec<Value> {
    let bound = |key: &str| match object.at(&["spec", key]) {
        Some(Value::String(text)) => Value::from(text.as_str()),
        Some(Value::Number(number)) => number.to_string().into(),
        _ => "N/A".into(),
    };
    row([
        name(object),
        bound("minAvailable"),
        bound("maxUnavailable"),
        number(object, &["status", "disruptionsAllowed"]).into(),
        age(object, now),
    ])
}

fn revision(object: &Value, now: Timestamp) -> Vec<Value> {
    let owner = object.controller_reference().map(|o| {
        let api_version = o.api_version();
        let group = api_version.split_once('/').map_or(String::new(), |(group, _)| format!(".{group}"));
        format!("{}{group}/{}", o.kind().to_lowercase(), o.str_at(&["name"]).unwrap_or_default())
    });
    row([
        name(object),
        owner.unwrap_or_else(|| NONE.into()).into(),
        number(object, &["revision"]).into(),
        age(object, now),
    ])
}
