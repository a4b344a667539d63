//! Calls of the API server, of what does not exist, and of what is outside of the cluster.

use std::net::IpAddr;

use tiphys_cause::{Address, Cause, FailedCall, Failure};
use tiphys_network::Direction;
use tiphys_value::{ObjectExt as _, Value};

use super::caller::{Caller, guess, wrong_value};
use crate::{
    Object,
    address_target::{is_metadata, is_near},
    cluster::{Cluster, items, pods},
    finding::Finding,
    pod_addresses::wires,
    policy::{End, Port, api_server, blocking, closed_to_name, opening},
    search_context::Look,
};

pub(super) fn api_server_fault<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    call: &FailedCall,
) -> Option<Finding> {
    if matches!(call.failure, Failure::Timeout | Failure::Unreachable) {
        let (end, number) = api_server(look.cluster);
        let policies =
            blocking(look.cluster, Direction::Egress, &caller.end(), &end, Port { number, protocol: "TCP" });
        if let Some(policy) = policies.first() {
            let object = Object::from_live(policy);
            let summary = format!(
                "{object} does not let {} out to the API server: after service translation the destination is a node on port {number}",
                caller.workload
            );
            return Some(
                Finding::new(Cause::NetPolicyApiServer, object.clone(), 0.95, summary)
                    .since(crate::policy::newest_change(policy))
                    .field("spec.egress")
                    .evidence(object.to_string(), policy.at(&["spec", "egress"]).map_or("no rule of egress".to_owned(), ToString::to_string))
                    .remedy(format!("Allow port {number} to the addresses of the API server (`kubectl get endpoints kubernetes`); the Service's own address is not what the policy sees."), &["kubectl -n default get endpoints kubernetes".to_owned()])
                    .change(opening(policy, Direction::Egress, &end, &[Port { number, protocol: "TCP" }])),
            );
        }
    }
    match call.failure {
        Failure::Status(429) => crate::causes::api::overload(look, caller, &call.line),
        Failure::Timeout | Failure::Unreachable | Failure::Refused | Failure::Reset => {
            let address = Address { scheme: String::new(), host: "the API server".to_owned(), port: None };
            let nodes = caller.pods.iter().filter_map(|pod| pod.str_at(&["spec", "nodeName"]));
            let plain = guess(caller, call, &address).below(Object::new("Service", "default", "kubernetes"));
            Some(nodes.fold(plain, |finding, node| finding.below(Object::new("Node", "", node))))
        }
        Failure::Expired => Some(
            Finding::new(
                Cause::ControlCertificateExpired,
                caller.workload.clone(),
                0.6,
                "the certificate of the API server, or one that it is shown, has expired",
            )
            .remedy(
                "Renew the certificates of the control plane.",
                &["kubeadm certs check-expiration".to_owned()],
            ),
        ),
        Failure::NotYetValid => {
            let node = caller.pods.iter().find_map(|pod| pod.str_at(&["spec", "nodeName"]));
            let object = node.map_or_else(|| caller.workload.clone(), |node| Object::new("Node", "", node));
            let summary = "a certificate is not valid yet: a clock is wrong";
            Some(
                Finding::new(Cause::ControlClock, object, 0.6, summary)
                    .remedy("Compare the clocks of the nodes.", &["chronyc tracking".to_owned()]),
            )
        }
        _ => None,
    }
}

