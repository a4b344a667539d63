//! # Traffic that leads nowhere
//!
//! An Ingress names a Service and one of its ports; a Service finds pods by their labels; a
//! HorizontalPodAutoscaler names a workload. Where what is named is not there, everything is applied and
//! looks healthy, and requests end with 503. Where a Service selects the pods of two workloads, of which one
//! has not its port, some of the requests do. Of much used charts that are out of reach it is known what they
//! call their Services, and which ports those have.
//!
//! People see: `503 Service Temporarily Unavailable`, `Service "shop/web" does not have any active Endpoint`,
//! `endpoints not found`, `FailedGetScale: deployments/scale.apps "web" not found`.
//!
//! ## Bad
//! ```yaml
//! kind: Service
//! spec: {selector: {app: webb}}       # the pods have app: web
//! ```
//! ## Good
//! ```yaml
//! spec: {selector: {app: web}}
//! ```
//! ## When to suppress
//! Where the pods or the Service are made by a program.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{App, Object};
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value, json};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_services::{self, Answer},
        cluster::Cluster,
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{Pod, list, text},
        selectors, unrendered_files, word_replacement,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F4-no-backend",
    incident: "F4",
    severity: Severity::Warning,
    title: "an Ingress, Service or autoscaler whose target is not there",
    page: page!("f4_no_backend.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.unreached_clusters() {
        for object in
            cluster.objects.iter().filter(|it| !unrendered_files::may_be_a_patch(context.survey, it))
        {
            routes(context, cluster, object, &mut once);
        }
    }
    for cluster in context.clusters() {
        for object in &cluster.objects {
            routes(context, cluster, object, &mut once);
            match (object.key.group.as_str(), object.key.kind.as_str()) {
                ("", "Service") => service(context, cluster, object, &mut once),
                ("autoscaling", "HorizontalPodAutoscaler") | ("keda.sh", "ScaledObject") => {
                    autoscaler(context, cluster, object, "scaleTargetRef", &mut once);
                }
                ("autoscaling.k8s.io", "VerticalPodAutoscaler") => {
                    autoscaler(context, cluster, object, "targetRef", &mut once);
                }
                ("policy", "PodDisruptionBudget") => budget(context, cluster, object, &mut once),
                _ => {}
            }
        }
    }
    once.report(report);
}

/// The backends of whatever leads from outside to Services.
fn routes(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, once: &mut Once) {
    match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("networking.k8s.io", "Ingress") => ingress(context, cluster, object, once),
        ("gateway.networking.k8s.io", kind) if kind.ends_with("Route") => {
            route(context, cluster, object, once);
        }
        ("traefik.io", "IngressRoute" | "IngressRouteTCP") => traefik(context, cluster, object, once),
        ("projectcontour.io", "HTTPProxy") => contour(context, cluster, object, once),
        _ => {}
    }
}

fn ingress(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, once: &mut Once) {
    let spec = &object.value()["spec"];
    let mut backends: Vec<(FieldPath, &Value)> = Vec::new();
    if let Some(backend) = spec.get("defaultBackend") {
        backends.push((keys(&["spec", "defaultBackend"]), backend));
    }
    for (rule, value) in list(spec, "rules").iter().enumerate() {
        for (at, path) in
            value.get("http").map(|http| list(http, "paths")).unwrap_or_default().iter().enumerate()
        {
            let place =
                keys(&["spec", "rules"]).index(rule).key("http").key("paths").index(at).key("backend");
            backends.extend(path.get("backend").map(|backend| (place, backend)));
        }
    }
    for (path, backend) in backends {
        let Some(target) = backend.get("service") else { continue };
        let name = text(target, "name");
        let path = path.key("service");
        match cluster.core("Service", &object.key.namespace, name) {
            Some(found) => port(context, object, found, target, &path, once),
            None if is_action(object, name) => {}
            None if of_charts(context, cluster, object, &object.key.namespace, target, &path, once) => {}
            None if cluster.belongs_to_argocd(&object.key.namespace, name)
                || cluster.is_partly_hidden(&object.key.namespace)
                || cluster.may_be_made(&object.key.namespace, name) => {}
            None => {
                let what = format!("{} sends to Service/{name}, which nothing makes", object.title());
                let names = cluster.objects.iter().filter(|it| {
                    it.key.kind == "Service"
                        && it.key.group.is_empty()
                        && it.key.namespace == object.key.namespace
                });
                let nearest = similar_names::nearest_slip(name, names.map(|it| it.key.name.as_str()));
                once.add(
                    &what,
                    finding(context, object, &what, &path.key("name"), "no such Service", nearest),
                );
            }
        }
    }
}

