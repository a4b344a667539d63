//! # A route goes through a middleware that is not there
//!
//! Routes of Traefik name the middlewares that a request passes. If one of them does not exist, Traefik drops
//! the router as a whole, and the host answers 404: so it is after a middleware was renamed or removed, where
//! it lives in another namespace than the route says, and where the annotation of an Ingress leaves out the
//! namespace (`NAMESPACE-NAME@kubernetescrd`).
//!
//! People see: `404 page not found`, and in Traefik's log: `middleware "shop-headers@kubernetescrd" does not
//! exist`.
//!
//! The rule speaks where the repository has a middleware of the name elsewhere, or others in the namespace.
//!
//! ## Bad
//! ```yaml
//! kind: IngressRoute
//! spec: {routes: [{middlewares: [{name: strip-prefix}]}]}     # the Middleware is called strip
//! ```
//! ## Good
//! ```yaml
//! kind: IngressRoute
//! spec: {routes: [{middlewares: [{name: strip}]}]}
//! ```
//! ## When to suppress
//! Where a chart that is out of reach brings the middleware.

use std::sync::Arc;

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{App, Object};
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Finding, Report, Rule,
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
    id: "F4-no-middleware",
    incident: "F4",
    severity: Severity::Warning,
    title: "a route goes through a middleware that is not there",
    page: page!("f4_no_middleware.rs"),
    check,
};

const ANNOTATION: &str = "traefik.ingress.kubernetes.io/router.middlewares";

/// A middleware that a route names.
struct Named<'a> {
    kind: &'static str,
    name: &'a str,
    namespace: &'a str,
    path: FieldPath,
}

fn is_of_traefik(object: &Object) -> bool {
    matches!(object.key.group.as_str(), "traefik.io" | "traefik.containo.us")
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let known: Vec<&Object> = survey
        .objects
        .iter()
        .filter(|it| is_of_traefik(it) && it.key.kind.starts_with("Middleware"))
        .collect();
    if known.is_empty() {
        return;
    }
    let mut once = Once::default();
    for object in &survey.objects {
        if unrendered_files::is_from_unused_chart(survey, object)
            || unrendered_files::may_be_a_patch(survey, object)
        {
            continue;
        }
        for named in names(object) {
            check_reference(context, object, &named, &known, &mut once);
        }
        annotated(context, object, &known, &mut once);
    }
    once.report(report);
}

/// The middlewares that the routes of an object name.
fn names(object: &Object) -> Vec<Named<'_>> {
    let spec = &object.value()["spec"];
    let routes = list(spec, "routes").iter().enumerate();
    if object.key.group == "gateway.networking.k8s.io" && object.key.kind == "HTTPRoute" {
        return filters(object, spec);
    }
    let of_routes = || routes.map(|(at, route)| (keys(&["spec", "routes"]).index(at), route)).collect();
    let (kind, holders): (_, Vec<(FieldPath, &Value)>) = match object.key.kind.as_str() {
        "IngressRoute" => ("Middleware", of_routes()),
        "IngressRouteTCP" => ("MiddlewareTCP", of_routes()),
        "Middleware" if is_of_traefik(object) => (
            "Middleware",
            spec.get("chain").map(|chain| (keys(&["spec", "chain"]), chain)).into_iter().collect(),
        ),
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    for (holder, value) in holders {
        for (at, it) in list(value, "middlewares").iter().enumerate() {
            let namespace = it.str_at(&["namespace"]).unwrap_or(&object.key.namespace);
            let path = holder.key("middlewares").index(at).key("name");
            // Of another provider, or still to be filled in.
            if !text(it, "name").is_empty()
                && !text(it, "name").contains('@')
                && !placeholders::has_placeholder(it)
            {
                found.push(Named { kind, name: text(it, "name"), namespace, path });
            }
        }
    }
    found
}

/// The middlewares among the filters of an HTTPRoute: a filter has no namespace but the route's.
fn filters<'a>(object: &'a Object, spec: &'a Value) -> Vec<Named<'a>> {
    let mut found = Vec::new();
    for (at, rule) in list(spec, "rules").iter().enumerate() {
        for (nth, filter) in list(rule, "filters").iter().enumerate() {
            let Some(reference) = filter.get("extensionRef") else { continue };
            let (group, name) = (text(reference, "group"), text(reference, "name"));
            if group == "traefik.io" && text(reference, "kind") == "Middleware" && !placeholders::is_in(name)
            {
                let rule = keys(&["spec", "rules"]).index(at);
                let path = rule.key("filters").index(nth).key("extensionRef").key("name");
                found.push(Named { kind: "Middleware", name, namespace: &object.key.namespace, path });
            }
        }
    }
    found
}

