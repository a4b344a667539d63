//! Calls of Services and pods.

use tiphys_cause::{Address, Cause, FailedCall, Failure};
use tiphys_network::Direction;
use tiphys_value::{ObjectExt as _, Value, json};

use super::{
    caller::{Caller, guess, wrong_value},
    external::{outside_fault, reads_unseen},
};
use crate::{
    Object,
    address_target::{Target, is_near},
    cluster::{Cluster, items, pods, services},
    finding::Finding,
    policy::{End, Port, blocking, opening},
    search_context::Look,
};

pub(super) fn service_fault<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    call: &FailedCall,
    address: &Address,
    service: &'a Value,
) -> Finding {
    let object = Object::from_live(service);
    if service.str_at(&["spec", "type"]) == Some("ExternalName") {
        let outside = service.str_at(&["spec", "externalName"]).unwrap_or_default();
        return Finding::new(
            Cause::ExternalDown,
            object,
            0.6,
            format!("{address} leads outside, to {outside}, which does not answer"),
        )
        .evidence(service.name(), format!("spec.externalName: {outside}"))
        .remedy(
            format!("Check {outside} from outside of the cluster; this cannot be proved from here."),
            &[],
        );
    }
    let cluster = look.cluster;
    let pods = cluster.pods_of(service);
    if let Some(finding) = led_by_hand(look, caller, call, service) {
        return finding;
    }
    if pods.is_empty() {
        return empty_service(cluster, service).unwrap_or_else(|| guess(caller, call, address).below(object));
    }
    let ready: Vec<&Value> = pods.iter().copied().filter(|pod| pods::is_ready(pod)).collect();
    if ready.is_empty() || look.is_ill_behind(service) && ready.len() * 2 < pods.len() {
        return guess(caller, call, address).below(object);
    }
    let mesh = crate::causes::mesh::call_fault(look, caller, call, service, &ready);
    let checks = [
        port_fault(cluster, caller, address, service, &ready),
        mesh,
        blocked(look, caller, call, address, service, &ready),
        crate::causes::service::local_only(look, caller, call, service),
        state_fault(caller, call, address, &object),
        expired(look, caller, call, service),
        super::trust::untrusted(look, caller, call, service),
        own_state(look, call, &ready),
    ];
    checks.into_iter().flatten().next().unwrap_or_else(|| {
        let nodes = caller.pods.iter().chain(&ready).filter_map(|pod| pod.str_at(&["spec", "nodeName"]));
        let routes = crate::causes::mesh_routes::routes_of_service(cluster, service);
        let plain = routes.into_iter().fold(guess(caller, call, address).below(object), Finding::below);
        nodes.fold(plain, |finding, node| finding.below(Object::new("Node", "", node)))
    })
}

/// What a Service without a selector leads to by endpoints that somebody wrote, if that does not answer.
fn led_by_hand<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    call: &FailedCall,
    service: &'a Value,
) -> Option<Finding> {
    let has_selector = services::selector(service).is_some_and(|labels| !labels.is_empty());
    if has_selector || !matches!(call.failure, Failure::Timeout | Failure::Unreachable | Failure::Refused) {
        return None;
    }
    let object = Object::from_live(service);
    let slices = look.cluster.endpoint_slices(service.namespace(), service.name()).iter();
    let ips = slices.flat_map(|slice| items(slice, &["endpoints"])).flat_map(|it| items(it, &["addresses"]));
    let ip = ips.filter_map(Value::as_str).next();
    let old = look.cluster.get("Endpoints", service.namespace(), service.name());
    let old = old.into_iter().flat_map(|it| items(it, &["subsets"]));
    let old = old.flat_map(|it| items(it, &["addresses"])).filter_map(|it| it.str_at(&["ip"])).next();
    let ip = ip.or(old)?;
    let ports = || items(service, &["spec", "ports"]);
    let port = ports().find_map(|it| it.int_at(&["targetPort"]).or(it.int_at(&["port"])));
    let port = port.and_then(|port| u16::try_from(port).ok());
    let end = Address { scheme: String::new(), host: ip.to_owned(), port };
    match look.cluster.target(&end, service.namespace()) {
        Target::Pod(pod) => return Some(pod_fault(look, caller, call, &end, pod).below(object)),
        Target::Outside | Target::Unknown => {}
        _ => return None,
    }
    let outside = outside_fault(look, caller, call, &end).filter(|it| it.cause == Cause::NetPolicyEgress);
    Some(outside.unwrap_or_else(|| {
        Finding::new(
            Cause::ExternalDown,
            object.clone(),
            0.6,
            format!("{object} leads to {end} by endpoints that somebody wrote, and that does not answer"),
        )
        .evidence(object.to_string(), format!("it has no selector, and the endpoint {ip}"))
        .remedy(format!("Correct the endpoints, or ask who runs {ip}; that cannot be seen from here."), &[])
    }))
}

