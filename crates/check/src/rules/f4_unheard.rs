//! # A route of a mesh, or a monitor, names what a Service does not have
//!
//! An Istio VirtualService sends to a Service, port or subset that there is not: the proxy answers every
//! request with 503; so it does where a DestinationRule has a subset for labels that no pod of the Service
//! has. Where a route divides requests between two subsets that share pods, its weights do not hold. A
//! ServiceMonitor or PodMonitor names a port by a name that the Services or pods that it selects do not have,
//! or selects none: Prometheus has no target, and no alert tells so. The API server takes both.
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

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        cluster::Cluster,
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{Pod, list, text},
        selectors,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
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
                ("networking.istio.io", "VirtualService") => {
                    routes(context, cluster, object, &mut once);
                    overlapping(context, cluster, object, &mut once);
                }
                ("networking.istio.io", "DestinationRule") => subsets(context, cluster, object, &mut once),
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
                let nearest = similar_names::nearest_slip(name, beside.map(|it| it.key.name.as_str()));
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

/// The pods behind a host of the mesh, where all of them are seen.
fn pods_behind<'c, 'a>(
    cluster: &'c Cluster<'a>,
    object: &Object,
    host: &str,
) -> Option<(&'a Object, Vec<&'c Pod<'a>>)> {
    let (namespace, name) = service_of(host, &object.key.namespace)?;
    let service = cluster.core("Service", namespace, name)?;
    let labels = selectors::labels(service);
    if cluster.is_partly_hidden(namespace) || cluster.may_have_operated_pods(namespace, &labels) {
        return None;
    }
    let pods: Vec<&Pod<'a>> = cluster.selected_by(service).collect();
    (!pods.is_empty()).then_some((service, pods))
}

