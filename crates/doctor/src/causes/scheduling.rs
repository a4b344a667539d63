//! Pods that get no node: the scheduler's arithmetic, repeated over the nodes that were saved.

use std::collections::BTreeSet;

use tiphys_cause::{Cause, Obstacle, placement};
use tiphys_value::{ObjectExt as _, Value};

use super::{startup_taints, unnamed_taints};
use crate::{
    Object,
    cluster::{Cluster, conditions, items, pods, quantity, selector},
    finding::Finding,
    search_context::{Ill, Look},
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let found = look.ill.iter().filter_map(|ill| unplaced(look, ill)).collect();
    let mut found = without_machines(found);
    found.extend(look.ill.iter().filter_map(|ill| bound_to_nothing(look, ill)));
    found.extend(look.cluster.all("Job").iter().filter_map(|job| queued(look, job)));
    found
}

/// Workloads to which the autoscaler says the same wait for the same machines: one of them tells it all.
fn without_machines(found: Vec<Finding>) -> Vec<Finding> {
    let mut kept: Vec<Finding> = Vec::new();
    for finding in found {
        let told = |it: &Finding| it.evidence.first().map(|evidence| evidence.text.clone());
        let is_same = |known: &&mut Finding| {
            finding.cause == Cause::ScheduleAutoscaler
                && known.cause == finding.cause
                && known.object.kind == finding.object.kind
                && told(known) == told(&finding)
        };
        match kept.iter_mut().find(is_same) {
            Some(known) => known.absorb(finding, "needs a node, too"),
            None => kept.push(finding),
        }
    }
    kept
}

/// A workload whose pods are bound to a node by its name, past the scheduler, and there is no such node.
fn bound_to_nothing(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let is_lost = |pod: &&&Value| {
        pod.str_at(&["status", "phase"]).is_none_or(|phase| phase == "Pending")
            && pods::statuses(pod).next().is_none()
    };
    let pod = ill.pods.iter().find(is_lost)?;
    let name = look.cluster.live(&ill.workload).and_then(pods::spec)?.str_at(&["nodeName"])?;
    let is_bound = pod.str_at(&["spec", "nodeName"]) == Some(name);
    let is_absent = look.cluster.has_kind("Node") && look.cluster.get("Node", "", name).is_none();
    if !is_bound || !is_absent {
        return None;
    }
    let workload = &ill.workload;
    let summary = format!("the pods of {workload} are bound to the node {name}, which does not exist");
    let finding = Finding::new(Cause::ScheduleNodeSelector, workload.clone(), 0.92, summary)
        .field("spec.template.spec.nodeName")
        .evidence(workload.to_string(), format!("nodeName: {name}"))
        .since(ill.since)
        .remedy("Take nodeName out of the template, or correct it.", &["kubectl get nodes".to_owned()]);
    Some(ill.pods.iter().fold(finding, |finding, pod| finding.suffers(Object::from_live(pod), "has no node")))
}

/// A Job that a queue holds back: the queue is absent, or admits nothing.
fn queued(look: &Look<'_>, job: &Value) -> Option<Finding> {
    let queue = job.label("kueue.x-k8s.io/queue-name")?;
    let is_suspended = job.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
    if !is_suspended || look.cluster.age(job) < 300 {
        return None;
    }
    let object = Object::from_live(job);
    let local = Object::new("LocalQueue", job.namespace(), queue);
    let workloads = look.cluster.owned(&object).iter().filter(|it| it.kind() == "Workload");
    let refused = workloads.flat_map(|it| conditions(it)).find(|it| {
        matches!(it.str_at(&["type"]), Some("QuotaReserved" | "Admitted"))
            && it.str_at(&["status"]) == Some("False")
    });
    let is_absent = look.cluster.live(&local).is_none() && look.cluster.has_kind("LocalQueue");
    let confidence = match (is_absent, refused) {
        (true, _) => 0.92,
        (_, Some(_)) => 0.8,
        _ => return None,
    };
    let what = if is_absent { "does not exist" } else { "does not admit it" };
    let finding = Finding::new(
        Cause::ScheduleGated,
        object.clone(),
        confidence,
        format!("{object} is suspended: its queue {local} {what}"),
    )
    .field("spec.suspend")
    .evidence(object.to_string(), format!("label kueue.x-k8s.io/queue-name: {queue}"))
    .below(local)
    .remedy(
        "Make the queue, correct the label, or give the queue more quota.",
        &["kubectl get localqueues,clusterqueues -A".to_owned()],
    );
    Some(match refused {
        Some(refused) => finding.evidence("Workload", crate::cluster::condition_text(refused)),
        None => finding,
    })
}

