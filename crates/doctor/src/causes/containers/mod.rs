//! Containers that do not run: ends, probes, commands, memory. What the log blames comes before what the
//! kubelet sees.

mod init;
mod log;
mod probe;
mod readiness_gate;
mod unsaid;

use init::{awaited_jobs, init_wait, jobs_of_migration};
use log::from_facts;
use probe::{dependencies, probe, probes};
use readiness_gate::gated;
use tiphys_cause::{Cause, start_fault};
use tiphys_value::{ObjectExt as _, Value};
use unsaid::{denied_state, expired_mount, labelled_state};

use crate::{
    Object,
    calls::Caller,
    cluster::{items, pods},
    finding::Finding,
    log_evidence::Fact,
    search_context::{Ill, Look},
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = look.ill.iter().flat_map(|ill| ailment(look, ill)).collect();
    found.extend(look.cluster.all("Job").iter().filter_map(|job| failed_job(look, job)));
    found
}

/// A Job that failed, and whose pods are gone.
fn failed_job(look: &Look<'_>, job: &Value) -> Option<Finding> {
    let object = Object::from_live(job);
    let told = look.red.get(&object).filter(|_| pods::of_workload(look.cluster, &object).is_empty())?;
    Some(
        Finding::new(Cause::RunExits, object.clone(), 0.45, format!("{object} failed; its pods are gone"))
            .evidence(object.to_string(), told.clone())
            .remedy("Run it again, and read its log.", &[])
            .shallow(),
    )
}

/// Why the containers of a workload do not run.
fn ailment<'a>(look: &Look<'a>, ill: &Ill<'a>) -> Vec<Finding> {
    let with_pods = |finding: Finding| {
        let finding = ill
            .pods
            .iter()
            .fold(finding, |finding, pod| finding.suffers(Object::from_live(pod), "not ready"));
        let finding = finding.suffers(ill.workload.clone(), "its pods are not ready").since(ill.since);
        if crate::causes::control_plane::is_component(&ill.workload) { finding.shallow() } else { finding }
    };
    if let Some(finding) = mutated(look, ill) {
        return vec![with_pods(finding)];
    }
    let direct = [
        kept_open(ill),
        evicted(look, ill),
        rejected(look, ill),
        not_started(ill),
        hook(look, ill),
        killed(ill),
        repeated_program(look, ill),
        command(look, ill),
        labelled_state(ill),
    ];
    if let Some(finding) = direct.into_iter().flatten().next() {
        return vec![with_pods(with_logs(ill, finding))];
    }
    if !has_run(ill) {
        return not_created(ill).map(with_pods).into_iter().collect();
    }
    if let Some(finding) = by_platform(look, ill) {
        return vec![with_pods(finding)];
    }
    if let Some(finding) = crate::causes::config::missing_file(look, ill) {
        return vec![with_pods(finding)];
    }
    let told = from_facts(look, ill);
    if let Some(finding) = &told
        && finding.is_asserted()
    {
        return vec![with_pods(finding.clone())];
    }
    let probes = probes(look, ill);
    if let Some(finding) = probe(look, ill, &probes)
        && (told.is_none() || finding.is_asserted())
    {
        let finding = told.iter().flat_map(|told| told.upstream.clone()).fold(finding, Finding::below);
        let better = (!finding.is_asserted()).then(|| crate::calls::unheard(look, ill)).flatten();
        return vec![with_pods(better.unwrap_or(finding))];
    }
    let others = [
        told,
        init_wait(look, ill),
        completion(ill),
        injected(look, ill),
        crate::calls::unheard(look, ill),
        expired_mount(look, ill),
        denied_state(ill),
        exits(look, ill),
        unready(look, ill),
    ];
    others.into_iter().flatten().next().map(with_pods).into_iter().collect()
}

