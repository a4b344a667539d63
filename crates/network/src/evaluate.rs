//! Whether a packet passes.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use crate::{
    endpoint::Pod,
    expression::Label,
    flow::{Destination, Direction, Flow},
    network::Network,
    plugin::Cni,
    policy::{Address, Peer, Policy, Rule},
    port::{PortName, PortRange, Protocol},
    selector::Selector,
    tri_state::Tri,
};

/// What becomes of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passes.
    Allow,
    /// It is dropped.
    Deny,
    /// It is dropped by these, and passes under the others.
    Depends(Vec<Cni>),
    /// The repository does not settle it.
    Unknown,
}

/// A verdict with the policies that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What becomes of it.
    pub verdict: Verdict,
    /// The policies that drop it, or else those that restrict it, as positions in [`Network::policies`].
    pub by: Vec<usize>,
    /// Whether a rule drops it, not the lack of one.
    pub is_by_rule: bool,
}

impl Judgement {
    /// Whether the packet is dropped by every CNI or some.
    pub fn is_denied(&self) -> bool {
        matches!(self.verdict, Verdict::Deny | Verdict::Depends(_))
    }
}

/// Where the metadata service of clouds is.
pub(crate) const METADATA: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));

impl Network {
    /// What becomes of a flow under the CNIs that the cluster may have.
    pub fn judge(&self, flow: &Flow) -> Judgement {
        let pod = &self.pods[flow.pod];
        let by: Vec<usize> = (0..self.policies.len())
            .filter(|at| self.restricts(&self.policies[*at], pod, flow.direction) != Tri::No)
            .collect();
        if pod.uses_host_network || by.is_empty() {
            return Judgement { verdict: Verdict::Allow, by: Vec::new(), is_by_rule: false };
        }
        let outcomes: Vec<_> = self.cnis.iter().map(|cni| (*cni, self.outcome(flow, *cni))).collect();
        let all = |wanted: Tri| outcomes.iter().all(|(_, outcome)| outcome.passes() == wanted);
        let verdict = if all(Tri::Yes) {
            Verdict::Allow
        } else if outcomes.iter().any(|(_, outcome)| outcome.passes() == Tri::Maybe)
            || !self.opaque.is_empty()
        {
            Verdict::Unknown
        } else if all(Tri::No) {
            Verdict::Deny
        } else {
            let dropping = outcomes.iter().filter(|(_, outcome)| outcome.passes() == Tri::No);
            Verdict::Depends(dropping.map(|(cni, _)| *cni).collect())
        };
        match outcomes.into_iter().find(|(_, outcome)| outcome.passes() == Tri::No) {
            Some((_, outcome)) if !outcome.by.is_empty() => {
                Judgement { verdict, by: outcome.by, is_by_rule: outcome.is_by_rule }
            }
            _ => Judgement { verdict, by, is_by_rule: false },
        }
    }

    /// Whether a flow passes under one CNI.
    pub fn passes(&self, flow: &Flow, cni: Cni) -> Tri {
        self.outcome(flow, cni).passes()
    }

    /// Whether a selector selects a pod. Calico and Cilium give pods labels that tell where they live.
    pub(crate) fn selects(&self, selector: &Selector, pod: &Pod) -> Tri {
        selector.matches_by(&|key| {
            let of_namespace = key.strip_prefix("pcns.");
            match (pod.labels.get(key), key, of_namespace) {
                (Some(value), ..) => Label::Value(value.clone()),
                (None, "projectcalico.org/namespace", _) => Label::Value(pod.namespace.clone()),
                (None, "projectcalico.org/orchestrator", _) => Label::Value("k8s".to_owned()),
                (None, "projectcalico.org/serviceaccount" | "io.cilium.k8s.policy.serviceaccount", _)
                    if pod.is_exact =>
                {
                    Label::Value(pod.service_account.clone())
                }
                // What the cluster is called, its installer says.
                (None, "io.cilium.k8s.policy.cluster", _) => Label::Unknown,
                (None, ..) if is_given_to_pods(key) => Label::Unknown,
                (None, _, Some(of)) => self.label_of_namespace(&pod.namespace, of),
                (None, ..) if pod.is_exact && !key.starts_with("pcsa.") => Label::Missing,
                (None, ..) => Label::Unknown,
            }
        })
    }

