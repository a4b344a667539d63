//! Services that lead nowhere although nothing about them is red. Asserted if somebody suffers or if it is
//! certain.

use tiphys_cause::{Cause, FailedCall, Failure};
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    calls::{Caller, empty_service},
    cluster::{items, pods, services, time},
    finding::Finding,
    search_context::Look,
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for service in look.cluster.all("Service") {
        found.extend(silent(look, service));
        found.extend(load_balancer(look, service));
        found.extend(identity(look, service));
    }
    let is_denied = |finding: &&Finding| finding.cause == Cause::OperatorCloudCredentials;
    if let Some(first) = found.iter().find(is_denied).cloned() {
        let waiting: Vec<Object> = found.iter().filter(is_denied).map(|it| it.object.clone()).collect();
        found.extend(denied_maker(look, &first, &waiting));
    }
    found
}

/// The one who makes load balancers, if the cloud does not let it: several wait for it, or its log says so.
fn denied_maker(look: &Look<'_>, first: &Finding, waiting: &[Object]) -> Option<Finding> {
    let makers = load_balancer_makers(look);
    let says = |maker: &Object| {
        pods::of_workload(look.cluster, maker).into_iter().find_map(|pod| {
            look.cluster.logs(pod.namespace(), pod.name()).into_iter().find_map(|log| {
                let line = log.last_lines().find(|line| crate::causes::operator::is_denied(line))?;
                Some((log.source(), line.to_owned()))
            })
        })
    };
    let told = makers.iter().find_map(|maker| Some((maker, says(maker)?)));
    let only = (makers.len() == 1 && waiting.len() > 1).then(|| makers.first()).flatten();
    let maker = told.as_ref().map(|(maker, _)| *maker).or(only)?;
    let summary = format!("the cloud does not let {maker} make load balancers: its identity lacks the right");
    let mut finding = Finding::new(Cause::OperatorCloudCredentials, maker.clone(), 0.92, summary)
        .since(first.since)
        .remedy(
            "Give its identity (role, trust, workload identity) the rights that the cloud's words name.",
            &[format!("kubectl -n {} get serviceaccounts -o yaml", maker.namespace)],
        );
    finding.evidence = first.evidence.clone();
    if let Some((_, (source, line))) = told {
        finding = finding.evidence(source, line);
    }
    Some(waiting.iter().fold(finding, |finding, it| finding.suffers(it.clone(), "gets no load balancer")))
}

/// A Service whose selector or port is wrong, while its workload is well.
fn silent(look: &Look<'_>, service: &Value) -> Option<Finding> {
    let object = Object::from_live(service);
    if service.is_terminating() || look.cluster.age(service) < 120 {
        return None;
    }
    let pods = look.cluster.pods_of(service);
    let mut finding = if pods.is_empty() {
        if look.cluster.is_served(service) || !look.cluster.has_kind("Pod") {
            return None;
        }
        empty_service(look.cluster, service)?
    } else {
        let ready: Vec<&Value> = pods.into_iter().filter(|pod| pods::is_ready(pod)).collect();
        let ports = items(service, &["spec", "ports"]);
        ports
            .filter(|port| port.str_at(&["targetPort"]).is_some_and(|name| name.parse::<u16>().is_err()))
            .find_map(|port| wrong_target(service, port, &ready))
            .or_else(|| unopened_number(look, service, &ready))?
    };
    let users = users(look, service);
    // Zero replicas that nobody misses are on purpose.
    if finding.cause == Cause::RunScaledZero && !users.iter().any(|(_, is_red)| *is_red) {
        return None;
    }
    if !users.iter().any(|(_, is_red)| *is_red) {
        // What is green may be on purpose: a Service of a canary, or of whoever is the leader.
        let namesake = ["Deployment", "StatefulSet", "DaemonSet"]
            .iter()
            .any(|kind| look.cluster.get(kind, service.namespace(), service.name()).is_some());
        let alone = items(service, &["spec", "ports"]).count() == 1;
        finding.confidence = if users.is_empty() || !namesake || !alone { 0.4 } else { 0.6 };
    }
    for (user, is_red) in users {
        if is_red {
            finding = finding.suffers(user, format!("calls {object}"));
        }
    }
    Some(finding)
}