/// What pods run is not what their template says: a webhook changed it.
pub(crate) fn mutated(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let pod = ill.pods.first()?;
    let owner = crate::cluster::controller(pod).and_then(|owner| look.cluster.live(&owner))?;
    let template = pods::spec(owner).filter(|_| owner.kind() == "ReplicaSet")?;
    let hook = look.cluster.all("MutatingWebhookConfiguration").iter().find(|config| {
        let rules = items(config, &["webhooks"]).flat_map(|hook| items(hook, &["rules"]));
        rules
            .flat_map(|rule| items(rule, &["resources"]))
            .any(|it| matches!(it.as_str(), Some("pods" | "*" | "pods/*")))
    })?;
    for container in items(template, &["containers"]) {
        let live = items(pod, &["spec", "containers"]).find(|it| it.get("name") == container.get("name"))?;
        for key in ["image", "command", "args"] {
            let status = pods::statuses(pod).find(|status| status.get("name") == container.get("name"));
            let pulls = status
                .and_then(pods::waiting)
                .is_some_and(|(reason, _)| reason.contains("Image") || reason.contains("Pull"));
            // A mirror of images changes them too, and harms nobody as long as they can be pulled.
            if live.get(key) != container.get(key) && (key == "image") == pulls {
                let (object, pod) = (Object::from_live(hook), Object::from_live(pod));
                let shown =
                    |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), ToString::to_string);
                return Some(
                    Finding::new(
                        Cause::AdmitMutated,
                        object.clone(),
                        0.85,
                        format!("{object} changes {key} of the pods of {}, which fail with it", ill.workload),
                    )
                    .evidence(pod.to_string(), format!("{key}: {}", shown(live.get(key))))
                    .evidence(
                        Object::from_live(owner).to_string(),
                        format!("{key}: {}", shown(container.get(key))),
                    )
                    .remedy("Correct the webhook, or except the workload from it.", &[]),
                );
            }
        }
    }
    None
}

/// Whether a container has started at least once.
fn has_run(ill: &Ill<'_>) -> bool {
    let mut statuses = ill.pods.iter().flat_map(|pod| pods::statuses(pod));
    statuses.any(|it| pods::ended(it).is_some() || it.at(&["state", "running"]).is_some())
        || !ill.facts.is_empty()
}

/// The last lines of the log, as evidence.
fn with_logs(ill: &Ill<'_>, finding: Finding) -> Finding {
    match ill.facts.first() {
        Some(fact) => finding.evidence(fact.source.clone(), fact.line.clone()),
        None => finding,
    }
}

fn evicted(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let pod = ill.pods.iter().find(|pod| pod.str_at(&["status", "reason"]) == Some("Evicted"))?;
    let message = pod.str_at(&["status", "message"]).unwrap_or_default();
    let node = Object::new("Node", "", pod.str_at(&["spec", "nodeName"]).unwrap_or_default());
    if message.contains("exceeds the limit")
        || message.contains("exceeds the total limit of containers")
        || message.contains("exceeded its local ephemeral storage limit")
        || message.contains("Usage of EmptyDir volume")
    {
        return Some(
            Finding::new(
                Cause::RunDiskFull,
                ill.workload.clone(),
                0.9,
                format!("{} uses more local storage than its limit", ill.workload),
            )
            .evidence(Object::from_live(pod).to_string(), message)
            .remedy("Raise the limit of ephemeral storage, or write less.", &[]),
        );
    }
    let finding = Finding::new(
        Cause::NodePressure,
        node.clone(),
        0.85,
        format!("{node} evicts pods: it runs out of a resource"),
    )
    .evidence(Object::from_live(pod).to_string(), message)
    .remedy("Free the resource, or move what uses it.", &[format!("kubectl describe node {}", node.name)]);
    // Whether anybody misses the pod is told by its workload, and whether it goes on by the node.
    let is_over = look.cluster.live(&node).is_some() && !look.is_red(&node);
    let is_missed = look.cluster.live(&ill.workload).is_some();
    // Where another pod does its work, and nothing tells of the node, the eviction may be long ago.
    let members = pods::of_workload(look.cluster, &ill.workload);
    let owner = crate::cluster::controller(pod);
    let beside = look.cluster.pods_in(pod.namespace()).iter().copied();
    let siblings = beside.filter(|it| owner.is_some() && crate::cluster::controller(it) == owner);
    let is_replaced = members.into_iter().chain(siblings).any(pods::is_ready);
    let is_untold = look.cluster.live(&node).is_none() && is_replaced;
    Some(if is_over && !is_missed || is_untold { finding.not_known() } else { finding })
}

/// Reasons by which a kubelet rejects a pod that was given to it, and the mechanism.
const REJECTIONS: &[(&str, Cause)] = &[
    ("SysctlForbidden", Cause::RunPermission),
    ("AppArmor", Cause::RunPermission),
    ("ProcMount", Cause::RunPermission),
    ("NodeAffinity", Cause::ScheduleNodeSelector),
    ("PodOSNotSupported", Cause::ScheduleNodeSelector),
    ("PodOSSelectorNodeLabelDoesNotMatch", Cause::ScheduleNodeSelector),
    ("TopologyAffinityError", Cause::ScheduleCapacity),
    ("UnexpectedAdmissionError", Cause::ScheduleCapacity),
    ("Preempting", Cause::SchedulePreempted),
];

