//! # A route of a mesh, or a monitor, names what a Service does not have
//!
//! An Istio VirtualService sends to a Service, port or subset that there is not: the proxy answers every
//! request with 503. A ServiceMonitor or PodMonitor names a port by a name that the Services or pods that it
//! selects do not have, or selects none: Prometheus has no target, and no alert tells so. The API server
//! takes both.
//!
//! People see: `503 NC cluster_not_found`, `no healthy upstream`, an empty list of targets in Prometheus.
//!
//! ## Bad
//! ```yaml
//! kind: ServiceMonitor
//! spec: {selector: {matchLabels: {app: web}}, endpoints: [{port: metrics}]}
//! # Service web, with the label app: web, has one port, called http
//! ```
//! ## Good
//! ```yaml
//! spec: {selector: {matchLabels: {app: web}}, endpoints: [{port: http}]}
//! ```
//! ## When to suppress
//! Where the Service is made by what the repository does not show.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        cluster::Cluster,
        dedup::Once,
        field_paths::keys,
        nearest_name, placeholders,
        pods::{list, text},
        selectors,
    },
};

/// See the module.
pub const RULE: Rule = Rule {
    id: "F4-unheard",
    incident: "F4",
    severity: Severity::Warning,
    title: "a route of a mesh, or a monitor, that names what a Service does not have",
    page: page!("f4_unheard.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        for object in &cluster.objects {
            match (object.key.group.as_str(), object.key.kind.as_str()) {
                ("networking.istio.io", "VirtualService") => routes(context, cluster, object, &mut once),
                ("monitoring.coreos.com", "ServiceMonitor") => monitor(context, cluster, object, &mut once),
                ("monitoring.coreos.com", "PodMonitor") => pods(context, cluster, object, &mut once),
                _ => {}
            }
        }
    }
    once.report(report);
}

fn add(
    context: &Context<'_>,
    object: &Object,
    (what, field, label, help): (String, &FieldPath, &str, Option<String>),
    once: &mut Once,
) {
    let found = finding(context, object, (&what, field, label, help));
    once.add(&what, found);
}

fn finding(
    context: &Context<'_>,
    object: &Object,
    (what, field, label, help): (&str, &FieldPath, &str, Option<String>),
) -> Finding {
    let mut diagnostic = RULE
        .diagnostic(what)
        .at(context.survey.span(object, field), label.to_owned())
        .because("everything is applied and looks healthy, and nothing arrives");
    diagnostic.help.extend(help);
    RULE.finding(context, object, diagnostic).likely()
}

/// The destinations of a VirtualService, with their places.
fn destinations(object: &Object) -> Vec<(FieldPath, &Value)> {
    let mut found = Vec::new();
    for protocol in ["http", "tls", "tcp"] {
        for (rule, value) in list(&object.value()["spec"], protocol).iter().enumerate() {
            for (at, route) in list(value, "route").iter().enumerate() {
                let place = keys(&["spec", protocol]).index(rule).key("route").index(at).key("destination");
                found.extend(route.get("destination").map(|destination| (place, destination)));
            }
        }
    }
    found
}

/// The namespace and name of the Service that a host of the mesh stands for; hosts of other kinds stand for
/// none.
fn service_of<'a>(host: &'a str, own: &'a str) -> Option<(&'a str, &'a str)> {
    let steps: Vec<&str> = host.split('.').collect();
    match steps.as_slice() {
        [name] => Some((own, name)),
        [name, namespace, "svc"] | [name, namespace, "svc", "cluster", "local"] => Some((namespace, name)),
        _ => None,
    }
}

fn routes(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, once: &mut Once) {
    for (path, destination) in destinations(object) {
        let host = text(destination, "host");
        let Some((namespace, name)) = service_of(host, &object.key.namespace) else { continue };
        let is_seen = cluster.pods.iter().any(|pod| pod.object.key.namespace == namespace);
        if name.is_empty()
            || placeholders::has_placeholder(destination)
            || !is_seen
            || cluster.is_partly_hidden(namespace)
            || has_entry(cluster, host)
        {
            continue;
        }
        let Some(service) = cluster.core("Service", namespace, name) else {
            if !cluster.may_be_made(namespace, name) && !cluster.has_operated_pods(namespace) {
                let beside = cluster.objects.iter().filter(|it| {
                    it.key.kind == "Service" && it.key.group.is_empty() && it.key.namespace == namespace
                });
                let nearest = nearest_name::nearest(name, beside.map(|it| it.key.name.as_str()));
                let what =
                    format!("{} sends to Service/{name} in {namespace}, which nothing makes", object.title());
                let found = finding(context, object, (&what, &path.key("host"), "no such Service", None));
                once.add(&what, found.perhaps(name, nearest));
            }
            continue;
        };
        let ports = list(&service.value()["spec"], "ports");
        if let Some(port) = destination.at(&["port", "number"]).and_then(Value::as_i64)
            && ports.iter().all(|it| it["port"].as_i64() != Some(port))
        {
            let known: Vec<String> =
                ports.iter().filter_map(|it| Some(it.get("port")?.to_string())).collect();
            let what = format!(
                "{} sends to port {port} of {}, which it does not have",
                object.title(),
                service.title()
            );
            let help = Some(format!("its ports are {}", known.join(", ")));
            add(context, object, (what, &path.key("port"), "no such port", help), once);
        }
        subset(context, cluster, object, (&path, text(destination, "subset"), (namespace, name)), once);
    }
}