/// The backends of a route of the Gateway API.
fn route(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, once: &mut Once) {
    for (rule, value) in list(&object.value()["spec"], "rules").iter().enumerate() {
        let place = keys(&["spec", "rules"]).index(rule).key("backendRefs");
        for (at, backend) in list(value, "backendRefs").iter().enumerate() {
            if matches!(text(backend, "kind"), "" | "Service") {
                target(context, cluster, object, backend, &place.index(at), once);
            }
        }
    }
}

/// The backends of a route of Traefik.
fn traefik(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, once: &mut Once) {
    for (route, value) in list(&object.value()["spec"], "routes").iter().enumerate() {
        let place = keys(&["spec", "routes"]).index(route).key("services");
        for (at, backend) in list(value, "services").iter().enumerate() {
            if matches!(text(backend, "kind"), "" | "Service") {
                target(context, cluster, object, backend, &place.index(at), once);
            }
        }
    }
}

/// The backends of a route of Contour.
fn contour(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, once: &mut Once) {
    let spec = &object.value()["spec"];
    let routes = list(spec, "routes").iter().enumerate();
    let routes = routes.map(|(at, route)| (keys(&["spec", "routes"]).index(at), route));
    let all = routes.chain(spec.get("tcpproxy").map(|proxy| (keys(&["spec", "tcpproxy"]), proxy)));
    for (place, value) in all {
        for (at, backend) in list(value, "services").iter().enumerate() {
            target(context, cluster, object, backend, &place.key("services").index(at), once);
        }
    }
}

/// A Service that a route names, and its port.
fn target(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    object: &Object,
    backend: &Value,
    path: &FieldPath,
    once: &mut Once,
) {
    let (name, given) = (text(backend, "name"), text(backend, "namespace"));
    let namespace = if given.is_empty() { object.key.namespace.as_str() } else { given };
    if name.is_empty() || placeholders::has_placeholder(backend) || name.contains('@') {
        return;
    }
    let wanted = match &backend["port"] {
        Value::String(port) => json!({"name": name, "port": {"name": port}}),
        number => json!({"name": name, "port": {"number": number}}),
    };
    let is_told = cluster.core("Service", namespace, name).is_none()
        && of_charts(context, cluster, object, namespace, &wanted, path, once);
    if is_told || cluster.is_partly_hidden(namespace) {
        return;
    }
    if let Some(found) = cluster.core("Service", namespace, name) {
        return port(context, object, found, &wanted, path, once);
    }
    // A namespace of which nothing is seen is another repository's.
    let is_seen = cluster.pods.iter().any(|pod| pod.object.key.namespace == namespace);
    if !is_seen
        || cluster.belongs_to_argocd(namespace, name)
        || cluster.is_partly_hidden(namespace)
        || cluster.may_be_made(namespace, name)
        || cluster.has_operated_pods(namespace)
    {
        return;
    }
    let what = format!("{} sends to Service/{name} in {namespace}, which nothing makes", object.title());
    let services = cluster.objects.iter().filter(|it| it.key.kind == "Service" && it.key.group.is_empty());
    let beside = services.filter(|it| it.key.namespace == namespace);
    let nearest = similar_names::nearest_slip(name, beside.map(|it| it.key.name.as_str()));
    once.add(&what, finding(context, object, &what, &path.key("name"), "no such Service", nearest));
}

