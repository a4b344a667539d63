//! What gets through, how nodes are, and what webhooks answer.

use serde::Deserialize;
use serde_json::Value;

use super::{Behaviours, Cause, Pattern, Pods};
use crate::{Key, View};

/// How some nodes are.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeRule {
    /// These nodes.
    #[serde(default)]
    pub node: Pattern,
    /// What is the matter with them.
    #[serde(flatten)]
    pub state: NodeState,
}

/// What is the matter with a node.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeState {
    /// The kubelet has stopped answering.
    Unreachable {},
    /// The kubelet says that it is not ready.
    NotReady {
        /// In these words.
        message: String,
    },
    /// Pods get no network unless one of these runs on the node and is Ready.
    NetworkBy(Pods),
}

/// Packets that are dropped.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NetworkFault {
    /// From these pods.
    #[serde(default)]
    pub from: Pods,
    /// To this.
    pub to: Target,
    /// In the words of whoever tries; a timeout if not given.
    #[serde(default)]
    pub text: Option<String>,
    /// The policies that drop them; only while one of these is there. Without any, always.
    #[serde(default)]
    pub by: Vec<PolicyName>,
}

/// A policy that drops packets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyName {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty if it is for all of them.
    #[serde(default)]
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl NetworkFault {
    /// Whether it is in force: without policies always, otherwise while one of them is there.
    fn is_in_force(&self, view: &View<'_>) -> bool {
        let is_there = |policy: &PolicyName| {
            let key = Key { namespace: policy.namespace.clone(), name: policy.name.clone() };
            view.has_of_kind(&policy.group, &policy.kind, &key)
        };
        self.by.is_empty() || self.by.iter().any(is_there)
    }
}

/// Where packets go.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Target {
    /// The API server.
    Kubernetes {},
    /// Services.
    Service {
        /// Of these namespaces.
        namespace: Pattern,
        /// With these names.
        name: Pattern,
    },
    /// The pods themselves, for the probes of their nodes.
    Probes {},
}

/// What a webhook answers once it is reached.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebhookRule {
    /// Webhooks of these names.
    pub webhook: Pattern,
    /// The answer.
    pub answer: WebhookAnswer,
}

/// An answer to an `AdmissionReview`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum WebhookAnswer {
    /// Yes.
    Allow {},
    /// No.
    Deny {
        /// And why.
        message: String,
    },
    /// Yes, with a JSON patch.
    Patch {
        /// The operations.
        operations: Value,
    },
    /// None before the time is up.
    Timeout {},
    /// None: the connection is refused.
    Refuse {},
    /// None, because its certificate is signed by nobody that the API server trusts.
    UnknownAuthority {},
}

impl Target {
    /// Whether a fault of this target is in the way to another.
    fn covers(&self, wanted: &Self) -> bool {
        match (self, wanted) {
            (Self::Kubernetes {}, Self::Kubernetes {}) | (Self::Probes {}, Self::Probes {}) => true,
            (Self::Service { namespace, name }, Self::Service { namespace: wanted, name: wanted_name }) => {
                namespace.matches(wanted.text()) && name.matches(wanted_name.text())
            }
            _ => false,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Kubernetes {} => "kubernetes".to_owned(),
            Self::Service { namespace, name } => format!("{}/{}", namespace.text(), name.text()),
            Self::Probes {} => "probes".to_owned(),
        }
    }
}

impl Behaviours {
    /// Why a pod does not get through to something.
    pub fn blocked(&self, pod: &Value, target: &Target, view: &View<'_>) -> Option<Cause> {
        let fault = self
            .network
            .iter()
            .find(|fault| fault.from.contains(pod) && fault.to.covers(target) && fault.is_in_force(view))?;
        let usual = match target {
            Target::Kubernetes {} => "dial tcp 10.96.0.1:443: i/o timeout".to_owned(),
            Target::Service { .. } => format!("dial tcp: lookup {}: i/o timeout", target.name()),
            Target::Probes {} => "context deadline exceeded".to_owned(),
        };
        Some(Cause::Unreachable { target: target.name(), text: fault.text.clone().unwrap_or(usual) })
    }

    /// What is the matter with a node, besides its network.
    pub fn node_state(&self, node: &str) -> Option<&NodeState> {
        let is_state = |rule: &&NodeRule| !matches!(rule.state, NodeState::NetworkBy(_));
        self.nodes.iter().filter(is_state).find(|rule| rule.node.matches(node)).map(|rule| &rule.state)
    }

    /// The pods that a node's network depends on.
    pub fn network_of(&self, node: &str) -> Option<&Pods> {
        self.nodes.iter().filter(|rule| rule.node.matches(node)).find_map(|rule| match &rule.state {
            NodeState::NetworkBy(pods) => Some(pods),
            _ => None,
        })
    }
}