/// Whether an object of the mesh declares a host by itself.
fn has_entry(cluster: &Cluster<'_>, host: &str) -> bool {
    let entries = cluster.objects.iter().filter(|it| it.key.kind == "ServiceEntry");
    entries.into_iter().any(|it| list(&it.value()["spec"], "hosts").iter().any(|known| known == host))
}

/// A subset that no DestinationRule of the host has, where there is such a rule.
fn subset(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    object: &Object,
    (path, subset, service): (&FieldPath, &str, (&str, &str)),
    once: &mut Once,
) {
    let rules = cluster.objects.iter().filter(|it| {
        it.key.kind == "DestinationRule"
            && service_of(text(&it.value()["spec"], "host"), &it.key.namespace) == Some(service)
    });
    let names: Vec<&str> =
        rules.flat_map(|rule| list(&rule.value()["spec"], "subsets")).map(|it| text(it, "name")).collect();
    if subset.is_empty() || names.is_empty() || names.contains(&subset) {
        return;
    }
    let what =
        format!("{} sends to subset {subset} of {}, which no DestinationRule has", object.title(), service.1);
    let help = Some(format!("its subsets are {}", names.join(", ")));
    add(context, object, (what, &path.key("subset"), "no such subset", help), once);
}

/// The namespaces that a monitor looks at; `None` for all.
fn namespaces(object: &Object) -> Option<Vec<&str>> {
    let selector = &object.value()["spec"]["namespaceSelector"];
    let named: Vec<&str> = list(selector, "matchNames").iter().filter_map(Value::as_str).collect();
    match selector["any"] == true {
        true => None,
        false if named.is_empty() => Some(vec![object.key.namespace.as_str()]),
        false => Some(named),
    }
}

fn monitor(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, once: &mut Once) {
    let wanted = selectors::match_labels(&object.value()["spec"]["selector"]);
    let (Some(wanted), Some(namespaces)) = (wanted, namespaces(object)) else { return };
    let is_hidden = namespaces.iter().any(|it| cluster.is_partly_hidden(it) || cluster.has_operated_pods(it));
    if placeholders::has_placeholder(&object.value()["spec"]) {
        return;
    }
    if is_hidden {
        // What is not seen may have these labels, unless its name has nothing to do with them.
        let is_of_unseen = |value: &str| {
            let mut apps = context.survey.apps.iter().filter(|app| !app.is_rendered());
            apps.any(|app| app.name().contains(value) || value.contains(app.name()))
        };
        let is_seen = !cluster.objects.iter().any(|it| is_selected(it, &wanted, &namespaces));
        if is_seen
            && !wanted.iter().any(|(_, value)| is_of_unseen(value))
            && let Some(hint) = elsewhere(cluster, object, &wanted)
        {
            unselected(context, object, (&wanted, &namespaces), hint, once);
        }
        return;
    }
    let services = cluster.objects.iter().filter(|it| {
        it.key.kind == "Service" && it.key.group.is_empty() && namespaces.contains(&it.key.namespace.as_str())
    });
    let selected: Vec<&Object> = services
        .clone()
        .filter(|service| wanted.iter().all(|(key, value)| service.value().label(key) == Some(value)))
        .copied()
        .collect();
    if selected.is_empty()
        && let Some(hint) = intended_service(cluster, object, &wanted, services)
    {
        unselected(context, object, (&wanted, &namespaces), hint, once);
    }
    for (at, endpoint) in list(&object.value()["spec"], "endpoints").iter().enumerate() {
        let port = text(endpoint, "port");
        let ports = selected.iter().flat_map(|service| list(&service.value()["spec"], "ports"));
        let names: Vec<&str> = ports.map(|it| text(it, "name")).collect();
        if !port.is_empty() && !selected.is_empty() && !names.contains(&port) {
            let what = format!(
                "{} reads port {port} of {}, which has none of this name",
                object.title(),
                selected[0].title()
            );
            let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
            let help = match names.is_empty() {
                true => "give the port of the Service a name".to_owned(),
                false => format!("its ports are {}", names.join(", ")),
            };
            let field = keys(&["spec", "endpoints"]).index(at).key("port");
            add(context, object, (what, &field, "no such port", Some(help)), once);
        }
    }
}

