//! # HTTPS where the server speaks HTTP, or the reverse
//!
//! An Ingress controller or load balancer is told to speak HTTPS with the server behind it, and the server
//! does not; or it speaks HTTP with a port that is TLS. Which of the two a port is, the probe says that the
//! kubelet makes of it: one that passes speaks the server's protocol.
//!
//! People see: `502 Bad Gateway`, `SSL_do_handshake() failed (SSL: error:… wrong version number) while SSL
//! handshaking to upstream`, `Client sent an HTTP request to an HTTPS server`, `400 The plain HTTP request
//! was sent to HTTPS port`.
//!
//! ## Bad
//! ```yaml
//! metadata: {annotations: {nginx.ingress.kubernetes.io/backend-protocol: HTTPS}}
//! # and the container: readinessProbe: {httpGet: {path: /, port: 8080}}
//! ```
//! ## Good
//! ```yaml
//! metadata: {annotations: {nginx.ingress.kubernetes.io/backend-protocol: HTTP}}
//! ```
//! ## When to suppress
//! Where the server speaks both on one port.

use tiphys_diag::{Severity, Span};
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        chart_uses::{ChartUse, Release},
        cluster::Cluster,
        dedup::Once,
        field_paths::keys,
        pods::{Container, Pod, list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F4-wrong-protocol",
    incident: "F4",
    severity: Severity::Warning,
    title: "HTTPS where the server speaks HTTP, or the reverse",
    page: page!("f4_wrong_protocol.rs"),
    check,
};

/// What is spoken with a port.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http,
    Https,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Https => "HTTPS",
        }
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        let is_ingress = |it: &&&Object| it.key.kind == "Ingress" && it.key.group == "networking.k8s.io";
        for ingress in cluster.objects.iter().filter(is_ingress) {
            if let Some((spoken, field)) = backend_protocol(ingress) {
                backends(context, cluster, ingress, spoken, &field, &mut once);
            }
        }
    }
    once.report(report);
}

/// What an Ingress speaks with its backends, and where it says so, for controllers whose rules are known
/// (ingress-nginx, "Annotations: backend protocol"; AWS Load Balancer Controller, "Ingress annotations").
fn backend_protocol(ingress: &Object) -> Option<(Protocol, FieldPath)> {
    let annotation = |key: &str| ingress.value().annotation(key).unwrap_or_default();
    let class = match text(&ingress.value()["spec"], "ingressClassName") {
        "" => annotation("kubernetes.io/ingress.class"),
        class => class,
    };
    let annotations = keys(&["metadata", "annotations"]);
    for (controller, key) in [
        ("nginx", "nginx.ingress.kubernetes.io/backend-protocol"),
        ("alb", "alb.ingress.kubernetes.io/backend-protocol"),
    ] {
        let said = annotation(key).to_uppercase();
        let protocol = match said.as_str() {
            "HTTPS" => Protocol::Https,
            "HTTP" => Protocol::Http,
            "" if class == controller => Protocol::Http,
            _ => continue,
        };
        if annotation("nginx.ingress.kubernetes.io/ssl-passthrough") == "true" {
            return None;
        }
        let place = if said.is_empty() { keys(&["spec", "ingressClassName"]) } else { annotations.key(key) };
        return Some((protocol, place));
    }
    None
}

fn backends(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    ingress: &Object,
    spoken: Protocol,
    field: &FieldPath,
    once: &mut Once,
) {
    let rules = list(&ingress.value()["spec"], "rules").iter();
    let paths = rules.flat_map(|rule| list(&rule["http"], "paths"));
    for backend in paths.map(|path| &path["backend"]["service"]) {
        if spoken == Protocol::Https && text(backend, "name").ends_with("argocd-server") {
            insecure(context, cluster, ingress, field, once);
        }
        let Some(service) = cluster.core("Service", &ingress.key.namespace, text(backend, "name")) else {
            continue;
        };
        let Some(target) = target(service, &backend["port"]) else { continue };
        for pod in cluster.selected_by(service) {
            let Some((container, probe, protocol)) = probed(pod, &target) else { continue };
            if protocol == spoken || speaks_both(&container) {
                continue;
            }
            let (said, right) = (spoken.name(), protocol.name());
            let message = format!(
                "{} speaks {said} with {}, whose container {} of {} is probed by {right} at the same port",
                ingress.title(),
                service.title(),
                container.name(),
                pod.object.title()
            );
            let because = match spoken {
                Protocol::Https => "a server without TLS cannot answer a TLS handshake: clients get 502",
                Protocol::Http => "a server that speaks TLS refuses plain HTTP: clients get 400 or 502",
            };
            let diagnostic = RULE
                .diagnostic(message.clone())
                .at(context.survey.span(ingress, field), format!("{said} is spoken with the servers"))
                .see(context.survey.span(pod.object, &probe), format!("the kubelet speaks {right} with it"))
                .because(because)
                .help(format!("set backend-protocol to {right}, or let the server speak {said}"));
            once.add(&message, RULE.finding(context, ingress, diagnostic).likely());
        }
    }
}

