//! The network of pods: the plugin, its addresses, probes that policies cut off, routes between nodes,
//! kube-proxy.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_cause::{Cause, Failure, absent, sandbox_fault, sandbox_plugin};
use tiphys_network::Direction;
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Event, Object,
    address_target::Target,
    calls::Caller,
    cluster::{condition, condition_text, items, pods, time},
    finding::Finding,
    log_evidence::Fact,
    policy::{End, Port, blocking, newest_change},
    search_context::Look,
    symptoms::SLOW_DELETION,
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(plugin_down(look));
    let denied = denied_plugin(look);
    let plugin = denied.as_ref().map(|finding| finding.object.clone());
    // Addresses that nobody may ask for are not used up.
    let without = |finding: Finding| match (&plugin, finding.cause) {
        (Some(plugin), Cause::NetIpExhausted) => finding.below(plugin.clone()),
        _ => finding,
    };
    found.extend(sandboxes(look).into_iter().map(without));
    found.extend(denied);
    let mut routes = routing(look);
    routes.extend(without_route(look));
    let unrouted: BTreeSet<Object> = routes.iter().map(|finding| finding.object.clone()).collect();
    found.extend(routes);
    // A node without routes reaches no Service either, and kube-proxy has no part in it.
    found.extend(proxy(look).into_iter().filter(|finding| !unrouted.contains(&finding.object)));
    found.extend(node_ports(look));
    found
}

/// Names of DaemonSets of network plugins.
pub(crate) const PLUGINS: &[&str] = &[
    "calico-node",
    "cilium",
    "aws-node",
    "kube-flannel-ds",
    "kube-flannel",
    "flannel",
    "weave-net",
    "antrea-agent",
    "canal",
    "kube-router",
    "azure-cni",
    "ovnkube-node",
    "kindnet",
    "rke2-canal",
    "calico",
    "ovs-node",
    "kube-ovn-cni",
];

/// Names of the Deployments that install network plugins, or give their nodes addresses.
const OPERATORS: &[&str] = &["tigera-operator", "cilium-operator", "calico-kube-controllers"];

/// The DaemonSet of the network plugin.
pub(crate) fn plugin_set<'a>(look: &Look<'a>) -> Option<&'a Value> {
    let sets = look.cluster.all("DaemonSet");
    PLUGINS.iter().find_map(|name| sets.iter().copied().find(|set| set.name() == *name))
}

/// The DaemonSet of the network plugin, known by its pods where DaemonSets were not saved.
fn plugin_object(look: &Look<'_>) -> Option<Object> {
    let by_pods = || {
        let pods = look.cluster.all("Pod").iter().map(|pod| look.cluster.workload(pod));
        let mut sets = pods.filter(|workload| workload.kind == "DaemonSet");
        sets.find(|workload| PLUGINS.contains(&workload.name.as_str()))
    };
    plugin_set(look).map(Object::from_live).or_else(by_pods)
}

/// Seconds in which a machine that joins a cluster gets its network.
const JOINING: i64 = 180;

