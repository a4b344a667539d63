//! # A route that its Gateway or its backend does not take
//!
//! A route of the Gateway API names its Gateway, perhaps a listener of it, and Services. The Gateway decides
//! from which namespaces and for which hosts it takes routes; a Service of another namespace needs a
//! ReferenceGrant there. A route that is refused stands there as if it were right, and its host answers 404
//! or 500.
//!
//! People see: `NotAllowedByListeners`, `NoMatchingListenerHostname`, `NoMatchingParent`, `RefNotPermitted`
//! among the conditions of the route.
//!
//! ## Bad
//! ```yaml
//! parentRefs: [{name: web, namespace: gateway, sectionName: htps}]
//! ```
//! ## Good
//! ```yaml
//! parentRefs: [{name: web, namespace: gateway, sectionName: https}]
//! ```
//! ## When to suppress
//! Where the Gateway, its listeners or the grant are made outside of the repository.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{Object, tools::Action};
use tiphys_schema::LabelSelector;
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value, json};

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
    id: "F4-route-refused",
    incident: "F4",
    severity: Severity::Warning,
    title: "a route that its Gateway or its backend does not take",
    page: page!("f4_route_refused.rs"),
    check,
};

const GROUP: &str = "gateway.networking.k8s.io";

const ISTIO: &str = "networking.istio.io";

/// Why a Gateway does not take a route.
struct Refusal {
    field: FieldPath,
    message: String,
    label: &'static str,
    help: String,
    /// A word of the field, and the one that is meant.
    meant: Option<(String, String)>,
    /// The Gateway that is not there, if that is the fault.
    missing: Option<String>,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        for route in &cluster.objects {
            if route.key.group == ISTIO && route.key.kind == "VirtualService" {
                istio(context, cluster, route, &mut once);
            }
            if route.key.group != GROUP || !route.key.kind.ends_with("Route") {
                continue;
            }
            for (at, parent) in list(&route.value()["spec"], "parentRefs").iter().enumerate() {
                let path = keys(&["spec", "parentRefs"]).index(at);
                if let Some((refusal, gateway)) = route_refusal(context, cluster, route, parent, &path) {
                    add(context, &mut once, route, refusal, gateway);
                }
            }
            grants(context, cluster, route, &mut once);
        }
    }
    once.report(report);
}

fn add(context: &Context<'_>, once: &mut Once, route: &Object, refusal: Refusal, near: Option<&Object>) {
    let mut diagnostic = RULE
        .diagnostic(refusal.message.clone())
        .at(context.survey.span(route, &refusal.field), refusal.label)
        .because("the route is stored and has no effect: its hosts are not served")
        .help(refusal.help);
    if let Some(near) = near {
        diagnostic = diagnostic.see(context.survey.start(near), format!("this is {}", near.title()));
    }
    let mut finding = RULE.finding(context, route, diagnostic).likely();
    if let Some((wrong, meant)) = refusal.meant {
        finding = finding.with_spelling(wrong, meant);
    }
    match &refusal.missing {
        // One Gateway that is not there is one cause for all routes of a file.
        Some(gateway) if near.is_none() => {
            let file = finding.diagnostic.primary.as_ref().map(|label| label.span.file.clone());
            once.add_by(format!("{}\n{gateway}", file.unwrap_or_default()), finding);
        }
        _ => once.add(&refusal.message, finding),
    }
}

fn route_refusal<'a>(
    context: &Context<'_>,
    cluster: &Cluster<'a>,
    route: &Object,
    parent: &Value,
    path: &FieldPath,
) -> Option<(Refusal, Option<&'a Object>)> {
    let name = text(parent, "name");
    let kind = parent.str_at(&["kind"]).unwrap_or("Gateway");
    let namespace = parent.str_at(&["namespace"]).unwrap_or(&route.key.namespace);
    if kind != "Gateway"
        || name.is_empty()
        || placeholders::has_placeholder(parent)
        || placeholders::is_in(namespace)
    {
        return None;
    }
    let key = ResourceKey::new(GROUP, "Gateway", namespace, name);
    let Some(gateway) = cluster.find(&key) else {
        return Some((missing(context, cluster, route, (namespace, name), path)?, None));
    };
    // Operators add listeners of their own, and merge Gateways.
    if placeholders::has_placeholder(&gateway.value()["spec"])
        || gateway.value()["spec"].get("allowedListeners").is_some()
    {
        return None;
    }
    let listeners: Vec<&Value> = list(&gateway.value()["spec"], "listeners").iter().collect();
    let refusal = by_section(gateway, &listeners, parent, path)
        .or_else(|| by_namespace(cluster, route, gateway, &chosen_listeners(&listeners, parent), path))
        .or_else(|| by_host(route, gateway, &chosen_listeners(&listeners, parent)))?;
    Some((refusal, Some(gateway)))
}