/// A number that no container opens, while the pods are probed elsewhere. A program may open more ports than
/// it tells, so it counts only where a caller is red.
fn unopened_number(look: &Look<'_>, service: &Value, ready: &[&Value]) -> Option<Finding> {
    let spec = ready.first()?.get("spec")?;
    let mut ports = items(service, &["spec", "ports"]);
    let finding = ports.find_map(|port| {
        let target = services::target_port(port, spec)?;
        let is_probed = pods::probed_ports(spec).any(|probed| probed == target);
        wrong_target(service, port, ready).filter(|it| it.cause == Cause::ServicePort && !is_probed)
    })?;
    let is_missed =
        pods::probed_ports(spec).next().is_some() && users(look, service).iter().any(|(_, is_red)| *is_red);
    is_missed.then_some(Finding { confidence: 0.75, ..finding })
}

/// Who uses a Service: routes, webhooks, aggregated APIs, workloads whose configuration names it; and whether
/// each is red.
fn users(look: &Look<'_>, service: &Value) -> Vec<(Object, bool)> {
    let object = Object::from_live(service);
    let kinds = [
        "Ingress",
        "HTTPRoute",
        "GRPCRoute",
        "TLSRoute",
        "TCPRoute",
        "IngressRoute",
        "VirtualService",
        "APIService",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
    ];
    let mut found = Vec::new();
    for live in kinds.iter().flat_map(|kind| look.cluster.all(kind).iter()) {
        let user = Object::from_live(live);
        if crate::dependencies::upstream(look.cluster, &user).contains(&object) {
            let is_red = look.is_red(&user);
            found.push((user, is_red));
        }
    }
    for user in look.callers_of(&object) {
        found.push((user.clone(), misses(look, user, service)));
    }
    found
}

/// Whether a workload is ill for want of a Service: its log says so, or nothing says otherwise.
fn misses(look: &Look<'_>, user: &Object, service: &Value) -> bool {
    let Some(ill) = look.ill.iter().find(|ill| ill.workload == *user) else { return false };
    let address = service.str_at(&["spec", "clusterIP"]).unwrap_or("None");
    if !ill.facts.is_empty() {
        return ill
            .facts
            .iter()
            .any(|fact| fact.line.contains(service.name()) || fact.line.contains(address));
    }
    ill.pods.iter().any(|pod| match pods::trouble(look.cluster, pod).as_deref() {
        Some("not ready") => true,
        Some("CrashLoopBackOff") => !pods::statuses(pod)
            .filter_map(pods::ended)
            .any(|ended| ended.str_at(&["reason"]) == Some("OOMKilled")),
        _ => false,
    })
}