/// A network plugin that does not work on nodes.
fn plugin_down(look: &Look<'_>) -> Option<Finding> {
    let set = plugin_set(look);
    let mut nodes = Vec::new();
    // The plugin of a machine that has just joined is about to start.
    let joined = look.cluster.all("Node").iter().filter(|node| {
        // A node whose creation was left out may have joined when its condition changed last.
        let is_dated = time(node, &["metadata", "creationTimestamp"]).is_some();
        let changed = condition(node, "Ready").and_then(|it| time(it, &["lastTransitionTime"]));
        let quiet = changed.and_then(|changed| look.cluster.seconds_since(changed));
        let age = if is_dated { look.cluster.age(node) } else { quiet.unwrap_or(i64::MAX) };
        age > JOINING
    });
    for node in joined.copied() {
        let unavailable = unavailable(node).filter(|_| refused_route(look, node).is_none());
        let ready = condition(node, "Ready").filter(|it| {
            it.str_at(&["status"]) != Some("True") && super::node::is_of_network(&condition_text(it))
        });
        if let Some(told) = ready.or(unavailable) {
            nodes.push((Object::from_live(node), told));
        }
    }
    if nodes.is_empty() && !look.cluster.has_kind("Node") {
        return told_by_taint(look);
    }
    let without_range = without_range(look, &nodes);
    let (first, told) = nodes.first()?;
    if let Some(finding) = without_range {
        return Some(finding);
    }
    let object = plugin_object(look).or_else(|| custom_plugin(look)).unwrap_or_else(|| first.clone());
    // Which plugin it is, nobody can tell where neither DaemonSets nor pods were saved.
    let is_known = object.kind != "Node" || look.cluster.has_kind("DaemonSet") || look.cluster.is_whole();
    let mut result = Finding::new(
        Cause::NetCniDown,
        object.clone(),
        if is_known { 0.95 } else { 0.45 },
        format!(
            "the network plugin does not work on {} of {} nodes: {object}",
            nodes.len(),
            look.cluster.all("Node").len()
        ),
    )
    .since(time(told, &["lastTransitionTime"]))
    .remedy(
        "Bring the network plugin's DaemonSet back; pods get an address only then.",
        &[format!("kubectl -n {} get pods -o wide", object.namespace)],
    );
    for (node, told) in &nodes {
        result = result
            .evidence(format!("{node}, {}", told.str_at(&["type"]).unwrap_or_default()), condition_text(told))
            .suffers(node.clone(), "has no network");
    }
    if let Some(set) = set {
        let wanted = set.int_at(&["status", "desiredNumberScheduled"]).unwrap_or(0);
        let has = set.int_at(&["status", "numberReady"]).unwrap_or(0);
        result = result.evidence(object.to_string(), format!("{has} of {wanted} pods are ready"));
    }
    for pod in pods::of_workload(look.cluster, &object) {
        result = result.below(Object::from_live(pod));
    }
    for custom in plugin_resources(look) {
        let deleted = time(custom, &["metadata", "deletionTimestamp"])
            .and_then(|time| look.cluster.seconds_since(time))
            .is_some_and(|age| age > SLOW_DELETION);
        let named = Object::from_live(custom);
        if deleted {
            result =
                result.evidence(named.to_string(), "it is being deleted, and its finalizer is not taken off");
        }
        if deleted || look.is_red(&named) {
            result = result.suffers(named, "belongs to the network plugin");
        }
    }
    for live in look.cluster.all("Deployment").iter().filter(|it| OPERATORS.contains(&it.name())) {
        let operator = Object::from_live(live);
        if pods::replicas(live) == 0 {
            result = result.evidence(operator.to_string(), "spec.replicas: 0");
        } else if look.is_red(&operator) {
            result = result.below(operator);
        }
    }
    Some(result)
}

/// The nodes without a network that were given no range of addresses for pods, if that is all of them.
fn without_range(look: &Look<'_>, nodes: &[(Object, &Value)]) -> Option<Finding> {
    let is_told = |node: &Object| {
        let lacks = look.cluster.live(node).is_some_and(|it| it.at(&["spec", "podCIDR"]).is_none());
        let event = look
            .cluster
            .events(node)
            .rfind(|event| event.reason == "CIDRNotAvailable" || event.message.contains("CIDRNotAvailable"));
        let source = || {
            let event = event.map(|event| (format!("Event of {node}"), event.message.clone()));
            event.or_else(|| range_line(look, node))
        };
        Some(node).filter(|_| lacks).and_then(|_| source())
    };
    let told: Vec<(String, String)> = nodes.iter().map_while(|(node, _)| is_told(node)).collect();
    let (first, _) = nodes.first().filter(|_| told.len() == nodes.len())?;
    let names: Vec<&str> = nodes.iter().map(|(node, _)| node.name.as_str()).collect();
    // Where no node has a range, nobody gives ranges out.
    let all = look.cluster.all("Node").iter();
    let gives_none = look.cluster.all("Node").len() > 1
        && all.into_iter().all(|node| node.at(&["spec", "podCIDR"]).is_none())
        && told.iter().all(|(source, _)| source.starts_with("log "));
    let (cause, why, remedy) = if gives_none {
        (
            Cause::NetCniDown,
            "nobody gave a range of pod addresses to",
            "Let the controller manager give ranges to nodes (--allocate-node-cidrs, --cluster-cidr), or let the network plugin do it.",
        )
    } else {
        (
            Cause::NetIpExhausted,
            "no range of pod addresses is left for",
            "Give the cluster a larger range for pods (--cluster-cidr), or smaller ranges to nodes.",
        )
    };
    let summary = format!("{why} {}: it gets no network", names.join(", "));
    let command = "kubectl get nodes -o custom-columns=NAME:.metadata.name,CIDR:.spec.podCIDR";
    let finding = Finding::new(cause, first.clone(), 0.92, summary)
        .field("spec.podCIDR")
        .remedy(remedy, &[command.to_owned()]);
    let finding = told.into_iter().fold(finding, |finding, (source, text)| finding.evidence(source, text));
    let finding = plugin_object(look)
        .into_iter()
        .fold(finding, |finding, plugin| finding.suffers(plugin, "gets no range on a node"));
    let here = look.cluster.all("Pod").iter().filter(|pod| {
        let node = pod.str_at(&["spec", "nodeName"]).unwrap_or_default();
        names.contains(&node) && look.is_red(&Object::from_live(pod))
    });
    let finding =
        here.fold(finding, |finding, pod| finding.suffers(Object::from_live(pod), "has no network"));
    Some(
        nodes
            .iter()
            .fold(finding, |finding, (node, _)| finding.suffers(node.clone(), "has no pod addresses")),
    )
}

