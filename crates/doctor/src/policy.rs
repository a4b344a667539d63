//! Network policies, evaluated: which of them keep a packet from passing. A packet to a Service has the
//! address of a pod when a policy judges it; one to the API server has the address of a node.

use std::net::IpAddr;

use ipnet::IpNet;
use tiphys_value::{Map, ObjectExt as _, Value, json};

use crate::cluster::{Cluster, items, selector, time};

/// One end of a packet's way.
#[derive(Clone, Debug, Default)]
pub(crate) struct End<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) labels: Option<&'a Map<String, Value>>,
    pub(crate) addresses: Vec<IpAddr>,
    /// A node or something outside: no pod selector selects it.
    pub(crate) is_pod: bool,
    /// The control plane, which Cilium knows by name.
    pub(crate) is_api_server: bool,
    /// A node of the cluster.
    pub(crate) is_node: bool,
    /// The ports by which rules may name it.
    pub(crate) spec: Option<&'a Value>,
}

/// The ways that a policy judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Ingress,
    Egress,
}

/// A packet's port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    pub(crate) protocol: &'static str,
}

impl<'a> End<'a> {
    pub(crate) fn of_pod(pod: &'a Value) -> Self {
        let ips = items(pod, &["status", "podIPs"])
            .filter_map(|ip| ip.str_at(&["ip"]))
            .chain(pod.str_at(&["status", "podIP"]));
        let is_host = pod.at(&["spec", "hostNetwork"]).and_then(Value::as_bool) == Some(true);
        Self {
            namespace: pod.namespace(),
            labels: selector::labels(pod),
            addresses: ips.filter_map(|ip| ip.parse().ok()).collect(),
            is_pod: !is_host,
            is_api_server: false,
            is_node: is_host,
            spec: pod.get("spec"),
        }
    }

    pub(crate) fn outside(addresses: Vec<IpAddr>) -> Self {
        Self { addresses, ..Self::default() }
    }
}

/// The network plugins that decide how policies are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plugin {
    Cilium,
    Calico,
    /// It enforces no policies.
    None,
    Unknown,
}

/// The plugin that is there, by its DaemonSet.
pub(crate) fn plugin(cluster: &Cluster<'_>) -> Plugin {
    let has = |word: &str| cluster.all("DaemonSet").iter().any(|set| set.name().contains(word));
    if has("cilium") {
        Plugin::Cilium
    } else if has("calico") || has("canal") {
        Plugin::Calico
    } else if has("flannel") && !has("kube-router") {
        Plugin::None
    } else {
        Plugin::Unknown
    }
}

/// A change of a NetworkPolicy that lets packets of one more peer pass; `None` for other kinds of policies.
pub(crate) fn opening(policy: &Value, way: Way, peer: &End<'_>, ports: &[Port]) -> Option<Value> {
    if policy.kind() != "NetworkPolicy" {
        return None;
    }
    let (rules, peers) = if way == Way::Ingress { ("ingress", "from") } else { ("egress", "to") };
    let ports: Vec<Value> =
        ports.iter().map(|port| json!({"port": port.number, "protocol": port.protocol})).collect();
    let mut rule = json!({"ports": ports});
    if peer.is_pod {
        let labels = peer.labels.map(|labels| json!(labels)).unwrap_or_default();
        rule[peers] = json!([{
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": peer.namespace}},
            "podSelector": {"matchLabels": without_hashes(&labels)},
        }]);
    } else if !peer.addresses.is_empty() {
        let blocks = peer.addresses.iter().map(|address| {
            let length = if address.is_ipv4() { 32 } else { 128 };
            json!({"ipBlock": {"cidr": format!("{address}/{length}")}})
        });
        rule[peers] = blocks.collect();
    }
    let mut all: Vec<Value> = items(policy, &["spec", rules]).cloned().collect();
    all.push(rule);
    Some(json!({"spec": {rules: all}}))
}

