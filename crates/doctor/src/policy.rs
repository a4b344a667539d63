//! Network policies, evaluated: which of them keep a packet from passing. A packet to a Service has the
//! address of a pod when a policy judges it; one to the API server has the address of a node.

use std::{collections::BTreeSet, net::IpAddr};

use tiphys_network::{Cni, Destination, Direction, Flow, Need, Network, ObjectId, Pod, Protocol, Verdict};
use tiphys_value::{Map, ObjectExt as _, ResourceKey, Value, json};

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

    fn destination(&self) -> Destination {
        match self {
            End { is_pod: true, .. } => Destination::Pod(1),
            End { is_api_server: true, .. } => Destination::ApiServer,
            End { is_node: true, .. } => Destination::Host,
            _ => Destination::World,
        }
    }

    pub(crate) fn outside(addresses: Vec<IpAddr>) -> Self {
        Self { addresses, ..Self::default() }
    }
}

/// The addresses and the port of the API server, as policies see them.
pub(crate) fn api_server<'a>(cluster: &Cluster<'a>) -> (End<'a>, u16) {
    let slices = cluster.endpoint_slices("default", "kubernetes");
    let mut port = None;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for slice in slices {
        port = port.or_else(|| items(slice, &["ports"]).next()?.int_at(&["port"]));
        let listed =
            items(slice, &["endpoints"]).flat_map(|it| items(it, &["addresses"])).filter_map(Value::as_str);
        addresses.extend(listed.filter_map(|it| it.parse::<IpAddr>().ok()));
    }
    if let Some(endpoints) = cluster.get("Endpoints", "default", "kubernetes") {
        for set in items(endpoints, &["subsets"]) {
            port = port.or_else(|| items(set, &["ports"]).next()?.int_at(&["port"]));
            addresses.extend(
                items(set, &["addresses"]).filter_map(|it| it.str_at(&["ip"])?.parse::<IpAddr>().ok()),
            );
        }
    }
    if addresses.is_empty() {
        let control = cluster
            .all("Node")
            .iter()
            .filter(|node| node.label("node-role.kubernetes.io/control-plane").is_some());
        addresses.extend(
            control
                .flat_map(|node| items(node, &["status", "addresses"]))
                .filter_map(|it| it.str_at(&["address"])?.parse::<IpAddr>().ok()),
        );
    }
    let port = port.and_then(|port| u16::try_from(port).ok()).unwrap_or(6443);
    (End { is_api_server: true, ..End::outside(addresses) }, port)
}

/// The plugin that judges policies, by its DaemonSet or by policies that only it knows. Where neither tells,
/// policies are judged by the plain meaning of Kubernetes, which is Calico's, too; `None` where the plugin
/// that is there enforces none.
fn plugin(cluster: &Cluster<'_>) -> Option<Cni> {
    let sets = cluster.all("DaemonSet");
    let has = |word: &str| sets.iter().any(|set| set.name().contains(word));
    let has_kind = |kind: &str| !cluster.all(kind).is_empty();
    if has("cilium") || has_kind("CiliumNetworkPolicy") || has_kind("CiliumClusterwideNetworkPolicy") {
        return Some(Cni::Cilium);
    }
    if has("calico") || has("canal") {
        return Some(Cni::Calico);
    }
    match sets.iter().find_map(|set| Some((Cni::of_daemon_set(set.name())?, set))) {
        // Where its arguments do not tell, calls that are not answered do.
        Some((Cni::AwsVpc, set)) if set.to_string().contains("--enable-network-policy=false") => None,
        Some((known, _)) => Some(known),
        None if has("flannel") => None,
        None => Some(Cni::Calico),
    }
}