/// A port of a Service that no container of its pods opens.
pub(crate) fn wrong_target(service: &Value, port: &Value, ready: &[&Value]) -> Option<Finding> {
    let object = Object::from_live(service);
    let spec = ready.first()?.get("spec")?;
    let number = port.int_at(&["port"]).unwrap_or_default();
    let protocol = port.str_at(&["protocol"]).unwrap_or("TCP");
    let opened: Vec<&Value> = pods::ports(spec).collect();
    let shown = |ports: &[&Value]| -> String {
        let told: Vec<String> = ports
            .iter()
            .map(|port| {
                format!(
                    "{}{}",
                    port.str_at(&["name"]).map(|name| format!("{name}=")).unwrap_or_default(),
                    port.int_at(&["containerPort"]).unwrap_or_default()
                )
            })
            .collect();
        told.join(", ")
    };
    let new = |cause, confidence, what: String| {
        let patch = Finding::new(cause, object.clone(), confidence, what)
            .field("spec.ports.targetPort")
            .evidence(
                object.to_string(),
                format!(
                    "port {number}, targetPort {}, protocol {protocol}",
                    port.get("targetPort").map_or_else(|| number.to_string(), ToString::to_string)
                ),
            )
            .evidence(Object::from_live(ready[0]).to_string(), format!("ports: {}", shown(&opened)));
        patch.remedy(
            "Make targetPort and protocol those that the container opens.",
            &[format!("kubectl -n {} edit service {}", object.namespace, object.name)],
        )
    };
    let Some(target) = services::target_port(port, spec) else {
        let name = port.str_at(&["targetPort"]).unwrap_or_default();
        return Some(new(
            Cause::ServicePort,
            0.92,
            format!("{object} leads to a port named {name}, which no container has"),
        ));
    };
    if opened.is_empty() {
        return None;
    }
    let matching = opened.iter().find(|it| it.int_at(&["containerPort"]) == Some(target));
    match matching {
        None => Some(new(
            Cause::ServicePort,
            0.88,
            format!("{object} leads to port {target}, which no container opens"),
        )),
        Some(it) => {
            let open = it.str_at(&["protocol"]).unwrap_or("TCP");
            let both = opened.iter().any(|it| {
                it.int_at(&["containerPort"]) == Some(target)
                    && it.str_at(&["protocol"]).unwrap_or("TCP") == protocol
            });
            // Most manifests leave the protocol of DNS ports out.
            (open != protocol && !both && target != 53).then(|| {
                new(
                    Cause::ServiceProtocol,
                    0.9,
                    format!("{object} serves {protocol} on port {number}, and the container opens {open}"),
                )
            })
        }
    }
}

/// Whether any port of a Service leads nowhere.
pub(crate) fn has_wrong_target(look: &Look<'_>, service: &Value) -> bool {
    let ready: Vec<&Value> =
        look.cluster.pods_of(service).into_iter().filter(|pod| pods::is_ready(pod)).collect();
    items(service, &["spec", "ports"]).any(|port| wrong_target(service, port, &ready).is_some())
}

/// A Service that serves callers of nodes with endpoints only.
pub(crate) fn local_only<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    call: &FailedCall,
    service: &Value,
) -> Option<Finding> {
    if !matches!(call.failure, Failure::Timeout | Failure::Refused | Failure::Unreachable)
        || service.str_at(&["spec", "internalTrafficPolicy"]) != Some("Local")
    {
        return None;
    }
    let object = Object::from_live(service);
    let nodes: Vec<&str> = look
        .cluster
        .pods_of(service)
        .iter()
        .filter(|pod| pods::is_ready(pod))
        .filter_map(|pod| pod.str_at(&["spec", "nodeName"]))
        .collect();
    let alone = caller
        .pods
        .iter()
        .filter_map(|pod| pod.str_at(&["spec", "nodeName"]))
        .find(|node| !nodes.contains(node))?;
    Some(
        Finding::new(
            Cause::ServiceTrafficPolicy,
            object.clone(),
            0.92,
            format!("{object} serves callers on its own nodes only, and {alone} has none of its pods"),
        )
        .field("spec.internalTrafficPolicy")
        .evidence(
            object.to_string(),
            format!("internalTrafficPolicy: Local, endpoints on {}", nodes.join(", ")),
        )
        .remedy("Set internalTrafficPolicy: Cluster, or run a pod on every node.", &[]),
    )
}