/// Why the pods of a workload get no node.
fn unplaced(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    // Containers have a status only where a kubelet looks after them.
    let is_open = |pod: &&&Value| {
        pod.str_at(&["spec", "nodeName"]).is_none_or(str::is_empty)
            && pods::statuses(pod).next().is_none()
            && !pods::has_ended(pod)
    };
    let pod = ill.pods.iter().find(is_open)?;
    let object = Object::from_live(pod);
    let message = message(look.cluster, pod);
    let finding = if pod
        .at(&["spec", "schedulingGates"])
        .is_some_and(|gates| gates.as_array().is_some_and(|it| !it.is_empty()))
    {
        gated(look, ill, pod)
    } else if let Some((source, message)) = &message {
        let finding = placed(look, ill, pod, message)?;
        finding.evidence(source.clone(), message.clone())
    } else {
        let scheduler = pod.str_at(&["spec", "schedulerName"]).unwrap_or("default-scheduler");
        return crate::causes::control_plane::scheduler(look, ill, scheduler);
    };
    let suffers = ill.pods.iter().filter(is_open).map(|pod| Object::from_live(pod));
    let finding = suffers.fold(finding, |finding, pod| finding.suffers(pod, "not scheduled"));
    Some(
        finding
            .suffers(ill.workload.clone(), "its pods are not scheduled")
            .since(pods::red_since(pod))
            .evidence(object.to_string(), "Pending"),
    )
}

/// The programs that add nodes where pods find no room.
const AUTOSCALERS: &[&str] = &["cluster-autoscaler", "karpenter"];

/// Who adds nodes, and cannot.
fn node_makers<'a>(look: &'a Look<'_>) -> impl Iterator<Item = Object> + use<'a> {
    let installed = super::autoscalers::installed(look.cluster);
    let adders = look.red.keys().filter(|it| {
        matches!(
            it.kind.as_str(),
            "NodePool"
                | "NodeClaim"
                | "Provisioner"
                | "MachineDeployment"
                | "MachinePool"
                | "MachineSet"
                | "Machine"
        ) || it.kind.ends_with("NodeClass")
            || it.kind == "Deployment" && AUTOSCALERS.iter().any(|name| it.name.contains(name))
    });
    adders.cloned().chain(installed)
}

/// What the scheduler says last, and where.
fn message(cluster: &Cluster<'_>, pod: &Value) -> Option<(String, String)> {
    let object = Object::from_live(pod);
    let condition = pods::unscheduled(pod).and_then(|it| it.str_at(&["message"])).filter(|it| !it.is_empty());
    if let Some(message) = condition {
        return Some((format!("{object}, condition PodScheduled"), message.to_owned()));
    }
    let event = cluster.events(&object).rfind(|event| event.reason == "FailedScheduling")?;
    Some((format!("Event of {object}"), event.message.clone()))
}

fn gated(look: &Look<'_>, ill: &Ill<'_>, pod: &Value) -> Finding {
    let gates: Vec<&str> =
        items(pod, &["spec", "schedulingGates"]).filter_map(|gate| gate.str_at(&["name"])).collect();
    let gates = gates.join(", ");
    let queue = pod.label("kueue.x-k8s.io/queue-name");
    let mut finding = Finding::new(
        Cause::ScheduleGated,
        ill.workload.clone(),
        0.85,
        format!("a scheduling gate holds the pods of {}: {gates}", ill.workload),
    )
    .field("spec.schedulingGates")
    .evidence(Object::from_live(pod).to_string(), format!("schedulingGates: {gates}"))
    .remedy("Find out why the controller that set the gate does not take it off.", &[]);
    if let Some(queue) = queue {
        let is_there = look.cluster.get("LocalQueue", pod.namespace(), queue).is_some();
        let text = if is_there { "the queue admits nothing" } else { "there is no such queue" };
        finding = finding
            .evidence(format!("LocalQueue {}/{queue}", pod.namespace()), text)
            .below(Object::new("LocalQueue", pod.namespace(), queue));
    }
    finding
}