/// A change of a NetworkPolicy that lets packets of one more peer pass; `None` for other kinds of policies.
pub(crate) fn opening(policy: &Value, way: Direction, peer: &End<'_>, ports: &[Port]) -> Option<Value> {
    if policy.kind() != "NetworkPolicy" {
        return None;
    }
    let (rules, peers) = if way == Direction::Ingress { ("ingress", "from") } else { ("egress", "to") };
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

/// The policies that keep a packet from its way, the newest first; empty if it passes, or may pass.
pub(crate) fn blocking<'a>(
    cluster: &Cluster<'a>,
    way: Direction,
    from: &End<'_>,
    to: &End<'_>,
    port: Port,
) -> Vec<&'a Value> {
    let (bound, peer) = if way == Direction::Ingress { (to, from) } else { (from, to) };
    let Some(plugin) = plugin(cluster).filter(|_| bound.is_pod) else { return Vec::new() };
    let objects = concerned(cluster, bound, peer);
    if objects.is_empty() {
        return Vec::new();
    }
    let keys: Vec<ResourceKey> = objects.iter().map(|object| key_of(object)).collect();
    let numbered = objects.iter().zip(&keys).enumerate();
    let mut network = Network::from_objects(numbered.map(|(at, (value, key))| tiphys_network::Object {
        id: ObjectId(at),
        key,
        value,
    }));
    network.cnis = vec![plugin];
    // Nothing else is judged by who runs the control plane.
    network.is_managed = if peer.is_api_server { is_elsewhere(cluster, &peer.addresses) } else { None };
    network.pods =
        [Some(bound), Some(peer).filter(|peer| peer.is_pod)].into_iter().flatten().map(pod).collect();
    let judged = network.judge(&Flow {
        pod: 0,
        direction: way,
        other: peer.destination(),
        addresses: peer.addresses.clone(),
        ports: vec![(Protocol::from_name(Some(port.protocol)), port.number)],
        need: Need::Observed,
    });
    if judged.verdict != Verdict::Deny {
        return Vec::new();
    }
    let dropping: BTreeSet<ObjectId> = judged.by.iter().map(|at| network.policies[*at].object).collect();
    let mut policies: Vec<&'a Value> = dropping.into_iter().map(|id| objects[id.0]).collect();
    policies.sort_by_key(|policy| std::cmp::Reverse(newest_change(policy)));
    policies
}

/// The policy of Cilium by which a pod may call some names outside, and not this one.
pub(crate) fn closed_to_name<'a>(cluster: &Cluster<'a>, from: &End<'_>, host: &str) -> Option<&'a Value> {
    let kinds = ["CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"];
    let all = kinds.iter().flat_map(|kind| cluster.all(kind).iter().copied());
    let of_pod: Vec<&'a Value> = all
        .filter(|policy| policy.namespace().is_empty() || policy.namespace() == from.namespace)
        .filter(|policy| {
            let wanted = policy.at(&["spec", "endpointSelector"]).map(without_sources).unwrap_or_default();
            from.is_pod && selector::matches(&wanted, from.labels)
        })
        .collect();
    let rules = || of_pod.iter().flat_map(|policy| items(policy, &["spec", "egress"]));
    if rules().any(|rule| lets_out(rule, host)) {
        return None;
    }
    of_pod.iter().copied().find(|policy| {
        items(policy, &["spec", "egress"]).any(|rule| items(rule, &["toFQDNs"]).next().is_some())
    })
}

/// A selector of Cilium without the sources of its labels: `k8s:app` is `app`.
fn without_sources(wanted: &Value) -> Value {
    let plain =
        |key: &str| key.strip_prefix("k8s:").or_else(|| key.strip_prefix("any:")).unwrap_or(key).to_owned();
    let labels = wanted.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let labels = labels.map(|(key, value)| (plain(key), value.clone()));
    let expressions = items(wanted, &["matchExpressions"]).map(|expression| {
        let mut expression = expression.clone();
        expression["key"] = json!(plain(expression.str_at(&["key"]).unwrap_or_default()));
        expression
    });
    json!({
        "matchLabels": labels.collect::<Map<String, Value>>(),
        "matchExpressions": expressions.collect::<Vec<Value>>(),
    })
}

