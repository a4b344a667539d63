//! Probes that fail: the probe is wrong, or the program is.

use tiphys_cause::{Cause, Failure, ProbeFault, probe_fault};
use tiphys_value::{ObjectExt as _, Value};

use super::troubled;
use crate::{
    Event, Object,
    calls::Caller,
    cluster::{items, pods, quantity, time},
    finding::Finding,
    pod_addresses::wires,
    search_context::{Ill, Look},
};

/// The failed probes of the pods, the most frequent first.
pub(super) fn probes<'a>(look: &Look<'a>, ill: &Ill<'a>) -> Vec<(&'a Event, ProbeFault, &'a Value)> {
    let mut found = Vec::new();
    for pod in &ill.pods {
        let object = Object::from_live(pod);
        // Before the container's present start it was another one that did not answer.
        let events = look.cluster.events(&object).filter(|event| event.reason == "Unhealthy");
        found.extend(events.filter_map(|event| Some((event, probe_fault(&event.message)?, *pod))));
    }
    found.sort_by_key(|(event, ..)| std::cmp::Reverse((event.last, event.count)));
    found
}

/// What a probe's failure says.
pub(super) fn probe<'a>(
    look: &Look<'a>,
    ill: &Ill<'a>,
    probes: &[(&'a Event, ProbeFault, &'a Value)],
) -> Option<Finding> {
    let is_liveness = |fault: &ProbeFault| fault.probe != "Readiness";
    let restarts = troubled(ill).any(|(_, status)| status.int_at(&["restartCount"]).unwrap_or(0) > 0);
    let (event, fault, pod) =
        probes.iter().find(|(_, fault, _)| restarts && is_liveness(fault)).or_else(|| probes.first())?;
    if has_ended_itself(look, ill) {
        return None;
    }
    let key = match fault.probe {
        "Liveness" => "livenessProbe",
        "Startup" => "startupProbe",
        _ => "readinessProbe",
    };
    let container = probed(pod, key, &event.message);
    let name = container.and_then(|it| it.str_at(&["name"])).unwrap_or_default();
    let port = container.and_then(|it| probe_port(it, key));
    if matches!(fault.failure, Some(Failure::Timeout))
        && let Some(finding) = crate::causes::pod_network::probe_policy(look, pod, port)
    {
        return Some(finding.evidence(format!("Event of {}", event.object), event.message.clone()));
    }
    if let Some(complaint) =
        tiphys_cause::complaints(&event.message).into_iter().find(|it| it.cause == Cause::AppBackendState)
    {
        let what = format!("{} says that it is in a state in which it does not serve", ill.workload);
        return Some(
            Finding::new(Cause::AppBackendState, ill.workload.clone(), 0.88, what)
                .evidence(format!("Event of {}", event.object), complaint.line)
                .remedy("Bring it into a state in which it serves: unseal it, give it a leader, free connections.", &[]),
        );
    }
    if let Some(finding) =
        saturated(look, ill, pod).filter(|_| matches!(fault.failure, Some(Failure::Timeout)))
    {
        return Some(finding.evidence(format!("Event of {}", event.object), event.message.clone()));
    }
    let opened: Vec<i64> = container
        .into_iter()
        .flat_map(|it| items(it, &["ports"]))
        .filter_map(|it| it.int_at(&["containerPort"]))
        .collect();
    let is_open = port.is_none_or(|port| opened.is_empty() || opened.contains(&port));
    let asks = container.and_then(|it| it.get(key)).map(ToString::to_string).unwrap_or_default();
    let new = |cause, confidence, summary: String, remedy: &str| {
        Finding::new(cause, ill.workload.clone(), confidence, summary)
            .field(format!("spec.template.spec.containers[{name}].{key}"))
            .evidence(format!("Event of {}", event.object), event.message.clone())
            .evidence(ill.workload.to_string(), format!("{key}: {asks}"))
            .remedy(remedy, &[])
    };
    let workload = &ill.workload;
    let listened = listened_ports(look, ill);
    let is_elsewhere = port.is_some_and(|port| !listened.is_empty() && !listened.contains(&port));
    // The prober of gRPC waits for a connection until its time is over.
    let is_grpc = container.is_some_and(|it| it.at(&[key, "grpc"]).is_some());
    let wrong = match fault.failure {
        Some(Failure::Status(404 | 401 | 403 | 400 | 405 | 301..=308)) | Some(Failure::Plaintext) => {
            Some("a path or scheme that is not served")
        }
        Some(Failure::Timeout) if is_elsewhere && is_grpc => {
            Some("a port on which the program does not listen")
        }
        Some(Failure::Refused) if is_elsewhere => Some("a port on which the program does not listen"),
        Some(Failure::Refused) if !is_open => Some("a port that the container does not open"),
        _ => None,
    };
    if is_liveness(fault) && restarts {
        return Some(match wrong {
            Some(what) => new(
                Cause::RunLiveness,
                0.9,
                format!("the {key} of {workload} asks for {what}"),
                "Correct the probe's port, path or scheme.",
            ),
            None if is_slow_start(ill, container, key) => new(
                Cause::RunLivenessStrict,
                0.85,
                format!("the {key} of {workload} ends the container before it has started"),
                "Add a startupProbe, or raise initialDelaySeconds or failureThreshold.",
            ),
            None if fault.failure == Some(Failure::Refused) => new(
                Cause::RunLiveness,
                0.7,
                format!("nothing listens where the {key} of {workload} asks"),
                "Correct the probe's port, or give the program more time.",
            ),
            None => new(
                Cause::RunLiveness,
                0.55,
                format!("the {key} of {workload} fails"),
                "Find out why the program does not answer, or correct the probe.",
            )
            .shallow(),
        });
    }
    let finding = match (wrong, fault.failure) {
        (Some(what), _) => new(
            Cause::RunReadiness,
            0.9,
            format!("the {key} of {workload} asks for {what}"),
            "Correct the probe's port, path or scheme.",
        ),
        (None, Some(Failure::Refused)) => new(
            Cause::RunReadiness,
            0.6,
            format!("nothing listens where the {key} of {workload} asks"),
            "Correct the probe's port, or find out why the program does not listen.",
        )
        .shallow(),
        (None, None) if fault.is_command => new(
            Cause::RunReadiness,
            0.6,
            format!("the command of the {key} of {workload} fails"),
            "Run the command in the container.",
        )
        .shallow(),
        (None, Some(Failure::Timeout)) => new(
            Cause::RunReadiness,
            0.45,
            format!("the {key} of {workload} gets no answer in time"),
            "Raise timeoutSeconds, or find out what makes the program slow.",
        )
        .shallow(),
        // The program itself says that it is not ready: what it depends on is the cause, if that is known.
        _ => new(
            Cause::RunReadiness,
            0.4,
            format!("{workload} says that it is not ready"),
            "Read the program's log.",
        )
        .shallow(),
    };
    let caller = Caller::of_ill(look, ill);
    Some(dependencies(look, &caller, finding))
}