/// Tells of a Service that a chart out of reach makes under another name, or without the port, as far as the
/// table of known charts says; whether that chart makes it, or what was told.
fn of_charts(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    object: &Object,
    namespace: &str,
    target: &Value,
    path: &FieldPath,
    once: &mut Once,
) -> bool {
    let name = text(target, "name");
    match chart_services::find(context, cluster, namespace, name) {
        None => return false,
        Some(Answer::Made(service)) => {
            let wanted = match target["port"]["number"].as_i64() {
                Some(number) => number.to_string(),
                None => text(&target["port"], "name").to_owned(),
            };
            if wanted.is_empty() || wanted == "use-annotation" || service.may_have_port(&wanted) {
                return true;
            }
            let what = format!(
                "{} sends to port {wanted} of Service/{name}, which has no such port",
                object.title()
            );
            let diagnostic = RULE
                .diagnostic(what.clone())
                .at(context.survey.span(object, &path.key("port")), "no such port")
                .see(service.used.span.clone(), format!("this chart gives it {}", service.ports_text()))
                .because(format!(
                    "the controller finds no endpoint for the port and answers 503; {}",
                    service.chart.evidence()
                ));
            once.add(&what, RULE.finding(context, object, diagnostic).likely());
        }
        Some(Answer::Renamed(service)) => {
            let what = format!(
                "{} sends to Service/{name} in {namespace}, which chart {} calls {}",
                object.title(),
                service.chart.name,
                service.name
            );
            let diagnostic = RULE
                .diagnostic(what.clone())
                .at(context.survey.span(object, &path.key("name")), "no such Service")
                .see(service.used.span.clone(), format!("this chart makes Service/{}", service.name))
                .because(format!(
                    "everything is applied and looks healthy, and nothing arrives; {}",
                    service.chart.evidence()
                ));
            let finding = RULE.finding(context, object, diagnostic).likely();
            once.add(&what, finding.perhaps(name, Some(&service.name)));
        }
    }
    true
}

/// The AWS controller and Traefik use names of Services for what is none.
fn is_action(object: &Object, name: &str) -> bool {
    let annotation = format!("alb.ingress.kubernetes.io/actions.{name}");
    let annotations = object.value()["metadata"]["annotations"].as_object();
    name.is_empty() || annotations.is_some_and(|map| map.contains_key(&annotation)) || name.contains('@')
}

fn port(
    context: &Context<'_>,
    object: &Object,
    service: &Object,
    target: &Value,
    path: &FieldPath,
    once: &mut Once,
) {
    let ports = list(&service.value()["spec"], "ports");
    let (name, number) = (text(&target["port"], "name"), target["port"]["number"].as_i64());
    let is_there = match number {
        Some(number) => ports.iter().any(|port| port["port"].as_i64() == Some(number)),
        None => {
            name.is_empty() || name == "use-annotation" || ports.iter().any(|port| text(port, "name") == name)
        }
    };
    // A path that is to lead nowhere names the last of all ports.
    let is_closed = number == Some(i64::from(u16::MAX));
    if is_there || is_closed || text(&service.value()["spec"], "type") == "ExternalName" {
        return;
    }
    let wanted = number.map_or_else(|| name.to_owned(), |number| number.to_string());
    let known: Vec<String> = ports.iter().filter_map(|port| Some(port.get("port")?.to_string())).collect();
    let what =
        format!("{} sends to port {wanted} of {}, which it does not have", object.title(), service.title());
    let diagnostic = RULE
        .diagnostic(what.clone())
        .at(context.survey.span(object, &path.key("port")), "no such port")
        .see(
            context.survey.span(service, &keys(&["spec", "ports"])),
            format!("its ports are {}", known.join(", ")),
        )
        .because("the controller finds no endpoint for the port and answers 503");
    once.add(&what, RULE.finding(context, object, diagnostic));
}

fn service(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, once: &mut Once) {
    let wanted = selectors::labels(object);
    let namespace = &object.key.namespace;
    if wanted.is_empty() {
        return without_selector(context, cluster, object, once);
    }
    mixed(context, cluster, object, once);
    if cluster.selected_by(object).next().is_some() {
        return;
    }
    let is_hidden = cluster.is_partly_hidden(namespace);
    let is_open = is_hidden || cluster.may_have_operated_pods(namespace, &wanted);
    let is_whole = context.survey.app_of(object).is_some_and(App::is_rendered);
    if is_open && !is_whole {
        return;
    }
    let place = keys(&["spec", "selector"]);
    if narrowed(context, cluster, object, (&place, &wanted), once) {
        return;
    }
    // Only beside pods that differ in one label is it likely that those were meant.
    let near = |pod: &&Pod<'_>| {
        let differing = wanted.iter().filter(|(key, value)| pod.label(key) != Some(value)).count();
        let is_near = differing == 1 && wanted.len() > 1;
        let is_called_so = pod.object.key.name == object.key.name && is_long_running(pod);
        pod.object.key.namespace == *namespace
            && pod.object.owner == object.owner
            && (is_near
                || !is_open && (is_called_so || wanted.iter().all(|(key, _)| pod.label(key).is_some())))
    };
    // Pods of its own name are meant, whoever else selects them.
    let is_free = |pod: &&Pod<'_>| pod.object.key.name == object.key.name || !serves_others(cluster, pod);
    let nearest = cluster.pods.iter().filter(near).filter(is_free);
    let Some(pod) = nearest.min_by_key(|pod| pod.object.key.name != object.key.name) else { return };
    let why = "a Service without pods has no endpoints: connections to it are refused";
    selects_nothing(context, object, &wanted, pod, why, once);
}