/// Whether a rule lets calls of a name outside pass, as far as it is known.
fn lets_out(rule: &Value, host: &str) -> bool {
    const PEERS: &[&str] =
        &["toEndpoints", "toFQDNs", "toEntities", "toServices", "toNodes", "toGroups", "toCIDR", "toCIDRSet"];
    let has = |key: &str| rule.get(key).is_some();
    let is_wide = items(rule, &["toEntities"]).any(|it| matches!(it.as_str(), Some("world" | "all")));
    let names = items(rule, &["toFQDNs"]).any(|name| match name.str_at(&["matchName"]) {
        Some(known) => known.trim_end_matches('.').eq_ignore_ascii_case(host),
        None => name.str_at(&["matchPattern"]).is_none_or(|pattern| fits(pattern, host)),
    });
    is_wide
        || names
        || has("toCIDR")
        || has("toCIDRSet")
        || has("toGroups")
        || !PEERS.iter().any(|key| has(key))
}

/// Whether a name fits a pattern in which a star stands for any letters.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut read) = (0, 0);
    // The last star, and how many letters it stands for so far.
    let mut star: Option<(usize, usize)> = None;
    while let Some(letter) = name.get(read) {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(wanted) if wanted.eq_ignore_ascii_case(letter) => {
                at += 1;
                read += 1;
            }
            _ => match star {
                Some((place, taken)) => {
                    star = Some((place, taken + 1));
                    at = place + 1;
                    read = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|letter| *letter == b'*')
}

/// Kinds that take part in the judgement, besides Namespaces.
const KINDS: [&str; 13] = [
    "NetworkPolicy",
    "CiliumNetworkPolicy",
    "CiliumClusterwideNetworkPolicy",
    "NetworkPolicy.crd.projectcalico.org",
    "NetworkPolicy.projectcalico.org",
    "GlobalNetworkPolicy",
    "Tier",
    "NetworkSet",
    "GlobalNetworkSet",
    "HostEndpoint",
    "AdminNetworkPolicy",
    "BaselineAdminNetworkPolicy",
    "ClusterNetworkPolicy",
];

/// The policies that may bind a pod, and the namespaces of both ends; empty where there is no policy.
fn concerned<'a>(cluster: &Cluster<'a>, bound: &End<'_>, peer: &End<'_>) -> Vec<&'a Value> {
    let all = KINDS.iter().flat_map(|kind| cluster.all(kind)).copied();
    let mut found: Vec<&Value> = all.filter(|it| [bound.namespace, ""].contains(&it.namespace())).collect();
    if !found.is_empty() {
        let names = [bound.namespace, peer.namespace];
        let mut namespaces: Vec<&Value> =
            names.iter().filter_map(|name| cluster.get("Namespace", "", name)).collect();
        namespaces.dedup_by_key(|namespace| namespace.name());
        found.extend(namespaces);
    }
    found
}

fn key_of(object: &Value) -> ResourceKey {
    ResourceKey::new(object.gvk().group, object.kind(), object.namespace(), object.name())
}

/// Whether the API server answers at addresses that are no node's: then the cloud runs it. `None` where its
/// addresses or the nodes are not known.
fn is_elsewhere(cluster: &Cluster<'_>, server: &[IpAddr]) -> Option<bool> {
    let nodes = cluster.all("Node");
    if server.is_empty() || nodes.is_empty() {
        return None;
    }
    let is_node = |address: &IpAddr| {
        nodes
            .iter()
            .flat_map(|node| items(node, &["status", "addresses"]))
            .any(|known| known.str_at(&["address"]).and_then(|text| text.parse().ok()) == Some(*address))
    };
    Some(!server.iter().any(is_node))
}