/// Whether the program ended by itself, so that no probe could get an answer.
fn has_ended_itself(look: &Look<'_>, ill: &Ill<'_>) -> bool {
    let is_killed = ill.pods.iter().any(|pod| {
        let object = Object::from_live(pod);
        look.cluster.events(&object).any(|event| event.reason == "Killing" && event.message.contains("probe"))
    });
    let codes = troubled(ill).filter_map(|(_, status)| pods::ended(status)?.int_at(&["exitCode"]));
    !is_killed && codes.into_iter().any(|code| !matches!(code, 0 | 130 | 137 | 143))
}

/// The ports on which a program says that it listens.
fn listened_ports(look: &Look<'_>, ill: &Ill<'_>) -> Vec<i64> {
    const WORDS: &[&str] =
        &["listen", "serving", "running on", "started on", "bound to", "server at", "started server"];
    let mut found = Vec::new();
    for pod in &ill.pods {
        for log in look.cluster.logs(pod.namespace(), pod.name()) {
            for line in log.text.lines().filter(|line| {
                let low = line.to_ascii_lowercase();
                WORDS.iter().any(|word| low.contains(word)) && tiphys_cause::Failure::read(line).is_none()
            }) {
                let numbers =
                    line.split(|c: char| !c.is_ascii_digit()).filter(|it| (2..=5).contains(&it.len()));
                let after = numbers.filter(|number| {
                    line.contains(&format!(":{number}"))
                        || line.contains(&format!("port {number}"))
                        || line.contains(&format!("port={number}"))
                });
                found
                    .extend(after.filter_map(|number| number.parse::<i64>().ok()).filter(|port| *port >= 80));
            }
        }
    }
    found
}

/// A container that uses all the processor time that it may, as the metrics tell.
fn saturated(look: &Look<'_>, ill: &Ill<'_>, pod: &Value) -> Option<Finding> {
    if let Some(finding) = overloaded(look, ill) {
        return Some(finding);
    }
    let metrics = look.cluster.get("PodMetrics", pod.namespace(), pod.name())?;
    for used in items(metrics, &["containers"]) {
        let name = used.str_at(&["name"]).unwrap_or_default();
        let container = pods::containers(pod.get("spec")?).find(|it| it.str_at(&["name"]) == Some(name));
        let limit = container.and_then(|it| quantity::milli(it.at(&["resources", "limits", "cpu"])?));
        let usage = cpu(used.at(&["usage", "cpu"])?);
        if let (Some(limit), Some(usage)) = (limit, usage)
            && usage * 10 >= limit * 9
        {
            return Some(
                Finding::new(
                    Cause::RunSaturated,
                    ill.workload.clone(),
                    0.88,
                    format!("container {name} of {} uses all the processor time that it may", ill.workload),
                )
                .field(format!("spec.template.spec.containers[{name}].resources.limits.cpu"))
                .evidence(
                    format!("PodMetrics {}/{}", pod.namespace(), pod.name()),
                    format!("{name} uses {usage}m of {limit}m"),
                )
                .remedy("Raise the limit, or run more replicas.", &[]),
            );
        }
    }
    None
}