/// The labels that every pod of a workload has, whatever its revision.
fn without_hashes(labels: &Value) -> Value {
    const OF_REVISIONS: [&str; 5] = [
        "pod-template-hash",
        "controller-revision-hash",
        "pod-template-generation",
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
    ];
    let labels = labels.as_object().into_iter().flatten();
    labels
        .filter(|(key, _)| !OF_REVISIONS.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The policies that keep a packet from its way, the newest first; empty if it passes.
pub(crate) fn blocking<'a>(
    cluster: &Cluster<'a>,
    way: Way,
    from: &End<'_>,
    to: &End<'_>,
    port: Port,
) -> Vec<&'a Value> {
    let plugin = plugin(cluster);
    let (bound, peer) = if way == Way::Ingress { (to, from) } else { (from, to) };
    if !bound.is_pod || plugin == Plugin::None {
        return Vec::new();
    }
    let mut selecting = Vec::new();
    let mut passes = false;
    for policy in cluster.all("NetworkPolicy").iter().filter(|policy| policy.namespace() == bound.namespace) {
        let selects =
            policy.at(&["spec", "podSelector"]).is_none_or(|it| selector::matches(it, bound.labels));
        if !selects || !has_way(policy, way) {
            continue;
        }
        selecting.push(*policy);
        let (rules, peers) = if way == Way::Ingress { ("ingress", "from") } else { ("egress", "to") };
        passes |= items(policy, &["spec", rules]).any(|rule| {
            has_port(rule, port, to) && peer_fits(cluster, rule, peers, policy.namespace(), peer, plugin)
        });
    }
    for policy in
        cluster.all("CiliumNetworkPolicy").iter().chain(cluster.all("CiliumClusterwideNetworkPolicy"))
    {
        cilium(policy, way, bound, peer, port, &mut selecting, &mut passes);
    }
    if passes {
        return Vec::new();
    }
    selecting.sort_by_key(|policy| std::cmp::Reverse(newest_change(policy)));
    selecting
}

/// When a policy was changed last.
pub(crate) fn newest_change(object: &Value) -> Option<jiff::Timestamp> {
    let managed = items(object, &["metadata", "managedFields"]).filter_map(|entry| time(entry, &["time"]));
    managed.chain(time(object, &["metadata", "creationTimestamp"])).max()
}

fn has_way(policy: &Value, way: Way) -> bool {
    let mut types = items(policy, &["spec", "policyTypes"]).filter_map(Value::as_str).peekable();
    let has_types = types.peek().is_some();
    match way {
        Way::Ingress => !has_types || types.any(|it| it == "Ingress"),
        Way::Egress if has_types => types.any(|it| it == "Egress"),
        Way::Egress => items(policy, &["spec", "egress"]).next().is_some(),
    }
}

fn has_port(rule: &Value, port: Port, to: &End<'_>) -> bool {
    let mut ports = items(rule, &["ports"]).peekable();
    if ports.peek().is_none() {
        return true;
    }
    ports.any(|it| {
        let protocol = it.str_at(&["protocol"]).unwrap_or("TCP");
        let number = i64::from(port.number);
        let fits = match it.get("port") {
            None => true,
            Some(Value::String(name)) => match name.parse::<i64>() {
                Ok(it) => it == number,
                Err(_) => to.spec.is_some_and(|spec| {
                    crate::cluster::pods::ports(spec).any(|port| {
                        port.str_at(&["name"]) == Some(name)
                            && port.int_at(&["containerPort"]) == Some(number)
                    })
                }),
            },
            Some(first) => {
                let first = first.as_i64().unwrap_or(-1);
                (first..=it.int_at(&["endPort"]).unwrap_or(first)).contains(&number)
            }
        };
        protocol == port.protocol && fits
    })
}