    /// Whether a selector selects a namespace.
    pub(crate) fn selects_namespace(&self, selector: &Selector, namespace: &str) -> Tri {
        selector.matches_by(&|key| self.label_of_namespace(namespace, key))
    }

    fn label_of_namespace(&self, namespace: &str, key: &str) -> Label {
        if key == "projectcalico.org/name" {
            return Label::Value(namespace.to_owned());
        }
        let (labels, known) = self.namespaces.labels(namespace);
        match labels.get(key) {
            Some(value) => Label::Value(value.clone()),
            None if known => Label::Missing,
            None => Label::Unknown,
        }
    }

    /// Whether a policy restricts a pod in a direction.
    pub fn restricts(&self, policy: &Policy, pod: &Pod, direction: Direction) -> Tri {
        let is_about = match direction {
            Direction::Ingress => policy.ingress.is_some(),
            Direction::Egress => policy.egress.is_some(),
        };
        if !is_about || policy.namespace.as_ref().is_some_and(|namespace| *namespace != pod.namespace) {
            return Tri::No;
        }
        let namespaces = policy.namespaces.as_ref();
        let namespace =
            namespaces.map_or(Tri::Yes, |selector| self.selects_namespace(selector, &pod.namespace));
        namespace.min(self.selects(&policy.pods, pod))
    }

    pub(crate) fn matches(&self, policy: &Policy, rule: &Rule, flow: &Flow, cni: Cni) -> Tri {
        let peers = rule
            .peers
            .as_ref()
            .map_or(Tri::Yes, |peers| Tri::any(peers.iter().map(|peer| self.peer(policy, peer, flow, cni))));
        peers.min(self.port(rule, flow, cni))
    }

    fn port(&self, rule: &Rule, flow: &Flow, cni: Cni) -> Tri {
        let Some(ranges) = &rule.ports else { return Tri::Yes };
        // The port in front of the translation, for those that judge there.
        let front = [(Protocol::Tcp, 443)];
        let is_front = flow.direction == Direction::Egress
            && flow.other == Destination::ApiServer
            && !cni.judges_translated();
        let ports = if is_front { &front[..] } else { &flow.ports };
        Tri::any(ports.iter().flat_map(|port| ranges.iter().map(move |range| (port, range))).map(
            |(port, range)| {
                let is_dns = flow.other == Destination::Dns && range.port == Some(PortName::Number(5353));
                if is_dns { Tri::Maybe } else { self.in_range(range, *port, flow) }
            },
        ))
    }

    fn in_range(&self, range: &PortRange, (protocol, number): (Protocol, u16), flow: &Flow) -> Tri {
        if range.protocol.is_some_and(|wanted| wanted != protocol) {
            return Tri::No;
        }
        let first = match &range.port {
            None => return Tri::Yes,
            Some(PortName::Number(first)) => *first,
            Some(name) => {
                // A name is looked up at the side that is connected to.
                let side = match (flow.direction, flow.other) {
                    (Direction::Ingress, _) => Some(&self.pods[flow.pod]),
                    (Direction::Egress, Destination::Pod(at)) => Some(&self.pods[at]),
                    (Direction::Egress, _) => None,
                };
                match side.and_then(|pod| pod.port(name, protocol)) {
                    Some(first) => first,
                    None if side.is_some_and(|pod| !pod.is_exact) || flow.other == Destination::Dns => {
                        return Tri::Maybe;
                    }
                    None => return Tri::No,
                }
            }
        };
        Tri::from((first..=range.end.unwrap_or(first)).contains(&number))
    }

