//! Policies in one form, whoever's they are.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{flow::Direction, object::ObjectId, plugin::Cni, port::PortRange, selector::Selector};

/// An address block without some others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The block.
    pub block: IpNet,
    /// Blocks in it that do not count.
    pub except: Vec<IpNet>,
}

impl Address {
    /// Whether an address is in the block, and in none of those that do not count.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.block.contains(&address) && !self.except.iter().any(|except| except.contains(&address))
    }
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
    /// Domain names: what they resolve to outside of the cluster.
    Names,
    /// What a rule of Calico's names.
    Calico(Box<Entity>),
    /// Something that the objects alone do not tell.
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

/// One side of a connection, as a rule of Calico's names it: everything that is said has to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entity {
    /// Endpoints with labels.
    pub pods: Option<Selector>,
    /// Endpoints that are not meant.
    pub not_pods: Option<Selector>,
    /// Endpoints with service accounts of these names.
    pub accounts: Option<Selector>,
    /// The namespaces of the endpoints.
    pub namespaces: Option<Selector>,
    /// The namespace of the endpoints, where the policy's own is meant.
    pub namespace: Option<String>,
    /// Addresses; empty for any.
    pub blocks: Vec<Address>,
    /// Addresses that are not meant.
    pub not_blocks: Vec<IpNet>,
    /// Namespace and name of a Service whose endpoints are meant.
    pub service: Option<(String, String)>,
    /// Whether something is said that the repository alone does not tell.
    pub is_unclear: bool,
}

/// Where a tier stands, and whether what no rule in it matches goes on to the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TierPosition {
    /// Smaller ones first.
    pub order: f64,
    /// Whether the end of the tier passes on instead of dropping.
    pub passes: bool,
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
pub(crate) enum PolicyReading {
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

    /// Its rules for a direction.
    pub fn rules(&self, direction: Direction) -> &[Rule] {
        let rules = match direction {
            Direction::Ingress => &self.ingress,
            Direction::Egress => &self.egress,
        };
        rules.as_deref().unwrap_or_default()
    }

    /// Its rules for a direction, to change them.
    pub(crate) fn rules_mut(&mut self, direction: Direction) -> &mut Option<Vec<Rule>> {
        match direction {
            Direction::Ingress => &mut self.ingress,
            Direction::Egress => &mut self.egress,
        }
    }
}