/// Gateways of Istio that a VirtualService names, as `namespace/name` or `name`.
fn istio(context: &Context<'_>, cluster: &Cluster<'_>, route: &Object, once: &mut Once) {
    let is_gateway = |it: &&&Object| it.key.group == ISTIO && it.key.kind == "Gateway";
    let all: Vec<&&Object> = cluster.objects.iter().filter(is_gateway).collect();
    for (at, named) in list(&route.value()["spec"], "gateways").iter().enumerate() {
        let Some(named) = named.as_str().filter(|it| *it != "mesh" && !placeholders::is_in(it)) else {
            continue;
        };
        let (namespace, name) = named.split_once('/').unwrap_or((&route.key.namespace, named));
        let is_there = all.iter().any(|it| it.key.namespace == namespace && it.key.name == name);
        let may_be_there = || {
            cluster.is_partly_hidden(namespace)
                || cluster.may_be_made(namespace, name)
                || is_made_by_tool(context, ISTIO, name)
        };
        if is_there || all.is_empty() || name.contains('.') || may_be_there() {
            continue;
        }
        let nearest = similar_names::nearest_slip(name, all.iter().map(|it| it.key.name.as_str()));
        let refusal = Refusal {
            field: keys(&["spec", "gateways"]).index(at),
            message: format!("{} is for Gateway/{name} in {namespace}, which nothing makes", route.title()),
            label: "no such Gateway",
            help: nearest.map_or_else(
                || "name a Gateway that is there, with its namespace in front".to_owned(),
                |nearest| format!("perhaps {nearest} is meant"),
            ),
            meant: nearest.map(|nearest| (name.to_owned(), nearest.to_owned())),
            missing: Some(format!("{namespace}/{name}")),
        };
        add(context, once, route, refusal, None);
    }
}

/// Whether a script, a playbook or a pipeline of the repository applies a Gateway of this name.
fn is_made_by_tool(context: &Context<'_>, group: &str, name: &str) -> bool {
    let is_it = |key: &ResourceKey| key.group == group && key.kind == "Gateway" && key.name == name;
    let mut writers = context.survey.tools().writers.iter().filter(|it| it.action == Action::Apply);
    writers.any(|writer| writer.objects().iter().any(is_it))
}

fn missing(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    route: &Object,
    (namespace, name): (&str, &str),
    path: &FieldPath,
) -> Option<Refusal> {
    let is_gateway = |it: &&Object| it.key.group == GROUP && it.key.kind == "Gateway";
    let mut others: Vec<&Object> = cluster.objects.iter().copied().filter(is_gateway).collect();
    // Gateways that people apply by hand are of the cluster, too, where its Applications bring none.
    let loose = context.survey.objects.iter().filter(|it| it.environment.is_none()).filter(is_gateway);
    if others.is_empty() {
        others.extend(loose.filter(|it| !it.key.namespace.is_empty()));
        if others.iter().any(|it| it.key.namespace == namespace && it.key.name == name) {
            return None;
        }
    }
    if others.is_empty()
        && namespace == route.key.namespace
        && !cluster.is_partly_hidden(namespace)
        && !is_made_by_tool(context, GROUP, name)
        && let Some(template) = template_of_gateway(context, route)
    {
        return Some(Refusal {
            field: path.key("name"),
            message: format!("{} is for Gateway/{name} in {namespace}, which nothing makes", route.title()),
            label: "no such Gateway",
            help: format!("{template} has a Gateway, and with these values it renders none"),
            meant: None,
            missing: Some(format!("{namespace}/{name}")),
        });
    }
    let may_be_hidden = || {
        (cluster.is_partly_hidden(namespace) || cluster.may_be_made(namespace, name))
            && !is_alone(context, cluster, route, name, &others)
    };
    if others.is_empty() || may_be_hidden() || is_made_by_tool(context, GROUP, name) {
        return None;
    }
    let elsewhere = others.iter().find(|it| it.key.name == name);
    let nearest = similar_names::nearest_slip(name, others.iter().map(|it| it.key.name.as_str()));
    let help = match (elsewhere, nearest) {
        (Some(other), _) => format!("it is in namespace {}: say so with `namespace`", other.key.namespace),
        (None, Some(nearest)) => format!("perhaps {nearest} is meant"),
        (None, None) => "name a Gateway that is there".to_owned(),
    };
    Some(Refusal {
        field: path.key("name"),
        message: format!("{} is for Gateway/{name} in {namespace}, which nothing makes", route.title()),
        label: "no such Gateway",
        help,
        meant: nearest.filter(|_| elsewhere.is_none()).map(|nearest| (name.to_owned(), nearest.to_owned())),
        missing: Some(format!("{namespace}/{name}")),
    })
}