/// Taints that nodes get for their own troubles.
const TROUBLES: &[&str] = &["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];
/// Taints that keep ordinary pods away on purpose.
const ON_PURPOSE: &[&str] = &[
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "node-role.kubernetes.io/etcd",
    "CriticalAddonsOnly",
];

/// Judges the scheduler's words, with the nodes at hand.
fn placed(look: &Look<'_>, ill: &Ill<'_>, pod: &Value, message: &str) -> Option<Finding> {
    let mut read = placement(message);
    read.obstacles = unnamed_taints::with_names(look.cluster, pod, read.obstacles);
    let has = |wanted: fn(&Obstacle) -> bool| read.obstacles.iter().any(|(_, obstacle)| wanted(obstacle));
    if let Some(finding) = claims(look, ill, pod, &read.obstacles) {
        return Some(finding);
    }
    let workload = &ill.workload;
    if let Some(finding) = troubled_nodes(look, ill, &read.obstacles) {
        return Some(finding);
    }
    let taint = read.obstacles.iter().find_map(|(_, obstacle)| match obstacle {
        Obstacle::Taint(key)
            if !ON_PURPOSE.contains(&key.as_str())
                && !TROUBLES.iter().any(|start| key.starts_with(start)) =>
        {
            Some(key.clone())
        }
        _ => None,
    });
    let resource = read.obstacles.iter().find_map(|(_, obstacle)| match obstacle {
        Obstacle::Insufficient(resource) => Some(resource.clone()),
        _ => None,
    });
    let new = |cause, summary: String| Finding::new(cause, workload.clone(), 0.93, summary);
    let fitting = fitting(look.cluster, pod);
    let selector_fits_none = fitting.as_ref().is_some_and(Vec::is_empty);
    let is_rollout = crate::causes::scale::is_blocked_rollout(look, ill);
    // A DaemonSet's pod is for one node, and of course fits no other.
    let is_pinned = fields(pod).next().is_some();
    let has_others = read.obstacles.iter().any(|(_, obstacle)| !matches!(obstacle, Obstacle::Selector));
    if has(|it| matches!(it, Obstacle::Selector))
        && !(is_pinned && has_others)
        && (selector_fits_none
            || taint.is_none() && resource.is_none() && !has(|it| matches!(it, Obstacle::Cordoned)))
    {
        // A group of nodes that fits has none now, and gets none.
        if let Some(finding) = no_scale_up(look, workload, &Object::from_live(pod)) {
            return Some(finding);
        }
        let wanted = wanted_labels(pod);
        let finding = new(
            Cause::ScheduleNodeSelector,
            format!("no node has the labels that {workload} asks for: {wanted}"),
        )
        .field("spec.template.spec.nodeSelector")
        .evidence(workload.to_string(), wanted)
        .remedy("Label a node, or correct the selector.", &["kubectl get nodes --show-labels".to_owned()]);
        // A node in trouble may have the labels, where nodes were not saved.
        let is_troubled = read.obstacles.iter().any(|(_, obstacle)| {
            matches!(obstacle, Obstacle::Taint(key) if TROUBLES.iter().any(|start| key.starts_with(start)))
        });
        let finding = if fitting.is_none() && is_troubled { finding.not_known() } else { finding };
        // Who writes such labels, if it is ill, is why no node has them.
        let labellers = ill_labellers(look, &finding);
        let finding = if labellers.is_empty() { finding } else { finding.not_known() };
        let finding = labellers.into_iter().fold(finding, Finding::below);
        return Some(node_makers(look).fold(finding, Finding::below));
    }
    let nodes = |wanted: fn(&Obstacle) -> bool| -> u32 {
        read.obstacles.iter().filter(|(_, it)| wanted(it)).map(|(count, _)| *count).sum()
    };
    // A taint that keeps the pod from few nodes is meant; what keeps it from the others is not.
    let is_spread = nodes(|it| matches!(it, Obstacle::Spread)) > nodes(|it| matches!(it, Obstacle::Taint(_)));
    let taint = taint.filter(|_| !is_spread);
    if let Some(key) = taint.filter(|_| resource.is_none() || has(|it| matches!(it, Obstacle::Selector))) {
        if startup_taints::is_of_startup(&key) {
            return Some(not_taken_off(look, ill, &key));
        }
        return Some(
            new(
                Cause::ScheduleTaint,
                format!("{workload} does not tolerate the taint {key} of the nodes that fit"),
            )
            .field("spec.template.spec.tolerations")
            .remedy(
                format!("Add a toleration of {key}, or take the taint off."),
                &["kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints".to_owned()],
            ),
        );
    }
    let cordoned: u32 = read
        .obstacles
        .iter()
        .filter(|(_, it)| matches!(it, Obstacle::Cordoned))
        .map(|(count, _)| *count)
        .sum();
    let short: u32 = read
        .obstacles
        .iter()
        .filter(|(_, it)| matches!(it, Obstacle::Insufficient(_)))
        .map(|(count, _)| *count)
        .max()
        .unwrap_or(0);
    if cordoned > 0 && cordoned >= short {
        let node = look
            .cluster
            .all("Node")
            .iter()
            .find(|node| node.at(&["spec", "unschedulable"]).and_then(Value::as_bool) == Some(true));
        let object = node.map_or_else(|| workload.clone(), |node| Object::from_live(node));
        let mut finding = self::cordoned(workload, &object);
        finding.summary = format!("{workload} gets no node: {cordoned} nodes are cordoned");
        return Some(finding);
    }
    if has(|it| matches!(it, Obstacle::HostPort)) {
        return Some(host_port(look, ill, pod));
    }
    if is_rollout {
        return Some(
            new(Cause::ScaleRollout, format!("the rollout of {workload} cannot go on: it may take no old pod away, and there is no room for a new one"))
                .field("spec.strategy.rollingUpdate.maxUnavailable")
                .remedy("Allow one pod to be unavailable during a rollout, or make room.", &[]),
        );
    }
    if has(|it| matches!(it, Obstacle::Spread)) {
        return Some(spread(look, pod, workload));
    }
    if has(|it| matches!(it, Obstacle::VolumeLimit)) {
        return Some(
            new(Cause::ScheduleCapacity, format!("no node may attach another volume for {workload}"))
                .field("spec.template.spec.volumes")
                .evidence("scheduler", message)
                .remedy(
                    "Add nodes, or a kind of machine that attaches more volumes.",
                    &["kubectl get csinodes -o custom-columns=NAME:.metadata.name,LIMITS:.spec.drivers[*].allocatable.count".to_owned()],
                ),
        );
    }
    resource.map(|resource| capacity(look, ill, pod, &resource, message))
}

/// A taint that stays on the nodes because the program is not ready which takes it off.
fn not_taken_off(look: &Look<'_>, ill: &Ill<'_>, key: &str) -> Finding {
    let agents = startup_taints::agents(look.cluster, key);
    // Why an agent is ill is told by its pods, and decides.
    let is_ill = agents.iter().any(|agent| look.is_red(agent));
    let by = agents.first().map_or_else(|| "a program that is not here".to_owned(), ToString::to_string);
    let finding = Finding::new(
        Cause::ScheduleTaint,
        ill.workload.clone(),
        if is_ill || agents.is_empty() { 0.45 } else { 0.6 },
        format!(
            "the nodes that fit {} bear the taint {key}, which {by} takes off when it is ready",
            ill.workload
        ),
    )
    .remedy(
        format!("Bring {by} back; it takes the taint off by itself."),
        &["kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints".to_owned()],
    );
    agents.into_iter().fold(finding, Finding::below)
}

/// Rules by which pods of a workload have to stand apart, and that leave no node.
fn spread(look: &Look<'_>, pod: &Value, workload: &Object) -> Finding {
    let constraints = items(pod, &["spec", "topologySpreadConstraints"])
        .filter(|it| it.str_at(&["whenUnsatisfiable"]) == Some("DoNotSchedule"));
    let of_pods = ["podAffinity", "podAntiAffinity"].into_iter().flat_map(|side| {
        items(pod, &["spec", "affinity", side, "requiredDuringSchedulingIgnoredDuringExecution"])
    });
    let keys: BTreeSet<&str> =
        constraints.chain(of_pods).filter_map(|it| it.str_at(&["topologyKey"])).collect();
    let nodes = look.cluster.all("Node");
    let is_nowhere = |key: &&&str| !nodes.is_empty() && nodes.iter().all(|node| node.label(key).is_none());
    let unlabelled: Vec<&str> = keys.iter().filter(is_nowhere).copied().collect();
    let (what, remedy) = if unlabelled.is_empty() {
        (
            format!("rules of spread or anti-affinity leave no node for {workload}"),
            "Add nodes or zones, run fewer replicas, or prefer instead of require.".to_owned(),
        )
    } else {
        let keys = unlabelled.join(", ");
        (
            format!("{workload} has to be spread by {keys}, a label that no node has"),
            format!("Label the nodes with {keys}, or spread by a label that they have."),
        )
    };
    let finding = Finding::new(Cause::ScheduleSpread, workload.clone(), 0.93, what)
        .field("spec.template.spec.affinity")
        .remedy(remedy, &[]);
    let by = keys.into_iter().collect::<Vec<_>>().join(", ");
    if by.is_empty() { finding } else { finding.evidence(workload.to_string(), format!("topologyKey: {by}")) }
}

/// The fault of a node that takes no pods, and would have to take those of a workload.
fn cordoned(workload: &Object, node: &Object) -> Finding {
    let summary = format!("{workload} gets no node: {node}, which would fit, is cordoned");
    Finding::new(Cause::ScheduleCordoned, node.clone(), 0.9, summary).field("spec.unschedulable").remedy(
        "Uncordon the node when its maintenance is over.",
        &[format!("kubectl uncordon {}", node.name)],
    )
}

/// The only pool of nodes, if it has as much of a resource as it may.
fn full_pool(cluster: &Cluster<'_>, resource: &str) -> Option<(Object, String, String)> {
    let [pool] = cluster.all("NodePool") else { return None };
    let amount = |path: &[&str]| quantity::milli(pool.at(path)?);
    let (has, may) = (amount(&["status", "resources", resource])?, amount(&["spec", "limits", resource])?);
    let object = Object::from_live(pool);
    (has >= may)
        .then(|| (object.clone(), object.to_string(), format!("status.resources.{resource} is at the limit")))
}

/// A pool of nodes that may not grow, as who adds nodes says to the pod.
fn pool_limit(cluster: &Cluster<'_>, workload: &Object, pod: &Object, resource: &str) -> Option<Finding> {
    let told = cluster.events(pod).rfind(|event| {
        let low = event.message.to_ascii_lowercase();
        low.contains("exceed limits for nodepool") || low.contains("exceed limits for provisioner")
    });
    let named = told.and_then(|event| {
        let name = event.message.rsplit("limits for ").next()?.split('"').nth(1)?;
        let kind = if event.message.contains("provisioner") { "Provisioner" } else { "NodePool" };
        Some((Object::new(kind, "", name), format!("Event of {pod}"), event.message.clone()))
    });
    let (object, source, text) = named.or_else(|| full_pool(cluster, resource))?;
    let (kind, name) = (object.kind.clone(), object.name.clone());
    let limits = cluster.live(&object).and_then(|live| live.at(&["spec", "limits"]));
    let limits = limits.map_or_else(|| "not saved".to_owned(), ToString::to_string);
    Some(
        Finding::new(
            Cause::ScheduleAutoscaler,
            object.clone(),
            0.92,
            format!("{object} is at its limit, and {workload} needs another node"),
        )
        .field("spec.limits")
        .evidence(source, text)
        .evidence(object.to_string(), format!("spec.limits: {limits}"))
        .remedy(
            "Raise the limits of the pool, or ask for less.",
            &[format!("kubectl get {} {name} -o yaml", kind.to_ascii_lowercase())],
        ),
    )
}

/// The cordoned node where a volume can be used, if no other node that is well has it.
fn cordoned_home(cluster: &Cluster<'_>, volume: &str) -> Option<Object> {
    let takes_none = |node: &Object| {
        let live = cluster.live(node);
        live.and_then(|it| it.at(&["spec", "unschedulable"])).and_then(Value::as_bool) == Some(true)
    };
    let homes = homes(cluster, volume);
    homes.iter().find(|node| takes_none(node)).cloned().filter(|_| homes.iter().all(takes_none))
}

/// Claims that hinder the placement.
fn claims(look: &Look<'_>, ill: &Ill<'_>, pod: &Value, obstacles: &[(u32, Obstacle)]) -> Option<Finding> {
    let names: Vec<&str> = items(pod, &["spec", "volumes"])
        .filter_map(|it| it.str_at(&["persistentVolumeClaim", "claimName"]))
        .collect();
    let claim = |name: &str| Object::new("PersistentVolumeClaim", pod.namespace(), name);
    for (_, obstacle) in obstacles {
        match obstacle {
            Obstacle::ClaimMissing(name) => {
                let name = name.as_deref().or(names.first().copied())?;
                return Some(crate::causes::volume::missing(look, claim(name), &ill.workload));
            }
            Obstacle::ClaimUnbound | Obstacle::NoVolume => {
                let finding = Finding::new(
                    Cause::VolumeNoMatch,
                    ill.workload.clone(),
                    0.3,
                    format!("{} waits for a claim", ill.workload),
                )
                .shallow();
                return Some(names.iter().fold(finding, |finding, name| finding.below(claim(name))));
            }
            Obstacle::VolumeZone => {
                let object = names.first().map_or_else(|| ill.workload.clone(), |name| claim(name));
                let volume = look
                    .cluster
                    .live(&object)
                    .and_then(|live| live.str_at(&["spec", "volumeName"]))
                    .unwrap_or("its volume");
                let is_cordoned = obstacles.iter().any(|(_, it)| matches!(it, Obstacle::Cordoned));
                if let Some(node) = cordoned_home(look.cluster, volume).filter(|_| is_cordoned) {
                    return Some(cordoned(&ill.workload, &node).evidence(
                        object.to_string(),
                        format!("its volume {volume} can be used in the zone of {node} only"),
                    ));
                }
                let finding = Finding::new(
                    Cause::VolumeZone,
                    object,
                    0.93,
                    format!("{volume} of {} is in a zone where no node fits", ill.workload),
                );
                let finding = homes(look.cluster, volume)
                    .into_iter()
                    .filter(|node| look.is_red(node))
                    .fold(finding, Finding::below);
                return Some(finding.below(Object::new("PersistentVolume", "", volume)).remedy(
                    "Bring a node into the zone of the volume, or move the data.",
                    &[format!("kubectl get pv {volume} -o jsonpath='{{.spec.nodeAffinity}}'")],
                ));
            }
            _ => {}
        }
    }
    None
}

/// The nodes on which a volume may be used.
fn homes(cluster: &Cluster<'_>, volume: &str) -> Vec<Object> {
    let Some(volume) = cluster.get("PersistentVolume", "", volume) else { return Vec::new() };
    let terms = || items(volume, &["spec", "nodeAffinity", "required", "nodeSelectorTerms"]);
    let fits = |node: &&&Value| {
        let labels = selector::labels(node);
        // A node whose labels were left out bears its name at least.
        let own = tiphys_value::json!({"kubernetes.io/hostname": node.name()});
        let labels = labels.or(own.as_object());
        terms().any(|term| items(term, &["matchExpressions"]).all(|it| selector::holds(it, labels)))
    };
    cluster.all("Node").iter().filter(fits).map(|node| Object::from_live(node)).collect()
}

/// Ends of the taints by which nodes tell of their own troubles, and the trouble.
const NODE_TAINTS: &[(&str, Cause)] = &[
    ("-pressure", Cause::NodePressure),
    ("/not-ready", Cause::NodeNotReady),
    ("/unreachable", Cause::NodeNotReady),
    ("/network-unavailable", Cause::NetCniDown),
    ("/uninitialized", Cause::NodeUninitialized),
];

/// Taints by which nodes tell of their own troubles: the nodes are to blame.
fn troubled_nodes(look: &Look<'_>, ill: &Ill<'_>, obstacles: &[(u32, Obstacle)]) -> Option<Finding> {
    let key = obstacles.iter().find_map(|(_, obstacle)| match obstacle {
        Obstacle::Taint(key)
            if TROUBLES.iter().any(|start| key.starts_with(start))
                && key != "node.kubernetes.io/unschedulable" =>
        {
            Some(key)
        }
        _ => None,
    })?;
    let bears = |node: &&&Value| {
        items(node, &["spec", "taints"]).any(|taint| taint.str_at(&["key"]) == Some(key.as_str()))
    };
    let is_named = look.cluster.all("Node").iter().any(|node| bears(&node));
    // A taint may have come after the nodes were saved: their conditions tell it, too.
    let tells = key.ends_with("/not-ready") || key.ends_with("/unreachable");
    let tainted = look
        .cluster
        .all("Node")
        .iter()
        .filter(|node| bears(node) || !is_named && tells && look.is_red(&Object::from_live(node)));
    // Nodes that were not saved are known by the scheduler's words only.
    let told = NODE_TAINTS.iter().find(|(end, _)| key.ends_with(end)).map(|(_, cause)| *cause);
    let unseen = told.filter(|_| !look.cluster.has_kind("Node"));
    let finding = Finding::new(
        unseen.unwrap_or(Cause::ScheduleTaint),
        ill.workload.clone(),
        if unseen.is_some() { 0.45 } else { 0.3 },
        format!("the nodes that fit {} are in trouble: {key}", ill.workload),
    )
    .remedy(
        "Look at the nodes that bear the taint, and bring them back.",
        &["kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints".to_owned()],
    )
    .shallow();
    let finding = tainted.fold(finding, |finding, node| finding.below(Object::from_live(node)));
    let other = obstacles.iter().any(|(_, it)| matches!(it, Obstacle::Insufficient(_) | Obstacle::Selector));
    (!finding.upstream.is_empty() || !other).then_some(finding)
}

/// The terms by which a pod asks for nodes.
fn node_terms(pod: &Value) -> impl Iterator<Item = &Value> {
    let path = [
        "spec",
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    ];
    items(pod, &path)
}

/// The fields of nodes that a pod asks for: controllers name the node by them.
fn fields(pod: &Value) -> impl Iterator<Item = &Value> {
    node_terms(pod).flat_map(|term| items(term, &["matchFields"]))
}

/// Whether a term names a node, or names none at all.
fn names_node(term: &Value, node: &Value) -> bool {
    items(term, &["matchFields"]).all(|field| {
        items(field, &["values"]).any(|value| value.as_str() == Some(node.name()))
            == (field.str_at(&["operator"]) == Some("In"))
    })
}

/// The nodes that a pod's selector and affinity fit; `None` if nodes were not saved.
fn fitting<'a>(cluster: &Cluster<'a>, pod: &Value) -> Option<Vec<&'a Value>> {
    if !cluster.has_kind("Node") {
        return None;
    }
    let fits = |node: &&Value| {
        let labels = selector::labels(node);
        let wanted = pod.at(&["spec", "nodeSelector"]).and_then(Value::as_object);
        let terms: Vec<&Value> = node_terms(pod).collect();
        let holds = |term: &&Value| {
            names_node(term, node) && items(term, &["matchExpressions"]).all(|it| selector::holds(it, labels))
        };
        wanted.is_none_or(|wanted| selector::has_all(labels, wanted))
            && (terms.is_empty() || terms.iter().any(holds))
    };
    Some(cluster.all("Node").iter().copied().filter(fits).collect())
}

