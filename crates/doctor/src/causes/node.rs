//! Nodes: silent, without a runtime, short of a resource, not initialized; and what their services say.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    HostNote, Object,
    cluster::{Cluster, condition, condition_text, conditions, items, time},
    finding::Finding,
    search_context::Look,
    symptoms::is_node_problem,
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let faults = look.cluster.all("Node").iter().filter_map(|node| fault(look, node));
    let (open, mut found): (Vec<Finding>, Vec<Finding>) =
        faults.partition(|finding| finding.cause == Cause::NodeUninitialized);
    found.extend(as_one(open));
    found.extend(look.cluster.case.host_notes.iter().filter_map(|note| service_of_node(look, note)));
    found.extend(requests(look));
    found
}

/// One finding about all nodes that wait for the same controller: the first stands for them.
fn as_one(findings: Vec<Finding>) -> Option<Finding> {
    findings.into_iter().reduce(|mut first, other| {
        first.absorb(other, "is not initialized either");
        first
    })
}

/// Words by which a kubelet says that the network plugin is at fault.
pub(crate) fn is_of_network(text: &str) -> bool {
    let low = text.to_ascii_lowercase();
    ["cni", "network plugin", "networkready=false", "networkpluginnotready", "cni config"]
        .iter()
        .any(|word| low.contains(word))
}

/// Parts of the names of the programs that initialize nodes.
const CLOUD_CONTROLLERS: &[&str] =
    &["cloud-controller", "cloud-provider", "-ccm", "ccm-", "-cpi", "cloud-node-manager"];

fn fault(look: &Look<'_>, node: &Value) -> Option<Finding> {
    let object = Object::from_live(node);
    let describe = format!("kubectl describe node {}", object.name);
    let finding = if let Some(taint) = uninitialized(node) {
        let controllers = ["Deployment", "DaemonSet", "StatefulSet"]
            .iter()
            .flat_map(|kind| look.cluster.all(kind).iter())
            .chain(look.cluster.all("Pod").iter().filter(|pod| look.is_red(&Object::from_live(pod))))
            .filter(|it| CLOUD_CONTROLLERS.iter().any(|part| it.name().contains(part)));
        let finding = Finding::new(
            Cause::NodeUninitialized,
            object.clone(),
            0.9,
            format!("{object} still has the taint of a node that its cloud controller has not initialized"),
        )
        .evidence(object.to_string(), format!("taint {taint}"))
        .remedy("Look at the cloud controller manager: it takes the taint off.", &[describe]);
        controllers.fold(finding, |finding, it| finding.below(Object::from_live(it)))
    } else {
        let ready = condition(node, "Ready")?;
        let status = ready.str_at(&["status"]).unwrap_or_default();
        let words = condition_text(ready);
        if status == "True" {
            return pressure(look, node).or_else(|| problem(look, node));
        }
        if is_of_network(&words) || is_at_rest(look, node) || is_leaving(look, node) {
            return None;
        }
        let low = words.to_ascii_lowercase();
        let is_runtime = low.contains("runtime is down")
            || low.contains("pleg")
            || low.contains("container runtime")
            || low.contains("rpc error");
        let cause = if is_runtime { Cause::NodeRuntime } else { Cause::NodeNotReady };
        let what =
            if is_runtime { "its container runtime does not work" } else { "its kubelet does not report" };
        Finding::new(cause, object.clone(), 0.93, format!("{object} is not ready: {what}"))
            .evidence(format!("{object}, condition Ready"), words)
            .since(time(ready, &["lastTransitionTime"]))
            .remedy("Look at the kubelet and the runtime on the machine, or replace it.", &[describe])
    };
    let finding = if let Some(lease) = look.cluster.get("Lease", "kube-node-lease", node.name())
        && let Some(renewed) = time(lease, &["spec", "renewTime"])
        && look.cluster.seconds_since(renewed).is_some_and(|age| age > 60)
    {
        finding.evidence(Object::from_live(lease).to_string(), format!("renewed at {renewed}"))
    } else {
        finding
    };
    if finding.cause == Cause::NodeUninitialized {
        // Pods that run there already have tolerated the taint.
        return Some(finding);
    }
    Some(pods_on(look.cluster, node.name()).fold(finding, |finding, pod| {
        let pod = Object::from_live(pod);
        if look.is_red(&pod)
            || !crate::cluster::pods::is_ready(look.cluster.live(&pod).unwrap_or(&Value::Null))
        {
            finding.suffers(pod, "its node is not ready")
        } else {
            finding
        }
    }))
}

