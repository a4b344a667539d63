//! Reachability under network policies: which packets that a workload needs arrive, judged as the CNI sees
//! them, after service translation. The objects are rendered ones or live ones.
//!
//! A packet to a Service has the address of one of its pods when a policy judges it; one to the API server
//! has the address of a node (or of the cloud's control plane), which no pod selector selects. What the
//! objects do not settle (addresses of nodes, labels of namespaces that are not among them) is answered
//! with [`Tri::Maybe`] and never reported.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod admin;
mod calico;
mod cilium;
mod configuration;
mod endpoint;
mod evaluate;
mod expression;
mod flow;
mod flows;
mod gateways;
mod inbound;
mod internet;
mod known_controllers;
mod kubernetes;
mod network;
mod object;
mod operator_pods;
mod plugin;
mod policy;
mod port;
mod reading;
mod refusal;
mod remedy;
mod rights;
mod selector;
mod tiers;
mod tri_state;

pub use endpoint::{ContainerPort, Namespaces, Pod, Service, ServicePort, Setting, labels, ports};
pub use evaluate::{Judgement, Verdict, is_service_address};
pub use expression::{Comparison, Expression, Label};
pub use flow::{Destination, Direction, Flow, Need};
pub use known_controllers::Controller;
pub use network::Network;
pub use object::{Object, ObjectId};
pub use operator_pods::{Operated, operated};
pub use plugin::Cni;
pub use policy::{Action, Address, Entity, Layer, Peer, Policy, Rule, TierPosition};
pub use port::{PortName, PortRange, Protocol};
pub use refusal::{Refusal, refusal};
pub use remedy::Remedy;
pub use selector::Selector;
pub use tri_state::Tri;