fn wanted_labels(pod: &Value) -> String {
    let selector = pod.at(&["spec", "nodeSelector"]).map(ToString::to_string);
    let affinity = pod
        .at(&["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"])
        .map(ToString::to_string);
    let words: Vec<String> = selector.into_iter().chain(affinity).collect();
    words.join(" ")
}

fn host_port(look: &Look<'_>, ill: &Ill<'_>, pod: &Value) -> Finding {
    let wanted: Vec<i64> = pod
        .get("spec")
        .into_iter()
        .flat_map(pods::ports)
        .filter_map(|port| port.int_at(&["hostPort"]))
        .collect();
    let holder = look.cluster.all("Pod").iter().find(|other| {
        let is_other = other.name() != pod.name() && other.str_at(&["spec", "nodeName"]).is_some();
        is_other
            && other
                .get("spec")
                .into_iter()
                .flat_map(pods::ports)
                .filter_map(|port| port.int_at(&["hostPort"]))
                .any(|port| wanted.contains(&port))
    });
    let ports: Vec<String> = wanted.iter().map(ToString::to_string).collect();
    let by = holder.map(|holder| format!(": {} holds it", Object::from_live(holder))).unwrap_or_default();
    let finding = Finding::new(
        Cause::ScheduleHostPort,
        ill.workload.clone(),
        0.9,
        format!("the host port {} that {} wants is taken{by}", ports.join(", "), ill.workload),
    )
    .field("spec.template.spec.containers.ports.hostPort")
    .remedy("Use a Service instead of a host port, or another port.", &[]);
    match holder {
        Some(holder) => finding.below(look.cluster.workload(holder)).below(Object::from_live(holder)),
        None => finding,
    }
}

