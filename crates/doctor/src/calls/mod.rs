//! Why a call fails: the address is followed to what it names, and each thing on the way is evaluated.

mod caller;
mod external;
mod service;
mod silent;
mod trust;

use caller::guess;
use external::{absent_fault, api_server_fault, outside_fault};
pub(crate) use external::{record_makers, routes_of};
use service::{pod_fault, service_fault};
use tiphys_cause::{Address, Cause, FailedCall, Failure};
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    address_target::Target,
    cluster::{Cluster, items, pods},
    finding::Finding,
    pod_addresses::wires,
    search_context::Look,
};

pub(crate) use caller::Caller;
pub(crate) use service::empty_service;
pub(crate) use silent::unheard;

/// The addresses that a call may have been for, the likeliest first.
fn candidates(cluster: &Cluster<'_>, call: &FailedCall, caller: &Caller<'_>) -> Vec<Address> {
    let is_vague = |address: &Address| matches!(cluster.target(address, caller.namespace()), Target::Unknown);
    // An address whose Service has no such port was somebody else's when the line was written.
    let is_odd = |address: &Address| match cluster.target(address, caller.namespace()) {
        Target::Service(service) => {
            address.port.is_some_and(|port| crate::cluster::services::port(service, port).is_none())
        }
        _ => false,
    };
    // A name tells more than an address, and what is known more than what is not.
    let named = call.targets.iter().filter(|it| !it.is_ip());
    let known = call.targets.iter().filter(|it| it.is_ip() && !is_vague(it) && !is_odd(it));
    let mut found: Vec<Address> = named.chain(known).cloned().collect();
    if found.is_empty() {
        let wires = wires(&caller.settings);
        let ports: Vec<u16> = call.targets.iter().filter_map(|it| it.port).collect();
        let is_meant = |it: &&Address| ports.is_empty() || it.port.is_some_and(|port| ports.contains(&port));
        found.extend(call.context.iter().filter(|it| !it.is_ip()).filter(is_meant).cloned());
        found.extend(wires.iter().map(|(address, _)| address).filter(is_meant).cloned());
        let has_meant = !ports.is_empty() && !found.is_empty();
        found.extend(call.targets.iter().filter(|it| !(has_meant && it.is_ip() && is_odd(it))).cloned());
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|address| seen.insert(address.clone()));
    found
}

/// What explains the calls that fail by what a text about an object tells, whose source evidence names: the
/// caller works, and the object is who suffers.
pub(crate) fn explain_text<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    (source, text): (&str, &str),
    (sufferer, symptom): (&Object, &str),
) -> Vec<Finding> {
    let calls = tiphys_cause::failed_calls(text).into_iter().filter(|call| !call.targets.is_empty());
    let found = calls.filter_map(|call| explain(look, caller, &call, source));
    found.map(|it| Finding { suffers: Vec::new(), ..it }.suffers(sufferer.clone(), symptom)).collect()
}

/// Why a call fails; `None` if the call does not tell.
pub(crate) fn explain<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    call: &FailedCall,
    source: &str,
) -> Option<Finding> {
    let cluster = look.cluster;
    let candidates = candidates(cluster, call, caller);
    // A lookup without an answer fails for any name.
    if candidates.is_empty() && call.failure == Failure::LookupTimeout {
        let finding = crate::causes::dns::lookup_fault(look, caller, call)?;
        return Some(
            caller.suffers(finding.evidence(source, &call.line), "looks names up without an answer"),
        );
    }
    let mut best: Option<Finding> = None;
    for address in &candidates {
        let target = cluster.target(address, caller.namespace());
        let Some(finding) = explain_target(look, caller, call, address, &target) else { continue };
        // Where the line names no address, one of the configuration is a guess, unless it is the only one.
        let is_told = call.targets.contains(address) || call.context.contains(address);
        let finding = match finding.cause {
            Cause::ExternalDown | Cause::ConfigCredentials if !is_told => {
                let confidence = if candidates.len() == 1 { 0.6 } else { 0.45 };
                Finding { confidence, ..finding }
            }
            _ => finding,
        };
        let finding =
            caller.suffers(finding.evidence(source, &call.line), &format!("calls {address} in vain"));
        if best.as_ref().is_none_or(|known| finding.confidence > known.confidence) {
            best = Some(finding);
        }
    }
    best
}

