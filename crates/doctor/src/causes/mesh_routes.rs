//! Routes of a mesh: VirtualServices that lead to Services or subsets that are not there, and gateways whose
//! certificate is absent.

use tiphys_cause::{Address, Cause, Failure};
use tiphys_value::{ObjectExt as _, Value, json};

use crate::{
    Object,
    address_target::Target,
    cluster::{Cluster, items, selector},
    finding::Finding,
    log_evidence::Fact,
    search_context::Look,
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let routes = look.cluster.all("VirtualService").iter();
    let mut found: Vec<Finding> = routes.flat_map(|route| route_faults(look, route)).collect();
    found.extend(look.cluster.all("VirtualService").iter().filter_map(|route| without_gateway(look, route)));
    found.extend(overflows(look));
    found.extend(gateways(look).filter_map(|gateway| absent_certificate(look, gateway)));
    found
}

/// The gateways of Istio; those of the Gateway API are another kind of the same name.
fn gateways<'a>(look: &Look<'a>) -> impl Iterator<Item = &'a Value> {
    let objects: &'a [Value] = &look.cluster.case.objects;
    objects.iter().filter(|live| live.kind() == "Gateway" && live.gvk().group == "networking.istio.io")
}

/// The VirtualServices that calls of a Service go over.
pub(crate) fn routes_of_service(cluster: &Cluster<'_>, service: &Value) -> Vec<Object> {
    let is_of = |route: &&&Value| {
        let hosts = items(route, &["spec", "hosts"]).filter_map(Value::as_str);
        hosts.into_iter().any(|host| match target(cluster, host, route) {
            Target::Service(meant) => std::ptr::eq(meant, service),
            _ => false,
        })
    };
    cluster.all("VirtualService").iter().filter(is_of).map(|route| Object::from_live(route)).collect()
}

/// What a host of a rule of the mesh is.
fn target<'a>(cluster: &Cluster<'a>, host: &str, rule: &Value) -> Target<'a> {
    let address = Address { scheme: String::new(), host: host.to_owned(), port: None };
    cluster.target(&address, rule.namespace())
}

/// A VirtualService that names gateways, and none of them is there: no gateway knows its hosts.
fn without_gateway(look: &Look<'_>, route: &Value) -> Option<Finding> {
    /// Stands for every sidecar.
    const MESH: &str = "mesh";
    let names: Vec<&str> = items(route, &["spec", "gateways"]).filter_map(Value::as_str).collect();
    let known: Vec<Object> = gateways(look).map(Object::from_live).collect();
    let gateway = |name: &str| match name.split_once('/') {
        Some((namespace, name)) => Object::new("Gateway", namespace, name),
        None => Object::new("Gateway", route.namespace(), name),
    };
    let is_absent = |name: &&str| **name != *MESH && !known.contains(&gateway(name));
    if known.is_empty() || names.is_empty() || !names.iter().all(is_absent) {
        return None;
    }
    let (object, absent) = (Object::from_live(route), gateway(names[0]));
    let near = known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let summary = format!("{object} names {absent}, which does not exist: no gateway knows its hosts");
    Some(
        Finding::new(Cause::OperatorReference, object.clone(), 0.88, summary)
            .field("spec.gateways")
            .evidence(object.to_string(), format!("spec.gateways: {}", names.join(", ")))
            .evidence("gateways that exist", near)
            .suffers(absent, "does not exist")
            .remedy(
                "Name a gateway that exists, as NAMESPACE/NAME.",
                &["kubectl get gateways.networking.istio.io -A".to_owned()],
            ),
    )
}