    fn peer(&self, policy: &Policy, peer: &Peer, flow: &Flow, cni: Cni) -> Tri {
        match (peer, flow.other) {
            (Peer::Unclear, _) => Tri::Maybe,
            // What they resolve to is not known, but it is neither a pod nor a node.
            (Peer::Names, Destination::World | Destination::Metadata) => Tri::Maybe,
            (Peer::Names, Destination::ApiServer) if self.is_managed != Some(false) => Tri::Maybe,
            (Peer::Names, _) => Tri::No,
            (Peer::Entity(entity), other) => entity_matches(entity, other, self.is_managed),
            (Peer::Calico(entity), _) => self.is_entity(entity, flow, cni),
            (Peer::Nodes(_), Destination::ApiServer) if self.is_managed == Some(true) => Tri::No,
            (Peer::Nodes(nodes), Destination::ApiServer) => {
                if nodes.is_empty() && self.is_managed == Some(false) { Tri::Yes } else { Tri::Maybe }
            }
            (Peer::Nodes(_), Destination::Dns | Destination::Node | Destination::Host) => Tri::Maybe,
            (Peer::Nodes(_), _) => Tri::No,
            (Peer::Addresses(address), _) => self.address(address, flow, cni),
            (Peer::Pods { namespaces, pods }, Destination::Pod(at)) => {
                let pod = &self.pods[at];
                let namespace = match namespaces {
                    None => Tri::from(policy.namespace.as_ref().is_some_and(|own| *own == pod.namespace)),
                    Some(selector) => self.selects_namespace(selector, &pod.namespace),
                };
                namespace.min(self.selects(pods, pod))
            }
            (Peer::Pods { namespaces, pods }, Destination::Dns) => {
                // Some distributions keep DNS elsewhere.
                let wanted = namespaces.iter().flat_map(|selector| selector.wanted_labels());
                if wanted.into_iter().any(|(_, values)| values.iter().any(|value| value.contains("dns"))) {
                    return Tri::Maybe;
                }
                let (labels, known) = self.namespaces.labels("kube-system");
                let namespace = match namespaces {
                    None => Tri::from(policy.namespace.as_deref() == Some("kube-system")),
                    Some(selector) => selector.matches(&labels, known),
                };
                let labels = [("k8s-app".to_owned(), "kube-dns".to_owned())].into();
                namespace.min(pods.matches(&labels, false))
            }
            (Peer::Pods { namespaces, .. }, Destination::ApiServer)
                if flow.direction == Direction::Ingress =>
            {
                // Some clouds reach into the cluster through an agent, which is a pod in kube-system.
                let (labels, _) = self.namespaces.labels("kube-system");
                let reaches =
                    namespaces.as_ref().is_some_and(|selector| selector.matches(&labels, false) != Tri::No);
                if reaches && self.is_managed != Some(false) { Tri::Maybe } else { Tri::No }
            }
            // OpenShift knows the addresses of its own control plane's pods.
            (Peer::Pods { namespaces, .. }, Destination::ApiServer) => {
                let mut wanted = namespaces.iter().flat_map(Selector::wanted_labels);
                let is_openshift =
                    wanted.any(|(_, values)| values.iter().any(|value| value.starts_with("openshift-")));
                if is_openshift { Tri::Maybe } else { Tri::No }
            }
            (Peer::Pods { .. }, _) => Tri::No,
        }
    }

    pub(crate) fn address(&self, address: &Address, flow: &Flow, cni: Cni) -> Tri {
        let (other, direction) = (flow.other, flow.direction);
        let is_everything = address.block.prefix_len() == 0;
        let is_whole = is_everything && address.except.is_empty();
        let is_translated_later =
            other == Destination::ApiServer && direction == Direction::Egress && !cni.judges_translated();
        if !flow.addresses.is_empty() && !is_translated_later {
            let is_identity = matches!(other, Destination::Pod(_) | Destination::Host)
                || (other == Destination::ApiServer && self.is_managed == Some(false));
            if is_identity && !cni.blocks_select_nodes() {
                return Tri::No;
            }
            return Tri::from(flow.addresses.iter().any(|it| address.contains(*it)));
        }
        match other {
            Destination::Metadata => Tri::from(address.contains(METADATA)),
            Destination::World if is_everything => Tri::Yes,
            // A load balancer or node has an address of the network that it is in.
            Destination::World if direction == Direction::Ingress => Tri::Maybe,
            Destination::World => {
                if is_private(&address.block) {
                    Tri::No
                } else {
                    Tri::Maybe
                }
            }
            Destination::Dns if is_service_address(&address.block) && address.block.prefix_len() == 32 => {
                Tri::No
            }
            Destination::Dns => {
                if is_whole && cni.blocks_select_nodes() {
                    Tri::Yes
                } else {
                    Tri::Maybe
                }
            }
            Destination::Pod(_) | Destination::Host if !cni.blocks_select_nodes() => Tri::No,
            // Where nodes are taken for the world, blocks select them.
            Destination::Pod(_) | Destination::Node | Destination::Host => {
                if is_whole {
                    Tri::Yes
                } else {
                    Tri::Maybe
                }
            }
            Destination::ApiServer if is_translated_later => {
                if is_whole || is_service_address(&address.block) { Tri::Yes } else { Tri::Maybe }
            }
            Destination::ApiServer if is_service_address(&address.block) || is_link_local(&address.block) => {
                Tri::No
            }
            Destination::ApiServer if !cni.blocks_select_nodes() => {
                if self.is_managed == Some(false) {
                    Tri::No
                } else {
                    Tri::Maybe
                }
            }
            Destination::ApiServer => {
                if is_whole {
                    Tri::Yes
                } else {
                    Tri::Maybe
                }
            }
        }
    }
}

