//! AdminNetworkPolicy, BaselineAdminNetworkPolicy and ClusterNetworkPolicy of `policy.networking.k8s.io`:
//! rules of the cluster's administrator that are tried in order, before or after the policies of namespaces.

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use crate::{
    kubernetes::{address, filled, title},
    object::Object,
    policy::{Action, Layer, Peer, Policy, PolicyReading, Rule},
    port::{PortName, PortRange, Protocol},
    selector::Selector,
};

/// Reads a policy of an administrator.
pub(crate) fn read(object: Object<'_>) -> PolicyReading {
    let spec = object.value.get("spec").unwrap_or(&Value::Null);
    let priority = spec.int_at(&["priority"]).unwrap_or(i64::MAX);
    let layer = match (object.key.kind.as_str(), spec.str_at(&["tier"])) {
        ("AdminNetworkPolicy", _) | ("ClusterNetworkPolicy", Some("Admin")) => Layer::Admin(priority),
        ("BaselineAdminNetworkPolicy", _) | ("ClusterNetworkPolicy", Some("Baseline")) => Layer::Baseline,
        _ => return PolicyReading::Opaque,
    };
    let subject = spec.get("subject").unwrap_or(&Value::Null);
    let Some((namespaces, pods)) = chosen(subject) else { return PolicyReading::Opaque };
    let rules = |key: &str, side: &str| {
        let rules = spec.get(key).and_then(Value::as_array)?;
        Some(rules.iter().map(|it| rule(it, side)).collect())
    };
    PolicyReading::Policies(vec![Policy {
        object: object.id,
        title: title(object),
        layer,
        only: None,
        namespace: None,
        pods,
        namespaces: Some(namespaces),
        ingress: rules("ingress", "from"),
        egress: rules("egress", "to"),
        leaves_open: Vec::new(),
    }])
}

/// The namespaces and pods of a subject or peer.
fn chosen(value: &Value) -> Option<(Selector, Selector)> {
    let selector = |value: Option<&Value>| Selector::from_value(value.unwrap_or(&Value::Null), str::to_owned);
    if let Some(namespaces) = value.get("namespaces") {
        return Some((selector(Some(namespaces)), Selector::default()));
    }
    let pods = value.get("pods")?;
    Some((selector(pods.get("namespaceSelector")), selector(pods.get("podSelector"))))
}

fn rule(value: &Value, side: &str) -> Rule {
    let action = match value.str_at(&["action"]) {
        Some("Deny") => Action::Deny,
        Some("Pass") => Action::Pass,
        _ => Action::Allow,
    };
    let peers = value.get(side).and_then(Value::as_array).into_iter().flatten();
    let ports = filled(value, "ports").map(|ports| ports.iter().map(port).collect());
    let protocols = filled(value, "protocols").map(|all| all.iter().map(protocol).collect());
    Rule { action, peers: Some(peers.flat_map(peer).collect()), ports: ports.or(protocols) }
}

fn peer(value: &Value) -> Vec<Peer> {
    if let Some((namespaces, pods)) = chosen(value) {
        return vec![Peer::Pods { namespaces: Some(namespaces), pods }];
    }
    if let Some(nodes) = value.get("nodes") {
        return vec![Peer::Nodes(Selector::from_value(nodes, str::to_owned))];
    }
    let Some(networks) = value.get("networks").and_then(Value::as_array) else { return vec![Peer::Unclear] };
    let block = |cidr: &Value| address(&json!({"cidr": cidr})).map_or(Peer::Unclear, Peer::Addresses);
    networks.iter().map(block).collect()
}

/// A port of `v1alpha1`.
fn port(value: &Value) -> PortRange {
    let number = |of: &Value, key: &str| of.int_at(&[key]).and_then(|number| u16::try_from(number).ok());
    if let Some(name) = value.get("namedPort").and_then(PortName::from_value) {
        return PortRange { protocol: None, port: Some(name), end: None };
    }
    let (of, first) = match (value.get("portNumber"), value.get("portRange")) {
        (Some(one), _) => (one, "port"),
        (_, Some(range)) => (range, "start"),
        _ => (&Value::Null, ""),
    };
    PortRange {
        protocol: Some(Protocol::from_name(of.str_at(&["protocol"]))),
        port: number(of, first).map(PortName::Number),
        end: number(of, "end"),
    }
}

/// A protocol with its port of `v1alpha2`.
fn protocol(value: &Value) -> PortRange {
    if let Some(name) = value.get("destinationNamedPort").and_then(PortName::from_value) {
        return PortRange { protocol: None, port: Some(name), end: None };
    }
    let known = [("tcp", Protocol::Tcp), ("udp", Protocol::Udp)];
    let found = known.iter().find_map(|(key, protocol)| Some((value.get(key)?, *protocol)));
    let (of, protocol) = found.unwrap_or((&Value::Null, Protocol::Other));
    let number = |path: &[&str]| of.int_at(path).and_then(|number| u16::try_from(number).ok());
    let first =
        number(&["destinationPort", "number"]).or_else(|| number(&["destinationPort", "range", "start"]));
    PortRange {
        protocol: Some(protocol),
        port: first.map(PortName::Number),
        end: number(&["destinationPort", "range", "end"]),
    }
}