/// A load balancer that is not made.
fn load_balancer(look: &Look<'_>, service: &Value) -> Option<Finding> {
    let is_open = service.str_at(&["spec", "type"]) == Some("LoadBalancer")
        && items(service, &["status", "loadBalancer", "ingress"]).next().is_none();
    let object = Object::from_live(service);
    if !is_open
        || look.cluster.age(service) < 180
        || service.is_terminating()
        || service.str_at(&["spec", "loadBalancerClass"]) == Some("none")
    {
        return None;
    }
    let event = look.cluster.events(&object).rfind(|event| event.is_warning());
    let denied = event.is_some_and(|event| is_denied_by_cloud(&event.message));
    let cause = if denied { Cause::OperatorCloudCredentials } else { Cause::ServiceLoadBalancer };
    let mut finding = Finding::new(
        cause,
        object.clone(),
        if event.is_some() { 0.9 } else { 0.65 },
        format!("{object} gets no address: its load balancer is not made"),
    )
    .field("status.loadBalancer")
    .since(event.and_then(|event| event.first).or_else(|| time(service, &["metadata", "creationTimestamp"])))
    .remedy(
        "Look at what makes load balancers here: the cloud's controller, MetalLB, kube-vip.",
        &[format!("kubectl -n {} describe service {}", object.namespace, object.name)],
    );
    if let Some(event) = event {
        finding = finding.evidence(format!("Event of {object}"), event.message.clone());
    } else {
        finding = finding.evidence(object.to_string(), "no controller says anything about it");
    }
    let makers = load_balancer_makers(look).into_iter().chain(k3s_balancers(look, service));
    Some(makers.fold(finding, Finding::below))
}

/// The DaemonSets by which k3s takes the ports of a Service on each node.
fn k3s_balancers(look: &Look<'_>, service: &Value) -> Vec<Object> {
    let prefix = format!("svclb-{}-", service.name());
    let sets = look.cluster.all("DaemonSet").iter().filter(|it| it.name().starts_with(&prefix));
    sets.map(|it| Object::from_live(it)).collect()
}

/// Whether the cloud refuses a request for want of rights.
pub(crate) fn is_denied_by_cloud(message: &str) -> bool {
    let low = message.to_ascii_lowercase();
    // Google answers 403 where a quota is used up.
    !low.contains("quota")
        && ["accessdenied", "unauthorizedoperation", "not authorized", "403", "401", "authorizationfailed"]
            .iter()
            .any(|word| low.contains(word))
}

/// The workloads that make load balancers.
pub(crate) fn load_balancer_makers(look: &Look<'_>) -> Vec<Object> {
    let words = ["load-balancer-controller", "cloud-controller", "metallb", "kube-vip", "cilium-operator"];
    look.cluster.running(|it| words.iter().any(|word| it.name.contains(word) || it.namespace.contains(word)))
}

/// A Service that selects the pods of two programs.
fn identity(look: &Look<'_>, service: &Value) -> Option<Finding> {
    let wanted = services::selector(service)?;
    let pods = look.cluster.pods_of(service);
    let mut owners: Vec<(Object, String)> = Vec::new();
    for pod in pods {
        let owner = look.cluster.workload(pod);
        let image = items(pod, &["spec", "containers"])
            .next()
            .and_then(|it| it.str_at(&["image"]))
            .map(|image| tiphys_cause::image_parts(image).1)
            .unwrap_or_default();
        if !owners.iter().any(|(known, _)| *known == owner) {
            owners.push((owner, image));
        }
    }
    let (first, image) = owners.first()?;
    let (other, other_image) = owners.iter().find(|(_, it)| it != image)?;
    let object = Object::from_live(service);
    let users = users(look, service);
    let suffers: Vec<Object> =
        users.into_iter().filter(|(_, is_red)| *is_red).map(|(user, _)| user).collect();
    let confidence = if suffers.is_empty() { 0.4 } else { 0.75 };
    let finding = Finding::new(
        Cause::ServiceIdentity,
        object.clone(),
        confidence,
        format!("{object} selects the pods of two programs: {first} and {other}"),
    )
    .field("spec.selector")
    .evidence(object.to_string(), tiphys_value::json!(wanted).to_string())
    .evidence("images", format!("{image}, {other_image}"))
    .remedy("Add a label to the selector that only one of them has.", &[]);
    Some(suffers.into_iter().fold(finding, |finding, user| finding.suffers(user, format!("calls {object}"))))
}