/// The labels of a subset that its pods have from their own manifest; those that a rollout's controller gives
/// them are left out.
fn subset_labels(subset: &Value) -> Vec<(&str, &str)> {
    const GIVEN: [&str; 2] = ["rollouts-pod-template-hash", "pod-template-hash"];
    let labels = subset.get("labels").and_then(Value::as_object).into_iter().flatten();
    let own = labels.filter(|(key, _)| !GIVEN.contains(&key.as_str()));
    own.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

fn has_labels(pod: &Pod<'_>, labels: &[(&str, &str)]) -> bool {
    labels.iter().all(|(key, value)| pod.label(key) == Some(value))
}

/// Whether the controller of a Rollout writes the labels of a subset.
fn is_of_rollout(cluster: &Cluster<'_>, rule: &Object) -> bool {
    let mut rollouts =
        cluster.objects.iter().filter(|it| matches!(it.key.kind.as_str(), "Rollout" | "Canary"));
    rollouts
        .any(|it| it.key.namespace == rule.key.namespace && it.value().to_string().contains(&rule.key.name))
}

/// Subsets of a host of which no pod behind it is one.
fn subsets(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, once: &mut Once) {
    let spec = &object.value()["spec"];
    let Some((service, pods)) = pods_behind(cluster, object, text(spec, "host")) else { return };
    if placeholders::has_placeholder(spec) || is_of_rollout(cluster, object) {
        return;
    }
    for (at, subset) in list(spec, "subsets").iter().enumerate() {
        let wanted = subset_labels(subset);
        let is_used = || uses_subset(cluster, &service.key, text(subset, "name"));
        if wanted.is_empty() || pods.iter().any(|pod| has_labels(pod, &wanted)) || !is_used() {
            continue;
        }
        let shown: Vec<String> = wanted.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let what = format!(
            "subset {} of {} is for pods with {}, and no pod of {} has that",
            text(subset, "name"),
            object.title(),
            shown.join(", "),
            service.title()
        );
        let known: Vec<String> = wanted
            .iter()
            .flat_map(|(key, _)| {
                pods.iter().filter_map(move |pod| Some(format!("{key}={}", pod.label(key)?)))
            })
            .collect();
        let help = match known.is_empty() {
            true => format!("give the pods of {} the label", pods[0].object.title()),
            false => format!("its pods have {}", known.join(", ")),
        };
        let field = keys(&["spec", "subsets"]).index(at).key("labels");
        add(context, object, (what, &field, "no such pod", Some(help)), once);
    }
}

/// Whether a route of the mesh sends to a subset of a Service.
fn uses_subset(cluster: &Cluster<'_>, service: &ResourceKey, subset: &str) -> bool {
    let routes = cluster.objects.iter().filter(|it| it.key.kind == "VirtualService");
    routes.into_iter().any(|route| {
        destinations(route).iter().any(|(_, destination)| {
            text(destination, "subset") == subset
                && service_of(text(destination, "host"), &route.key.namespace)
                    == Some((&service.namespace, &service.name))
        })
    })
}

/// Subsets between which a route divides its requests, of which one has the pods of the other, too.
fn overlapping(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, once: &mut Once) {
    for (rule, value) in list(&object.value()["spec"], "http").iter().enumerate() {
        let named: Vec<(&str, &str)> = list(value, "route")
            .iter()
            .filter_map(|route| route.get("destination"))
            .map(|it| (text(it, "host"), text(it, "subset")))
            .filter(|(_, subset)| !subset.is_empty())
            .collect();
        for (at, (host, subset)) in named.iter().enumerate() {
            for (other_host, other) in &named[at + 1..] {
                if host == other_host && subset != other {
                    let route = keys(&["spec", "http"]).index(rule).key("route");
                    overlap(context, cluster, (object, &route), (host, subset, other), once);
                }
            }
        }
    }
}

fn overlap(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    (object, route): (&Object, &FieldPath),
    (host, one, other): (&str, &str, &str),
    once: &mut Once,
) {
    let Some((_, pods)) = pods_behind(cluster, object, host) else { return };
    let service = service_of(host, &object.key.namespace);
    let mut rules = cluster.objects.iter().filter(|it| {
        it.key.kind == "DestinationRule"
            && service_of(text(&it.value()["spec"], "host"), &it.key.namespace) == service
    });
    let Some(rule) = rules.next().filter(|rule| !is_of_rollout(cluster, rule)) else { return };
    let all = list(&rule.value()["spec"], "subsets");
    let labels = |name: &str| all.iter().find(|it| text(it, "name") == name).map(subset_labels);
    let (Some(first), Some(second)) = (labels(one), labels(other)) else { return };
    let of = |labels: &[(&str, &str)]| -> Vec<&&Pod<'_>> {
        pods.iter().filter(|pod| has_labels(pod, labels)).collect()
    };
    let both: Vec<(&str, &str)> = first.iter().chain(&second).copied().collect();
    let (of_first, of_second, shared) = (of(&first), of(&second), of(&both));
    // Two subsets of the same pods differ in their policies.
    let is_divided = of_first.len() != of_second.len() && of_first.len().max(of_second.len()) > 1;
    let Some(pod) = shared.first().filter(|_| is_divided) else { return };
    let (wide, narrow) = if of_first.len() > of_second.len() { (one, other) } else { (other, one) };
    let what = format!(
        "{} divides requests between subsets {one} and {other}, and {} is of both",
        object.title(),
        pod.object.title()
    );
    let help = format!("give subset {wide} a label that the pods of {narrow} do not have");
    let field = all.iter().position(|it| text(it, "name") == wide).unwrap_or_default();
    let found = finding(context, object, (&what, route, "the weights do not hold", Some(help)));
    let place = context.survey.span(rule, &keys(&["spec", "subsets"]).index(field));
    let mut found = found;
    found.diagnostic = found.diagnostic.see(place, format!("subset {wide}"));
    once.add(&what, found);
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
    // The one Service of its own name, beside it.
    let mut called_so = own().filter(|service| {
        service.key.name == object.key.name && service.key.namespace == object.key.namespace
    });
    if let Some(named) = called_so.next() {
        let labels = named.value().at(&["metadata", "labels"]).and_then(Value::as_object);
        let shown: Vec<String> = labels
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
            .collect();
        return Some(match shown.is_empty() {
            true => format!("{} has no labels", named.title()),
            false => format!("{} has the labels {}", named.title(), shown.join(", ")),
        });
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
    let own = || cluster.pods.iter().filter(|pod| pod.object.owner == object.owner);
    let is_meant = |pod: &&Pod<'_>| {
        pod.object.key.name == object.key.name || selectors::is_slip(&wanted, |key| pod.label(key))
    };
    if selected.is_empty()
        && let Some(meant) = own().find(is_meant)
    {
        let shown: Vec<String> = wanted.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let what = format!("{} selects {}, and no pod has these labels", object.title(), shown.join(", "));
        let hint = Some(format!("perhaps {} is meant", meant.object.title()));
        add(context, object, (what, &keys(&["spec", "selector"]), "selected here", hint), once);
    }
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