fn pods_on<'a>(cluster: &Cluster<'a>, node: &str) -> impl Iterator<Item = &'a Value> {
    let pods: Vec<&Value> = cluster
        .all("Pod")
        .iter()
        .copied()
        .filter(|pod| pod.str_at(&["spec", "nodeName"]) == Some(node))
        .collect();
    pods.into_iter()
}

/// A drained node that is switched off, with nothing red on it.
fn is_at_rest(look: &Look<'_>, node: &Value) -> bool {
    let is_cordoned = node.at(&["spec", "unschedulable"]).and_then(Value::as_bool) == Some(true);
    is_cordoned && !pods_on(look.cluster, node.name()).any(|pod| look.is_red(&Object::from_live(pod)))
}

/// A node that is taken away, on which nothing is left but what runs on every node.
fn is_leaving(look: &Look<'_>, node: &Value) -> bool {
    const MARKS: &[&str] =
        &["karpenter.sh/disrupted", "karpenter.sh/disruption", "ToBeDeletedByClusterAutoscaler"];
    const LONGEST: i64 = 1800;
    let deleted = time(node, &["metadata", "deletionTimestamp"]);
    let is_fresh = deleted.and_then(|at| look.cluster.seconds_since(at)).is_none_or(|age| age < LONGEST);
    let is_marked = items(node, &["spec", "taints"])
        .filter_map(|taint| taint.str_at(&["key"]))
        .any(|key| MARKS.contains(&key));
    let is_left = |pod: &Value| {
        let owner = items(pod, &["metadata", "ownerReferences"]).find_map(|it| it.str_at(&["kind"]));
        matches!(owner, Some("DaemonSet" | "Node"))
            || matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"))
    };
    (deleted.is_some() || is_marked) && is_fresh && pods_on(look.cluster, node.name()).all(is_left)
}

fn uninitialized(node: &Value) -> Option<&str> {
    items(node, &["spec", "taints"])
        .filter_map(|taint| taint.str_at(&["key"]))
        .find(|key| *key == "node.cloudprovider.kubernetes.io/uninitialized")
}

fn pressure(look: &Look<'_>, node: &Value) -> Option<Finding> {
    let object = Object::from_live(node);
    let found = conditions(node).find(|it| {
        matches!(it.str_at(&["type"]), Some("DiskPressure" | "MemoryPressure" | "PIDPressure"))
            && it.str_at(&["status"]) == Some("True")
    })?;
    let name = found.str_at(&["type"]).unwrap_or_default();
    let evicted =
        pods_on(look.cluster, node.name()).find(|pod| pod.str_at(&["status", "reason"]) == Some("Evicted"));
    let mut finding =
        Finding::new(Cause::NodePressure, object.clone(), 0.93, format!("{object} is under {name}"))
            .evidence(format!("{object}, condition {name}"), condition_text(found))
            .since(time(found, &["lastTransitionTime"]))
            .remedy(
                "Free the resource, or move what uses it.",
                &[format!("kubectl describe node {}", object.name)],
            );
    if let Some(pod) = evicted {
        finding = finding.evidence(
            Object::from_live(pod).to_string(),
            pod.str_at(&["status", "message"]).unwrap_or("Evicted"),
        );
    }
    for pod in
        pods_on(look.cluster, node.name()).filter(|pod| pod.str_at(&["status", "reason"]) == Some("Evicted"))
    {
        finding = finding
            .suffers(Object::from_live(pod), "evicted")
            .suffers(look.cluster.workload(pod), "its pods are evicted");
    }
    Some(finding)
}

/// What a problem detector says of a node, while pods on it are ill.
fn problem(look: &Look<'_>, node: &Value) -> Option<Finding> {
    let found = conditions(node).find(|it| is_node_problem(it))?;
    let object = Object::from_live(node);
    let name = found.str_at(&["type"]).unwrap_or_default();
    let (cause, what) = match () {
        () if name.contains("Conntrack") => (Cause::NetDegraded, "it drops new connections"),
        () if name.starts_with("Network") => (Cause::NetNodeRouting, "its network does not work"),
        () if name.contains("Kubelet") => (Cause::NodeNotReady, "its kubelet does not work"),
        () => (Cause::NodeRuntime, "containers cannot run on it"),
    };
    let red: Vec<&Value> =
        pods_on(look.cluster, node.name()).filter(|pod| look.is_red(&Object::from_live(pod))).collect();
    let confidence = if red.is_empty() { 0.45 } else { 0.9 };
    let finding = Finding::new(cause, object.clone(), confidence, format!("{object} has {name}: {what}"))
        .evidence(format!("{object}, condition {name}"), condition_text(found))
        .since(time(found, &["lastTransitionTime"]))
        .remedy(
            "Repair or replace the node.",
            &[format!("kubectl describe node {}", object.name), format!("kubectl cordon {}", object.name)],
        );
    Some(red.into_iter().fold(finding, |finding, pod| {
        finding
            .suffers(Object::from_live(pod), "runs on the node")
            .suffers(look.cluster.workload(pod), "has pods on the node")
    }))
}

