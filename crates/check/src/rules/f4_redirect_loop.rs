//! # A redirect that leads back to itself
//!
//! A load balancer or Ingress ends TLS and speaks HTTP with the server behind it. A server that insists on
//! TLS answers with a redirect to `https://`, which arrives at the same load balancer, and again as HTTP at
//! the server. Argo CD's server does so unless it is told `server.insecure`.
//!
//! People see: `ERR_TOO_MANY_REDIRECTS`.
//!
//! ## Bad
//! ```yaml
//! metadata: {annotations: {alb.ingress.kubernetes.io/backend-protocol: HTTP}}     # and no server.insecure
//! ```
//! ## Good
//! ```yaml
//! kind: ConfigMap
//! metadata: {name: argocd-cmd-params-cm}
//! data: {server.insecure: "true"}
//! ```
//! ## When to suppress
//! Where the server is told so by a flag that the repository does not have.

use tiphys_diag::Severity;
use tiphys_graph::{Object, Survey};
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_uses::ChartUse,
        dedup::Once,
        field_paths::keys,
        pods::{self, list, text},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F4-redirect-loop",
    incident: "F4",
    severity: Severity::Error,
    title: "a redirect that leads back to itself",
    page: page!("f4_redirect_loop.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        if unrendered_files::may_be_a_patch(context.survey, object) {
            continue;
        }
        let plain = match (object.key.group.as_str(), object.key.kind.as_str()) {
            ("networking.k8s.io", "Ingress") => plain_argo_cd(object),
            ("traefik.io" | "traefik.containo.us", "IngressRoute") => plain_route(object),
            ("gateway.networking.k8s.io", "HTTPRoute") => plain_gateway(context.survey, object),
            _ => None,
        };
        if let Some((place, why)) = plain
            && let Some(finding) = argo_cd(context, object, &place, &why)
        {
            once.add(&object.title(), finding);
        }
    }
    behind_balancer(context, &mut once);
    for used in context.chart_uses().iter().filter(|used| used.chart == "argo-cd") {
        if let Some(finding) = argo_cd_chart(context, used) {
            once.add("argo-cd", finding);
        }
    }
    once.report(report);
}

/// Argo CD's own chart, out of reach, whose values have an Ingress that ends TLS and a server that insists on
/// it.
fn argo_cd_chart(context: &Context<'_>, used: &ChartUse) -> Option<Finding> {
    let ingress = used.value(&["server", "ingress"]).filter(|it| it["enabled"] == true)?;
    let is_insecure = used.text(&["configs", "params", "server.insecure"]).is_some_and(|it| it == "true")
        || used.value(&["server", "extraArgs"]).is_some_and(|it| it.to_string().contains("--insecure"));
    let annotations = ingress["annotations"].as_object();
    let annotation = |key: &str| annotations.and_then(|map| map.get(key)?.as_str()).unwrap_or_default();
    let has_prefix =
        |prefix: &str| annotations.is_some_and(|map| map.keys().any(|key| key.starts_with(prefix)));
    let class = text(ingress, "ingressClassName");
    let has_tls = ingress["tls"] == true;
    let (is_tls, is_plain) = if class == "alb" || has_prefix("alb.ingress.kubernetes.io/") {
        let listens = annotation("alb.ingress.kubernetes.io/listen-ports").contains("HTTPS");
        let certified = !annotation("alb.ingress.kubernetes.io/certificate-arn").is_empty();
        let protocol = annotation("alb.ingress.kubernetes.io/backend-protocol");
        (has_tls || listens || certified, !protocol.eq_ignore_ascii_case("https"))
    } else if class.contains("nginx") || has_prefix("nginx.ingress.kubernetes.io/") {
        let protocol = annotation("nginx.ingress.kubernetes.io/backend-protocol").to_uppercase();
        let passes = annotation("nginx.ingress.kubernetes.io/ssl-passthrough") == "true";
        let forces = annotation("nginx.ingress.kubernetes.io/force-ssl-redirect") == "true";
        (has_tls || forces, !passes && !matches!(protocol.as_str(), "HTTPS" | "GRPCS"))
    } else {
        return None;
    };
    if is_insecure || !is_tls || !is_plain {
        return None;
    }
    let diagnostic = RULE
        .diagnostic(format!("{} ends TLS before Argo CD's server, which redirects HTTP to HTTPS", used.by))
        .at(used.span.clone(), "server.ingress ends TLS, and configs.params has no server.insecure")
        .because("the server answers plain HTTP with a redirect to HTTPS, which the Ingress ends again: ERR_TOO_MANY_REDIRECTS")
        .help("set `configs.params.\"server.insecure\": true`, or let the Ingress speak HTTPS with the server (backend-protocol)");
    let finding = Finding::new(RULE.incident, diagnostic).likely();
    Some(match used.app {
        Some(app) => finding.app(context.survey.app(app).name()),
        None => finding,
    })
}