fn check_reference(
    context: &Context<'_>,
    object: &Object,
    named: &Named<'_>,
    known: &[&Object],
    once: &mut Once,
) {
    let same = || known.iter().filter(|it| it.key.kind == named.kind);
    // A namespace that is not told may be any.
    let is_in = |it: &Object| {
        it.key.namespace == named.namespace || it.key.namespace.is_empty() || named.namespace.is_empty()
    };
    let beside: Vec<&str> = same().filter(|it| is_in(it)).map(|it| it.key.name.as_str()).collect();
    if beside.contains(&named.name) {
        return;
    }
    let elsewhere = same().find(|it| it.key.name == named.name);
    if is_hidden(context, named, elsewhere.is_some()) {
        return;
    }
    if elsewhere.is_none() && beside.is_empty() {
        return;
    }
    let help = elsewhere
        .map(|it| format!("it lives in {}: say `namespace: {}`", it.key.namespace, it.key.namespace));
    let nearest = similar_names::nearest_slip(named.name, beside.into_iter()).filter(|_| elsewhere.is_none());
    let place = if named.namespace.is_empty() { String::new() } else { format!(" in {}", named.namespace) };
    let what =
        format!("{} goes through {}/{}{place}, which nothing makes", object.title(), named.kind, named.name);
    let found = finding(context, object, &what, &named.path, elsewhere.copied(), help);
    once.add(&what, found.perhaps(named.name, nearest));
}

/// Whether a chart that is not seen may bring a middleware: one is installed into the namespace, or has a
/// name that is a part of the middleware's. Where one of its name is seen in another namespace, that one is
/// meant, unless what declares the chart speaks of it.
fn is_hidden(context: &Context<'_>, named: &Named<'_>, is_elsewhere: bool) -> bool {
    let survey = context.survey;
    let speaks_of_it = |app: &&App| {
        // Not the files of objects, which name what they need.
        let is_manifest =
            |file: &Arc<str>| survey.objects.iter().any(|it| it.rendered.location.file == *file);
        let files = app.read.iter().filter(|file| !is_manifest(file)).chain([&app.declared.location.file]);
        files.into_iter().any(|file| survey.files.text(file).is_some_and(|text| text.contains(named.name)))
    };
    let unseen = survey.apps.iter().filter(|app| !app.is_rendered());
    let apps = unseen.filter(|app| !is_elsewhere || speaks_of_it(app)).map(|app| {
        let namespace = app.application.spec.destination.namespace.as_str();
        (app.name(), namespace)
    });
    let releases = survey.objects.iter().filter(|it| it.key.kind == "HelmRelease").map(|it| {
        let namespace = it.value().str_at(&["spec", "targetNamespace"]).unwrap_or(&it.key.namespace);
        (it.key.name.as_str(), namespace)
    });
    apps.chain(releases).any(|(name, namespace)| {
        named.name.contains(name) && !name.is_empty()
            || named.namespace == namespace
            || namespace.is_empty() && named.namespace.is_empty()
    })
}

/// The middlewares that the annotation of an Ingress names, of which one leaves out the namespace or is
/// misspelt.
fn annotated(context: &Context<'_>, object: &Object, known: &[&Object], once: &mut Once) {
    let Some(said) = object.value().annotation(ANNOTATION).filter(|it| !placeholders::is_in(it)) else {
        return;
    };
    if object.key.kind != "Ingress" {
        return;
    }
    let full: Vec<String> = known
        .iter()
        .filter(|it| it.key.kind == "Middleware")
        .map(|it| format!("{}-{}", it.key.namespace, it.key.name))
        .collect();
    let named = said.split(',').filter_map(|it| it.trim().strip_suffix("@kubernetescrd"));
    for name in named {
        // One whose namespace is not told may be meant with any.
        let is_open = |it: &String| it.strip_prefix('-').is_some_and(|bare| name.ends_with(bare));
        if full.iter().any(|it| it == name || is_open(it)) {
            continue;
        }
        let without =
            known.iter().find(|it| it.key.name == name).map(|it| format!("{}-{name}", it.key.namespace));
        let nearest =
            || similar_names::nearest_slip(name, full.iter().map(String::as_str)).map(str::to_owned);
        let Some(meant) = without.or_else(nearest) else { continue };
        let what =
            format!("{} goes through middleware {name}@kubernetescrd, which nothing makes", object.title());
        let path = keys(&["metadata", "annotations", ANNOTATION]);
        let (wrong, meant) = (format!("{name}@kubernetescrd"), format!("{meant}@kubernetescrd"));
        let found = finding(context, object, &what, &path, None, None);
        once.add(&what, found.perhaps(&wrong, Some(&meant)));
    }
}

fn finding(
    context: &Context<'_>,
    object: &Object,
    what: &str,
    path: &FieldPath,
    elsewhere: Option<&Object>,
    help: Option<String>,
) -> Finding {
    let mut diagnostic = RULE
        .diagnostic(what)
        .at(context.survey.span(object, path), "named here")
        .because("Traefik drops a router of which a middleware is missing: the host answers 404");
    if let Some(elsewhere) = elsewhere {
        diagnostic =
            diagnostic.see(context.survey.start(elsewhere), format!("there is {}", elsewhere.title()));
    }
    diagnostic.help.extend(help);
    RULE.finding(context, object, diagnostic).likely()
}