/// A pod that its kubelet does not take, so that a new one is made again and again.
fn rejected(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let (pod, cause) = ill.pods.iter().find_map(|pod| {
        let reason = pod.str_at(&["status", "reason"])?;
        let short = reason.strip_prefix("OutOf").map(|_| Cause::ScheduleCapacity);
        let listed = REJECTIONS.iter().find(|(known, _)| *known == reason).map(|(_, cause)| *cause);
        Some((*pod, listed.or(short)?))
    })?;
    let message = pod.str_at(&["status", "message"]).unwrap_or_default();
    let node = pod.str_at(&["spec", "nodeName"]).unwrap_or_default();
    let remedy = match cause {
        Cause::RunPermission => {
            "Allow it in the kubelet's configuration (allowedUnsafeSysctls), or take it out of the pod."
        }
        Cause::SchedulePreempted => {
            "Leave room on the node for what is critical, or raise the priority class of what must run."
        }
        Cause::ScheduleNodeSelector => "Bring the labels of the node and the pod's selector together.",
        _ => "Bring the node's resource or device back, or ask for less.",
    };
    let summary = format!("the kubelet of Node {node} rejects the pods of {}: {message}", ill.workload);
    let finding = Finding::new(cause, ill.workload.clone(), 0.85, summary)
        .evidence(Object::from_live(pod).to_string(), message)
        .remedy(remedy, &[]);
    // Devices are reported by the plugin of their vendor.
    let vendors = message.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '-')));
    let vendors =
        vendors.filter_map(|word| word.split_once('/')).filter_map(|(vendor, _)| vendor.split('.').next());
    let vendors: Vec<&str> = vendors.filter(|word| word.len() > 2).collect();
    let plugins =
        look.cluster.all("DaemonSet").iter().filter(|set| vendors.iter().any(|it| set.name().contains(it)));
    let finding = plugins.fold(finding, |finding, set| finding.below(Object::from_live(set)));
    Some(finding.below(Object::new("Node", "", node)))
}

/// The containers that wait or have ended, each with its pod and its status.
pub(super) fn troubled<'a>(ill: &Ill<'a>) -> impl Iterator<Item = (&'a Value, &'a Value)> {
    ill.pods.iter().flat_map(|pod| pods::statuses(pod).map(move |status| (*pod, status)))
}

/// A container that could not be started at all.
fn not_started(ill: &Ill<'_>) -> Option<Finding> {
    for (pod, status) in troubled(ill) {
        let mut words: Vec<(&str, &str)> = pods::waiting(status).into_iter().collect();
        if let Some(ended) = pods::ended(status) {
            words.push((
                ended.str_at(&["reason"]).unwrap_or_default(),
                ended.str_at(&["message"]).unwrap_or_default(),
            ));
        }
        for (reason, message) in words {
            if !matches!(
                reason,
                "StartError"
                    | "RunContainerError"
                    | "ContainerCannotRun"
                    | "CreateContainerError"
                    | "CreateContainerConfigError"
            ) {
                continue;
            }
            let cause = if message.contains("no command specified") {
                Some(Cause::RunCommand)
            } else {
                start_fault(message)
            };
            let name = status.str_at(&["name"]).unwrap_or_default();
            let Some(cause) = cause.or((reason == "StartError").then_some(Cause::RunCommand)) else {
                continue;
            };
            // What is missing is told by whoever looks for it.
            if tiphys_cause::absent(message).is_some() {
                continue;
            }
            let told = message.trim_end_matches(": unknown").rsplit(": ").next().unwrap_or(message);
            let source = format!("{}, {reason}", Object::from_live(pod));
            if cause == Cause::NodeRuntime {
                return Some(unfinished_container(pod, name, source, message));
            }
            let (field, summary, remedy) = if cause == Cause::RunPermission
                && message.contains("runAsNonRoot")
            {
                (
                    "spec.template.spec.securityContext",
                    format!("container {name} of {} must not run as root, and its image does", ill.workload),
                    "Set runAsUser to a user of the image, or use an image that does not run as root.",
                )
            } else {
                (
                    "spec.template.spec.containers",
                    format!("container {name} of {} cannot be started: {told}", ill.workload),
                    "Correct what is started: command, arguments, image or mount.",
                )
            };
            return Some(
                Finding::new(cause, ill.workload.clone(), 0.93, summary)
                    .field(field)
                    .evidence(source, message)
                    .remedy(remedy, &[]),
            );
        }
    }
    None
}

