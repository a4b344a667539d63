//! Cilium's own policies.

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use crate::{
    flow::Direction,
    kubernetes::{address, filled, title},
    object::Object,
    plugin::Cni,
    policy::{Action, Layer, Peer, Policy, PolicyReading, Rule},
    port::{PortName, PortRange, Protocol},
    refusal::refusal,
    selector::Selector,
};

/// The label that tells an endpoint's namespace.
const NAMESPACE: &str = "io.kubernetes.pod.namespace";
const NAMESPACE_LABELS: &str = "io.cilium.k8s.namespace.labels.";

/// Reads a CiliumNetworkPolicy or CiliumClusterwideNetworkPolicy.
pub(crate) fn read(object: Object<'_>) -> PolicyReading {
    let value = object.value;
    let single = value.get("spec").filter(|spec| spec.is_object());
    let several = value.get("specs").and_then(Value::as_array).into_iter().flatten();
    let specs: Vec<&Value> = single.into_iter().chain(several).collect();
    if refusal(object).is_some() {
        return PolicyReading::Other;
    }
    // Policies for nodes do not bind pods.
    if specs.iter().any(|spec| spec.get("nodeSelector").is_some()) {
        return PolicyReading::Other;
    }
    let policies = specs.iter().map(|spec| policy(object, spec)).collect();
    PolicyReading::Policies(policies)
}

fn policy(object: Object<'_>, spec: &Value) -> Policy {
    let is_clusterwide = object.key.kind == "CiliumClusterwideNetworkPolicy";
    let selector = spec.get("endpointSelector").unwrap_or(&Value::Null);
    let (pods, namespaces) = endpoints(selector, is_clusterwide);
    let rules = |allow: &str, deny: &str, side: &str| {
        let list = |key: &str, denies: bool| {
            let rules = spec.get(key).and_then(Value::as_array).into_iter().flatten();
            rules.flat_map(move |it| rules_of(it, side, denies, is_clusterwide)).collect::<Vec<_>>()
        };
        let found: Vec<Rule> = list(allow, false).into_iter().chain(list(deny, true)).collect();
        let has_rules = filled(spec, allow).is_some() || filled(spec, deny).is_some();
        has_rules.then_some(found)
    };
    // Without rules for a direction, `true` means nothing.
    let is_left_open = |(_, side): &(Direction, &str)| {
        spec.at(&["enableDefaultDeny", side]).and_then(Value::as_bool) == Some(false)
    };
    let sides = [(Direction::Ingress, "ingress"), (Direction::Egress, "egress")];
    Policy {
        object: object.id,
        title: title(object),
        layer: Layer::Ordinary,
        only: Some(Cni::Cilium),
        namespace: (!is_clusterwide).then(|| object.key.namespace.clone()),
        pods,
        namespaces,
        ingress: rules("ingress", "ingressDeny", "from"),
        egress: rules("egress", "egressDeny", "to"),
        leaves_open: sides.into_iter().filter(is_left_open).map(|(direction, _)| direction).collect(),
    }
}

/// An endpoint selector as labels of pods and of their namespace. In a policy of one namespace, an endpoint
/// is meant to be in it unless the selector says otherwise.
fn endpoints(selector: &Value, is_clusterwide: bool) -> (Selector, Option<Selector>) {
    let plain = |key: &str| key.strip_prefix("k8s:").or(key.strip_prefix("any:")).unwrap_or(key).to_owned();
    let is_of_namespace = |key: &str| plain(key) == NAMESPACE || plain(key).starts_with(NAMESPACE_LABELS);
    let split = |wanted: bool| {
        let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
        let labels: serde_json::Map<String, Value> = labels
            .filter(|(key, _)| is_of_namespace(key) == wanted)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let terms = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
        let terms: Vec<Value> = terms
            .filter(|term| is_of_namespace(term.str_at(&["key"]).unwrap_or_default()) == wanted)
            .cloned()
            .collect();
        json!({"matchLabels": labels, "matchExpressions": terms})
    };
    let namespace_key = |key: &str| {
        let key = plain(key);
        match key.strip_prefix(NAMESPACE_LABELS) {
            Some(label) => label.to_owned(),
            None => "kubernetes.io/metadata.name".to_owned(),
        }
    };
    let namespaces = Selector::from_value(&split(true), namespace_key);
    let chooses = !namespaces.is_empty() || is_clusterwide;
    (Selector::from_value(&split(false), plain), chooses.then_some(namespaces))
}

/// One rule: its kinds of peers are alternatives, each with the rule's ports.
fn rules_of(rule: &Value, side: &str, denies: bool, is_clusterwide: bool) -> Vec<Rule> {
    let list = |kind: &str| rule.get(format!("{side}{kind}")).and_then(Value::as_array);
    let ports = rule.get("toPorts").and_then(Value::as_array).map(|all| {
        let inner = all.iter().flat_map(|it| it.get("ports").and_then(Value::as_array).into_iter().flatten());
        inner.map(port).collect::<Vec<_>>()
    });
    let ports = ports.filter(|ports| !ports.is_empty());
    let mut peers = Vec::new();
    for endpoint in list("Endpoints").into_iter().flatten() {
        let (pods, namespaces) = endpoints(endpoint, is_clusterwide);
        peers.push(Peer::Pods { namespaces, pods });
    }
    for block in list("CIDR").into_iter().flatten() {
        peers.push(address(&json!({"cidr": block})).map_or(Peer::Unclear, Peer::Addresses));
    }
    for block in list("CIDRSet").into_iter().flatten() {
        peers.push(address(block).map_or(Peer::Unclear, Peer::Addresses));
    }
    for entity in list("Entities").into_iter().flatten() {
        peers.push(Peer::Entity(entity.as_str().unwrap_or_default().to_owned()));
    }
    if list("FQDNs").is_some() {
        peers.push(Peer::Names);
    }
    let unclear = ["Services", "Groups", "Nodes", "Requires"].iter().any(|kind| list(kind).is_some());
    if unclear {
        peers.push(Peer::Unclear);
    }
    let kinds = ["Endpoints", "CIDR", "CIDRSet", "Entities", "FQDNs"];
    let names_peers = unclear || kinds.iter().any(|kind| list(kind).is_some());
    // A rule that says nothing is about nobody: it only makes the policy isolate the pods (Cilium docs,
    // "Ingress Default Deny").
    if rule.get("icmps").is_some() || !names_peers && rule.get("toPorts").is_none() {
        return Vec::new();
    }
    let action = if denies { Action::Deny } else { Action::Allow };
    vec![Rule { action, peers: names_peers.then_some(peers), ports }]
}

fn port(value: &Value) -> PortRange {
    let protocol =
        value.str_at(&["protocol"]).filter(|name| *name != "ANY").map(|name| Protocol::from_name(Some(name)));
    let port = value.get("port").and_then(PortName::from_value).filter(|port| *port != PortName::Number(0));
    PortRange { protocol, port, end: value.int_at(&["endPort"]).and_then(|end| u16::try_from(end).ok()) }
}