/// The line in which a plugin says that a node was given no range.
fn range_line(look: &Look<'_>, node: &Object) -> Option<(String, String)> {
    const WORDS: &[&str] = &["pod cidr not assigned", "no podcidr", "podcidr not set", "cidr not assigned"];
    let tells = |line: &&str| {
        let low = line.to_ascii_lowercase();
        WORDS.iter().any(|word| low.contains(word)) && low.contains(&node.name.to_ascii_lowercase())
    };
    let mut logs = look.cluster.case.logs.iter();
    logs.find_map(|log| Some((log.source(), log.last_lines().find(tells)?.to_owned())))
}

/// The condition by which a node says that it has no network.
fn unavailable(node: &Value) -> Option<&Value> {
    condition(node, "NetworkUnavailable").filter(|it| it.str_at(&["status"]) == Some("True"))
}

/// What a cloud's controller says of a route to the pods of a node that the cloud refuses. That there is none
/// yet, every node of a cloud says until its network plugin runs.
fn refused_route<'a>(look: &Look<'a>, node: &Value) -> Option<&'a Event> {
    let object = Object::from_live(node);
    look.cluster.events(&object).rfind(|event| event.reason == "FailedToCreateRoute")
}

/// A network plugin whose identity the cloud refuses: the events of its own pods say so.
fn denied_plugin(look: &Look<'_>) -> Option<Finding> {
    let object = plugin_object(look)?;
    let (pod, event) = pods::of_workload(look.cluster, &object).into_iter().find_map(|pod| {
        let named = Object::from_live(pod);
        let is_denied =
            |event: &&Event| event.is_warning() && crate::causes::operator::is_denied(&event.message);
        let event = look.cluster.events(&named).rfind(is_denied);
        Some((named, event?))
    })?;
    let summary =
        format!("the cloud does not let {object} give addresses to pods: its identity lacks the right");
    let remedy = "Give its identity (role, trust, workload identity) the rights that the cloud's words name.";
    let finding = Finding::new(Cause::OperatorCloudCredentials, object, 0.92, summary)
        .since(event.first)
        .evidence(format!("Event of {pod}"), event.message.clone())
        .remedy(remedy, &[]);
    Some(finding.suffers(pod, "may not ask the cloud for addresses"))
}

/// Nodes to whose pods the cloud leads no route.
fn without_route(look: &Look<'_>) -> Vec<Finding> {
    let nodes = look.cluster.all("Node").iter();
    let told = nodes.filter_map(|node| Some((*node, unavailable(node)?, refused_route(look, node)?)));
    let found = told.map(|(node, told, event)| {
        let object = Object::from_live(node);
        let summary = format!("the cloud's controller makes no route to the pods of {object}");
        Finding::new(Cause::NetNodeRouting, object.clone(), 0.9, summary)
            .evidence(format!("{object}, condition NetworkUnavailable"), condition_text(told))
            .evidence(format!("Event of {object}"), event.message.clone())
            .since(time(told, &["lastTransitionTime"]))
            .remedy("See why the cloud refuses the route: a quota, rights, or a network that overlaps.", &[])
    });
    found.collect()
}

/// Nodes that were not saved are known by the taint that keeps pods away from them.
fn told_by_taint(look: &Look<'_>) -> Option<Finding> {
    const TAINT: &str = "node.kubernetes.io/network-unavailable";
    let waiting: Vec<(&Value, &str)> = look
        .ill
        .iter()
        .flat_map(|ill| &ill.pods)
        .filter_map(|pod| Some((*pod, pods::unscheduled(pod)?.str_at(&["message"])?)))
        .filter(|(_, message)| message.contains(TAINT))
        .collect();
    let (first, message) = waiting.first()?;
    let object = plugin_set(look).map(Object::from_live).or_else(|| custom_plugin(look))?;
    let mut finding = Finding::new(
        Cause::NetCniDown,
        object.clone(),
        0.85,
        format!("the network plugin does not work on the nodes: {object}"),
    )
    .evidence(Object::from_live(first).to_string(), *message)
    .remedy(
        "Bring the network plugin's DaemonSet back; pods get an address only then.",
        &[format!("kubectl -n {} get pods -o wide", object.namespace)],
    );
    for (pod, _) in waiting {
        finding = finding
            .suffers(look.cluster.workload(pod), "gets no node")
            .suffers(Object::from_live(pod), "not scheduled");
    }
    for custom in plugin_resources(look).into_iter().filter(|it| look.is_red(&Object::from_live(it))) {
        finding = finding.suffers(Object::from_live(custom), "belongs to the network plugin");
    }
    Some(finding)
}