/// Whether pods are there to be sent to, and do not end.
fn is_long_running(pod: &Pod<'_>) -> bool {
    matches!(pod.object.key.kind.as_str(), "Deployment" | "StatefulSet" | "DaemonSet" | "Rollout")
}

/// A selector to which a kustomization adds labels that the pods, which come from elsewhere, do not have.
/// Whether it is told.
fn narrowed(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    object: &Object,
    (place, wanted): (&FieldPath, &[(&str, &str)]),
    once: &mut Once,
) -> bool {
    let (own, added) = selectors::without_transformed(object, place, wanted);
    if own.is_empty() || added.is_empty() {
        return false;
    }
    let is_meant = |pod: &&Pod<'_>| {
        pod.object.key.namespace == object.key.namespace
            && own.iter().all(|(key, value)| pod.label(key) == Some(value))
    };
    let shown: Vec<String> = added.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let shown = shown.join(", ");
    let survey = context.survey;
    let (place_of_pods, who, why) = if let Some(pod) = cluster.pods.iter().find(is_meant) {
        (
            survey.span(pod.object, &pod.path.key("metadata").key("labels")),
            format!("{} has the other labels, and is not of this kustomization", pod.object.title()),
            "the labels of `commonLabels` go into selectors, but only into pods of the same kustomization",
        )
    } else if let Some(maker) = maker_of_pods(cluster, object, &own, &added) {
        (
            survey.start(maker),
            format!("the operator makes the pods of {} without it", maker.title()),
            "the labels of `commonLabels` go into selectors, but not into pods that an operator makes",
        )
    } else {
        return false;
    };
    let what =
        format!("{} selects {shown} too, which its kustomization adds, and no pod has it", object.title());
    let diagnostic = RULE
        .diagnostic(what.clone())
        .at(survey.span(object, &place.key(added[0].0)), "added to every selector")
        .see(place_of_pods, who)
        .because(why)
        .help(
            "use `labels` with `includeSelectors: false`, or select by the labels alone that the pods have",
        );
    once.add(&what, RULE.finding(context, object, diagnostic).likely());
    true
}

/// The custom resource whose operator gives its pods some labels, and not some others.
fn maker_of_pods<'a>(
    cluster: &Cluster<'a>,
    object: &Object,
    own: &[(&str, &str)],
    added: &[(&str, &str)],
) -> Option<&'a Object> {
    let here = cluster.objects.iter().copied().filter(|it| it.key.namespace == object.key.namespace);
    here.into_iter().find(|it| {
        let Some(operated) = tiphys_network::operated(it.of_network()) else { return false };
        let has = |(key, value): &(&str, &str)| operated.pod.labels.get(*key).is_some_and(|it| it == value);
        own.iter().all(has) && !added.iter().any(has)
    })
}