/// What a monitor that selects no Service was meant to select, where that can be told: its own Application's
/// Service with a slip in one label, or one that the labels name by the pods that it sends to or under
/// another key; or a Service with just these labels in a namespace at which the monitor does not look.
fn intended_service<'a>(
    cluster: &Cluster<'a>,
    object: &Object,
    wanted: &[(&str, &str)],
    services: impl Iterator<Item = &'a &'a Object> + Clone,
) -> Option<String> {
    let own = || services.clone().filter(|service| service.owner == object.owner);
    if let Some(slip) = own().find(|service| selectors::is_slip(wanted, |key| service.value().label(key))) {
        return Some(format!("perhaps {} is meant", slip.title()));
    }
    let sends_to = |service: &&&Object| {
        let labels = selectors::labels(service);
        wanted.iter().all(|wanted| labels.contains(wanted))
    };
    if let Some(sends) = own().find(sends_to) {
        return Some(format!(
            "{} sends to pods with these labels, and has others itself: give it these labels too",
            sends.title()
        ));
    }
    // `app: web` for `app.kubernetes.io/name: web`.
    let is_under_another_key = |service: &&&Object| {
        let [(_, value)] = wanted else { return false };
        let labels = service.value().at(&["metadata", "labels"]).and_then(Value::as_object);
        service.key.name == *value && labels.into_iter().flat_map(|map| map.values()).any(|it| it == value)
    };
    if let Some(other) = services.clone().find(is_under_another_key) {
        let labels = other.value().at(&["metadata", "labels"]).and_then(Value::as_object)?;
        let shown: Vec<String> =
            labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
        return Some(format!("{} has the labels {}", other.title(), shown.join(", ")));
    }
    elsewhere(cluster, object, wanted)
}

/// Whether an object is a Service with some labels in one of some namespaces.
fn is_selected(object: &Object, wanted: &[(&str, &str)], namespaces: &[&str]) -> bool {
    object.key.kind == "Service"
        && object.key.group.is_empty()
        && namespaces.contains(&object.key.namespace.as_str())
        && wanted.iter().all(|(key, value)| object.value().label(key) == Some(value))
}

/// A Service with the labels that a monitor selects in a namespace at which it does not look.
fn elsewhere(cluster: &Cluster<'_>, object: &Object, wanted: &[(&str, &str)]) -> Option<String> {
    let is_told = object.value().at(&["spec", "namespaceSelector"]).is_some();
    let other = |it: &Object| it.key.namespace != object.key.namespace;
    let mut others = cluster.objects.iter().filter(|it| !is_told && other(it));
    let found = others.find(|it| is_selected(it, wanted, &[it.key.namespace.as_str()]))?;
    Some(format!(
        "{} has them, and a monitor without a namespaceSelector looks at its own namespace alone",
        found.title()
    ))
}

fn unselected(
    context: &Context<'_>,
    object: &Object,
    (wanted, namespaces): (&[(&str, &str)], &[&str]),
    hint: String,
    once: &mut Once,
) {
    let shown: Vec<String> = wanted.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let within = match namespaces {
        [only] => format!(" in {only}"),
        _ => String::new(),
    };
    let what =
        format!("{} selects {}, and no Service{within} has these labels", object.title(), shown.join(", "));
    add(context, object, (what, &keys(&["spec", "selector"]), "selected here", Some(hint)), once);
}

fn pods(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, once: &mut Once) {
    let wanted = selectors::match_labels(&object.value()["spec"]["selector"]);
    let (Some(wanted), Some(namespaces)) = (wanted, namespaces(object)) else { return };
    let is_hidden = namespaces.iter().any(|it| cluster.is_partly_hidden(it) || cluster.has_operated_pods(it));
    if is_hidden || placeholders::has_placeholder(&object.value()["spec"]) {
        return;
    }
    let selected: Vec<_> = cluster
        .pods
        .iter()
        .filter(|pod| namespaces.contains(&pod.object.key.namespace.as_str()))
        .filter(|pod| wanted.iter().all(|(key, value)| pod.label(key) == Some(value)))
        .collect();
    for (at, endpoint) in list(&object.value()["spec"], "podMetricsEndpoints").iter().enumerate() {
        let port = text(endpoint, "port");
        let has = |name: &str| {
            let containers = selected.iter().flat_map(|pod| pod.containers());
            containers
                .into_iter()
                .any(|it| list(it.value, "ports").iter().any(|known| text(known, "name") == name))
        };
        if !port.is_empty() && !selected.is_empty() && !has(port) {
            let what = format!(
                "{} reads port {port} of {}, which has none of this name",
                object.title(),
                selected[0].object.title()
            );
            let field = keys(&["spec", "podMetricsEndpoints"]).index(at).key("port");
            add(context, object, (what, &field, "no such port", None), once);
        }
    }
}
