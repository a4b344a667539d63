//! # A route of Traefik names what lies in another namespace
//!
//! Traefik lets an IngressRoute or a Middleware name objects of its own namespace alone, unless its provider
//! is told `allowCrossNamespace`. A route that names others is dropped as a whole.
//!
//! People see: `middleware shop/auth is not in the IngressRoute namespace web`, `service … not in the parent
//! resource namespace`, and 404.
//!
//! The rule speaks where the values of Traefik are in the repository, and no file of it names the setting.
//!
//! ## Bad
//! ```yaml
//! kind: IngressRoute
//! metadata: {name: web, namespace: web}
//! spec: {routes: [{match: "Host(`shop.example.com`)", middlewares: [{name: auth, namespace: sso}]}]}
//! ```
//! ## Good
//! ```yaml
//! # values of the chart traefik
//! providers: {kubernetesCRD: {allowCrossNamespace: true}}
//! ```
//! ## When to suppress
//! Where the setting is given in another repository.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{list, text},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F4-cross-namespace",
    incident: "F4",
    severity: Severity::Warning,
    title: "a route of Traefik names what lies in another namespace",
    page: page!("f4_cross_namespace.rs"),
    check,
};

/// The setting in values, arguments and variables.
const SPELLINGS: [&str; 3] = ["allowCrossNamespace", "allowcrossnamespace", "ALLOWCROSSNAMESPACE"];

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let is_told = |object: &&Object| {
        object.key.kind == "HelmChartConfig" && object.key.name == "traefik"
            || object.key.kind == "HelmChart" && object.value().str_at(&["spec", "chart"]) == Some("traefik")
    };
    let is_given = || context.chart_uses().iter().any(|it| it.chart == "traefik" && !it.has_hidden_values);
    let is_known = survey.objects.iter().find(is_told).is_some() || is_given();
    let names = |text: &str| SPELLINGS.iter().any(|it| text.contains(it));
    let mut files = survey.files.paths();
    if !is_known || files.any(|path| survey.files.text(path).is_some_and(|text| names(&text))) {
        return;
    }
    let mut once = Once::default();
    let routes = survey
        .objects
        .iter()
        .filter(|it| matches!(it.key.group.as_str(), "traefik.io" | "traefik.containo.us"));
    for object in routes {
        let own = object.key.namespace.as_str();
        if own.is_empty() || placeholders::is_in(own) || unrendered_files::may_be_a_patch(survey, object) {
            continue;
        }
        for (what, named, path) in references(object) {
            let other = text(named, "namespace");
            let is_plain =
                !other.is_empty() && !placeholders::is_in(other) && !text(named, "name").contains('@');
            if other == own || !is_plain {
                continue;
            }
            let diagnostic = RULE
                .diagnostic(format!("{} names {what} {} in {other}", object.title(), text(named, "name")))
                .at(survey.span(object, &path.key("namespace")), "another namespace than its own")
                .because("without `allowCrossNamespace` Traefik drops the route, and answers with 404; no file here sets it")
                .help("set `providers.kubernetesCRD.allowCrossNamespace: true` for Traefik, or make it in this namespace");
            once.add(what, RULE.finding(context, object, diagnostic).likely());
        }
    }
    once.report(report);
}

/// What an object of Traefik names that has a namespace: the word for it, itself, and where it stands.
fn references(object: &Object) -> Vec<(&'static str, &Value, FieldPath)> {
    let spec = &object.value()["spec"];
    let mut found = Vec::new();
    for (at, route) in list(spec, "routes").iter().enumerate() {
        let route_path = keys(&["spec", "routes"]).index(at);
        for (what, key) in [("Middleware", "middlewares"), ("Service", "services")] {
            for (at, it) in list(route, key).iter().enumerate() {
                found.push((what, it, route_path.key(key).index(at)));
            }
        }
    }
    for (at, it) in spec.get("chain").map(|it| list(it, "middlewares")).unwrap_or_default().iter().enumerate()
    {
        found.push(("Middleware", it, keys(&["spec", "chain", "middlewares"]).index(at)));
    }
    if let Some(service) = spec.at(&["errors", "service"]) {
        found.push(("Service", service, keys(&["spec", "errors", "service"])));
    }
    found
}