fn explain_target<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    call: &FailedCall,
    address: &Address,
    target: &Target<'a>,
) -> Option<Finding> {
    let is_lookup = matches!(call.failure, Failure::NoSuchHost | Failure::LookupTimeout);
    let asks_dns =
        is_lookup && !matches!(target, Target::Absent { .. }) || call.failure == Failure::LookupTimeout;
    if asks_dns && let Some(finding) = crate::causes::dns::lookup_fault(look, caller, call) {
        return Some(finding);
    }
    match target {
        Target::Service(service) => Some(service_fault(look, caller, call, address, service)),
        // A name that does not exist cannot refuse: the words only look like an address.
        Target::Absent { .. } if !look.cluster.knows_services() => Some(guess(caller, call, address)),
        Target::Absent { .. } if !is_lookup && !is_configured(caller, address) => None,
        Target::Absent { namespace, name } => absent_fault(look, caller, call, address, namespace, name),
        Target::Pod(pod) => Some(pod_fault(look, caller, call, address, pod)),
        Target::ApiServer => api_server_fault(look, caller, call),
        Target::Node(_) if call.failure == Failure::Untrusted && address.port == Some(KUBELET) => {
            Some(self_signed_kubelets(caller))
        }
        Target::Node(node) => Some(guess(caller, call, address).below(Object::from_live(node))),
        Target::Own => {
            on_same_host(look, caller, address).map(|neighbour| guess(caller, call, address).below(neighbour))
        }
        Target::Outside => outside_fault(look, caller, call, address),
        Target::Unknown => Some(guess(caller, call, address)),
    }
}

/// The port of kubelets.
const KUBELET: u16 = 10250;

/// A caller of kubelets that does not trust the certificates which they made for themselves.
fn self_signed_kubelets(caller: &Caller<'_>) -> Finding {
    let workload = &caller.workload;
    let summary = format!("{workload} does not trust the certificates that the kubelets show");
    Finding::new(Cause::NodeCsr, workload.clone(), 0.85, summary).remedy(
        "Let the kubelets request certificates (serverTLSBootstrap) and approve the requests, or tell the program to accept theirs (--kubelet-insecure-tls of metrics-server).",
        &["kubectl get csr".to_owned()],
    )
}

/// Ports on which components of the control plane listen, whose pods do not declare them.
const PORTS_OF_COMPONENTS: &[(u16, &str)] = &[(2379, "etcd"), (6443, "kube-apiserver")];

/// The pod that has the network of the caller's node, as the caller does, and listens on a port there.
fn on_same_host(look: &Look<'_>, caller: &Caller<'_>, address: &Address) -> Option<Object> {
    let has_host = |pod: &Value| pod.at(&["spec", "hostNetwork"]).and_then(Value::as_bool) == Some(true);
    let own = caller.pods.iter().find(|pod| has_host(pod))?;
    let node = own.str_at(&["spec", "nodeName"])?;
    let number = address.port?;
    let listens = |pod: &Value| {
        let declared = pods::spec(pod).into_iter().flat_map(pods::containers);
        let mut declared = declared.flat_map(|container| items(container, &["ports"]));
        let component = pod.label("component");
        declared.any(|port| port.int_at(&["containerPort"]) == Some(i64::from(number)))
            || PORTS_OF_COMPONENTS.iter().any(|(port, name)| *port == number && component == Some(*name))
    };
    let pods = look.cluster.all("Pod").iter().filter(|pod| {
        pod.str_at(&["spec", "nodeName"]) == Some(node) && has_host(pod) && pod.name() != own.name()
    });
    pods.copied().find(|pod| listens(pod)).map(Object::from_live)
}

/// Whether the caller's configuration names a host.
fn is_configured(caller: &Caller<'_>, address: &Address) -> bool {
    wires(&caller.settings).iter().any(|(wire, _)| wire.host == address.host)
}