/// A workload whose autoscaler measures far more than it aims at, although it may still scale.
fn overloaded(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let scaler = look.cluster.all("HorizontalPodAutoscaler").iter().find(|it| {
        it.namespace() == ill.namespace()
            && it.str_at(&["spec", "scaleTargetRef", "name"]) == Some(ill.workload.name.as_str())
    })?;
    let is_limited = crate::cluster::has_condition(scaler, "ScalingLimited", "True");
    let utilization = |side: &str, path: &[&str]| {
        items(scaler, path)
            .find(|it| it.str_at(&["resource", "name"]) == Some("cpu"))
            .and_then(|it| it.int_at(&["resource", side, "averageUtilization"]))
    };
    let now = utilization("current", &["status", "currentMetrics"])?;
    let aim = utilization("target", &["spec", "metrics"]).unwrap_or(80);
    (!is_limited && now >= 95 && now * 2 >= aim * 3).then(|| {
        let object = Object::from_live(scaler);
        Finding::new(
            Cause::RunSaturated,
            ill.workload.clone(),
            0.8,
            format!("{} uses {now} % of the processor time that it asks for", ill.workload),
        )
        .evidence(object.to_string(), format!("current {now} %, target {aim} %"))
        .remedy("Give it more processor time, or more replicas.", &[])
    })
}

/// Processor time in thousandths; metrics tell it in billionths.
fn cpu(value: &Value) -> Option<i128> {
    match value.as_str()?.strip_suffix('n') {
        Some(number) => Some(number.parse::<i128>().ok()? / 1_000_000),
        None => quantity::milli(value),
    }
}

/// The Services that a workload's configuration names, as what may lie below.
pub(super) fn dependencies(look: &Look<'_>, caller: &Caller<'_>, finding: Finding) -> Finding {
    let daemons = look.cluster.live(&caller.workload);
    let daemons = daemons.into_iter().flat_map(|live| crate::dependencies::daemons_below(look.cluster, live));
    let finding = daemons.fold(finding, Finding::below);
    let wires = wires(&caller.settings);
    let named = wires.iter().filter_map(|(address, _)| {
        match look.cluster.target(address, &caller.workload.namespace) {
            crate::address_target::Target::Service(service) => Some(Object::from_live(service)),
            _ => None,
        }
    });
    named.fold(finding, Finding::below)
}

/// The container whose probe failed.
fn probed<'a>(pod: &'a Value, key: &str, message: &str) -> Option<&'a Value> {
    let spec = pod.get("spec")?;
    let all: Vec<&Value> = pods::containers(spec).filter(|it| it.get(key).is_some()).collect();
    let named =
        all.iter().find(|it| probe_port(it, key).is_some_and(|port| message.contains(&format!(":{port}"))));
    named.or(all.first()).copied()
}

/// The number of the port that a probe asks.
fn probe_port(container: &Value, key: &str) -> Option<i64> {
    let probe = container.get(key)?;
    let port = ["httpGet", "tcpSocket", "grpc"].iter().find_map(|kind| probe.at(&[kind, "port"]))?;
    match port {
        Value::Number(number) => number.as_i64(),
        Value::String(name) => name.parse().ok().or_else(|| {
            items(container, &["ports"])
                .find(|it| it.str_at(&["name"]) == Some(name))?
                .int_at(&["containerPort"])
        }),
        _ => None,
    }
}

/// Whether the container is ended about when its probe gives up for the first time.
fn is_slow_start(ill: &Ill<'_>, container: Option<&Value>, key: &str) -> bool {
    let Some(probe) = container.and_then(|it| it.get(key)) else { return false };
    let number = |name: &str, usual: i64| probe.int_at(&[name]).unwrap_or(usual);
    let patience =
        number("initialDelaySeconds", 0) + number("periodSeconds", 10) * number("failureThreshold", 3);
    let says_starting = ill.facts.is_empty();
    let lived = troubled(ill).filter_map(|(_, status)| {
        let ended = status.at(&["lastState", "terminated"])?;
        Some(time(ended, &["finishedAt"])?.as_second() - time(ended, &["startedAt"])?.as_second())
    });
    let lived: Vec<i64> = lived.collect();
    let was_killed = troubled(ill).any(|(_, status)| {
        pods::ended(status).is_some_and(|it| matches!(it.int_at(&["exitCode"]), Some(137 | 143 | 0 | 130)))
    });
    // The grace period comes on top of the patience.
    was_killed
        && says_starting
        && lived.iter().any(|lived| *lived <= patience + 60 && *lived + 15 >= patience)
}