fn annotation<'a>(object: &'a Object, key: &str) -> &'a str {
    object.value().annotation(key).unwrap_or_default()
}

fn class(object: &Object) -> &str {
    let field = text(&object.value()["spec"], "ingressClassName");
    if field.is_empty() { annotation(object, "kubernetes.io/ingress.class") } else { field }
}

fn has_prefix(object: &Object, prefix: &str) -> bool {
    let map = object.value().at(&["metadata", "annotations"]).and_then(Value::as_object);
    map.into_iter().flat_map(|map| map.keys()).any(|key| key.starts_with(prefix))
}

/// Whether an Ingress ends TLS before Argo CD's server and speaks HTTP with it: where the server is named,
/// and why it is HTTP.
fn plain_argo_cd(ingress: &Object) -> Option<(FieldPath, String)> {
    let (place, port) = argo_cd_backend(ingress)?;
    let has_tls = !list(&ingress.value()["spec"], "tls").is_empty();
    let class = class(ingress);
    let (is_tls, is_plain, why) = if class == "alb" || has_prefix(ingress, "alb.ingress.kubernetes.io/") {
        let listens = annotation(ingress, "alb.ingress.kubernetes.io/listen-ports").contains("HTTPS");
        let certified = !annotation(ingress, "alb.ingress.kubernetes.io/certificate-arn").is_empty();
        let protocol = annotation(ingress, "alb.ingress.kubernetes.io/backend-protocol");
        let why = "the ALB ends TLS and speaks HTTP with its targets (backend-protocol)";
        (has_tls || listens || certified, !protocol.eq_ignore_ascii_case("https"), why)
    } else if class.contains("nginx") || has_prefix(ingress, "nginx.ingress.kubernetes.io/") {
        let protocol = annotation(ingress, "nginx.ingress.kubernetes.io/backend-protocol").to_uppercase();
        let passes = annotation(ingress, "nginx.ingress.kubernetes.io/ssl-passthrough") == "true";
        let forces = annotation(ingress, "nginx.ingress.kubernetes.io/force-ssl-redirect") == "true";
        let is_plain = !passes && !matches!(protocol.as_str(), "HTTPS" | "GRPCS");
        (has_tls || forces, is_plain, "nginx ends TLS and speaks HTTP with the server (backend-protocol)")
    } else if class.contains("traefik") {
        let secure = annotation(ingress, "traefik.ingress.kubernetes.io/router.entrypoints") == "websecure";
        let is_https = port == "443" || port.contains("https");
        (has_tls || secure, !is_https, "Traefik ends TLS and speaks HTTP with this port of the server")
    } else {
        return None;
    };
    // Where nginx meets the TLS port with HTTP, the answer is an error and no redirect.
    (is_tls && is_plain).then(|| (place, why.to_owned()))
}

/// Where an Ingress names Argo CD's server, and the port.
fn argo_cd_backend(ingress: &Object) -> Option<(FieldPath, String)> {
    for (rule, value) in list(&ingress.value()["spec"], "rules").iter().enumerate() {
        for (at, path) in list(&value["http"], "paths").iter().enumerate() {
            let service = &path["backend"]["service"];
            if text(service, "name").ends_with("argocd-server") {
                let rules = keys(&["spec", "rules"]).index(rule).key("http").key("paths").index(at);
                let port = &service["port"];
                let number = port["number"].as_i64().map(|number| number.to_string());
                let port = number.unwrap_or_else(|| text(port, "name").to_owned());
                return Some((rules.key("backend").key("service"), port));
            }
        }
    }
    None
}