pub(super) fn absent_fault<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    call: &FailedCall,
    address: &Address,
    namespace: &str,
    name: &str,
) -> Option<Finding> {
    let cluster = look.cluster;
    if let Some(stale) = crate::causes::config::stale_address(look, caller, address) {
        return Some(stale);
    }
    if !cluster.knows_services() {
        return Some(guess(caller, call, address).below(Object::new("Service", namespace, name)));
    }
    let dns = crate::causes::dns::lookup_fault(look, caller, call);
    if let Some(dns) = dns.filter(|dns| dns.is_asserted() && call.failure == Failure::LookupTimeout) {
        return Some(dns);
    }
    let all = cluster.all("Service").iter();
    let near: Vec<&&Value> = all
        .filter(|it| it.namespace() == namespace && is_near(it.name(), name) || it.name() == name)
        .collect();
    let workload = ["Deployment", "StatefulSet"].iter().find_map(|kind| cluster.get(kind, namespace, name));
    let object = Object::new("Service", namespace, name);
    let mut finding = Finding::new(
        Cause::ServiceMissing,
        object.clone(),
        0.85,
        format!("no Service {namespace}/{name} exists, and {} calls {address}", caller.workload),
    );
    let wires = wires(&caller.settings);
    if let Some((_, setting)) = wires.iter().find(|(wire, _)| wire.host == address.host) {
        let source = if setting.source.kind.is_empty() { &caller.workload } else { &setting.source };
        finding = finding.evidence(source.to_string(), format!("{}={}", setting.key, setting.value));
    }
    for service in near.iter().take(3) {
        finding = finding.evidence("near names", Object::from_live(service).to_string());
    }
    if let Some(workload) = workload {
        finding = finding.evidence("what it would select", Object::from_live(workload).to_string());
    }
    let makers = makers(cluster, namespace, name);
    let is_operator_unseen = !makers.is_empty() && !cluster.has_kind("Deployment");
    // An operator may make it, and nothing looks like it.
    let is_maker_unseen = cluster.misses_resources() && near.is_empty() && workload.is_none();
    let is_namespace_unseen =
        !cluster.has_kind("Namespace") && !cluster.case.objects.iter().any(|it| it.namespace() == namespace);
    // Who should make it has not: why is the cause, whether it is known or not.
    let is_awaited = makers.iter().any(|maker| {
        look.is_red(maker) || cluster.live(maker).is_some_and(crate::causes::operator::has_no_status)
    });
    if is_awaited
        || is_operator_unseen
        || is_maker_unseen
        || is_namespace_unseen
        || reads_unseen(cluster, caller)
    {
        finding = finding.not_known();
    }
    for maker in makers.into_iter().chain(crate::dependencies::upstream(cluster, &object)) {
        finding = finding.below(maker);
    }
    let remedy = match near.first() {
        Some(service) => {
            format!("Correct the address to {}.{}, or make the Service.", service.name(), service.namespace())
        }
        None => format!("Make the Service {namespace}/{name}, or correct the address."),
    };
    Some(finding.remedy(remedy, &[format!("kubectl -n {namespace} get services")]))
}

/// Whether a caller reads its addresses from ConfigMaps, and none was saved.
pub(super) fn reads_unseen(cluster: &Cluster<'_>, caller: &Caller<'_>) -> bool {
    let mut names = Vec::new();
    if let Some(spec) = caller.pods.first().and_then(|pod| pod.get("spec")) {
        crate::dependencies::configuration(spec, caller.namespace(), &mut names);
    }
    !cluster.has_kind("ConfigMap") && names.iter().any(|it| it.kind == "ConfigMap" && it.name != ROOT_CA)
}

/// The ConfigMap that every pod has.
const ROOT_CA: &str = "kube-root-ca.crt";