/// Argo CD's server, which does without TLS where its settings say so.
fn insecure(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    ingress: &Object,
    field: &FieldPath,
    once: &mut Once,
) {
    let settings = cluster.core("ConfigMap", &ingress.key.namespace, "argocd-cmd-params-cm");
    let settings = settings.filter(|it| it.value().str_at(&["data", "server.insecure"]) == Some("true"));
    let told = settings
        .map(|it| context.survey.span(it, &keys(&["data"]).key("server.insecure")))
        .or_else(|| insecure_by_chart(context, cluster, &ingress.key.namespace));
    let Some(told) = told else { return };
    let message =
        format!("{} speaks HTTPS with Argo CD's server, which is told to do without TLS", ingress.title());
    let diagnostic = RULE
        .diagnostic(message.clone())
        .at(context.survey.span(ingress, field), "HTTPS is spoken with the server")
        .see(told, "the server speaks HTTP only")
        .because("a server without TLS cannot answer a TLS handshake: clients get 502")
        .help("set backend-protocol to HTTP, or take server.insecure out");
    once.add(&message, RULE.finding(context, ingress, diagnostic).likely());
}

/// Where the values of Argo CD's chart, which is out of reach, tell its server to do without TLS.
fn insecure_by_chart(context: &Context<'_>, cluster: &Cluster<'_>, namespace: &str) -> Option<Span> {
    let is_it = |used: &&ChartUse| {
        let is_here = |it: &Release| it.scope == *cluster.scope() && it.namespace == namespace;
        used.chart == "argo-cd" && used.release.as_ref().is_some_and(is_here)
    };
    let used = context.chart_uses().iter().find(is_it)?;
    let told = used.value(&["configs", "params", "server.insecure"])?;
    let is_on = told.as_bool() == Some(true) || told.as_str() == Some("true");
    is_on.then(|| used.span.clone())
}

/// The port of the pods to which a Service leads.
fn target(service: &Object, wanted: &Value) -> Option<Value> {
    let ports = list(&service.value()["spec"], "ports").iter();
    let is_it = |port: &&Value| match wanted["number"].as_i64() {
        Some(number) => port["port"].as_i64() == Some(number),
        None => !text(wanted, "name").is_empty() && text(port, "name") == text(wanted, "name"),
    };
    let port = ports.into_iter().find(is_it)?;
    Some(port.get("targetPort").unwrap_or(&port["port"]).clone())
}

/// The container that has a port, the probe of it by HTTP or HTTPS, and which of the two.
fn probed<'a>(pod: &Pod<'a>, target: &Value) -> Option<(Container<'a>, FieldPath, Protocol)> {
    for container in pod.containers() {
        let Some(number) = number(&container, target) else { continue };
        for name in ["readinessProbe", "livenessProbe", "startupProbe"] {
            let Some(get) = container.value.get(name).and_then(|probe| probe.get("httpGet")) else {
                continue;
            };
            if self::number(&container, &get["port"]) == Some(number) {
                let is_tls = text(get, "scheme") == "HTTPS";
                let path = container.path.key(name).key("httpGet");
                return Some((container, path, if is_tls { Protocol::Https } else { Protocol::Http }));
            }
        }
    }
    None
}

/// A port of a container as a number.
fn number(container: &Container<'_>, port: &Value) -> Option<i64> {
    if let Some(number) = port.as_i64() {
        return Some(number);
    }
    let name = port.as_str()?;
    let mut ports = list(container.value, "ports").iter();
    ports.find(|it| text(it, "name") == name)?.get("containerPort")?.as_i64()
}

/// Whether a server tells TLS from plain HTTP by the first bytes of a connection.
fn speaks_both(container: &Container<'_>) -> bool {
    ["argocd", "argoproj", "argo-workflows", "argocli", "cockroach", "haproxy"]
        .iter()
        .any(|known| container.image().contains(known))
}