/// The same of a route of Traefik.
fn plain_route(route: &Object) -> Option<(FieldPath, String)> {
    let spec = &route.value()["spec"];
    let points = list(spec, "entryPoints");
    let is_secure =
        spec.get("tls").is_some() || !points.is_empty() && points.iter().all(|it| it == "websecure");
    for (at, rule) in list(spec, "routes").iter().enumerate().filter(|_| is_secure) {
        for (index, service) in list(rule, "services").iter().enumerate() {
            // Port 443, and a port that is called https, Traefik speaks to by TLS.
            let is_tls = service["port"].as_i64() == Some(443)
                || text(service, "port").starts_with("https")
                || matches!(text(service, "scheme"), "https");
            // gRPC asks for a scheme of its own, and follows no redirect.
            if text(service, "name").ends_with("argocd-server") && !is_tls && text(service, "scheme") != "h2c"
            {
                let place = keys(&["spec", "routes"]).index(at).key("services").index(index);
                return Some((
                    place,
                    "Traefik ends TLS and speaks HTTP with this port of the server".to_owned(),
                ));
            }
        }
    }
    None
}

/// The same of a route of the Gateway API whose listeners all end TLS.
fn plain_gateway(survey: &Survey, route: &Object) -> Option<(FieldPath, String)> {
    let spec = &route.value()["spec"];
    let ends_tls = |parent: &Value| {
        let section = text(parent, "sectionName");
        let namespace = parent.str_at(&["namespace"]).unwrap_or(&route.key.namespace);
        let is_it = |it: &&Object| {
            it.key.kind == "Gateway" && it.key.name == text(parent, "name") && it.key.namespace == namespace
        };
        let world = route.world();
        let gateway = survey.objects_in(&world).find(is_it);
        let listeners: Vec<&Value> = gateway
            .into_iter()
            .flat_map(|it| list(&it.value()["spec"], "listeners"))
            .filter(|it| section.is_empty() || text(it, "name") == section)
            .collect();
        !listeners.is_empty() && listeners.iter().all(|it| text(it, "protocol") == "HTTPS")
    };
    let parents = list(spec, "parentRefs");
    if parents.is_empty() || !parents.iter().all(ends_tls) {
        return None;
    }
    for (at, rule) in list(spec, "rules").iter().enumerate() {
        for (index, backend) in list(rule, "backendRefs").iter().enumerate() {
            if text(backend, "name").ends_with("argocd-server") && backend["port"].as_i64() == Some(80) {
                let place = keys(&["spec", "rules"]).index(at).key("backendRefs").index(index);
                return Some((place, "the Gateway ends TLS and speaks HTTP with this port".to_owned()));
            }
        }
    }
    None
}

/// Whether Argo CD's server is told to do without TLS.
enum Insecure {
    Yes,
    /// It is not, and here is the server.
    No(FieldPath),
    /// The repository does not have it.
    Unknown,
}

fn argo_cd(context: &Context<'_>, ingress: &Object, place: &FieldPath, why: &str) -> Option<Finding> {
    let survey = context.survey;
    let mut server = None;
    let verdict = verdict(survey, ingress, &mut server);
    let diagnostic = RULE
        .diagnostic(format!("{} leads to Argo CD's server over HTTP, which redirects to HTTPS", ingress.title()))
        .at(survey.span(ingress, place), why)
        .because("the redirect to https:// arrives at the same place, and again as HTTP at the server: ERR_TOO_MANY_REDIRECTS")
        .help("set server.insecure: \"true\" in the ConfigMap argocd-cmd-params-cm and restart the server")
        .help("or let the Ingress speak HTTPS with the server (backend-protocol: HTTPS)");
    match (verdict, server) {
        (Insecure::Yes, _) => None,
        (Insecure::No(field), Some(server)) => {
            let diagnostic = diagnostic.see(survey.span(server, &field), "started without --insecure");
            Some(RULE.finding(context, ingress, diagnostic))
        }
        _ if mentions_insecure(context) => None,
        _ => {
            let severity = if installs_argo_cd(context) { Severity::Warning } else { Severity::Info };
            let diagnostic = crate::Diagnostic { severity, ..diagnostic };
            Some(RULE.finding(context, ingress, diagnostic).likely())
        }
    }
}