/// Whether a route alone names a Gateway, of which nothing else in the repository speaks, while others name
/// Gateways that are in Git: what is not seen hardly brings one for it.
fn is_alone(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    route: &Object,
    name: &str,
    gateways: &[&Object],
) -> bool {
    const LEAST: usize = 3;
    let routes = cluster.objects.iter().filter(|it| it.key.group == GROUP && it.key.kind.ends_with("Route"));
    let mut known = 0;
    for other in routes.filter(|it| it.id != route.id) {
        for parent in list(&other.value()["spec"], "parentRefs") {
            let named = text(parent, "name");
            if named == name {
                return false;
            }
            known += usize::from(gateways.iter().any(|it| it.key.name == named));
        }
    }
    let files = &context.survey.files;
    let says = |path: &std::sync::Arc<str>| {
        files.text(path).map_or(0, |text| text.lines().filter(|line| line.contains(name)).count())
    };
    known >= LEAST && files.paths().map(says).sum::<usize>() == 1
}

/// The template of a route's own chart that has a Gateway, though the chart renders none.
fn template_of_gateway(context: &Context<'_>, route: &Object) -> Option<String> {
    let survey = context.survey;
    let app = survey.app_of(route)?;
    let is_gateway = |it: &Object| it.key.group == GROUP && it.key.kind == "Gateway";
    if survey.objects_of(app.id).any(is_gateway) {
        return None;
    }
    let has_one = |path: &str| {
        let text = survey.files.text(path).unwrap_or_else(|| "".into());
        text.contains("{{") && text.contains(GROUP) && text.lines().any(|line| line.trim() == "kind: Gateway")
    };
    let mut templates = app.read.iter().filter(|path| path.contains("/templates/"));
    templates.find(|path| has_one(path)).map(|path| path.to_string())
}

/// The listeners that a reference is about.
fn chosen_listeners<'v>(listeners: &[&'v Value], parent: &Value) -> Vec<&'v Value> {
    let (section, port) = (text(parent, "sectionName"), parent["port"].as_i64());
    let fits = |it: &&&Value| {
        (section.is_empty() || text(it, "name") == section)
            && port.is_none_or(|port| it["port"].as_i64() == Some(port))
    };
    listeners.iter().filter(fits).copied().collect()
}

fn by_section(gateway: &Object, listeners: &[&Value], parent: &Value, path: &FieldPath) -> Option<Refusal> {
    if listeners.is_empty() || !chosen_listeners(listeners, parent).is_empty() {
        return None;
    }
    let names: Vec<&str> = listeners.iter().map(|it| text(it, "name")).collect();
    let field = if parent.get("sectionName").is_some() { "sectionName" } else { "port" };
    Some(Refusal {
        field: path.key(field),
        message: format!(
            "{} has no listener {}",
            gateway.title(),
            parent[field].to_string().trim_matches('"')
        ),
        label: "no such listener",
        help: format!("its listeners are {}", names.join(", ")),
        meant: None,
        missing: None,
    })
}

fn by_namespace(
    cluster: &Cluster<'_>,
    route: &Object,
    gateway: &Object,
    listeners: &[&Value],
    path: &FieldPath,
) -> Option<Refusal> {
    let takes = |listener: &&Value| {
        let allowed = listener.at(&["allowedRoutes", "namespaces"]);
        match allowed.and_then(|it| it.str_at(&["from"])).unwrap_or("Same") {
            "Same" => route.key.namespace == gateway.key.namespace,
            "Selector" => selects(cluster, allowed, &route.key.namespace),
            "None" => false,
            _ => true,
        }
    };
    if listeners.is_empty() || listeners.iter().any(takes) {
        return None;
    }
    Some(Refusal {
        field: path.clone(),
        message: format!("{} takes no routes of namespace {}: NotAllowedByListeners", gateway.title(), route.key.namespace),
        label: "refused there",
        help: "allow the namespace in `allowedRoutes.namespaces` of the listener; without it, only its own counts".into(),
        meant: None,
        missing: None,
    })
}