/// A container that the runtime does not create, for a reason that it alone understands.
fn not_created(ill: &Ill<'_>) -> Option<Finding> {
    let (pod, name, message) = troubled(ill).find_map(|(pod, status)| {
        let (reason, message) = pods::waiting(status)?;
        let is_told =
            matches!(reason, "CreateContainerError" | "CreateContainerConfigError" | "RunContainerError")
                && !message.is_empty()
                && tiphys_cause::absent(message).is_none();
        is_told.then(|| (pod, status.str_at(&["name"]).unwrap_or_default(), message))
    })?;
    let summary = format!("container {name} of {} cannot be created: {message}", ill.workload);
    Some(
        Finding::new(Cause::RunExits, ill.workload.clone(), 0.6, summary)
            .field("spec.template.spec.containers")
            .evidence(Object::from_live(pod).to_string(), message)
            .remedy("Correct what the runtime's words name.", &[])
            .shallow(),
    )
}

/// A container whose first creation the runtime of the node never finished.
fn unfinished_container(pod: &Value, name: &str, source: String, message: &str) -> Finding {
    let node = Object::new("Node", "", pod.str_at(&["spec", "nodeName"]).unwrap_or_default());
    let summary = format!("the container runtime of {node} does not create container {name}");
    Finding::new(Cause::NodeRuntime, node.clone(), 0.8, summary).evidence(source, message).remedy(
        "Look at the load and the disk of the node; restart its runtime if it does not recover.",
        &[format!("kubectl describe node {}", node.name)],
    )
}

fn hook(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let object = Object::from_live(ill.pods.first()?);
    let reasons = ["FailedPostStartHook", "FailedPreStopHook"];
    let event = look.cluster.events(&object).rfind(|event| reasons.contains(&event.reason.as_str()))?;
    let waits =
        troubled(ill).any(|(_, status)| pods::waiting(status).is_some() || pods::ended(status).is_some());
    waits.then(|| {
        Finding::new(
            Cause::RunHook,
            ill.workload.clone(),
            0.9,
            format!("a lifecycle hook of {} fails", ill.workload),
        )
        .field("spec.template.spec.containers.lifecycle")
        .evidence(format!("Event of {object}"), event.message.clone())
        .remedy("Correct or remove the hook.", &[])
    })
}

/// A container that was killed for its memory.
fn killed(ill: &Ill<'_>) -> Option<Finding> {
    for (pod, status) in troubled(ill) {
        let Some(ended) = pods::ended(status) else { continue };
        if ended.str_at(&["reason"]) != Some("OOMKilled") {
            continue;
        }
        let name = status.str_at(&["name"]).unwrap_or_default();
        let limit = pod
            .get("spec")
            .into_iter()
            .flat_map(pods::containers)
            .find(|it| it.str_at(&["name"]) == Some(name))
            .and_then(|it| it.str_at(&["resources", "limits", "memory"]));
        let object = Object::from_live(pod);
        let text =
            limit.map_or_else(|| "the node's memory".to_owned(), |limit| format!("its limit of {limit}"));
        return Some(
            Finding::new(
                Cause::RunOom,
                ill.workload.clone(),
                0.94,
                format!("container {name} of {} uses more memory than {text}", ill.workload),
            )
            .field(format!("spec.template.spec.containers[{name}].resources.limits.memory"))
            .evidence(
                object.to_string(),
                format!("{name}: OOMKilled, exit code {}", ended.int_at(&["exitCode"]).unwrap_or(137)),
            )
            .remedy(
                "Raise the limit, or find out what takes the memory.",
                &[format!("kubectl -n {} top pod {} --containers", object.namespace, object.name)],
            ),
        );
    }
    None
}