/// A Service that selects no pod: its workload is scaled to zero, or its selector is wrong.
pub(crate) fn empty_service(cluster: &Cluster<'_>, service: &Value) -> Option<Finding> {
    let object = Object::from_live(service);
    let wanted = services::selector(service)?;
    if !cluster.pods_of(service).is_empty() {
        return None;
    }
    let without_role = cluster.pods_without_role(service);
    if without_role.iter().any(|pod| !pods::is_ready(pod)) {
        return None;
    }
    let workloads = cluster.workloads_of(service);
    if let Some(workload) = workloads.first() {
        if pods::replicas(workload) != 0 || workload.kind() == "DaemonSet" {
            return None;
        }
        let owner = Object::from_live(workload);
        let command = format!(
            "kubectl -n {} scale {} {} --replicas=1",
            owner.namespace,
            owner.kind.to_lowercase(),
            owner.name
        );
        return Some(
            Finding::new(
                Cause::RunScaledZero,
                owner.clone(),
                0.9,
                format!("{owner} is scaled to zero, and {object} has no other pods"),
            )
            .field("spec.replicas")
            .evidence(owner.to_string(), "spec.replicas: 0")
            .remedy("Scale it up.", &[command])
            .patch(json!({"spec": {"replicas": 1}}))
            .suffers(object, "has no endpoints"),
        );
    }
    // What an operator has not made yet bears no labels.
    if services::awaited(cluster, service).is_some() {
        return None;
    }
    let near = near_labels(cluster, service, wanted).filter(|near| !near.1.is_empty())?;
    let selector = json!(wanted).to_string();
    // Where no workload was saved, the one that is meant may have no pods.
    let knows_workloads = !cluster.all("Deployment").is_empty() || !cluster.all("StatefulSet").is_empty();
    let shares_pair = cluster
        .live(&near.0)
        .and_then(crate::cluster::selector::labels)
        .is_some_and(|labels| wanted.iter().any(|(key, value)| labels.get(key) == Some(value)));
    let finding = Finding::new(
        Cause::ServiceSelector,
        object.clone(),
        0.93,
        format!("{object} selects no pod: {}", near.1),
    )
    .field("spec.selector")
    .evidence(object.to_string(), format!("spec.selector: {selector}"))
    .evidence(near.0.to_string(), format!("labels: {}", near.2))
    .remedy(
        format!("Make the selector match the labels of {}.", near.0),
        &[format!("kubectl -n {} get pods --show-labels", object.namespace)],
    );
    Some(if knows_workloads || shares_pair { finding } else { finding.not_known() })
}