/// The custom resources by which operators of network plugins are told what to install.
fn plugin_resources<'a>(look: &Look<'a>) -> Vec<&'a Value> {
    let kinds = ["Installation", "TigeraStatus", "Network", "CiliumConfig"];
    kinds
        .iter()
        .flat_map(|kind| look.cluster.all(kind).iter().copied())
        .filter(|it| {
            it.api_version().contains("tigera.io")
                || it.api_version().contains("cilium")
                || it.api_version().contains("openshift.io")
        })
        .collect()
}

fn custom_plugin(look: &Look<'_>) -> Option<Object> {
    plugin_resources(look).first().map(|it| Object::from_live(it))
}

/// A pod that gets no sandbox, and the words that say why.
type Refusal<'a> = (&'a Value, String);

/// The workloads beside a network plugin that are ill and plan its addresses and routes for all nodes; in a
/// namespace of others they bear its name.
fn plugin_helpers(look: &Look<'_>, plugin: &Object) -> Vec<Object> {
    const PLANNERS: &[&str] = &["control-plane", "master", "manager", "operator", "typha", "cns", "ipam"];
    let is_shared = plugin.namespace == "kube-system";
    let family = plugin.name.split('-').next().unwrap_or_default();
    let is_planner = |name: &str| {
        PLANNERS.iter().any(|word| name.contains(word))
            && (!is_shared || name.split('-').next() == Some(family))
    };
    let beside = look.ill.iter().map(|ill| &ill.workload).filter(|it| it.namespace == plugin.namespace);
    let planners = beside.filter(|it| **it != *plugin && is_planner(&it.name));
    planners.filter(|_| plugin.kind == "DaemonSet").cloned().collect()
}

/// Pods that get no sandbox: the plugin, or its addresses.
fn sandboxes(look: &Look<'_>) -> Vec<Finding> {
    let mut groups: BTreeMap<(Cause, Option<Object>), Vec<Refusal<'_>>> = BTreeMap::new();
    for pod in look.ill.iter().flat_map(|ill| ill.pods.iter().copied()) {
        let object = Object::from_live(pod);
        let is_waiting = pod.str_at(&["status", "phase"]) == Some("Pending");
        let event = look.cluster.events(&object).rfind(|event| event.reason == "FailedCreatePodSandBox");
        let Some(event) = event.filter(|_| is_waiting) else { continue };
        // What is missing is told by whoever looks for it.
        if absent(&event.message).is_some() {
            continue;
        }
        let told = sandbox_fault(&event.message);
        let cause = match told {
            None if lacks_runtime(look, pod) => Cause::NodeRuntime,
            _ => told.unwrap_or(Cause::NetCniDown),
        };
        let plugin = sandbox_plugin(&event.message).and_then(|name| named_plugin(look, name));
        groups.entry((cause, plugin)).or_default().push((pod, event.message.clone()));
    }
    let found = groups.into_iter().filter_map(|((cause, plugin), told)| {
        let nodes: BTreeSet<&str> = told.iter().filter_map(|(pod, _)| pod.str_at(&["spec", "nodeName"])).collect();
        let node = nodes.first().map(|node| Object::new("Node", "", node));
        let workload = look.cluster.workload(told[0].0);
        let object = match cause {
            Cause::NetIpExhausted => attachment(look, &told)
                .or_else(|| disabled_pools(look).next().map(Object::from_live))
                .or_else(|| pool(look).filter(|_| nodes.len() != 1)).or(node.clone()).unwrap_or_else(|| workload.clone()),
            // What is no fault of the network is one of the node.
            cause if cause != Cause::NetCniDown => node.clone()?,
            _ => plugin.or_else(|| plugin_set(look).map(Object::from_live)).or(node.clone()).unwrap_or_else(|| workload.clone()),
        };
        let (what, text) = match cause {
            Cause::NetIpExhausted => (format!("no address is left for pods ({object})"), "Enlarge the range, or free addresses: fewer pods on the node, a larger subnet, prefix delegation."),
            Cause::NodeRuntime => (format!("the container runtime of {object} makes no sandboxes"), "Restart the runtime on the node, and read its log."),
            Cause::NodePressure => (format!("the disk of {object} is full: no sandbox can be made on it"), "Free the disk of the node: images, logs, volumes of pods that are gone."),
            cause if cause != Cause::NetCniDown => (format!("{object} cannot pull the image that holds sandboxes open: {}", cause.summary()), "Let the node reach the registry, or correct the sandbox image in the runtime's configuration."),
            _ => (format!("the network plugin makes no sandboxes ({object})"), "Bring the network plugin's pods on these nodes back."),
        };
        let mut finding = Finding::new(cause, object.clone(), 0.93, what).remedy(text, &[]);
        for (pod, message) in &told {
            let pod_object = Object::from_live(pod);
            finding = finding.evidence(format!("Event of {pod_object}"), message.clone()).suffers(look.cluster.workload(pod), "its pods get no sandbox").suffers(pod_object, "gets no sandbox");
        }
        if matches!(cause, Cause::NetCniDown | Cause::NetIpExhausted) {
            for pool in disabled_pools(look) {
                finding = finding.evidence(Object::from_live(pool).to_string(), "spec.disabled: true");
            }
        }
        if cause == Cause::NetCniDown {
            for pod in pods::of_workload(look.cluster, &object).into_iter().filter(|pod| pod.str_at(&["spec", "nodeName"]).is_some_and(|node| nodes.contains(node))) {
                finding = finding.below(Object::from_live(pod));
            }
        }
        if matches!(cause, Cause::NetCniDown | Cause::NetIpExhausted) {
            finding = plugin_helpers(look, &object).into_iter().fold(finding, Finding::below);
        }
        for node in nodes {
            finding = finding.below(Object::new("Node", "", node));
        }
        // That a call took too long tells neither of the runtime nor of the plugin.
        let is_told = told.iter().any(|(_, message)| sandbox_fault(message).is_some() || message.contains("plugin"));
        // Which plugin it is, nobody can tell where its workloads were not saved.
        let is_seen = look.cluster.has_kind("DaemonSet") || object.kind == "DaemonSet";
        let is_sure = is_told && is_seen || cause != Cause::NetCniDown;
        let finding = if is_sure { finding } else { finding.not_known() };
        let mut finding = finding;
        // A fault about the node itself must not lie below itself.
        finding.upstream.retain(|below| *below != finding.object);
        Some(finding)
    });
    found.collect()
}