/// The arguments of a container name the program that its command already starts.
fn repeated_program(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let container = items(ill.spec(), &["containers"]).find(|it| {
        let command = it.at(&["command"]).and_then(|it| it.get(0)).and_then(Value::as_str).map(base);
        let argument = it.at(&["args"]).and_then(|it| it.get(0)).and_then(Value::as_str);
        command.is_some() && argument.is_some_and(|it| it.starts_with('/')) && argument.map(base) == command
    })?;
    let name = container.str_at(&["name"]).unwrap_or_default();
    let is_bad = troubled(ill).any(|(_, status)| {
        status.str_at(&["name"]) == Some(name)
            && pods::ended(status).is_some_and(|it| it.int_at(&["exitCode"]) != Some(0))
    });
    is_bad.then(|| {
        let finding = Finding::new(
            Cause::RunCommand,
            ill.workload.clone(),
            0.9,
            format!(
                "the arguments of container {name} of {} name the program again that its command starts",
                ill.workload
            ),
        )
        .field(format!("spec.template.spec.containers[{name}].args"))
        .remedy(
            "Correct command and args together: one replaces the entrypoint, the other its arguments.",
            &[],
        );
        log::patched(look, ill, finding)
    })
}

/// Init containers that check whether the plugin of the mesh has done its part on the node.
const MESH_CHECKS: &[&str] = &["istio-validation", "linkerd-network-validator"];

/// The pods of a mesh's network plugin on the node of a pod whose check fails.
fn mesh_plugins(look: &Look<'_>, pod: &Value) -> Vec<Object> {
    const PLUGINS: &[&str] = &["istio-cni", "linkerd-cni"];
    let node = pod.str_at(&["spec", "nodeName"]).unwrap_or_default();
    let checks = items(pod, &["status", "initContainerStatuses"]).any(|status| {
        let name = status.str_at(&["name"]).unwrap_or_default();
        MESH_CHECKS.contains(&name) && status.at(&["ready"]).and_then(Value::as_bool) != Some(true)
    });
    let all = look.cluster.all("Pod").iter().filter(|_| checks && !node.is_empty());
    let here = all.filter(|it| it.str_at(&["spec", "nodeName"]) == Some(node));
    let plugins = here.filter(|it| PLUGINS.iter().any(|name| it.name().contains(name)));
    plugins.map(|it| Object::from_live(it)).collect()
}

/// Exit codes by which shells say that there is nothing to run.
fn command(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let (pod, status, code) = troubled(ill).find_map(|(pod, status)| {
        let code = pods::ended(status)?.int_at(&["exitCode"])?;
        matches!(code, 126 | 127).then_some((pod, status, code))
    })?;
    let name = status.str_at(&["name"]).unwrap_or_default();
    // A program of the mesh ends so where nothing leads its traffic yet.
    if MESH_CHECKS.contains(&name) {
        return None;
    }
    let is_denied = code == 126
        && ill
            .facts
            .iter()
            .any(|fact| matches!(&fact.fact, Fact::Complaint(it) if it.cause == Cause::RunPermission));
    let cause = if is_denied { Cause::RunPermission } else { Cause::RunCommand };
    let what =
        format!("the command of container {name} of {} cannot be run (exit code {code})", ill.workload);
    let finding = Finding::new(cause, ill.workload.clone(), 0.88, what)
        .field(format!("spec.template.spec.containers[{name}].command"))
        .evidence(Object::from_live(pod).to_string(), format!("{name}: exit code {code}"))
        .remedy("Correct the command, or the image that should hold it.", &[]);
    // What the shell or the loader said last names what is not there.
    let logs = look.cluster.logs(pod.namespace(), pod.name());
    let said = logs.iter().find_map(|log| {
        let line = log.last_lines().find(|line| !line.trim().is_empty())?;
        (log.container == name || log.container.is_empty()).then(|| (log.source(), line.to_owned()))
    });
    Some(match said {
        Some((source, line)) => finding.evidence(source, line),
        None => finding,
    })
}

fn by_platform(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let fact = ill.facts.iter().find(|fact| fact.line.to_ascii_lowercase().contains("exec format error"))?;
    let node = ill.pods.first()?.str_at(&["spec", "nodeName"]).unwrap_or_default();
    let platform = look
        .cluster
        .get("Node", "", node)
        .and_then(|node| node.str_at(&["status", "nodeInfo", "architecture"]))
        .unwrap_or("another platform");
    Some(
        Finding::new(
            Cause::ImagePlatform,
            ill.workload.clone(),
            0.93,
            format!("the image of {} is not built for {platform}", ill.workload),
        )
        .evidence(fact.source.clone(), fact.line.clone())
        .remedy("Build the image for the platform of the nodes.", &[]),
    )
}