/// The workload whose labels nearly fit a selector: its names, what differs, its labels.
fn near_labels(
    cluster: &Cluster<'_>,
    service: &Value,
    wanted: &tiphys_value::Map<String, Value>,
) -> Option<(Object, String, String)> {
    let kinds = ["Deployment", "StatefulSet", "DaemonSet", "Rollout", "ReplicaSet", "Pod"];
    let all = kinds
        .iter()
        .flat_map(|kind| cluster.all(kind).iter())
        .filter(|live| live.namespace() == service.namespace());
    let mut best: Option<(usize, Object, String, String)> = None;
    for live in all {
        let labels = if matches!(live.kind(), "Pod") {
            crate::cluster::selector::labels(live)
        } else {
            live.at(&["spec", "template", "metadata", "labels"]).and_then(Value::as_object)
        };
        let Some(labels) = labels else { continue };
        // What a workload that was saved makes is told by the workload.
        let top = cluster.workload(live);
        if top != Object::from_live(live) && cluster.live(&top).is_some() {
            continue;
        }
        let matching = wanted.iter().filter(|(key, value)| labels.get(*key) == Some(value)).count();
        let similar = wanted.iter().filter(|(key, value)| {
            let (value, label) = (
                value.as_str().unwrap_or_default(),
                labels.get(*key).and_then(Value::as_str).unwrap_or_default(),
            );
            !label.is_empty() && is_near(value, label)
        });
        let values = labels
            .values()
            .filter_map(Value::as_str)
            .any(|label| wanted.values().any(|value| value.as_str() == Some(label)));
        let is_named = live.name() == service.name() || is_near(live.name(), service.name());
        let rank = matching * 4 + similar.count() * 2 + usize::from(is_named) * 3 + usize::from(values);
        if rank == 0 || best.as_ref().is_some_and(|(known, ..)| *known >= rank) {
            continue;
        }
        let differs: Vec<String> = wanted
            .iter()
            .filter(|(key, value)| labels.get(*key) != Some(value))
            .map(|(key, value)| {
                format!(
                    "it asks for {key}={}, the pods have {}",
                    value.as_str().unwrap_or_default(),
                    labels.get(key).and_then(Value::as_str).unwrap_or("no such label")
                )
            })
            .collect();
        let labels: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        best = Some((rank, Object::from_live(live), differs.join("; "), labels.join(",")));
    }
    best.map(|(_, object, differs, labels)| (object, differs, labels))
}

/// A Service's port that leads nowhere.
pub(super) fn port_fault(
    cluster: &Cluster<'_>,
    caller: &Caller<'_>,
    address: &Address,
    service: &Value,
    ready: &[&Value],
) -> Option<Finding> {
    let object = Object::from_live(service);
    let number = address.port;
    let is_headless = service.str_at(&["spec", "clusterIP"]) == Some("None");
    if let Some(number) = number.filter(|_| !is_headless)
        && services::port(service, number).is_none()
    {
        let served: Vec<String> = items(service, &["spec", "ports"])
            .filter_map(|port| port.int_at(&["port"]))
            .map(|port| port.to_string())
            .collect();
        if served.is_empty() {
            return None;
        }
        let summary =
            format!("the address {address} names port {number}, and {object} serves {}", served.join(", "));
        let finding = wrong_value(caller, address, summary, 0.9)
            .evidence(object.to_string(), format!("spec.ports: {}", served.join(", ")));
        // Where the value is written is told by a ConfigMap that was not saved.
        return Some(if reads_unseen(cluster, caller) { finding.not_known() } else { finding });
    }
    let port = match number {
        Some(number) => services::port(service, number)?,
        None => items(service, &["spec", "ports"]).next()?,
    };
    crate::causes::service::wrong_target(service, port, ready)
}

/// The policies that keep the caller from the Service's pods.
pub(super) fn blocked<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    call: &FailedCall,
    address: &Address,
    service: &'a Value,
    ready: &[&'a Value],
) -> Option<Finding> {
    if !matches!(
        call.failure,
        Failure::Timeout | Failure::Unreachable | Failure::Status(504 | 503) | Failure::LookupTimeout
    ) {
        return None;
    }
    let port = address
        .port
        .and_then(|number| services::port(service, number))
        .or_else(|| items(service, &["spec", "ports"]).next())?;
    let protocol = if port.str_at(&["protocol"]) == Some("UDP") { "UDP" } else { "TCP" };
    let pod = ready.first()?;
    let number = u16::try_from(services::target_port(port, pod.get("spec")?)?).ok()?;
    blocked_way(look, caller, &End::of_pod(pod), &Object::from_live(service), Port { number, protocol })
}

/// The policy that keeps a caller from something, on either side.
fn blocked_way<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    to: &End<'_>,
    target: &Object,
    port: Port,
) -> Option<Finding> {
    let from = caller.end();
    for (way, cause) in
        [(Direction::Ingress, Cause::NetPolicyIngress), (Direction::Egress, Cause::NetPolicyEgress)]
    {
        let policies = blocking(look.cluster, way, &from, to, port);
        let Some(policy) = policies.first() else { continue };
        let object = Object::from_live(policy);
        let side = if way == Direction::Ingress { "in" } else { "out" };
        let summary = format!(
            "{object} does not let {} {side} to {target} on {}/{}",
            caller.workload, port.protocol, port.number
        );
        let finding =
            Finding::new(cause, object.clone(), 0.92, summary).since(crate::policy::newest_change(policy));
        let rules = if way == Direction::Ingress { "ingress" } else { "egress" };
        let peer = if way == Direction::Ingress { &from } else { to };
        return Some(
            finding
                .field(format!("spec.{rules}"))
                .evidence(
                    object.to_string(),
                    policy
                        .at(&["spec", rules])
                        .map_or_else(|| format!("no rule of {rules}"), ToString::to_string),
                )
                .remedy(
                    format!(
                        "Add a rule to {rules} that allows {} to {target} on port {}.",
                        caller.workload, port.number
                    ),
                    &[],
                )
                .change(opening(policy, way, peer, &[port])),
        );
    }
    None
}