/// The destinations of a VirtualService that nothing serves.
fn route_faults(look: &Look<'_>, route: &Value) -> Vec<Finding> {
    let object = Object::from_live(route);
    let rules = ["http", "tcp", "tls"].into_iter().flat_map(|protocol| items(route, &["spec", protocol]));
    let ways = rules.flat_map(|rule| items(rule, &["route"]));
    let mut found = Vec::new();
    for way in ways {
        let Some(destination) = way.get("destination") else { continue };
        let Some(host) = destination.str_at(&["host"]) else { continue };
        if let Target::Absent { namespace, name } = target(look.cluster, host, route)
            && look.cluster.knows_services()
            && !has_entry(look, host)
        {
            let service = Object::new("Service", &namespace, &name);
            let summary = format!("no Service {namespace}/{name} exists, and {object} leads to it");
            found.push(
                Finding::new(Cause::ServiceMissing, service, 0.85, summary)
                    .evidence(object.to_string(), format!("destination.host: {host}"))
                    .suffers(object.clone(), "leads to nothing")
                    .remedy("Make the Service, or correct the destination.", &[]),
            );
        }
        let subset = destination.str_at(&["subset"]);
        // A canary at rest has no pods, and is given no requests.
        let is_used = way.int_at(&["weight"]) != Some(0);
        let used = subset.filter(|_| is_used);
        found.extend(used.and_then(|subset| empty_subset(look, &object, route, host, subset)));
        if let Some(subset) = subset.filter(|subset| lacks_subset(look, route, host, subset)) {
            let summary =
                format!("{object} leads to the subset {subset} of {host}, which no DestinationRule defines");
            found.push(
                Finding::new(Cause::OperatorReference, object.clone(), 0.85, summary)
                    .field("spec.http.route.destination.subset")
                    .evidence(object.to_string(), format!("host {host}, subset {subset}"))
                    .remedy("Define the subset in a DestinationRule of the host.", &[]),
            );
        }
    }
    found
}

/// Whether a ServiceEntry stands for a host.
fn has_entry(look: &Look<'_>, host: &str) -> bool {
    let mut entries =
        look.cluster.all("ServiceEntry").iter().flat_map(|entry| items(entry, &["spec", "hosts"]));
    entries.any(|known| known.as_str() == Some(host))
}

/// A subset to which a route leads, and whose labels none of the Service's pods has.
fn empty_subset(
    look: &Look<'_>,
    object: &Object,
    route: &Value,
    host: &str,
    subset: &str,
) -> Option<Finding> {
    let Target::Service(service) = target(look.cluster, host, route) else { return None };
    let rule = rules_of_host(look, route, host).find(|rule| {
        items(rule, &["spec", "subsets"]).any(|known| known.str_at(&["name"]) == Some(subset))
    })?;
    let defined = items(rule, &["spec", "subsets"]).find(|known| known.str_at(&["name"]) == Some(subset))?;
    let wanted = json!({"matchLabels": defined.get("labels")?});
    let pods = look.cluster.pods_of(service);
    if pods.is_empty() || pods.iter().any(|pod| selector::matches(&wanted, selector::labels(pod))) {
        return None;
    }
    let (rule, service) = (Object::from_live(rule), Object::from_live(service));
    let summary = format!("no pod of {service} has the labels of the subset {subset} of {rule}");
    Some(
        Finding::new(Cause::ServiceSelector, rule.clone(), 0.88, summary)
            .field("spec.subsets.labels")
            .evidence(rule.to_string(), format!("subset {subset}: {}", wanted["matchLabels"]))
            .evidence(object.to_string(), format!("host {host}, subset {subset}"))
            .suffers(object.clone(), "leads to no pod")
            .suffers(service, "has no pod of the subset")
            .remedy("Correct the labels of the subset, or run the version that it means.", &[]),
    )
}

/// The rules of a host that a route leads to.
fn rules_of_host<'a>(look: &Look<'a>, route: &Value, host: &str) -> impl Iterator<Item = &'a Value> {
    let short = |host: &str| host.split('.').next().unwrap_or_default().to_owned();
    let is_of = |rule: &&&Value| {
        let of = rule.str_at(&["spec", "host"]).unwrap_or_default();
        of == host || short(of) == short(host) && rule.namespace() == route.namespace() || of.starts_with('*')
    };
    let rules: Vec<&'a Value> = look.cluster.all("DestinationRule").iter().filter(is_of).copied().collect();
    rules.into_iter()
}

