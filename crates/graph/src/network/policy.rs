//! Policies in one form.

use ipnet::IpNet;
use serde_json::Value;
use tiphys_value::ObjectExt;

use super::{Cni, Direction, PortName, Selector, admin, calico, cilium};
use crate::{Object, ObjectId};

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Any other.
    Other,
}

impl Protocol {
    /// Reads its name; TCP if there is none.
    pub fn from_name(name: Option<&str>) -> Self {
        match name {
            None | Some("TCP" | "tcp") => Self::Tcp,
            Some("UDP" | "udp") => Self::Udp,
            _ => Self::Other,
        }
    }

    /// Its name, as manifests write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Other => "SCTP",
        }
    }
}

/// Ports that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// `None` for any.
    pub protocol: Option<Protocol>,
    /// The first or only one; `None` for all.
    pub port: Option<PortName>,
    /// The last one of a range.
    pub end: Option<u16>,
}

/// An address block without some others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The block.
    pub block: IpNet,
    /// Blocks in it that do not count.
    pub except: Vec<IpNet>,
}

/// The other side of a connection, as a rule names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Pods: of namespaces (`None` for the policy's own) and with labels.
    Pods {
        /// Which namespaces.
        namespaces: Option<Selector>,
        /// Which pods.
        pods: Selector,
    },
    /// Addresses.
    Addresses(Address),
    /// One of Cilium's entities, such as `kube-apiserver`.
    Entity(String),
    /// Nodes with labels.
    Nodes(Selector),
    /// What a rule of Calico's names.
    Calico(Box<calico::Entity>),
    /// Something that the repository alone does not tell, such as domain names.
    Unclear,
}

/// What becomes of a packet that a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It passes, and nothing else is asked.
    Allow,
    /// It is dropped, and nothing else is asked.
    Deny,
    /// The policies after this tier decide.
    Pass,
}

/// What a rule lets pass or drops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What becomes of what it is about.
    pub action: Action,
    /// The other sides; `None` for all.
    pub peers: Option<Vec<Peer>>,
    /// The ports; `None` for all.
    pub ports: Option<Vec<PortRange>>,
}

/// When a policy is asked: before or after others.
#[derive(Clone, Debug, PartialEq)]
pub enum Layer {
    /// Of the cluster's administrator, before all others; smaller numbers first.
    Admin(i64),
    /// Of a namespace: their rules are alternatives.
    Ordinary,
    /// Of the cluster's administrator, where no other policy selects the pod.
    Baseline,
    /// In one of Calico's tiers, at a place in it.
    Calico {
        /// The tier's name.
        tier: String,
        /// Smaller ones first; infinite if it has none.
        order: f64,
        /// What decides between equal orders; smaller ones first.
        rank: String,
    },
}

/// A policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The object.
    pub object: ObjectId,
    /// `Kind/name in namespace`.
    pub title: String,
    /// When it is asked.
    pub layer: Layer,
    /// The only network plugin that knows it; `None` if all of them do.
    pub only: Option<Cni>,
    /// Its namespace; `None` if it is for all of them.
    pub namespace: Option<String>,
    /// The pods that it is for.
    pub pods: Selector,
    /// The namespaces that it is for, where it chooses.
    pub namespaces: Option<Selector>,
    /// What may come in; `None` if it does not restrict that.
    pub ingress: Option<Vec<Rule>>,
    /// What may go out; `None` if it does not restrict that.
    pub egress: Option<Vec<Rule>>,
    /// The directions in which its rules count, but in which it does not isolate the pods that it is for.
    pub leaves_open: Vec<Direction>,
}

/// What an object is to the network.
pub enum PolicyReading {
    /// Policies that are understood.
    Policies(Vec<Policy>),
    /// A policy whose effect is not known here.
    Opaque,
    /// No policy.
    Other,
}

impl Policy {
    /// Whether it is a NetworkPolicy of Kubernetes itself.
    pub fn is_of_kubernetes(&self) -> bool {
        self.layer == Layer::Ordinary && self.only.is_none()
    }

    /// Reads an object.
    pub fn read_object(object: &Object) -> PolicyReading {
        match (object.key.group.as_str(), object.key.kind.as_str()) {
            ("networking.k8s.io", "NetworkPolicy") => PolicyReading::Policies(vec![network_policy(object)]),
            ("cilium.io", "CiliumNetworkPolicy" | "CiliumClusterwideNetworkPolicy") => cilium::read(object),
            ("crd.projectcalico.org" | "projectcalico.org", "NetworkPolicy" | "GlobalNetworkPolicy") => {
                calico::read(object)
            }
            ("policy.networking.k8s.io", _) => admin::read(object),
            ("networking.k8s.aws", "ClusterNetworkPolicy") => PolicyReading::Opaque,
            _ => PolicyReading::Other,
        }
    }
}

/// The title of a policy. Those of whole clusters have no namespace, though an Application may give them one.
pub fn title(object: &Object) -> String {
    let is_namespaced = matches!(object.key.kind.as_str(), "NetworkPolicy" | "CiliumNetworkPolicy");
    if is_namespaced { object.title() } else { format!("{}/{}", object.key.kind, object.key.name) }
}

/// A NetworkPolicy of `networking.k8s.io/v1`.
fn network_policy(object: &Object) -> Policy {
    let spec = object.value().get("spec").unwrap_or(&Value::Null);
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
pub fn rule(value: &Value, peers: &str) -> Rule {
    Rule {
        action: Action::Allow,
        peers: filled(value, peers).map(|all| all.iter().map(peer).collect()),
        ports: filled(value, "ports").map(|all| all.iter().map(port).collect()),
    }
}

/// A list that has something in it.
pub fn filled<'a>(value: &'a Value, key: &str) -> Option<&'a Vec<Value>> {
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
pub fn address(value: &Value) -> Option<Address> {
    let except = value.get("except").and_then(Value::as_array).into_iter().flatten();
    Some(Address {
        block: value.str_at(&["cidr"])?.parse().ok()?,
        except: except.filter_map(|it| it.as_str()?.parse().ok()).collect(),
    })
}

/// A port of a rule. One that is still to be filled in (`${PORT}`) may be any.
pub fn port(value: &Value) -> PortRange {
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