/// What the other side says of its own state or of the caller.
fn state_fault(
    caller: &Caller<'_>,
    call: &FailedCall,
    address: &Address,
    service: &Object,
) -> Option<Finding> {
    match call.failure {
        Failure::Status(401) => Some(
            Finding::new(
                Cause::ConfigCredentials,
                caller.workload.clone(),
                0.6,
                format!("{service} answers {} with 401", caller.workload),
            )
            .remedy("Compare the credentials of both sides.", &[]),
        ),
        Failure::Plaintext => Some(wrong_value(
            caller,
            address,
            format!("{address} is called with another scheme than {service} speaks"),
            0.8,
        )),
        Failure::Status(404) => Some(wrong_value(
            caller,
            address,
            format!("{service} does not know the path that {} asks for", caller.workload),
            0.45,
        )),
        _ => None,
    }
}

/// What ready pods that do not answer as they should say of their own state at the end of their logs.
fn own_state(look: &Look<'_>, call: &FailedCall, ready: &[&Value]) -> Option<Finding> {
    const LINES: usize = 40;
    /// What every start and every end says, and is over soon.
    const PASSING: &[&str] = &["starting up", "shutting down", "recovery mode"];
    if !matches!(call.failure, Failure::Timeout | Failure::Reset | Failure::Status(500..=599)) {
        return None;
    }
    ready.iter().find_map(|pod| {
        let logs = look.cluster.logs(pod.namespace(), pod.name());
        let told = logs.iter().filter(|log| !log.previous).find_map(|log| {
            let mut found = log.last_lines().take(LINES).flat_map(tiphys_cause::complaints);
            let state = found.find(|it| {
                let low = it.line.to_ascii_lowercase();
                it.cause == Cause::AppBackendState && !PASSING.iter().any(|word| low.contains(word))
            })?;
            Some((log.source(), state.line))
        });
        let (source, line) = told?;
        let workload = look.cluster.workload(pod);
        let summary = format!("{workload} is in a state in which it does not serve, as its log says");
        Some(
            Finding::new(Cause::AppBackendState, workload, 0.75, summary).evidence(source, line).remedy(
                "Bring it back: free its connections or memory, unseal it, or give it a leader.",
                &[],
            ),
        )
    })
}

/// An expired certificate of what is called.
fn expired<'a>(look: &Look<'a>, caller: &Caller<'a>, call: &FailedCall, service: &Value) -> Option<Finding> {
    if !matches!(call.failure, Failure::Expired | Failure::NotYetValid) {
        return None;
    }
    let finding = crate::causes::control_plane::certificate_of_service(look, service)?;
    let clocks = crate::causes::control_plane::ahead_of_time(look, &caller.pods, &call.line);
    Some(clocks.into_iter().fold(finding, Finding::below))
}

pub(super) fn pod_fault<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    call: &FailedCall,
    address: &Address,
    pod: &'a Value,
) -> Finding {
    let object = Object::from_live(pod);
    if look.is_red(&object) {
        return guess(caller, call, address).below(object);
    }
    let port = Port { number: address.port.unwrap_or(0), protocol: "TCP" };
    let is_silent = matches!(call.failure, Failure::Timeout | Failure::Unreachable);
    let blocked = is_silent.then(|| blocked_way(look, caller, &End::of_pod(pod), &object, port)).flatten();
    blocked.unwrap_or_else(|| {
        let nodes = caller.pods.iter().chain([&pod]).filter_map(|pod| pod.str_at(&["spec", "nodeName"]));
        nodes.fold(guess(caller, call, address).below(object), |finding, node| {
            finding.below(Object::new("Node", "", node))
        })
    })
}