/// Whether rules were saved, and none defines a subset of a host.
fn lacks_subset(look: &Look<'_>, route: &Value, host: &str, subset: &str) -> bool {
    let mut rules = rules_of_host(look, route, host);
    let defines = |rule: &&Value| {
        items(rule, &["spec", "subsets"]).any(|known| known.str_at(&["name"]) == Some(subset))
    };
    look.cluster.has_kind("DestinationRule") && !rules.any(|rule| defines(&rule))
}

/// Requests that a proxy refuses for the limits of a DestinationRule, where somebody misses them.
fn overflows(look: &Look<'_>) -> Vec<Finding> {
    /// Fewer may be a peak that nobody noticed.
    const FEWEST: usize = 5;
    let is_missed = look.ill.iter().flat_map(|ill| &ill.facts).any(|fact| {
        matches!(&fact.fact, Fact::Call(call) if matches!(call.failure, Failure::Reset | Failure::Status(503)))
    });
    let mut found = Vec::new();
    for log in look.cluster.case.logs.iter().filter(|_| is_missed) {
        let answers = log.last_lines().filter_map(|line| Some((line, tiphys_cause::proxy_answer(line)?)));
        let refused: Vec<_> = answers.filter(|(_, answer)| answer.has_flag("UO")).collect();
        let Some((line, answer)) = refused.first().filter(|_| refused.len() >= FEWEST) else { continue };
        let Some(pod) = look.cluster.get("Pod", &log.namespace, &log.pod) else { continue };
        let rule = rules_of_host(look, pod, &answer.host)
            .find(|rule| rule.at(&["spec", "trafficPolicy", "connectionPool"]).is_some());
        let Some(rule) = rule else { continue };
        let object = Object::from_live(rule);
        let limits = rule.at(&["spec", "trafficPolicy", "connectionPool"]).map(ToString::to_string);
        let summary = format!(
            "{object} lets too few connections to {} through: proxies answer 503 for the others",
            answer.host
        );
        found.push(
            Finding::new(Cause::ConfigWrongValue, object.clone(), 0.85, summary)
                .field("spec.trafficPolicy.connectionPool")
                .evidence(log.source(), *line)
                .evidence(object.to_string(), limits.unwrap_or_default())
                .suffers(Object::from_live(pod), "refuses requests")
                .suffers(look.cluster.workload(pod), "refuses requests")
                .remedy(
                    "Raise maxConnections and http1MaxPendingRequests to what the callers need.",
                    &[format!("kubectl -n {} edit destinationrule {}", object.namespace, object.name)],
                ),
        );
    }
    found
}

/// Where the pods of a gateway run: there it looks for its certificates.
fn namespace_of_pods<'a>(look: &Look<'a>, gateway: &Value) -> Option<&'a str> {
    let labels = json!({"matchLabels": gateway.at(&["spec", "selector"])?});
    let pods = look.cluster.all("Pod");
    let selected = pods.iter().find(|pod| selector::matches(&labels, selector::labels(pod)));
    let usual = || pods.iter().find(|pod| pod.name().contains("ingressgateway"));
    selected.or_else(usual).map(|pod| pod.namespace())
}

/// A gateway whose certificate is not where its pods look for it.
fn absent_certificate(look: &Look<'_>, gateway: &Value) -> Option<Finding> {
    let object = Object::from_live(gateway);
    let namespace = namespace_of_pods(look, gateway)?;
    let has_secrets = look.cluster.all("Secret").iter().any(|secret| secret.namespace() == namespace);
    for server in items(gateway, &["spec", "servers"]) {
        let Some(name) = server.str_at(&["tls", "credentialName"]).filter(|_| has_secrets) else { continue };
        let secret = Object::new("Secret", namespace, name);
        if look.cluster.live(&secret).is_some() {
            continue;
        }
        let summary = format!("{secret}, the certificate of {object}, does not exist where the gateway runs");
        let finding = Finding::new(Cause::EdgeTlsSecret, secret.clone(), 0.88, summary)
            .evidence(object.to_string(), format!("tls.credentialName: {name}"))
            .suffers(object, "has no certificate")
            .remedy(format!("Make the Secret in the namespace {namespace}."), &[]);
        let makers = crate::dependencies::upstream(look.cluster, &secret);
        return Some(makers.into_iter().fold(finding, Finding::below));
    }
    None
}