/// A Service that selects the pods of two workloads, of which one has not the port that it sends to. A port
/// that is told by its name leads only to those that have it.
fn mixed(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, once: &mut Once) {
    let spec = &object.value()["spec"];
    if matches!(text(spec, "type"), "ExternalName") || text(spec, "clusterIP") == "None" {
        return;
    }
    let pods = cluster.selected_by(object).filter(|pod| is_long_running(pod));
    // The ports that pods say they have; what says nothing may have any.
    let ports = |pod: &Pod<'_>| -> Vec<i64> {
        let containers = pod.containers().filter(|it| it.path.to_string().contains("containers"));
        containers
            .flat_map(|it| list(it.value, "ports"))
            .filter_map(|it| it["containerPort"].as_i64())
            .collect()
    };
    let told: Vec<(&Pod<'_>, Vec<i64>)> =
        pods.map(|pod| (pod, ports(pod))).filter(|(_, ports)| !ports.is_empty()).collect();
    for (at, port) in list(spec, "ports").iter().enumerate() {
        let target = port.get("targetPort").or_else(|| port.get("port")).and_then(Value::as_i64);
        let Some(target) = target.filter(|_| told.len() > 1) else { continue };
        let (have, lack): (Vec<_>, Vec<_>) = told.iter().partition(|(_, ports)| ports.contains(&target));
        let (Some((right, _)), Some((wrong, _))) = (have.first(), lack.first()) else { continue };
        let what = format!(
            "{} sends a part of what it gets to {}, which has no port {target}",
            object.title(),
            wrong.object.title()
        );
        let labels: Vec<String> =
            selectors::labels(object).iter().map(|(key, value)| format!("{key}={value}")).collect();
        let place = keys(&["spec", "ports"]).index(at);
        let diagnostic = RULE
            .diagnostic(what.clone())
            .at(context.survey.span(object, &place), format!("for all pods with {}", labels.join(", ")))
            .see(context.survey.start(right.object), format!("{} has the port", right.object.title()))
            .see(context.survey.start(wrong.object), format!("{} is selected too", wrong.object.title()))
            .because("a Service spreads connections over all pods that it selects: some of them are refused, again and again")
            .help(format!("give the pods of {} a label that the others do not have, and select by it", right.object.title()));
        once.add(&what, RULE.finding(context, object, diagnostic).likely());
        return;
    }
}

/// A Service that selects nothing, though its target port is by its name the port of a pod beside it: without
/// a selector nobody makes its endpoints (Kubernetes docs, "Services without selectors").
fn without_selector(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, once: &mut Once) {
    let spec = &object.value()["spec"];
    let targets: Vec<&str> = list(spec, "ports").iter().map(|port| text(port, "targetPort")).collect();
    let has_endpoints = cluster.objects.iter().any(|it| {
        it.key.namespace == object.key.namespace
            && match it.key.kind.as_str() {
                "Endpoints" => it.key.name == object.key.name,
                "EndpointSlice" => it.value().label("kubernetes.io/service-name") == Some(&object.key.name),
                _ => false,
            }
    });
    if text(spec, "type") == "ExternalName"
        || has_endpoints
        || placeholders::has_placeholder(spec)
        || is_of_other_clusters(object)
    {
        return;
    }
    let is_called_so = |name: &str| name.starts_with(&object.key.name) || object.key.name.starts_with(name);
    let is_meant = |pod: &&Pod<'_>| {
        let ports = pod.containers().flat_map(|container| list(container.value, "ports"));
        pod.object.owner == object.owner
            && pod.object.key.namespace == object.key.namespace
            && is_called_so(&pod.object.key.name)
            && ports.map(|port| text(port, "name")).any(|name| !name.is_empty() && targets.contains(&name))
    };
    let Some(pod) = cluster.pods.iter().find(is_meant) else { return };
    let what = format!("{} has no selector, and nothing makes its endpoints", object.title());
    let diagnostic = RULE
        .diagnostic(what.clone())
        .at(context.survey.span(object, &keys(&["spec", "ports"])), "leads to no pod")
        .see(context.survey.start(pod.object), format!("{} has a port of this name", pod.object.title()))
        .because("a Service without pods has no endpoints: connections to it are refused")
        .help("give it the labels of the pods as spec.selector");
    once.add(&what, RULE.finding(context, object, diagnostic).likely());
}

/// Whether Cilium joins a Service with those of its name in other clusters, whose pods serve it (Cilium docs,
/// "Load-balancing & Service Discovery").
fn is_of_other_clusters(service: &Object) -> bool {
    let marks = ["service.cilium.io/global", "io.cilium/global-service"];
    marks.iter().any(|mark| service.value().annotation(mark) == Some("true"))
}

/// Whether another Service selects the pods, so that this one need not mean them.
fn serves_others(cluster: &Cluster<'_>, pod: &Pod<'_>) -> bool {
    cluster.objects.iter().any(|object| {
        object.key.kind == "Service" && object.key.group.is_empty() && selectors::selects(object, pod)
    })
}

