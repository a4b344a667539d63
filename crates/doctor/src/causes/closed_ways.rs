//! Policies that keep the API server from what it calls, and the tunnel through which it calls: webhooks and
//! aggregated APIs.

use tiphys_cause::Cause;
use tiphys_network::Direction;
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    cluster::services,
    finding::Finding,
    policy::{End, Port, api_server, blocking},
    search_context::Look,
};

/// Words by which the API server says that its tunnel ends nowhere on the nodes.
const NO_AGENT: &[&str] = &["no agent available", "no agent is available"];
/// The workloads at the ends of such tunnels.
const AGENTS: &[&str] = &["konnectivity-agent", "tunnelfront", "aks-link", "proxy-agent"];

/// The workloads that hold the tunnel from the control plane, if words say that it ends nowhere.
pub(super) fn tunnel_agents(look: &Look<'_>, words: &str) -> Vec<Object> {
    let low = words.to_ascii_lowercase();
    if !NO_AGENT.iter().any(|it| low.contains(it)) {
        return Vec::new();
    }
    let is_agent = |name: &str| AGENTS.contains(&name);
    look.cluster.running(|workload| is_agent(&workload.name))
}

/// The port that a pod is called on, behind a port of its Service.
pub(super) fn port_of_pod(pod: &Value, port: Option<&Value>) -> u16 {
    port.and_then(|port| services::target_port(port, pod.get("spec")?))
        .and_then(|port| u16::try_from(port).ok())
        .unwrap_or(443)
}

/// The policy that keeps the API server from a pod which serves a webhook or an aggregated API.
pub(super) fn closed_to_api_server(
    look: &Look<'_>,
    pod: &Value,
    number: u16,
    object: &Object,
) -> Option<Finding> {
    let (server, _) = api_server(look.cluster);
    let port = Port { number, protocol: "TCP" };
    let policies = blocking(look.cluster, Direction::Ingress, &server, &End::of_pod(pod), port);
    let policy = policies.first()?;
    let named = Object::from_live(policy);
    let summary = format!("{named} does not let the API server in to {object} on port {number}");
    let rules = policy.at(&["spec", "ingress"]);
    Some(
        Finding::new(Cause::NetPolicyWebhook, named.clone(), 0.93, summary)
            .field("spec.ingress")
            .since(crate::policy::newest_change(policy))
            .evidence(named.to_string(), rules.map_or("no rule of ingress".to_owned(), ToString::to_string))
            .remedy(format!("Allow port {number} from the addresses of the control plane."), &[])
            .suffers(object.clone(), "does not answer"),
    )
}