/// Whether the kubelet of a pod's node says that it does not reach the container runtime.
fn lacks_runtime(look: &Look<'_>, pod: &Value) -> bool {
    let Some(node) = pod.str_at(&["spec", "nodeName"]) else { return false };
    let mut events = look
        .cluster
        .case
        .events
        .iter()
        .filter(|event| event.object.kind == "Node" && event.object.name == node && event.is_warning());
    events.any(|event| {
        matches!(event.reason.as_str(), "ContainerGCFailed" | "ImageGCFailed")
            && (event.message.contains(".sock") || event.message.contains("DeadlineExceeded"))
    })
}

/// The DaemonSet of a plugin that is chained before or behind the one that gives addresses.
fn named_plugin(look: &Look<'_>, plugin: &str) -> Option<Object> {
    // `istio-cni` comes from `istio-cni-node`, `multus-cni-network` from `kube-multus-ds`.
    let stem = plugin.split("-cni").next().filter(|stem| stem.len() > 3)?;
    let sets = || look.cluster.all("DaemonSet").iter();
    let exact = sets().find(|set| set.name().starts_with(plugin));
    exact.or_else(|| sets().find(|set| set.name().contains(stem))).map(|set| Object::from_live(set))
}

/// The further network that has no address left: plugins name it in quotes.
fn attachment(look: &Look<'_>, told: &[Refusal<'_>]) -> Option<Object> {
    let (pod, message) = told.first()?;
    let fits = |live: &&&Value| {
        let name = live.name();
        live.namespace() == pod.namespace()
            && (message.contains(&format!("\"{name}\"")) || message.contains(&format!(":{name}]")))
    };
    look.cluster.all("NetworkAttachmentDefinition").iter().find(fits).map(|live| Object::from_live(live))
}

/// The pools of Calico that give no address although some are left.
fn disabled_pools<'a>(look: &Look<'a>) -> impl Iterator<Item = &'a Value> {
    let is_disabled = |pool: &&Value| pool.at(&["spec", "disabled"]).and_then(Value::as_bool) == Some(true);
    look.cluster.all("IPPool").iter().copied().filter(is_disabled)
}

fn pool(look: &Look<'_>) -> Option<Object> {
    let kinds = ["IPPool", "CiliumPodIPPool", "ENIConfig", "CiliumLoadBalancerIPPool"];
    let all: Vec<&Value> = kinds.iter().flat_map(|kind| look.cluster.all(kind).iter().copied()).collect();
    (all.len() == 1).then(|| Object::from_live(all[0]))
}