fn peer_fits(
    cluster: &Cluster<'_>,
    rule: &Value,
    key: &str,
    namespace: &str,
    peer: &End<'_>,
    plugin: Plugin,
) -> bool {
    let mut peers = items(rule, &[key]).peekable();
    if peers.peek().is_none() {
        return true;
    }
    peers.any(|it| {
        if let Some(block) = it.get("ipBlock") {
            // Cilium gives pods and nodes identities: blocks of addresses do not select them.
            let is_known = peer.is_pod || peer.is_node || peer.is_api_server;
            return !(plugin == Plugin::Cilium && is_known) && in_block(block, &peer.addresses);
        }
        if !peer.is_pod {
            return false;
        }
        let in_namespace = match it.get("namespaceSelector") {
            Some(wanted) => namespace_fits(cluster, wanted, peer.namespace),
            None => peer.namespace == namespace,
        };
        in_namespace && it.get("podSelector").is_none_or(|wanted| selector::matches(wanted, peer.labels))
    })
}

fn namespace_fits(cluster: &Cluster<'_>, wanted: &Value, namespace: &str) -> bool {
    let live = cluster.get("Namespace", "", namespace);
    let mut labels = live.and_then(selector::labels).cloned().unwrap_or_default();
    labels.insert("kubernetes.io/metadata.name".to_owned(), json!(namespace));
    selector::matches(wanted, Some(&labels))
}

fn in_block(block: &Value, addresses: &[IpAddr]) -> bool {
    let net = |value: &Value| value.as_str().and_then(|text| text.parse::<IpNet>().ok());
    let Some(cidr) = block.get("cidr").and_then(net) else { return false };
    // An address that is not known may be in every block that is wide.
    if addresses.is_empty() {
        return cidr.prefix_len() == 0;
    }
    addresses.iter().any(|address| {
        cidr.contains(address)
            && !items(block, &["except"]).filter_map(net).any(|except| except.contains(address))
    })
}

fn cilium<'a>(
    policy: &&'a Value,
    way: Way,
    bound: &End<'_>,
    peer: &End<'_>,
    port: Port,
    selecting: &mut Vec<&'a Value>,
    passes: &mut bool,
) {
    let is_wide = policy.kind() == "CiliumClusterwideNetworkPolicy";
    if !is_wide && policy.namespace() != bound.namespace {
        return;
    }
    let specs = policy.get("spec").into_iter().chain(items(policy, &["specs"]));
    for spec in specs {
        let selects = spec.get("endpointSelector").is_some_and(|it| cilium_selects(it, bound));
        let key = if way == Way::Ingress { "ingress" } else { "egress" };
        let mut rules = items(spec, &[key]).peekable();
        if !selects || rules.peek().is_none() {
            continue;
        }
        selecting.push(policy);
        *passes |= rules.any(|rule| cilium_allows(rule, way, bound.namespace, peer, port));
    }
}

/// Cilium's selectors, whose labels may bear the source of the label.
fn cilium_selects(wanted: &Value, end: &End<'_>) -> bool {
    let mut labels: Map<String, Value> = end.labels.cloned().unwrap_or_default();
    labels.insert("io.kubernetes.pod.namespace".to_owned(), json!(end.namespace));
    let text = wanted.to_string().replace("\"k8s:", "\"").replace("\"any:", "\"");
    serde_json::from_str::<Value>(&text).is_ok_and(|wanted| selector::matches(&wanted, Some(&labels)))
}