/// Words by which systemd says that a service does not run.
const DOWN: &[&str] = &[
    "inactive (dead)",
    "failed (result",
    "active: failed",
    "active: inactive",
    "not running",
    "could not be found",
    "activating (auto-restart)",
    "main process exited",
    "exited with",
];

/// A service of a node that does not run.
fn service_of_node(look: &Look<'_>, note: &HostNote) -> Option<Finding> {
    let low = note.text.to_ascii_lowercase();
    let line =
        note.text.lines().find(|line| DOWN.iter().any(|word| line.to_ascii_lowercase().contains(word)));
    let line = line.or_else(|| {
        note.text.lines().find(|line| !line.trim().is_empty()).filter(|_| !low.contains("active (running)"))
    })?;
    let service = note.service.to_ascii_lowercase();
    let is_expired = low.contains("certificate") && low.contains("expired");
    let (cause, what) = if is_expired {
        (Cause::ControlCertificateExpired, "its certificate has expired")
    } else if service.contains("proxy") {
        (Cause::NetProxyDown, "addresses of Services lead nowhere from this node")
    } else if service.contains("containerd") || service.contains("crio") || service.contains("docker") {
        (Cause::NodeRuntime, "no container can be started there")
    } else if service.contains("kubelet") {
        (Cause::NodeNotReady, "the node does not report")
    } else if service.contains("chrony") || service.contains("ntp") || service.contains("timesync") {
        (Cause::ControlClock, "its clock goes wrong")
    } else if service.contains("bird")
        || service.contains("frr")
        || service.contains("flannel")
        || service.contains("calico")
        || service.contains("cilium")
    {
        (Cause::NetNodeRouting, "its routes to pods are missing")
    } else {
        return None;
    };
    let object = Object::new("Node", "", &note.node);
    let finding = Finding::new(
        cause,
        object.clone(),
        0.95,
        format!("the service {} does not run on {object}: {what}", note.service),
    )
    .evidence(format!("{object}, service {}", note.service), line)
    .remedy(
        if cause == Cause::ControlCertificateExpired {
            format!("Renew the certificate of {} on the node, and start it again.", note.service)
        } else {
            format!("Start {} on the node, and see why it stopped.", note.service)
        },
        &[format!("systemctl status {}", note.service), format!("journalctl -u {}", note.service)],
    );
    Some(pods_on(look.cluster, &note.node).map(Object::from_live).filter(|pod| look.is_red(pod)).fold(
        finding,
        |finding, pod| {
            let workload = look.cluster.live(&pod).map(|live| look.cluster.workload(live));
            let finding = finding.suffers(pod, "runs on the node");
            match workload {
                Some(workload) => finding.suffers(workload, "has pods on the node"),
                None => finding,
            }
        },
    ))
}

/// Certificate requests of nodes that nobody approves.
fn requests(look: &Look<'_>) -> Option<Finding> {
    let open = look.cluster.all("CertificateSigningRequest").iter().filter(|request| {
        let signer = request.str_at(&["spec", "signerName"]).unwrap_or_default();
        signer.contains("kubelet") && look.is_red(&Object::from_live(request))
    });
    let open: Vec<&Value> = open.copied().collect();
    let first = Object::from_live(open.first()?);
    let users: Vec<&str> = open.iter().filter_map(|request| request.str_at(&["spec", "username"])).collect();
    let finding = Finding::new(
        Cause::NodeCsr,
        first.clone(),
        0.88,
        format!("{} certificate requests of nodes are not approved", open.len()),
    )
    .evidence(first.to_string(), format!("asked by {}", users.join(", ")))
    .remedy(
        "Approve the requests, or bring back what approves them.",
        &[format!("kubectl certificate approve {}", first.name)],
    );
    let finding = open
        .iter()
        .skip(1)
        .fold(finding, |finding, request| finding.suffers(Object::from_live(request), "not approved"));
    let nodes = users.iter().filter_map(|user| user.strip_prefix("system:node:"));
    Some(
        nodes.fold(finding, |finding, node| {
            finding.suffers(Object::new("Node", "", node), "has no certificate")
        }),
    )
}
