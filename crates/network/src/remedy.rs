//! The rule that lets a needed packet pass, tried before it is proposed.

use serde_json::{Value, json};

use crate::{
    evaluate::Verdict,
    flow::{Destination, Direction, Flow},
    kubernetes,
    network::Network,
    port::Protocol,
};

/// A rule that was seen to help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The policy that it is added to: a position in [`Network::policies`].
    pub policy: usize,
    /// The rule as YAML, an item for the list of its direction.
    pub yaml: String,
}

impl Network {
    /// The rule that lets a flow pass, if adding it to one of the policies does so under every CNI. Only
    /// NetworkPolicies of Kubernetes itself are added to.
    pub fn remedy(&self, flow: &Flow) -> Option<Remedy> {
        let by = self.judge(flow).by;
        let policy = by.into_iter().find(|at| self.policies[*at].is_of_kubernetes())?;
        let rule = self.rule(flow);
        let mended = self.with(policy, flow.direction, &rule);
        if mended.judge(flow).verdict != Verdict::Allow {
            return None;
        }
        Some(Remedy { policy, yaml: tiphys_yaml::to_yaml(&json!([rule])) })
    }

    /// The network with one more rule in a policy.
    pub fn with(&self, policy: usize, direction: Direction, rule: &Value) -> Self {
        let mut mended = self.clone();
        let peers = if direction == Direction::Ingress { "from" } else { "to" };
        let rules = mended.policies[policy].rules_mut(direction);
        rules.get_or_insert_default().push(kubernetes::rule(rule, peers));
        mended
    }

    fn rule(&self, flow: &Flow) -> Value {
        let port =
            |(protocol, number): &(Protocol, u16)| json!({"protocol": protocol.name(), "port": number});
        let mut ports: Vec<Value> = flow.ports.iter().map(port).collect();
        let to = match flow.other {
            Destination::ApiServer if flow.direction == Direction::Egress => {
                // Some CNIs judge before the Service is translated.
                let needs_front = self.cnis.iter().any(|cni| !cni.judges_translated());
                let front = port(&(Protocol::Tcp, 443));
                if needs_front && !ports.contains(&front) {
                    ports.push(front);
                }
                None
            }
            Destination::Dns => {
                ports.push(port(&(Protocol::Tcp, 53)));
                Some(json!({
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
                    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
                }))
            }
            Destination::World if flow.direction == Direction::Ingress => None,
            Destination::World => Some(json!({"ipBlock": {"cidr": "0.0.0.0/0"}})),
            Destination::Metadata => Some(json!({"ipBlock": {"cidr": "169.254.169.254/32"}})),
            Destination::Pod(at) => {
                let pod = &self.pods[at];
                let mut peer = json!({"podSelector": {"matchLabels": stable(pod.labels.iter())}});
                // Where nothing names the namespace, both are in the one that they are applied to.
                if !pod.namespace.is_empty() {
                    peer["namespaceSelector"] =
                        json!({"matchLabels": {"kubernetes.io/metadata.name": pod.namespace}});
                }
                Some(peer)
            }
            Destination::ApiServer | Destination::Node | Destination::Host => None,
        };
        let side = if flow.direction == Direction::Ingress { "from" } else { "to" };
        match to {
            Some(to) => json!({side: [to], "ports": ports}),
            None => json!({"ports": ports}),
        }
    }
}

/// Labels that tell a workload and do not change with its version.
fn stable<'a>(labels: impl Iterator<Item = (&'a String, &'a String)>) -> Value {
    let changing =
        ["helm.sh/chart", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "chart", "heritage"];
    let kept = labels.filter(|(key, _)| !changing.contains(&key.as_str()));
    kept.map(|(key, value)| (key.clone(), Value::from(value.as_str())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