/// The policies that cut the kubelet off from a pod's probe.
pub(crate) fn probe_policy(look: &Look<'_>, pod: &Value, port: Option<i64>) -> Option<Finding> {
    let number = u16::try_from(port?).ok()?;
    let node = pod.str_at(&["spec", "nodeName"]).and_then(|node| look.cluster.get("Node", "", node));
    let addresses = node
        .into_iter()
        .flat_map(|node| items(node, &["status", "addresses"]))
        .filter_map(|it| it.str_at(&["address"])?.parse().ok())
        .collect();
    let kubelet = End { is_node: true, ..End::outside(addresses) };
    let policies = blocking(
        look.cluster,
        Direction::Ingress,
        &kubelet,
        &End::of_pod(pod),
        Port { number, protocol: "TCP" },
    );
    // One finding for all policies of a namespace that do it: they are of one hand.
    let all = look.cluster.all("NetworkPolicy").iter().filter(|it| it.namespace() == pod.namespace());
    let mut names: Vec<&str> = policies.iter().map(|policy| policy.name()).collect();
    names.sort_unstable();
    let mut object = Object::from_live(policies.iter().min_by_key(|policy| policy.name())?);
    let siblings: Vec<&&Value> = all.filter(|it| newest_change(it) == newest_change(policies[0])).collect();
    for ill in &look.ill {
        // The first policy by name stands for them all, whichever pod was looked at.
        for other in ill.pods.iter().filter(|other| other.namespace() == pod.namespace()) {
            let others = blocking(
                look.cluster,
                Direction::Ingress,
                &kubelet,
                &End::of_pod(other),
                Port { number, protocol: "TCP" },
            );
            if let Some(first) = others
                .iter()
                .filter(|it| siblings.iter().any(|known| known.name() == it.name()))
                .min_by_key(|it| it.name())
                && first.name() < object.name.as_str()
            {
                object = Object::from_live(first);
            }
        }
    }
    let workload = look.cluster.workload(pod);
    Some(
        Finding::new(Cause::NetPolicyProbe, object.clone(), 0.9, format!("{object} does not let the kubelet's probes in on port {number}: they come from the node, which no pod or namespace selector selects"))
            .field("spec.ingress")
            .since(newest_change(policies[0]))
            .evidence(format!("policies that select {workload}"), names.join(", "))
            .remedy("Allow the nodes' addresses in, or let the network plugin pass probes of the host (host firewall, legacy host routing).", &[])
            .suffers(Object::from_live(pod), "its probes get no answer")
            .suffers(workload, "its probes get no answer"),
    )
}

/// Words of agents whose routes to other nodes are missing.
const ROUTES: &[&str] = &[
    "bgp not established",
    "bird is not ready",
    "no route to node",
    "failed to add vtep",
    "vxlan",
    "unreachable nodes",
    "failed to add route",
    "overlay",
    "peer is down",
    "wireguard",
    "not established",
    "via tunnel",
    "bgp session",
    "hold timer expired",
    "no route to host",
];

fn routing(look: &Look<'_>) -> Vec<Finding> {
    let is_agent = |workload: &Object| PLUGINS.iter().any(|name| workload.name.contains(name));
    let ill = look.ill.iter().filter(|ill| is_agent(&ill.workload));
    let mut agents: Vec<&Value> = ill.flat_map(|ill| ill.pods.iter().copied()).collect();
    // An agent may be ready and say why pods on its node reach nobody.
    let silent = silent_calls(look);
    let on_silent = look.cluster.all("Pod").iter().copied().filter(|pod| {
        let is_silent = pod.str_at(&["spec", "nodeName"]).is_some_and(|node| silent.contains_key(node));
        is_silent && !look.is_red(&Object::from_live(pod)) && is_agent(&look.cluster.workload(pod))
    });
    agents.extend(on_silent);
    agents.into_iter().filter_map(|pod| unrouted(look, pod, &silent)).collect()
}

/// The agent of a network plugin that says that it has no way to other nodes.
fn unrouted(look: &Look<'_>, agent: &Value, silent: &BTreeMap<&str, BTreeSet<Object>>) -> Option<Finding> {
    let object = Object::from_live(agent);
    let event = look.cluster.events(&object).rfind(|event| {
        let low = event.message.to_ascii_lowercase();
        event.reason == "Unhealthy" && ROUTES.iter().any(|word| low.contains(word))
    });
    let log = look.cluster.logs(agent.namespace(), agent.name()).into_iter().find_map(|log| {
        let line = log.last_lines().find(|line| {
            let low = line.to_ascii_lowercase();
            ROUTES.iter().any(|word| low.contains(word))
                && ["err", "fail", "not ", "down", "warn"].iter().any(|word| low.contains(word))
        });
        line.map(|line| (log.source(), line.to_owned()))
    });
    let (source, text) = event.map(|event| (format!("Event of {object}"), event.message.clone())).or(log)?;
    let name = agent.str_at(&["spec", "nodeName"])?;
    let node = Object::new("Node", "", name);
    let finding = Finding::new(Cause::NetNodeRouting, node.clone(), 0.9, format!("{node} has no routes to the pods of other nodes"))
        .evidence(source, text)
        .remedy("See why the agent of the network plugin has no peers: port 179, 4789 or 8472, addresses, the interface that it took.", &[])
        .suffers(object, "has no peers")
        .suffers(look.cluster.workload(agent), "is not ready on the node");
    let callers = silent.get(name).into_iter().flatten();
    Some(callers.fold(finding, |finding, caller| finding.suffers(caller.clone(), "reaches no other node")))
}