/// The custom resources after which operators name such a Service: `cache` makes `cache` or `cache-leader`.
fn makers(cluster: &Cluster<'_>, namespace: &str, service: &str) -> Vec<Object> {
    let is_named_after = |live: &&Value| {
        live.namespace() == namespace
            && live.gvk().group.contains('.')
            && !live.gvk().group.ends_with("k8s.io")
            && service.strip_prefix(live.name()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    cluster.case.objects.iter().filter(is_named_after).map(Object::from_live).collect()
}

/// The Ingresses and routes of the cluster that serve a host.
pub(crate) fn routes_of(cluster: &Cluster<'_>, host: &str) -> Vec<Object> {
    const KINDS: &[&str] = &[
        "Ingress",
        "HTTPRoute",
        "GRPCRoute",
        "TLSRoute",
        "VirtualService",
        "Route",
        "Gateway.networking.istio.io",
    ];
    let serves = |live: &Value| {
        let rules = items(live, &["spec", "rules"]).filter_map(|rule| rule.str_at(&["host"]));
        let names = ["hostnames", "hosts"].into_iter().flat_map(|key| items(live, &["spec", key]));
        let servers = items(live, &["spec", "servers"]).flat_map(|server| items(server, &["hosts"]));
        let names = names.chain(servers);
        let single = live.str_at(&["spec", "host"]);
        rules
            .chain(names.filter_map(Value::as_str))
            .chain(single)
            .any(|known| known.eq_ignore_ascii_case(host))
    };
    let all = KINDS.iter().flat_map(|kind| cluster.all(kind).iter());
    all.filter(|live| serves(live)).map(|live| Object::from_live(live)).collect()
}

/// The workloads that write DNS records from objects of the cluster, if a name is of their zone. Without a
/// filter they write those of every zone that they find: the names that the cluster serves, and no others.
pub(crate) fn record_makers(cluster: &Cluster<'_>, host: &str) -> Vec<Object> {
    const FILTER: &str = "--domain-filter=";
    let is_served = !routes_of(cluster, host).is_empty();
    let writes = |live: &&&Value| {
        let containers = pods::spec(live).into_iter().flat_map(|spec| items(spec, &["containers"]));
        let arguments = containers.flat_map(|it| items(it, &["args"])).filter_map(Value::as_str);
        let mut zones = arguments.filter_map(|it| it.strip_prefix(FILTER)).peekable();
        let is_of_any = zones.peek().is_none() && is_served;
        live.name().contains("external-dns") && (is_of_any || zones.any(|zone| host.ends_with(zone)))
    };
    cluster.all("Deployment").iter().filter(writes).map(|live| Object::from_live(live)).collect()
}

pub(super) fn outside_fault<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    call: &FailedCall,
    address: &Address,
) -> Option<Finding> {
    if let Some(stale) = crate::causes::config::stale_address(look, caller, address) {
        return Some(stale);
    }
    let is_silent = matches!(call.failure, Failure::Timeout | Failure::Unreachable);
    if is_silent {
        let ip = address.host.parse::<IpAddr>().ok().into_iter().collect();
        let port = Port { number: address.port.unwrap_or(443), protocol: "TCP" };
        let policies = blocking(look.cluster, Direction::Egress, &caller.end(), &End::outside(ip), port);
        if let Some(policy) = policies.first() {
            let object = Object::from_live(policy);
            return Some(
                Finding::new(
                    Cause::NetPolicyEgress,
                    object.clone(),
                    0.9,
                    format!("{object} does not let {} out to {address}", caller.workload),
                )
                .since(crate::policy::newest_change(policy))
                .field("spec.egress")
                .evidence(
                    object.to_string(),
                    policy
                        .at(&["spec", "egress"])
                        .map_or("no rule of egress".to_owned(), ToString::to_string),
                )
                .remedy(format!("Add a rule to egress that allows {address}."), &[]),
            );
        }
    }
    let is_name = !address.is_ip();
    if let Some(policy) =
        closed_to_name(look.cluster, &caller.end(), &address.host).filter(|_| is_silent && is_name)
    {
        let object = Object::from_live(policy);
        let summary = format!("{object} lets {} out to other names, and not to {address}", caller.workload);
        return Some(
            Finding::new(Cause::NetPolicyEgress, object.clone(), 0.9, summary)
                .since(crate::policy::newest_change(policy))
                .field("spec.egress.toFQDNs")
                .evidence(
                    object.to_string(),
                    policy.at(&["spec", "egress"]).map(ToString::to_string).unwrap_or_default(),
                )
                .remedy(format!("Add {} to toFQDNs.", address.host), &[]),
        );
    }
    let mut routes = routes_of(look.cluster, &address.host);
    if call.failure == Failure::NoSuchHost {
        routes.extend(record_makers(look.cluster, &address.host));
    }
    if !routes.is_empty() {
        return Some(routes.into_iter().fold(guess(caller, call, address), Finding::below));
    }
    match call.failure {
        Failure::Status(status @ (401 | 403)) => Some(
            Finding::new(
                Cause::ConfigCredentials,
                caller.workload.clone(),
                0.6,
                format!("{address} answers {} with {status}", caller.workload),
            )
            .remedy("Renew the credentials that the program sends, or give them the right.", &[]),
        ),
        Failure::Status(404) if wires(&caller.settings).iter().any(|(wire, _)| wire.host == address.host) => {
            Some(wrong_value(
                caller,
                address,
                format!("{address} does not know the path that is asked for"),
                0.6,
            ))
        }
        // It answers: what it says is about the request.
        Failure::Status(400 | 402 | 404..=428 | 430..=499) | Failure::Untrusted => None,
        Failure::Plaintext => Some(wrong_value(
            caller,
            address,
            format!("{address} is called with another scheme than it speaks"),
            0.6,
        )),
        _ => {
            let nodes = caller.pods.iter().filter_map(|pod| pod.str_at(&["spec", "nodeName"]));
            let what = match call.failure {
                Failure::Expired => "shows an expired certificate",
                Failure::NoSuchHost => "has no address",
                Failure::Status(_) => "answers with an error",
                _ => "does not answer",
            };
            let remedy = if is_metadata(&address.host) {
                "Let pods reach the machine's metadata (hop limit of 2, no firewall), or give the program its identity and region otherwise.".to_owned()
            } else {
                format!("Ask who runs {}; this cannot be proved from here.", address.host)
            };
            let finding = Finding::new(
                Cause::ExternalDown,
                caller.workload.clone(),
                0.75,
                format!(
                    "{address}, outside of the cluster, {what}; nothing inside of the cluster explains it"
                ),
            )
            .remedy(remedy, &[]);
            // Who looks a name up asks the cluster's DNS first.
            let is_lookup = matches!(call.failure, Failure::NoSuchHost | Failure::LookupTimeout);
            let dns = crate::causes::dns::service(look).filter(|_| is_lookup);
            let finding = if reads_unseen(look.cluster, caller) { finding.not_known() } else { finding };
            let finding = dns.into_iter().fold(finding, |finding, dns| finding.below(Object::from_live(dns)));
            Some(nodes.fold(finding, |finding, node| finding.below(Object::new("Node", "", node))))
        }
    }
}
