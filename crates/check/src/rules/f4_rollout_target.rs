//! # A Rollout names what is not there
//!
//! A Rollout of Argo Rollouts shifts traffic between Services, through an Ingress or a VirtualService with
//! its routes and subsets, and asks AnalysisTemplates. The API server takes any name; the controller marks
//! the Rollout as invalid, and no new version is rolled out.
//!
//! People see: `InvalidSpec: The Rollout "web" is invalid: spec.strategy.canary.canaryService: Invalid value:
//! "web-canary": service "web-canary" not found`, `Istio VirtualService route 'primary' is not found`,
//! `AnalysisTemplate 'success-rate' not found`.
//!
//! ## Bad
//! ```yaml
//! kind: Rollout
//! spec: {strategy: {canary: {trafficRouting: {istio: {virtualService: {name: web, routes: [primary]}}}}}}
//! # the routes of VirtualService web are called main
//! ```
//! ## Good
//! ```yaml
//! spec: {strategy: {canary: {trafficRouting: {istio: {virtualService: {name: web, routes: [main]}}}}}}
//! ```
//! ## When to suppress
//! Where what is named is made by a program.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

use crate::{
    Context, Report, Rule,
    support::{
        cluster::Cluster,
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F4-rollout-target",
    incident: "F4",
    severity: Severity::Warning,
    title: "a Rollout names what is not there",
    page: page!("f4_rollout_target.rs"),
    check,
};

/// Fields of a strategy that name an object of the Rollout's namespace: the way, the group and the kind.
const NAMED: [(&[&str], &str, &str); 9] = [
    (&["blueGreen", "activeService"], "", "Service"),
    (&["blueGreen", "previewService"], "", "Service"),
    (&["canary", "canaryService"], "", "Service"),
    (&["canary", "stableService"], "", "Service"),
    (&["canary", "trafficRouting", "alb", "ingress"], "networking.k8s.io", "Ingress"),
    (&["canary", "trafficRouting", "nginx", "stableIngress"], "networking.k8s.io", "Ingress"),
    (&["canary", "trafficRouting", "istio", "virtualService", "name"], ISTIO, "VirtualService"),
    (&["canary", "trafficRouting", "istio", "destinationRule", "name"], ISTIO, "DestinationRule"),
    (&["canary", "trafficRouting", "traefik", "weightedTraefikServiceName"], "traefik.io", "TraefikService"),
];

const ISTIO: &str = "networking.istio.io";

/// What a Rollout names, and what there is in its place.
struct Missing<'a> {
    field: FieldPath,
    /// `Service/web-canary`, `route primary of VirtualService/web`.
    what: String,
    name: &'a str,
    known: Vec<&'a str>,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        let is_rollout = |it: &&&Object| it.key.kind == "Rollout" && it.key.group == "argoproj.io";
        for rollout in cluster.objects.iter().filter(is_rollout) {
            let strategy = &rollout.value()["spec"]["strategy"];
            let is_hidden = cluster.is_partly_hidden(&rollout.key.namespace);
            if is_hidden || placeholders::has_placeholder(strategy) {
                continue;
            }
            let mut missing = objects(cluster, rollout, strategy);
            missing.extend(parts_of_mesh(cluster, rollout, strategy));
            missing.extend(templates(cluster, rollout, strategy));
            missing.iter().for_each(|it| add(context, rollout, it, &mut once));
        }
    }
    once.report(report);
}

fn place(steps: &[&str]) -> FieldPath {
    steps.iter().fold(keys(&["spec", "strategy"]), |path, step| path.key(*step))
}

/// The names of a kind in a namespace.
fn beside<'a>(cluster: &Cluster<'a>, namespace: &str, kind: &str) -> Vec<&'a str> {
    let is_one = |it: &&&'a Object| it.key.kind == kind && it.key.namespace == namespace;
    cluster.objects.iter().filter(is_one).map(|it| it.key.name.as_str()).collect()
}

fn objects<'a>(cluster: &Cluster<'a>, rollout: &'a Object, strategy: &'a Value) -> Vec<Missing<'a>> {
    let namespace = rollout.key.namespace.as_str();
    let mut found = Vec::new();
    for (steps, group, kind) in NAMED {
        let Some(name) = strategy.str_at(steps).filter(|name| !name.is_empty()) else { continue };
        let key = ResourceKey::new(group, kind, namespace, name);
        let is_there = cluster.find(&key).is_some() || cluster.has_open_names(namespace);
        if !is_there && !name.contains('.') {
            let known = beside(cluster, namespace, kind);
            found.push(Missing { field: place(steps), what: format!("{kind}/{name}"), name, known });
        }
    }
    found
}