/// Calls that were not answered in time, by the node of who called.
fn silent_calls<'a>(look: &Look<'a>) -> BTreeMap<&'a str, BTreeSet<Object>> {
    let mut nodes: BTreeMap<&'a str, BTreeSet<Object>> = BTreeMap::new();
    let is_dns_down = super::dns::answers_nobody(look);
    for ill in &look.ill {
        for fact in &ill.facts {
            let Fact::Call(call) = &fact.fact else { continue };
            // Nobody gets an answer from a DNS that does not run, whichever node he is on.
            if call.failure == Failure::LookupTimeout
                && (is_dns_down || super::dns::is_lookup_explained(look, &Caller::of_ill(look, ill), call))
            {
                continue;
            }
            if !matches!(call.failure, Failure::Timeout | Failure::LookupTimeout | Failure::Unreachable) {
                continue;
            }
            let is_inside = call.failure == Failure::LookupTimeout
                || call.targets.iter().any(|address| match look.cluster.target(address, ill.namespace()) {
                    // Who serves nobody gets silence from every node.
                    Target::Service(service) => {
                        look.cluster.is_served(service) && !look.is_ill_behind(service)
                    }
                    Target::ApiServer | Target::Unknown => true,
                    _ => false,
                });
            for node in
                ill.pods.iter().filter_map(|pod| pod.str_at(&["spec", "nodeName"])).filter(|_| is_inside)
            {
                nodes.entry(node).or_default().insert(ill.workload.clone());
            }
        }
    }
    nodes
}

/// A node from which no Service is reached, while others reach them.
fn proxy(look: &Look<'_>) -> Vec<Finding> {
    let silent = silent_calls(look);
    let sets = look.cluster.all("DaemonSet").iter().find(|set| set.name().contains("kube-proxy"));
    let running: BTreeSet<&str> = look
        .cluster
        .all("Pod")
        .iter()
        .filter(|pod| pod.name().starts_with("kube-proxy") && pods::is_ready(pod))
        .filter_map(|pod| pod.str_at(&["spec", "nodeName"]))
        .collect();
    let mut found = Vec::new();
    for ill in look.ill.iter().filter(|ill| ill.workload.name.contains("kube-proxy")) {
        let nodes: BTreeSet<&str> =
            ill.pods.iter().filter_map(|pod| pod.str_at(&["spec", "nodeName"])).collect();
        let names: Vec<&str> = nodes.iter().copied().collect();
        let mut finding = Finding::new(
            Cause::NetProxyDown,
            ill.workload.clone(),
            0.88,
            format!("kube-proxy does not run on {}: pods there reach no Service", names.join(", ")),
        )
        .since(ill.since)
        .remedy(
            "Bring kube-proxy back on these nodes.",
            &["kubectl -n kube-system get pods -o wide -l k8s-app=kube-proxy".to_owned()],
        );
        for pod in &ill.pods {
            let object = Object::from_live(pod);
            finding = finding
                .evidence(object.to_string(), look.red.get(&object).cloned().unwrap_or_default())
                .below(object);
        }
        for (node, callers) in silent.iter().filter(|(node, _)| nodes.contains(*node)) {
            // A node that is silent itself is why its kube-proxy is.
            let object = Object::new("Node", "", node);
            if !look.is_red(&object) {
                finding = finding.suffers(object, "has no kube-proxy");
            }
            finding = callers
                .iter()
                .fold(finding, |finding, caller| finding.suffers(caller.clone(), "reaches no Service"));
        }
        found.push(finding);
    }
    if !found.is_empty() {
        return found;
    }
    for (node, callers) in silent.iter().filter(|_| look.cluster.knows_services()) {
        let object = Object::new("Node", "", node);
        let elsewhere = silent.keys().any(|other| other != node);
        let lacks = sets.is_some() && !running.is_empty() && !running.contains(node);
        let is_noted = look.cluster.case.host_notes.iter().any(|note| note.node == *node);
        if is_noted || elsewhere && !lacks || !lacks && callers.len() < 2 {
            continue;
        }
        let confidence = if lacks {
            0.85
        } else if callers.len() >= 2 {
            0.55
        } else {
            0.4
        };
        let mut finding = Finding::new(
            Cause::NetProxyDown,
            object.clone(),
            confidence,
            format!(
                "pods on {object} reach no Service, those of other nodes do: kube-proxy does not work there"
            ),
        )
        .evidence(
            object.to_string(),
            if lacks {
                "no kube-proxy pod is ready on the node"
            } else {
                "all callers that get no answer run here"
            },
        )
        .remedy(
            "Look at kube-proxy on the node.",
            &[format!("kubectl -n kube-system get pods -o wide --field-selector spec.nodeName={node}")],
        );
        for pod in look.cluster.all("Pod").iter().filter(|pod| {
            pod.name().starts_with("kube-proxy") && pod.str_at(&["spec", "nodeName"]) == Some(node)
        }) {
            finding = finding.below(Object::from_live(pod));
        }
        // Who only misses the API server may be served by none.
        for pod in look.cluster.pods_in("kube-system").iter().filter(|pod| {
            (pod.name().starts_with("etcd") || pod.name().starts_with("kube-apiserver"))
                && callers.iter().all(|caller| calls_api_server_only(look, caller))
        }) {
            finding = finding.below(Object::from_live(pod));
        }
        // Agents of the network and of the DNS on the node.
        let agents = look
            .ill
            .iter()
            .filter(|ill| ill.workload.kind == "DaemonSet" && ill.workload.namespace.ends_with("-system"));
        let here = agents.flat_map(|ill| &ill.pods);
        finding = here
            .filter(|pod| pod.str_at(&["spec", "nodeName"]) == Some(node))
            .fold(finding, |finding, pod| finding.below(Object::from_live(pod)));
        found.push(
            callers
                .iter()
                .fold(finding, |finding, caller| finding.suffers(caller.clone(), "reaches no Service")),
        );
    }
    found
}