fn cilium_allows(rule: &Value, way: Way, namespace: &str, peer: &End<'_>, port: Port) -> bool {
    let mut ports = items(rule, &["toPorts"]).flat_map(|it| items(it, &["ports"])).peekable();
    let fits = ports.peek().is_none()
        || ports.any(|it| {
            let protocol = it.str_at(&["protocol"]).unwrap_or("ANY");
            let number = it.str_at(&["port"]).and_then(|it| it.parse().ok()).or_else(|| it.int_at(&["port"]));
            (protocol == "ANY" || protocol == port.protocol)
                && number.is_none_or(|it| it == i64::from(port.number) || it == 0)
        });
    if !fits {
        return false;
    }
    let side = if way == Way::Ingress { "from" } else { "to" };
    let key = |end: &str| format!("{side}{end}");
    let kinds = ["Endpoints", "Entities", "CIDR", "CIDRSet", "FQDNs", "Services", "Nodes", "Groups"];
    if kinds.iter().all(|kind| rule.get(key(kind)).is_none()) {
        return true;
    }
    let entity = |name: &str| match name {
        "all" => true,
        "world" => !peer.is_pod && !peer.is_node && !peer.is_api_server,
        "cluster" => peer.is_pod || peer.is_node || peer.is_api_server,
        "host" | "remote-node" => peer.is_node,
        "kube-apiserver" => peer.is_api_server,
        _ => false,
    };
    let by_entity = items(rule, &[&key("Entities")]).filter_map(Value::as_str).any(entity);
    let by_endpoint = peer.is_pod
        && items(rule, &[&key("Endpoints")]).any(|wanted| {
            let names_namespace = wanted.to_string().contains("io.kubernetes.pod.namespace");
            cilium_selects(wanted, peer) && (names_namespace || peer.namespace == namespace)
        });
    let is_outside = !peer.is_pod && !peer.is_node && !peer.is_api_server;
    let by_block = is_outside
        && items(rule, &[&key("CIDR")]).any(|block| in_block(&json!({"cidr": block}), &peer.addresses));
    let by_set = is_outside && items(rule, &[&key("CIDRSet")]).any(|block| in_block(block, &peer.addresses));
    // Names outside of the cluster cannot be matched without a resolver: such a rule gets the benefit of the
    // doubt.
    let by_name = is_outside && rule.get(key("FQDNs")).is_some();
    by_entity || by_endpoint || by_block || by_set || by_name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Case;

    fn case(text: &str) -> Case {
        Case {
            objects: text.split("---\n").map(|it| tiphys_yaml::from_yaml(it).unwrap()).collect(),
            ..Case::default()
        }
    }

    const PODS: &str = "apiVersion: v1
kind: Pod
metadata: {name: a, namespace: left, labels: {app: a}}
status: {podIP: 10.1.0.1}
---
apiVersion: v1
kind: Pod
metadata: {name: b, namespace: right, labels: {app: b}}
status: {podIP: 10.1.0.2}
---
";

    fn blocked(policy: &str, way: Way, number: u16) -> bool {
        let case = case(&format!("{PODS}{policy}"));
        let cluster = Cluster::new(&case);
        let (a, b) = (End::of_pod(&case.objects[0]), End::of_pod(&case.objects[1]));
        !blocking(&cluster, way, &a, &b, Port { number, protocol: "TCP" }).is_empty()
    }

    #[test]
    fn ingress_by_namespace_and_port() {
        let policy = "apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: p, namespace: right}
spec:
  podSelector: {matchLabels: {app: b}}
  ingress:
  - from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: left}}}]
    ports: [{port: 80}]
";
        assert!(!blocked(policy, Way::Ingress, 80));
        assert!(blocked(policy, Way::Ingress, 81));
        assert!(blocked(&policy.replace("metadata.name: left", "metadata.name: other"), Way::Ingress, 80));
        assert!(!blocked(policy, Way::Egress, 81));
    }

    #[test]
    fn egress_by_block_and_cilium() {
        let policy = "apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: p, namespace: left}
spec:
  podSelector: {}
  policyTypes: [Egress]
  egress: [{to: [{ipBlock: {cidr: 10.1.0.0/16}}]}]
";
        assert!(!blocked(policy, Way::Egress, 80));
        let cilium =
            "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: cilium, namespace: kube-system}\n";
        assert!(blocked(&format!("{policy}{cilium}"), Way::Egress, 80));
        let own = "apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: p, namespace: left}
spec:
  endpointSelector: {matchLabels: {'k8s:app': a}}
  egress:
  - toEndpoints: [{matchLabels: {app: b, 'k8s:io.kubernetes.pod.namespace': right}}]
    toPorts: [{ports: [{port: '80', protocol: TCP}]}]
";
        assert!(!blocked(own, Way::Egress, 80));
        assert!(blocked(own, Way::Egress, 81));
    }
}