/// Whether a selector of namespaces finds one; one that is not seen is taken to fit.
fn selects(cluster: &Cluster<'_>, allowed: Option<&Value>, namespace: &str) -> bool {
    let Some(object) = cluster.core("Namespace", "", namespace) else { return true };
    let selector = allowed.and_then(|it| LabelSelector::from_object(it.get("selector")?).ok()?);
    let mut labels = object.value().at(&["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
    labels["kubernetes.io/metadata.name"] = namespace.into();
    selector.is_none_or(|selector| selector.matches(&labels))
}

fn by_host(route: &Object, gateway: &Object, listeners: &[&Value]) -> Option<Refusal> {
    let hosts: Vec<&str> =
        list(&route.value()["spec"], "hostnames").iter().filter_map(Value::as_str).collect();
    let meets = |listener: &&Value| {
        let of = text(listener, "hostname");
        of.is_empty() || hosts.iter().any(|host| meet(host, of))
    };
    if hosts.is_empty() || hosts.iter().any(|it| placeholders::is_in(it)) || listeners.iter().any(meets) {
        return None;
    }
    let served: Vec<&str> = listeners.iter().map(|it| text(it, "hostname")).collect();
    Some(Refusal {
        field: keys(&["spec", "hostnames"]).index(0),
        message: format!(
            "{} does not serve {}: NoMatchingListenerHostname",
            gateway.title(),
            hosts.join(", ")
        ),
        label: "not served",
        help: format!("its listeners serve {}", served.join(", ")),
        meant: None,
        missing: None,
    })
}

/// Whether two host names, each perhaps with a wildcard in front, have one in common.
fn meet(one: &str, other: &str) -> bool {
    let covers = |wild: &str, host: &str| {
        wild.strip_prefix('*').is_some_and(|end| host.len() > end.len() && host.ends_with(end))
    };
    one == other || covers(one, other) || covers(other, one)
}

/// Services of other namespaces that nothing there allows to be referred to.
fn grants(context: &Context<'_>, cluster: &Cluster<'_>, route: &Object, once: &mut Once) {
    for (rule, value) in list(&route.value()["spec"], "rules").iter().enumerate() {
        for (at, backend) in list(value, "backendRefs").iter().enumerate() {
            let namespace = text(backend, "namespace");
            let is_service = matches!(text(backend, "kind"), "" | "Service");
            if !is_service
                || namespace.is_empty()
                || namespace == route.key.namespace
                || placeholders::is_in(namespace)
            {
                continue;
            }
            let grants = || {
                let all = cluster.objects.iter().filter(|it| it.key.kind == "ReferenceGrant");
                all.filter(|it| it.key.namespace == namespace && grants_from(it.value(), route))
            };
            let is_granted = grants().any(|it| grants_to(it.value(), text(backend, "name")));
            // A namespace of which nothing is seen is another repository's, or another cluster's.
            let is_seen = cluster.objects.iter().any(|it| it.key.namespace == namespace);
            // Who allows this route something here allows it all here.
            let is_hidden = grants().next().is_none() && cluster.is_partly_hidden(namespace);
            if is_granted || !is_seen || is_hidden {
                continue;
            }
            let refusal = Refusal {
                field: keys(&["spec", "rules"]).index(rule).key("backendRefs").index(at).key("namespace"),
                message: format!(
                    "{} sends to Service/{} in {namespace}, where no ReferenceGrant allows it: RefNotPermitted",
                    route.title(),
                    text(backend, "name")
                ),
                label: "another namespace",
                help: format!("add a ReferenceGrant to namespace {namespace}, or move the route there"),
                meant: None,
                missing: None,
            };
            add(context, once, route, refusal, None);
        }
    }
}

/// Whether a grant is for routes such as this one.
fn grants_from(grant: &Value, route: &Object) -> bool {
    list(&grant["spec"], "from")
        .iter()
        .any(|it| text(it, "kind") == route.key.kind && text(it, "namespace") == route.key.namespace)
}

/// Whether a grant lets a Service be referred to: one of the name that it gives, or any if it gives none.
fn grants_to(grant: &Value, service: &str) -> bool {
    let is_it = |name: &str| name.is_empty() || name == service || placeholders::is_in(name);
    list(&grant["spec"], "to").iter().any(|it| text(it, "kind") == "Service" && is_it(text(it, "name")))
}

#[cfg(test)]
mod tests {
    use super::meet;

    #[test]
    fn hosts_meet_as_listeners_and_routes_do() {
        for (one, other) in
            [("a.example.com", "*.example.com"), ("*.example.com", "a.b.example.com"), ("a.b", "a.b")]
        {
            assert!(meet(one, other), "{one} {other}");
        }
        for (one, other) in
            [("example.com", "*.example.com"), ("a.example.org", "*.example.com"), ("a.b", "b.b")]
        {
            assert!(!meet(one, other), "{one} {other}");
        }
    }
}