/// Whether one of Cilium's entities is the other side.
fn entity_matches(entity: &str, other: Destination, is_managed: Option<bool>) -> Tri {
    let outside = if is_managed == Some(false) { Tri::No } else { Tri::Maybe };
    let inside = if is_managed == Some(false) { Tri::Yes } else { Tri::Maybe };
    match (entity, other) {
        ("all", _) | ("cluster", Destination::Pod(_) | Destination::Dns) => Tri::Yes,
        ("world", Destination::World | Destination::Metadata | Destination::Node) => Tri::Yes,
        ("kube-apiserver", Destination::ApiServer) => Tri::Yes,
        ("cluster" | "remote-node" | "host", Destination::Host) => Tri::Yes,
        ("kube-apiserver", Destination::Host) => Tri::Maybe,
        ("cluster" | "remote-node" | "host", Destination::ApiServer) => inside,
        ("world", Destination::ApiServer) => outside,
        ("host" | "remote-node", Destination::Dns)
        | ("cluster" | "host" | "remote-node" | "ingress", Destination::World) => Tri::Maybe,
        _ => Tri::No,
    }
}

/// Whether a block is the address of the `kubernetes` Service or the range of Services that installers
/// choose.
pub fn is_service_address(block: &IpNet) -> bool {
    const RANGES: [&str; 4] = ["10.96.0.0/12", "10.43.0.0/16", "10.152.183.0/24", "172.30.0.0/16"];
    const API: [Ipv4Addr; 6] = [
        Ipv4Addr::new(10, 96, 0, 1),
        Ipv4Addr::new(10, 43, 0, 1),
        Ipv4Addr::new(10, 100, 0, 1),
        Ipv4Addr::new(172, 20, 0, 1),
        Ipv4Addr::new(10, 152, 183, 1),
        Ipv4Addr::new(172, 30, 0, 1),
    ];
    let is_api = block.prefix_len() == 32 && API.iter().any(|it| IpAddr::V4(*it) == block.addr());
    is_api || RANGES.iter().any(|range| range.parse().is_ok_and(|range: IpNet| range == *block))
}

fn is_link_local(block: &IpNet) -> bool {
    matches!(block, IpNet::V4(block) if block.addr().is_link_local() && block.prefix_len() >= 16)
}

fn is_private(block: &IpNet) -> bool {
    match block {
        IpNet::V4(block) => block.addr().is_private() || block.addr().is_link_local(),
        IpNet::V6(block) => block.addr().segments()[0] & 0xfe00 == 0xfc00,
    }
}

/// Whether a label is one that a mesh or a controller gives to pods as they come, so that no manifest has it.
fn is_given_to_pods(key: &str) -> bool {
    const PREFIXES: [&str; 6] = [
        "service.istio.io/",
        "security.istio.io/",
        "topology.istio.io/",
        "linkerd.io/",
        "batch.kubernetes.io/",
        "statefulset.kubernetes.io/",
    ];
    const KEYS: [&str; 4] =
        ["pod-template-hash", "controller-revision-hash", "job-name", "apps.kubernetes.io/pod-index"];
    KEYS.contains(&key) || PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}