/// A program that ends well where it must not end, or a sidecar that keeps a Job open.
fn completion(ill: &Ill<'_>) -> Option<Finding> {
    let always = ill.spec().str_at(&["restartPolicy"]).is_none_or(|policy| policy == "Always");
    let (pod, status) = troubled(ill).find(|(_, status)| {
        let ended = pods::ended(status);
        always
            && pods::waiting(status).is_some_and(|(reason, _)| reason == "CrashLoopBackOff")
            && ended.is_some_and(|it| it.int_at(&["exitCode"]) == Some(0))
    })?;
    let name = status.str_at(&["name"]).unwrap_or_default();
    Some(
        Finding::new(
            Cause::RunCompletion,
            ill.workload.clone(),
            0.88,
            format!("container {name} of {} ends well, and is started again and again", ill.workload),
        )
        .field("spec.template.spec.restartPolicy")
        .evidence(
            Object::from_live(pod).to_string(),
            format!("{name}: exit code 0, restarted {} times", status.int_at(&["restartCount"]).unwrap_or(0)),
        )
        .remedy("Run it as a Job, or start the program that stays.", &[]),
    )
}

/// A Job whose main container has ended well, and that another container keeps open.
fn kept_open(ill: &Ill<'_>) -> Option<Finding> {
    let pod = ill.pods.iter().find(|pod| {
        let is_of_job = ill.workload.kind == "Job" || ill.workload.kind == "CronJob";
        let statuses: Vec<&Value> = items(pod, &["status", "containerStatuses"]).collect();
        let ended = |it: &&Value| it.int_at(&["state", "terminated", "exitCode"]) == Some(0);
        let runs = |it: &&Value| it.at(&["state", "running"]).is_some();
        is_of_job && statuses.iter().any(ended) && statuses.iter().any(runs)
    })?;
    let names: Vec<&str> = items(pod, &["status", "containerStatuses"])
        .filter(|it| it.at(&["state", "running"]).is_some())
        .filter_map(|it| it.str_at(&["name"]))
        .collect();
    Some(
        Finding::new(
            Cause::RunCompletion,
            ill.workload.clone(),
            0.9,
            format!("{} has done its work, and {} keeps it open", ill.workload, names.join(", ")),
        )
        .evidence(
            Object::from_live(pod).to_string(),
            format!("{} still runs, the others have ended with 0", names.join(", ")),
        )
        .remedy("Make it a native sidecar (an init container with restartPolicy: Always), or end it.", &[]),
    )
}

/// The container that fails was put in by a webhook.
fn injected(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let live = look.cluster.live(&ill.workload)?;
    let template = pods::spec(live)?;
    let names: Vec<&str> = pods::containers(template).filter_map(|it| it.str_at(&["name"])).collect();
    let (pod, status) = troubled(ill).find(|(_, status)| {
        let is_bad = pods::waiting(status).is_some_and(|(reason, _)| reason == "CrashLoopBackOff");
        is_bad && status.str_at(&["name"]).is_some_and(|name| !names.contains(&name))
    })?;
    let hook = look
        .cluster
        .all("MutatingWebhookConfiguration")
        .iter()
        .find(|config| items(config, &["webhooks"]).any(|hook| hook.to_string().contains("\"pods\"")))?;
    let name = status.str_at(&["name"]).unwrap_or_default();
    let object = Object::from_live(hook);
    Some(
        Finding::new(
            Cause::AdmitMutated,
            object.clone(),
            0.7,
            format!("container {name}, which fails, is not in {}: a webhook puts it in", ill.workload),
        )
        .evidence(
            Object::from_live(pod).to_string(),
            format!("{name} fails; the template has {}", names.join(", ")),
        )
        .remedy("Correct the injection, or switch it off for this workload.", &[]),
    )
}