fn verdict<'a>(survey: &'a Survey, ingress: &Object, server: &mut Option<&'a Object>) -> Insecure {
    let world = ingress.world();
    let mut verdict = Insecure::Unknown;
    for object in survey.objects_in(&world) {
        if object.key.kind == "ConfigMap" && object.key.name == "argocd-cmd-params-cm" {
            match object.value().str_at(&["data", "server.insecure"]) {
                Some("true") => return Insecure::Yes,
                _ => continue,
            }
        }
        let Some(pod) = pods::pod_of(object).filter(|_| object.key.name.ends_with("argocd-server")) else {
            continue;
        };
        for container in pod.containers().filter(|container| container.image().contains("argocd")) {
            let words = ["command", "args"].iter().flat_map(|field| list(container.value, field));
            if words.filter_map(Value::as_str).any(|word| matches!(word, "--insecure" | "--insecure=true")) {
                return Insecure::Yes;
            }
            let mut env = list(container.value, "env").iter();
            if env.any(|it| text(it, "name") == "ARGOCD_SERVER_INSECURE" && text(it, "value") == "true") {
                return Insecure::Yes;
            }
            *server = Some(object);
            verdict = Insecure::No(container.path);
        }
    }
    verdict
}

/// Whether any file speaks of the setting: a playbook, a script, values of a chart that is not seen.
fn mentions_insecure(context: &Context<'_>) -> bool {
    let files = &context.survey.files;
    let endings = [".yaml", ".yml", ".tf", ".sh", ".j2", ".json", ".tpl", ".hcl", "Makefile"];
    let mut paths = files.ending(&endings);
    paths.any(|path| {
        files.text(path).is_some_and(|text| {
            text.contains("server.insecure")
                || text.contains("--insecure")
                || text.contains("ARGOCD_SERVER_INSECURE")
                || (text.contains("insecure: true") && text.contains("server:"))
        })
    })
}

/// Whether the repository installs Argo CD, so that what it does not say is not said elsewhere.
fn installs_argo_cd(context: &Context<'_>) -> bool {
    let files = &context.survey.files;
    let mut paths = files.ending(&[".yaml", ".yml", ".tf", ".sh", ".j2", "Makefile"]);
    paths.any(|path| {
        files.text(path).is_some_and(|text| {
            text.contains("argoproj.github.io/argo-helm")
                || (text.contains("argo-cd") && text.contains("manifests/install.yaml"))
                || text.contains("chart: argo-cd")
        })
    })
}

/// An nginx controller that forces TLS behind a load balancer that has ended it, and is not told to believe
/// what the load balancer says.
fn behind_balancer(context: &Context<'_>, once: &mut Once) {
    const CERTIFICATE: &str = "service.beta.kubernetes.io/aws-load-balancer-ssl-cert";
    for service in context.survey.objects.iter().filter(|it| it.key.kind == "Service") {
        if annotation(service, CERTIFICATE).is_empty() || !is_nginx(service) || !ends_at_http(service) {
            continue;
        }
        let world = service.world();
        let believes = context.survey.objects_in(&world).any(|object| {
            let told = |key: &str| object.value().str_at(&["data", key]) == Some("true");
            object.key.kind == "ConfigMap"
                && object.key.namespace == service.key.namespace
                && (told("use-forwarded-headers") || told("use-proxy-protocol"))
        });
        let forcing = context.survey.objects_in(&world).find(|object| {
            object.key.kind == "Ingress"
                && annotation(object, "nginx.ingress.kubernetes.io/force-ssl-redirect") == "true"
        });
        let (false, Some(ingress)) = (believes, forcing) else { continue };
        let field = keys(&["metadata", "annotations"]).key("nginx.ingress.kubernetes.io/force-ssl-redirect");
        let diagnostic = RULE
            .diagnostic(format!(
                "{} redirects to HTTPS behind a load balancer that has ended it",
                ingress.title()
            ))
            .at(context.survey.span(ingress, &field), "every HTTP request is redirected")
            .see(
                context.survey.span(service, &keys(&["metadata", "annotations"]).key(CERTIFICATE)),
                "the load balancer ends TLS and sends HTTP",
            )
            .because("nginx sees HTTP only, and redirects what was HTTPS already: ERR_TOO_MANY_REDIRECTS")
            .help("set use-forwarded-headers: \"true\" in the controller's ConfigMap");
        once.add(&ingress.title(), RULE.finding(context, ingress, diagnostic).likely());
    }
}

fn is_nginx(service: &Object) -> bool {
    service.key.name.contains("nginx")
        || service.value().label("app.kubernetes.io/name") == Some("ingress-nginx")
}

/// Whether the HTTPS port of a Service leads to the controller's HTTP port.
fn ends_at_http(service: &Object) -> bool {
    list(&service.value()["spec"], "ports").iter().any(|port| {
        let target = &port["targetPort"];
        port["port"].as_i64() == Some(443) && (target == "http" || target.as_i64() == Some(80))
    })
}