fn pod(end: &End<'_>) -> Pod {
    let labels = end.labels.into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    let account = end.spec.and_then(|spec| spec.str_at(&["serviceAccountName"])).unwrap_or("default");
    Pod {
        is_exact: true,
        service_account: account.to_owned(),
        ports: end.spec.map(tiphys_network::ports).unwrap_or_default(),
        ..Pod::foreseen(String::new(), end.namespace, labels.collect())
    }
}

/// When a policy was changed last.
pub(crate) fn newest_change(object: &Value) -> Option<jiff::Timestamp> {
    let managed = items(object, &["metadata", "managedFields"]).filter_map(|entry| time(entry, &["time"]));
    managed.chain(time(object, &["metadata", "creationTimestamp"])).max()
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

    fn blocked(policy: &str, way: Direction, number: u16) -> bool {
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
        assert!(!blocked(policy, Direction::Ingress, 80));
        assert!(blocked(policy, Direction::Ingress, 81));
        assert!(blocked(
            &policy.replace("metadata.name: left", "metadata.name: other"),
            Direction::Ingress,
            80
        ));
        assert!(!blocked(policy, Direction::Egress, 81));
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
        assert!(!blocked(policy, Direction::Egress, 80));
        let cilium =
            "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: cilium, namespace: kube-system}\n";
        assert!(blocked(&format!("{policy}{cilium}"), Direction::Egress, 80));
        let own = "apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: p, namespace: left}
spec:
  endpointSelector: {matchLabels: {'k8s:app': a}}
  egress:
  - toEndpoints: [{matchLabels: {app: b, 'k8s:io.kubernetes.pod.namespace': right}}]
    toPorts: [{ports: [{port: '80', protocol: TCP}]}]
";
        assert!(!blocked(own, Direction::Egress, 80));
        assert!(blocked(own, Direction::Egress, 81));
    }

    #[test]
    fn what_denies_goes_before_what_allows() {
        let open = "apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: open, namespace: right}
spec: {podSelector: {}, ingress: [{}]}
";
        assert!(!blocked(open, Direction::Ingress, 80));
        let cilium = "---
apiVersion: cilium.io/v2
kind: CiliumClusterwideNetworkPolicy
metadata: {name: deny}
spec:
  endpointSelector: {matchLabels: {app: b}}
  ingressDeny: [{fromEndpoints: [{matchLabels: {app: a, 'k8s:io.kubernetes.pod.namespace': left}}]}]
";
        assert!(blocked(&format!("{open}{cilium}"), Direction::Ingress, 80));
        let calico = "---
apiVersion: crd.projectcalico.org/v1
kind: GlobalNetworkPolicy
metadata: {name: deny}
spec:
  order: 1
  selector: app == 'b'
  types: [Ingress]
  ingress: [{action: Deny, protocol: TCP, source: {selector: app == 'a'}, destination: {ports: [80]}}]
";
        assert!(blocked(&format!("{open}{calico}"), Direction::Ingress, 80));
        assert!(!blocked(&format!("{open}{calico}"), Direction::Ingress, 81));
    }

    #[test]
    fn an_agent_that_enforces_nothing_keeps_nothing() {
        let policy = "apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: p, namespace: right}
spec: {podSelector: {}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: aws-node, namespace: kube-system}
spec:
  template:
    spec:
      containers: [{name: aws-eks-nodeagent, args: ['--enable-network-policy=false']}]
";
        assert!(!blocked(policy, Direction::Ingress, 80));
        assert!(blocked(&policy.replace("=false", "=true"), Direction::Ingress, 80));
    }

    #[test]
    fn stars_stand_for_any_letters() {
        assert!(fits("*.example.org", "API.example.org"));
        assert!(fits("*", "example.org") && fits("a*b*c", "axxbxxbc"));
        assert!(!fits("*.example.org", "example.org") && !fits("a*b", "ac"));
        // No pattern takes longer than the product of both lengths.
        assert!(!fits(&"*a".repeat(500), &"b".repeat(5000)));
    }
}
