//! # A redirect to HTTPS behind a tunnel that speaks HTTP
//!
//! A tunnel of Cloudflare ends TLS at its edge and hands requests to the Ingress controller over HTTP. An
//! Ingress of nginx that has TLS redirects HTTP to HTTPS, unless it is told not to: the browser follows,
//! arrives at the same edge, and again as HTTP at the controller.
//!
//! People see: `ERR_TOO_MANY_REDIRECTS`, `308 Permanent Redirect` to the same address.
//!
//! ## Bad
//! ```yaml
//! # cloudflared
//! ingress: [{hostname: shop.example.com, service: http://ingress-nginx-controller.ingress-nginx:80}]
//! ---
//! kind: Ingress
//! spec: {tls: [{hosts: [shop.example.com], secretName: shop}], rules: [{host: shop.example.com}]}
//! ```
//! ## Good
//! ```yaml
//! kind: Ingress
//! metadata: {annotations: {nginx.ingress.kubernetes.io/ssl-redirect: "false"}}
//! ```
//! Or `use-forwarded-headers: "true"` in the controller's ConfigMap, so that it believes what the tunnel
//! says.
//!
//! ## When to suppress
//! Where the controller is told so in a place that the repository does not have.

use tiphys_diag::{Severity, Span};
use tiphys_graph::Object;
use tiphys_value::{Location, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        pods::{list, text},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F4-tunnel-redirect",
    incident: "F4",
    severity: Severity::Warning,
    title: "a redirect to HTTPS behind a tunnel that speaks HTTP",
    page: page!("f4_tunnel_redirect.rs"),
    check,
};

/// What a tunnel hands to an Ingress controller over HTTP.
struct Tunnel {
    /// The host, perhaps with a wildcard; empty for all.
    host: String,
    at: Span,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let tunnels = tunnels(context);
    if tunnels.is_empty() || believes_headers(context) {
        return;
    }
    let mut once = Once::default();
    for ingress in &context.survey.objects {
        let is_ingress = ingress.key.kind == "Ingress" && ingress.key.group == "networking.k8s.io";
        if !is_ingress || !is_of_nginx(ingress) || unrendered_files::may_be_a_patch(context.survey, ingress) {
            continue;
        }
        for (at, rule) in list(&ingress.value()["spec"], "rules").iter().enumerate() {
            let host = text(rule, "host");
            let found = tunnels.iter().find(|tunnel| tunnel.hands_on(host));
            let Some(tunnel) = found.filter(|_| redirects(ingress, host)) else { continue };
            let diagnostic = RULE
                .diagnostic(format!("{} redirects {host} to HTTPS behind a tunnel that speaks HTTP", ingress.title()))
                .at(
                    context.survey.span(ingress, &keys(&["spec", "rules"]).index(at).key("host")),
                    "nginx redirects what comes over HTTP, since the host has TLS",
                )
                .see(tunnel.at.clone(), "the tunnel hands it to nginx over HTTP")
                .because("the redirect arrives at the tunnel's edge, and again as HTTP at nginx: ERR_TOO_MANY_REDIRECTS")
                .help("annotate the Ingress with nginx.ingress.kubernetes.io/ssl-redirect: \"false\"")
                .help("or set use-forwarded-headers: \"true\" in the controller's ConfigMap");
            once.add(host, RULE.finding(context, ingress, diagnostic).likely());
        }
    }
    once.report(report);
}

impl Tunnel {
    fn hands_on(&self, host: &str) -> bool {
        !host.is_empty()
            && match self.host.strip_prefix("*.") {
                Some(domain) => host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')),
                None => self.host.is_empty() || self.host == host,
            }
    }
}

fn is_of_nginx(ingress: &Object) -> bool {
    let class = text(&ingress.value()["spec"], "ingressClassName");
    let old = ingress.value().annotation("kubernetes.io/ingress.class").unwrap_or_default();
    class.contains("nginx") || old.contains("nginx")
}

/// Whether nginx redirects a host of an Ingress to HTTPS.
fn redirects(ingress: &Object, host: &str) -> bool {
    let annotation = |key: &str| {
        ingress.value().annotation(&format!("nginx.ingress.kubernetes.io/{key}")).unwrap_or_default()
    };
    let has_tls = list(&ingress.value()["spec"], "tls").iter().any(|tls| {
        let mut hosts = list(tls, "hosts").iter().filter_map(Value::as_str);
        hosts.any(|it| it == host)
    });
    annotation("force-ssl-redirect") == "true" || has_tls && annotation("ssl-redirect") != "false"
}

/// Whether the controller is told to believe the headers of what is before it, or to redirect nothing.
fn believes_headers(context: &Context<'_>) -> bool {
    let files = &context.survey.files;
    files.ending(&[".yaml", ".yml", ".tf", ".sh"]).any(|path| {
        files.text(path).is_some_and(|text| {
            text.contains("use-forwarded-headers")
                || text.contains("use-proxy-protocol")
                || text.lines().any(|line| line.trim_start().starts_with("ssl-redirect:"))
        })
    })
}

/// The tunnels of the repository: configurations of cloudflared, in files of their own or in ConfigMaps.
fn tunnels(context: &Context<'_>) -> Vec<Tunnel> {
    let files = &context.survey.files;
    let mut found = Vec::new();
    for path in files.ending(&[".yaml", ".yml"]) {
        let Some(content) = files.text(path).filter(|text| is_one(text)) else { continue };
        let Ok(documents) = tiphys_yaml::parse_documents(&content, tiphys_yaml::Profile::Go2) else {
            continue;
        };
        let values =
            documents.iter().filter_map(|it| tiphys_yaml::to_value(&it.root, tiphys_yaml::Profile::Go2).ok());
        for (host, service) in values.flat_map(|value| routes(&value)) {
            let mark = if host.is_empty() { &service } else { &host };
            let line = content.lines().position(|line| line.contains(mark.as_str())).unwrap_or_default();
            let line = u32::try_from(line + 1).unwrap_or(u32::MAX);
            found.push(Tunnel { host, at: files.span(&Location::new(path.clone(), line, 0)) });
        }
    }
    found
}

fn is_one(text: &str) -> bool {
    text.contains("ingress:") && text.contains("service: http://") && text.contains("nginx")
}

/// The hosts that a configuration hands to nginx over HTTP, with the address.
fn routes(value: &Value) -> Vec<(String, String)> {
    let texts = value.get("data").and_then(Value::as_object).into_iter().flat_map(|data| data.values());
    let inner = texts.filter_map(Value::as_str).filter(|text| is_one(text));
    let inner: Vec<Value> = inner.filter_map(|text| tiphys_yaml::from_yaml(text).ok()).collect();
    let all = std::iter::once(value).chain(&inner);
    let lists = all.flat_map(|it| {
        let nested = ["cloudflare", "cloudflared", "config"].iter().filter_map(|key| it.get(*key));
        std::iter::once(it).chain(nested).flat_map(|it| list(it, "ingress")).collect::<Vec<_>>()
    });
    lists
        .filter_map(|entry| {
            let service = entry.str_at(&["service"])?;
            let host = service.strip_prefix("http://")?.split(['/', ':']).next()?;
            host.contains("nginx").then(|| (text(entry, "hostname").to_owned(), service.to_owned()))
        })
        .collect()
}