fn autoscaler(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, field: &str, once: &mut Once) {
    let target = &object.value()["spec"][field];
    let said = |key: &str, usual: &'static str| match text(target, key) {
        "" if object.key.kind == "ScaledObject" => usual.to_owned(),
        text => text.to_owned(),
    };
    // KEDA docs, "Scaling Deployments": kind and version have defaults.
    let (kind, version) = (said("kind", "Deployment"), said("apiVersion", "apps/v1"));
    let (kind, name) = (kind.as_str(), text(target, "name"));
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let namespace = &object.key.namespace;
    let key = ResourceKey::new(group, kind, namespace, name);
    let is_hidden = cluster.is_partly_hidden(namespace);
    let is_open = name.is_empty()
        || placeholders::is_in(name)
        || cluster.may_be_made(namespace, name) && group.is_empty();
    let is_workload = matches!(kind, "Deployment" | "StatefulSet" | "DaemonSet" | "Rollout");
    if is_hidden || is_open || !is_workload || cluster.find(&key).is_some() {
        return;
    }
    let others = cluster.objects.iter().filter(|it| it.key.kind == kind && it.key.namespace == *namespace);
    let nearest = similar_names::nearest_slip(name, others.map(|it| it.key.name.as_str()));
    let what = format!("{} scales {kind}/{name}, which nothing makes", object.title());
    let place = keys(&["spec", field, "name"]);
    once.add(&what, finding(context, object, &what, &place, "no such workload", nearest));
}

/// A budget that selects no pods, beside pods that are nearly labelled so.
fn budget(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, once: &mut Once) {
    let namespace = object.key.namespace.as_str();
    let Some(wanted) = selectors::match_labels(&object.value()["spec"]["selector"]) else { return };
    let mut here = cluster.pods.iter().filter(|pod| pod.object.key.namespace == namespace);
    if here.clone().any(|pod| wanted.iter().all(|(key, value)| pod.label(key) == Some(value)))
        || cluster.is_partly_hidden(namespace)
        || cluster.may_have_operated_pods(namespace, &wanted)
    {
        return;
    }
    let place = keys(&["spec", "selector", "matchLabels"]);
    if narrowed(context, cluster, object, (&place, &wanted), once) {
        return;
    }
    let is_meant = |pod: &&Pod<'_>| {
        pod.object.owner == object.owner
            && is_long_running(pod)
            && (pod.object.key.name == object.key.name || selectors::is_slip(&wanted, |key| pod.label(key)))
    };
    let Some(pod) = here.find(is_meant) else { return };
    let why = "a budget without pods protects none: all of them may be evicted at once";
    selects_nothing(context, object, &wanted, pod, why, once);
}

/// Tells of a selector that selects no pod, and of the pod that it may mean.
fn selects_nothing(
    context: &Context<'_>,
    object: &Object,
    wanted: &[(&str, &str)],
    pod: &Pod<'_>,
    why: &str,
    once: &mut Once,
) {
    let shown: Vec<String> = wanted.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let what = format!("{} selects {}, and no pod has these labels", object.title(), shown.join(", "));
    let diagnostic = RULE
        .diagnostic(what.clone())
        .at(context.survey.span(object, &keys(&["spec", "selector"])), "selected here")
        .see(
            context.survey.span(pod.object, &pod.path.key("metadata").key("labels")),
            format!("{} has these", pod.object.title()),
        )
        .because(why);
    let finding = RULE.finding(context, object, diagnostic).likely();
    // One value that is nearly another is a slip.
    let differing: Vec<_> = wanted.iter().filter(|(key, value)| pod.label(key) != Some(value)).collect();
    let slip = match differing[..] {
        [(key, value)] => pod.label(key).map(|own| (*key, *value, own)),
        _ => None,
    };
    let Some((key, value, own)) = slip.filter(|_| selectors::is_slip(wanted, |key| pod.label(key))) else {
        return once.add(&what, finding);
    };
    let selector = keys(&["spec", "selector"]);
    let labels = if object.key.kind == "Service" { selector } else { selector.key("matchLabels") };
    let mended =
        word_replacement::with_replacement(context.survey, object, &labels.key(key), (value, own), finding);
    once.add(&what, mended);
}

fn finding(
    context: &Context<'_>,
    object: &Object,
    what: &str,
    place: &FieldPath,
    label: &str,
    nearest: Option<&str>,
) -> Finding {
    let diagnostic = RULE
        .diagnostic(what)
        .at(context.survey.span(object, place), label)
        .because("everything is applied and looks healthy, and nothing arrives");
    let named = place.get(object.value()).and_then(Value::as_str).unwrap_or_default();
    RULE.finding(context, object, diagnostic).likely().perhaps(named, nearest)
}