/// What a pod asks for of a resource, in thousandths.
pub(crate) fn requested(spec: &Value, resource: &str) -> i128 {
    let sum = items(spec, &["containers"])
        .filter_map(|it| quantity::milli(it.at(&["resources", "requests", resource])?))
        .sum();
    let first = items(spec, &["initContainers"])
        .filter_map(|it| quantity::milli(it.at(&["resources", "requests", resource])?))
        .max();
    first.unwrap_or(0).max(sum)
}

/// Labels that programs write on nodes by what they find there, and parts of the names of these programs.
const LABELLERS: &[(&str, &[&str])] = &[
    ("feature.node.kubernetes.io/", &["nfd-", "node-feature-discovery"]),
    ("nvidia.com/", &["gpu-feature-discovery", "nvidia-device-plugin", "nfd-", "node-feature-discovery"]),
    ("amd.com/", &["amd-gpu", "node-labeller"]),
    ("gpu.intel.com/", &["intel-gpu", "nfd-", "node-feature-discovery"]),
];

/// The red programs that should write the labels which a finding says no node has.
fn ill_labellers(look: &Look<'_>, finding: &Finding) -> Vec<Object> {
    let wanted = |start: &str| finding.summary.contains(start);
    let parts = LABELLERS.iter().filter(|(start, _)| wanted(start)).flat_map(|(_, parts)| parts.iter());
    let parts: Vec<&&str> = parts.collect();
    let ill = look.ill.iter().map(|ill| &ill.workload);
    ill.filter(|it| parts.iter().any(|part| it.name.contains(**part))).cloned().collect()
}

