//! NetworkPolicy of `networking.k8s.io/v1`, whose peers and ports other policies write, too.

use serde_json::Value;
use tiphys_value::ObjectExt;

use crate::{
    object::Object,
    policy::{Action, Address, Layer, Peer, Policy, Rule},
    port::{PortName, PortRange, Protocol},
    selector::Selector,
};

/// The title of a policy. Those of whole clusters have no namespace, though an Application may give them one.
pub(crate) fn title(object: Object<'_>) -> String {
    let is_namespaced = matches!(object.key.kind.as_str(), "NetworkPolicy" | "CiliumNetworkPolicy");
    if is_namespaced { object.title() } else { format!("{}/{}", object.key.kind, object.key.name) }
}

/// A NetworkPolicy of `networking.k8s.io/v1`.
pub(crate) fn network_policy(object: Object<'_>) -> Policy {
    let spec = object.value.get("spec").unwrap_or(&Value::Null);
    // Without types it is what the API server fills in: for egress only where it has rules.
    let types = filled(spec, "policyTypes");
    let restricts = |name: &str, default: bool| {
        types.map_or(default, |types| types.iter().any(|it| it.as_str() == Some(name)))
    };
    let rules = |key: &str, peers: &str| -> Vec<Rule> {
        let rules = spec.get(key).and_then(Value::as_array).into_iter().flatten();
        rules.map(|it| rule(it, peers)).collect()
    };
    Policy {
        object: object.id,
        title: object.title(),
        layer: Layer::Ordinary,
        only: None,
        namespace: Some(object.key.namespace.clone()),
        pods: Selector::from_value(spec.get("podSelector").unwrap_or(&Value::Null), str::to_owned),
        namespaces: None,
        ingress: restricts("Ingress", true).then(|| rules("ingress", "from")),
        egress: restricts("Egress", filled(spec, "egress").is_some()).then(|| rules("egress", "to")),
        leaves_open: Vec::new(),
    }
}

/// One rule of a NetworkPolicy: empty lists are as absent ones.
pub(crate) fn rule(value: &Value, peers: &str) -> Rule {
    Rule {
        action: Action::Allow,
        peers: filled(value, peers).map(|all| all.iter().map(peer).collect()),
        ports: filled(value, "ports").map(|all| all.iter().map(port).collect()),
    }
}

/// A list that has something in it.
pub(crate) fn filled<'a>(value: &'a Value, key: &str) -> Option<&'a Vec<Value>> {
    value.get(key).and_then(Value::as_array).filter(|list| !list.is_empty())
}

fn peer(value: &Value) -> Peer {
    if let Some(block) = value.get("ipBlock") {
        return address(block).map_or(Peer::Unclear, Peer::Addresses);
    }
    let selector = |key: &str| {
        value.get(key).filter(|it| !it.is_null()).map(|it| Selector::from_value(it, str::to_owned))
    };
    Peer::Pods {
        namespaces: selector("namespaceSelector"),
        pods: selector("podSelector").unwrap_or_default(),
    }
}

/// `cidr` and `except`.
pub(crate) fn address(value: &Value) -> Option<Address> {
    let except = value.get("except").and_then(Value::as_array).into_iter().flatten();
    Some(Address {
        block: value.str_at(&["cidr"])?.parse().ok()?,
        except: except.filter_map(|it| it.as_str()?.parse().ok()).collect(),
    })
}

/// A port of a rule. One that is still to be filled in (`${PORT}`) may be any.
pub(crate) fn port(value: &Value) -> PortRange {
    let is_open = value.str_at(&["port"]).is_some_and(|port| port.contains(['$', '{', '<']));
    PortRange {
        protocol: Some(Protocol::from_name(value.str_at(&["protocol"]))),
        port: value.get("port").filter(|_| !is_open).and_then(PortName::from_value),
        end: value.int_at(&["endPort"]).and_then(|end| u16::try_from(end).ok()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::port;

    #[test]
    fn a_port_that_is_still_to_be_filled_in_may_be_any() {
        assert_eq!(port(&json!({"port": "${API_PORT}"})).port, None);
        assert!(port(&json!({"port": "https"})).port.is_some());
    }
}