/// Whether all that the log of a workload calls without effect is the API server.
fn calls_api_server_only(look: &Look<'_>, workload: &Object) -> bool {
    let ill = look.ill.iter().filter(|ill| ill.workload == *workload);
    let calls = ill.flat_map(|ill| &ill.facts).filter_map(|fact| match &fact.fact {
        crate::log_evidence::Fact::Call(call) => Some(call),
        _ => None,
    });
    let mut targets = calls.flat_map(|call| &call.targets);
    targets.all(|address| {
        matches!(look.cluster.target(address, &workload.namespace), crate::address_target::Target::ApiServer)
    })
}

/// Ports of nodes that others need.
const NODE_PORTS: &[(u16, &str)] = &[
    (10250, "kubelet"),
    (5473, "Typha"),
    (4240, "Cilium health"),
    (2379, "etcd"),
    (2380, "etcd"),
    (4789, "VXLAN"),
    (8472, "VXLAN"),
    (179, "BGP"),
];

/// Calls to a port of a node that get no answer while the node is well.
fn node_ports(look: &Look<'_>) -> Vec<Finding> {
    let mut found: BTreeMap<(Object, u16), Finding> = BTreeMap::new();
    for (workload, fact) in told_calls(look) {
        let Fact::Call(call) = &fact.fact else { continue };
        if !matches!(call.failure, Failure::Timeout | Failure::Unreachable) {
            continue;
        }
        for address in call.targets.iter().filter(|address| address.is_ip()) {
            let known = NODE_PORTS.iter().find(|(port, _)| address.port == Some(*port));
            let Some((port, name)) = known else { continue };
            let node = match look.cluster.target(address, &workload.namespace) {
                Target::Node(node) if !look.is_red(&Object::from_live(node)) => Some(Object::from_live(node)),
                // An address that nothing bears was one of a node that is gone.
                Target::Unknown if look.red.keys().any(|it| it.kind == "Node") => continue,
                Target::Unknown => None,
                _ => continue,
            };
            // An agent that runs on every node is itself the one that is cut off.
            let is_agent = workload.kind == "DaemonSet";
            let object = node.filter(|_| !is_agent).unwrap_or_else(|| workload.clone());
            let what = format!("port {port} ({name}) at {} is closed to {workload}", address.host);
            let finding = found.entry((workload.clone(), *port)).or_insert_with(|| {
                Finding::new(Cause::NetNodePorts, object.clone(), 0.88, what)
                    .remedy(format!("Open port {port} between the nodes, and from the control plane."), &[])
                    .suffers(workload.clone(), "gets no answer")
            });
            *finding = finding
                .clone()
                .evidence(fact.source.clone(), fact.line.clone())
                .suffers(object, "its port is closed");
        }
    }
    found.into_values().collect()
}

/// What ill workloads tell, and what those tell that ask the nodes.
fn told_calls(look: &Look<'_>) -> Vec<(Object, crate::log_evidence::LogFact)> {
    let mut told: Vec<(Object, crate::log_evidence::LogFact)> = Vec::new();
    for ill in &look.ill {
        told.extend(ill.facts.iter().map(|fact| (ill.workload.clone(), fact.clone())));
    }
    if !look.red.is_empty() {
        let is_asker = |pod: &Value| {
            pod.name().contains("metrics-server") || PLUGINS.iter().any(|name| pod.name().starts_with(name))
        };
        for (pod, facts) in look.green().into_iter().filter(|(pod, _)| is_asker(pod)) {
            let workload = look.cluster.workload(pod);
            told.extend(facts.iter().map(|fact| (workload.clone(), fact.clone())));
        }
    }
    told
}