/// What claims of resources ask for.
const DEVICES: &str = "devices";

/// Whether a DaemonSet is a driver of devices that pods claim: its name says so, or bears a part of the name
/// of a class.
fn offers_devices(cluster: &Cluster<'_>, set: &Value) -> bool {
    const SHORTEST: usize = 3;
    let parts: Vec<&str> = set.name().split('-').collect();
    let mut classes = cluster.all("DeviceClass").iter().filter_map(|class| class.name().split('.').next());
    parts.contains(&"dra") || classes.any(|part| part.len() >= SHORTEST && parts.contains(&part))
}

/// What the autoscaler says of a pod for which it would add a node, and cannot.
fn no_scale_up(look: &Look<'_>, workload: &Object, pod: &Object) -> Option<Finding> {
    let event = look.cluster.events(pod).rfind(|event| {
        event.reason == "FailedScaleUp"
            || event.reason == "NotTriggerScaleUp"
                && ["max node group size", "max limit", "max cluster", "backoff after failed scale-up"]
                    .iter()
                    .any(|words| event.message.contains(words))
    })?;
    Some(
        Finding::new(
            Cause::ScheduleAutoscaler,
            workload.clone(),
            0.9,
            format!("{workload} needs a node, and the autoscaler cannot add one"),
        )
        .evidence(format!("Event of {pod}"), event.message.clone())
        .remedy(
            "Raise the maximum of the node group, or see why the cloud gives no machine.",
            &["kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml".to_owned()],
        ),
    )
}