/// A program that ends with an error, and says nothing that leads further.
fn exits(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let (pod, status, code) = troubled(ill).find_map(|(pod, status)| {
        let ended = pods::ended(status)?;
        let code = ended.int_at(&["exitCode"])?;
        (code != 0).then_some((pod, status, code))
    })?;
    let name = status.str_at(&["name"]).unwrap_or_default();
    let object = Object::from_live(pod);
    let killed = look
        .cluster
        .events(&object)
        .any(|event| event.reason == "Killing" && event.message.contains("failed liveness"));
    if killed {
        return Some(
            Finding::new(
                Cause::RunLiveness,
                ill.workload.clone(),
                0.7,
                format!("container {name} of {} is ended by its liveness probe", ill.workload),
            )
            .evidence(object.to_string(), format!("{name}: exit code {code}")),
        );
    }
    let logs = look.cluster.logs(pod.namespace(), pod.name());
    let last = logs.iter().rev().find_map(|log| Some((log, telling_line(&log.text)?)));
    let is_plugin = ill.workload.kind == "DaemonSet"
        && crate::causes::pod_network::PLUGINS.contains(&ill.workload.name.as_str());
    let cause = if is_plugin { Cause::NetCniDown } else { Cause::RunExits };
    let mut finding = Finding::new(
        cause,
        ill.workload.clone(),
        0.7,
        format!("container {name} of {} ends with exit code {code}", ill.workload),
    )
    .evidence(
        object.to_string(),
        format!(
            "{name}: exit code {code}, restarted {} times",
            status.int_at(&["restartCount"]).unwrap_or(0)
        ),
    )
    .remedy(
        "Read the program's last lines.",
        &[format!("kubectl -n {} logs {} -c {name} --previous", object.namespace, object.name)],
    )
    .shallow();
    // A node that has no room for threads stops the programs on it.
    let lacks_threads = logs.iter().any(|log| log.text.lines().rev().take(60).any(says_no_threads));
    if let Some(node) = pod.str_at(&["spec", "nodeName"]).filter(|_| lacks_threads) {
        finding = finding.below(Object::new("Node", "", node));
    }
    let is_init = items(pod, &["status", "initContainerStatuses"]).any(|it| std::ptr::eq(it, status));
    let lines = logs.iter().filter(|log| log.container == name);
    let text: Vec<&str> = lines.flat_map(|log| log.text.lines().rev().take(20)).collect();
    let text = text.join("\n");
    let jobs = if is_init { awaited_jobs(look, ill, &text) } else { jobs_of_migration(look, ill, &text) };
    finding = jobs.into_iter().fold(finding, Finding::below);
    finding = mesh_plugins(look, pod).into_iter().fold(finding, Finding::below);
    let is_killed = matches!(code, 137 | 143);
    let caller = Caller::of_ill(look, ill);
    let blames = last.as_ref().is_some_and(|(_, line)| caller.names_what_it_calls(line));
    let calls = blames || ill.facts.iter().any(|fact| matches!(fact.fact, Fact::Call(_)));
    // Who killed it is not known; or the log blames a call, and nobody knows why that fails.
    let is_node_unseen = lacks_threads && !look.cluster.has_kind("Node");
    if is_killed || calls || is_node_unseen {
        finding.confidence = 0.45;
    }
    if let Some((log, line)) = last {
        finding = finding.evidence(log.source(), line);
    } else if logs.is_empty() {
        // Without its log nobody knows why a program ended.
        finding.confidence = 0.45;
    }
    Some(dependencies(look, &caller, finding))
}

/// The line of a log that tells why a program ended: the last one that complains, or the last one.
fn telling_line(text: &str) -> Option<&str> {
    const WORDS: &[&str] =
        &["panic", "fatal", "exception", "error", "traceback", "abort", "fail", "segmentation", "assert"];
    let lines = || text.lines().rev().filter(|line| !line.trim().is_empty()).take(60);
    let complains = |line: &&str| {
        let low = line.to_ascii_lowercase();
        WORDS.iter().any(|word| low.contains(word))
    };
    lines().find(complains).or_else(|| lines().next())
}

/// A pod that runs and is not ready, with nothing more to go by.
fn unready(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    ill.pods.iter().find(|pod| pod.str_at(&["status", "phase"]) == Some("Running"))?;
    if let Some(finding) = gated(look, ill) {
        return Some(finding);
    }
    let finding = Finding::new(
        Cause::RunReadiness,
        ill.workload.clone(),
        0.3,
        format!("{} is not ready; it is not known why", ill.workload),
    )
    .remedy("Read its log, and the events of its pods.", &[])
    .shallow();
    let caller = Caller::of_ill(look, ill);
    Some(dependencies(look, &caller, finding))
}

fn says_no_threads(line: &str) -> bool {
    let low = line.to_ascii_lowercase();
    ["unable to create native thread", "cannot fork", "fork: retry", "newosproc", "can't start new thread"]
        .iter()
        .any(|words| low.contains(words))
}