/// The routes of a VirtualService and the subsets of a DestinationRule.
fn parts_of_mesh<'a>(cluster: &Cluster<'a>, rollout: &'a Object, strategy: &'a Value) -> Vec<Missing<'a>> {
    const WAY: [&str; 3] = ["canary", "trafficRouting", "istio"];
    let Some(istio) = strategy.at(&WAY) else { return Vec::new() };
    let namespace = rollout.key.namespace.as_str();
    let of = |kind: &str, name: &str| cluster.find(&ResourceKey::new(ISTIO, kind, namespace, name));
    let mut found = Vec::new();
    let service = &istio["virtualService"];
    if let Some(object) = of("VirtualService", text(service, "name")) {
        let known: Vec<&str> =
            list(&object.value()["spec"], "http").iter().map(|it| text(it, "name")).collect();
        let routes = list(service, "routes").iter().enumerate();
        let named = routes.filter_map(|(at, it)| Some((at, it.as_str()?)));
        for (at, name) in named.filter(|(_, name)| !known.contains(name)) {
            let field = place(&WAY).key("virtualService").key("routes").index(at);
            let what = format!("route {name} of {}", object.title());
            found.push(Missing { field, what, name, known: known.clone() });
        }
    }
    let rule = &istio["destinationRule"];
    if let Some(object) = of("DestinationRule", text(rule, "name")) {
        let known: Vec<&str> =
            list(&object.value()["spec"], "subsets").iter().map(|it| text(it, "name")).collect();
        for key in ["canarySubsetName", "stableSubsetName"] {
            let name = text(rule, key);
            if !name.is_empty() && !known.contains(&name) {
                let field = place(&WAY).key("destinationRule").key(key);
                let what = format!("subset {name} of {}", object.title());
                found.push(Missing { field, what, name, known: known.clone() });
            }
        }
    }
    found
}

/// The AnalysisTemplates of its steps and of the whole.
fn templates<'a>(cluster: &Cluster<'a>, rollout: &'a Object, strategy: &'a Value) -> Vec<Missing<'a>> {
    let namespace = rollout.key.namespace.as_str();
    let canary = &strategy["canary"];
    let steps = list(canary, "steps").iter().enumerate().filter_map(|(at, step)| {
        Some((place(&["canary", "steps"]).index(at).key("analysis"), step.get("analysis")?))
    });
    let whole = [
        (place(&["canary", "analysis"]), &canary["analysis"]),
        (place(&["blueGreen", "prePromotionAnalysis"]), &strategy["blueGreen"]["prePromotionAnalysis"]),
        (place(&["blueGreen", "postPromotionAnalysis"]), &strategy["blueGreen"]["postPromotionAnalysis"]),
    ];
    let mut found = Vec::new();
    for (field, analysis) in steps.chain(whole) {
        for (at, template) in list(analysis, "templates").iter().enumerate() {
            let name = text(template, "templateName");
            let is_wide = template.get("clusterScope") == Some(&Value::Bool(true));
            let (kind, of) =
                if is_wide { ("ClusterAnalysisTemplate", "") } else { ("AnalysisTemplate", namespace) };
            let known = beside(cluster, of, kind);
            // Those of the whole cluster may come from another repository.
            let is_seen = !is_wide || !known.is_empty();
            if !name.is_empty() && is_seen && !known.contains(&name) {
                let field = field.key("templates").index(at).key("templateName");
                found.push(Missing { field, what: format!("{kind}/{name}"), name, known });
            }
        }
    }
    found
}

fn add(context: &Context<'_>, rollout: &Object, missing: &Missing<'_>, once: &mut Once) {
    let what = format!("{} names {}, which nothing makes", rollout.title(), missing.what);
    let mut diagnostic = RULE
        .diagnostic(what.clone())
        .at(context.survey.span(rollout, &missing.field), "not found")
        .because("the controller marks the Rollout as invalid, and no new version is rolled out");
    if !missing.known.is_empty() {
        diagnostic = diagnostic.help(format!("there is {}", missing.known.join(", ")));
    }
    let near = similar_names::nearest_slip(missing.name, missing.known.iter().copied());
    once.add(&what, RULE.finding(context, rollout, diagnostic).likely().perhaps(missing.name, near));
}