fn capacity(look: &Look<'_>, ill: &Ill<'_>, pod: &Value, resource: &str, message: &str) -> Finding {
    let cluster = look.cluster;
    let workload = &ill.workload;
    let asked = pod.get("spec").map_or(0, |spec| requested(spec, resource));
    let preempted = cluster.case.events.iter().rfind(|event| {
        event.reason == "Preempted"
            && event.object.namespace == workload.namespace
            && event.object.name.starts_with(&workload.name)
    });
    if let Some(event) = preempted {
        return Finding::new(
            Cause::SchedulePreempted,
            workload.clone(),
            0.88,
            format!("pods of a higher priority took the place of {workload}"),
        )
        .evidence(format!("Event of {}", event.object), event.message.clone())
        .remedy(
            "Raise the priority class of what must run, or add nodes.",
            &["kubectl get priorityclasses".to_owned()],
        );
    }
    let object = Object::from_live(pod);
    if let Some(finding) = no_scale_up(look, workload, &object) {
        return finding;
    }
    if let Some(finding) = pool_limit(cluster, workload, &object, resource) {
        return finding;
    }
    let mut finding = Finding::new(
        Cause::ScheduleCapacity,
        workload.clone(),
        0.9,
        if resource == "pods" {
            format!("every node that fits {workload} runs as many pods as it may")
        } else {
            format!("no node has enough {resource} free for {workload}")
        },
    )
    .field("spec.template.spec.containers.resources.requests")
    .evidence("scheduler", message)
    .remedy(
        if resource == "pods" {
            "Add nodes, or raise maxPods of their kubelets.".to_owned()
        } else {
            format!("Lower the request of {resource}, or add nodes.")
        },
        &["kubectl describe nodes | grep -A8 'Allocated resources'".to_owned()],
    );
    // A node that begins may have room, once its agents run.
    let begins = ["not-ready", "uninitialized", "unreachable", "network-unavailable"];
    let is_tainted = message.contains("untolerated taint");
    let is_beginning = is_tainted && begins.iter().any(|it| message.contains(it));
    let counts = |node: &&&Value| {
        let allocatable = node.at(&["status", "allocatable", resource]).and_then(quantity::milli);
        allocatable.is_some_and(|amount| amount > 0)
    };
    let is_counted = cluster.all("Node").iter().any(|node| counts(&node));
    let is_device = resource.contains('/');
    if is_beginning && !cluster.has_kind("Node") || is_device && !is_counted && !cluster.has_kind("DaemonSet")
    {
        finding = finding.not_known();
    }
    // What devices there are is told by their drivers, as long as these run.
    if resource == DEVICES {
        let drivers = look.cluster.all("DaemonSet").iter().filter(|set| offers_devices(look.cluster, set));
        let ill: Vec<Object> =
            drivers.map(|set| Object::from_live(set)).filter(|set| look.is_red(set)).collect();
        finding = if ill.is_empty() { finding } else { finding.not_known() };
        finding = ill.into_iter().fold(finding, Finding::below);
    }
    // What devices give is counted by their plugin, as long as that runs.
    if let Some((vendor, _)) = resource.split_once('/') {
        let word = vendor.split('.').next().unwrap_or(vendor);
        let plugins = cluster.all("DaemonSet").iter().filter(|set| set.name().contains(word));
        let plugins: Vec<Object> = plugins.map(|set| Object::from_live(set)).collect();
        // Why it does not run is the cause, known or not.
        if !is_counted && plugins.iter().any(|set| look.is_red(set)) {
            finding = finding.not_known();
        }
        finding = plugins.into_iter().fold(finding, Finding::below);
    }
    finding = node_makers(look).fold(finding, Finding::below);
    // Nodes in trouble that would have room.
    let roomy = cluster.all("Node").iter().filter(|node| {
        let has = node.at(&["status", "allocatable", resource]).and_then(quantity::milli);
        is_tainted && has.is_some_and(|has| has >= asked)
    });
    let troubled = roomy.map(|node| Object::from_live(node)).filter(|node| look.is_red(node));
    finding = troubled.fold(finding, Finding::below);
    let largest = cluster
        .all("Node")
        .iter()
        .filter_map(|node| quantity::milli(node.at(&["status", "allocatable", resource])?))
        .max();
    if let Some(largest) = largest.filter(|_| asked > 0) {
        finding = finding.evidence(
            workload.to_string(),
            format!("requests {resource}: {asked}m; the largest node has {largest}m"),
        );
    }
    finding
}
