//! # A namespace that nothing makes
//!
//! An Application's objects go to a namespace that no manifest makes, and the Application does not ask for it
//! to be made. On a cluster that does not have it by chance, the sync fails.
//!
//! It is told only where other Applications of the repository do make theirs, and no script or text names the
//! namespace. Of Flux it speaks of every namespace that something goes to: that of an object, the
//! `targetNamespace` of a Kustomization, and that of a HelmRelease without `install.createNamespace`. It is
//! told where an Application asks for its namespace to be made, and its destination names none: nothing is
//! made then, wherever its objects go. And it is told of an object that says nearly, but not quite, the
//! namespace that its Application deploys to, where nothing else says the same.
//!
//! People see: `namespaces "shop" not found`, `one or more objects failed to apply`.
//!
//! ## Bad
//! ```yaml
//! spec: {destination: {namespace: shop}}
//! ```
//! ## Good
//! ```yaml
//! spec: {destination: {namespace: shop}, syncPolicy: {syncOptions: [CreateNamespace=true]}}
//! ```
//! ## When to suppress
//! Where the namespace is made outside of the repository.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{App, Object, Owner, Survey, survey::is_namespaced};
use tiphys_value::ObjectExt;

use super::flux_namespaces;
use crate::{
    Context, Report, Rule,
    support::{cluster::Cluster, field_paths::keys, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C5-no-namespace",
    incident: "C5",
    severity: Severity::Warning,
    title: "objects for a namespace that nothing makes",
    page: page!("c5_no_namespace.rs"),
    check,
};

/// Namespaces that clusters have, or that an installer makes.
pub(super) const GIVEN: [&str; 8] = [
    "default",
    "kube-system",
    "kube-public",
    "kube-node-lease",
    "argocd",
    "argo-cd",
    "flux-system",
    "cattle-system",
];

fn check(context: &Context<'_>, report: &mut Report) {
    for cluster in context.clusters() {
        let mut first: BTreeMap<&str, (&Object, &App)> = BTreeMap::new();
        for object in &cluster.objects {
            let Some(app) = context.survey.app_of(object) else { continue };
            if is_namespaced(&object.value().gvk()) == Some(true) {
                first.entry(&object.key.namespace).or_insert((object, app));
            }
        }
        if !makes_namespaces(context.survey, cluster, &first) {
            continue;
        }
        for (namespace, (object, app)) in first {
            if !is_made(context, cluster, namespace, app) {
                add(context, report, namespace, object, app);
            }
        }
    }
    flux_namespaces::check(context, report);
    beside_destination(context, report);
    without_destination(context, report);
}

/// Objects of Applications that ask for their namespace to be made and do not say which: one finding for each
/// namespace.
fn without_destination(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let asks = |app: &&App| {
        app.application.spec.destination.namespace.is_empty()
            && app.application.sync_options().is_on("CreateNamespace")
    };
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for app in survey.apps.iter().filter(asks) {
        let in_namespace =
            survey.objects_of(app.id).filter(|it| is_namespaced(&it.value().gvk()) == Some(true));
        for object in in_namespace {
            let namespace = object.key.namespace.as_str();
            let is_open = !namespace.is_empty()
                && !GIVEN.contains(&namespace)
                && namespace != app.application.metadata.namespace
                && !namespace.starts_with("openshift")
                && !placeholders::is_in(namespace);
            if !is_open
                || told.contains(namespace)
                || creates(survey, app, namespace)
                || survey.of_kind("", "Namespace").any(|it| it.key.name == namespace)
                || is_product(context, namespace)
                || is_made_by_command(survey, namespace)
                || is_declared(context, namespace)
            {
                continue;
            }
            told.insert(namespace);
            let diagnostic = RULE
                .diagnostic(format!("{} goes to namespace {namespace}, which nothing makes", object.title()))
                .at(survey.span(object, &keys(&["metadata", "namespace"])), "this namespace")
                .see(
                    survey.app_span(app, &keys(&["spec", "syncPolicy", "syncOptions"])),
                    "this makes the namespace of the destination, which names none",
                )
                .because(format!(
                    "on a cluster without it the sync of {} fails: `namespaces \"{namespace}\" not found`",
                    app.name()
                ))
                .help("render the Namespace too, or name it in spec.destination.namespace");
            report.add(RULE.finding(context, object, diagnostic).likely());
        }
    }
}

/// Objects whose namespace is nearly that of their Application, and that of nothing else in the repository.
fn beside_destination(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for app in survey.apps.iter().filter(|app| !survey.is_symbolic(app)) {
        let destination = app.application.spec.destination.namespace.as_str();
        for object in survey.objects_of(app.id) {
            let namespace = object.key.namespace.as_str();
            if !is_nearly(namespace, destination)
                || GIVEN.contains(&namespace)
                || is_namespaced(&object.value().gvk()) == Some(false)
                || is_said_by_others(context, app, namespace)
                || !told.insert(namespace)
            {
                continue;
            }
            let diagnostic = RULE
                .diagnostic(format!("{} goes to namespace {namespace}, which nothing makes", object.title()))
                .at(survey.span(object, &keys(&["metadata", "namespace"])), "this namespace")
                .see(
                    survey.app_span(app, &keys(&["spec", "destination", "namespace"])),
                    "the Application deploys here",
                )
                .because(format!("nothing else in the repository is in {namespace}"));
            let finding = RULE.finding(context, object, diagnostic).likely();
            report.add(finding.perhaps(namespace, Some(destination)));
        }
    }
}

/// Whether a namespace goes on where another ends, or is a slip for it.
fn is_nearly(namespace: &str, destination: &str) -> bool {
    const SHORTEST: usize = 5;
    let is_begin = namespace.starts_with(destination) || destination.starts_with(namespace);
    namespace != destination
        && namespace.len().min(destination.len()) >= SHORTEST
        && !placeholders::is_in(namespace)
        && !placeholders::is_in(destination)
        && !similar_names::differ_in_digits_only(namespace, destination)
        // A word more is another namespace beside it, as a rule.
        && !namespace.contains(&format!("{destination}-"))
        && !destination.contains(&format!("{namespace}-"))
        && (is_begin || similar_names::nearest_slip(namespace, std::iter::once(destination)).is_some())
}

/// Whether another Application, release or object is in a namespace, or a line of any file makes it.
fn is_said_by_others(context: &Context<'_>, app: &App, namespace: &str) -> bool {
    let survey = context.survey;
    let is_of_app = |object: &Object| matches!(object.owner, Owner::App(id) if id == app.id);
    survey.apps.iter().any(|it| it.application.spec.destination.namespace == namespace)
        || survey.objects.iter().any(|it| it.key.namespace == namespace && !is_of_app(it))
        || survey.objects.iter().any(|it| it.key.kind == "Namespace" && it.key.name == namespace)
        || context
            .chart_uses()
            .iter()
            .any(|it| it.release.as_ref().is_some_and(|release| release.namespace == namespace))
        || is_product(context, namespace)
        || is_made_by_command(survey, namespace)
        || is_declared(context, namespace)
}

/// Whether a line of any file makes a namespace: `kubectl create namespace shop`.
pub(super) fn is_made_by_command(survey: &Survey, namespace: &str) -> bool {
    let makes = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| !matches!(*word, "namespace" | "ns"));
        words.next().is_some() && words.next() == Some(namespace) && line.contains("create")
    };
    survey.files.any_text(|text| text.contains(namespace) && text.lines().any(makes))
}

/// Whether a manifest declares a namespace that does not come out as an object.
pub(super) fn is_declared(context: &Context<'_>, namespace: &str) -> bool {
    let files = &context.survey.files;
    let is_name = |line: &str| {
        let name = line.trim().strip_prefix("name:").unwrap_or_default().trim();
        name.rsplit(' ').next().is_some_and(|name| name.trim_matches(['"', '\'']) == namespace)
    };
    files.ending(&[".yaml", ".yml"]).any(|path| {
        files.text(path).is_some_and(|text| text.contains("kind: Namespace") && text.lines().any(is_name))
    })
}

/// Whether most of a cluster's Applications bring their namespaces: whoever does so for all but one has
/// forgotten it.
fn makes_namespaces(survey: &Survey, cluster: &Cluster<'_>, used: &BTreeMap<&str, (&Object, &App)>) -> bool {
    let made = used.iter().filter(|(namespace, (_, app))| {
        cluster.core("Namespace", "", namespace).is_some() || creates(survey, app, namespace)
    });
    made.count() * 2 > used.len()
}

/// Whether an Application beside another one asks for a namespace to be made.
fn creates(survey: &Survey, near: &App, namespace: &str) -> bool {
    let mut beside = survey.apps.iter().filter(|it| it.is_beside(near));
    beside.any(|app| {
        app.application.spec.destination.namespace == namespace
            && app.application.sync_options().is_on("CreateNamespace")
    })
}

fn is_made(context: &Context<'_>, cluster: &Cluster<'_>, namespace: &str, app: &App) -> bool {
    let survey = context.survey;
    let engines = &app.application.metadata.namespace;
    let mut namespaces =
        survey.objects.iter().filter(|it| it.key.kind == "Namespace" && it.key.group.is_empty());
    GIVEN.contains(&namespace)
        || namespace.is_empty()
        || namespace == engines
        || namespace.starts_with("openshift")
        || placeholders::is_in(namespace)
        || survey.is_symbolic(app)
        || cluster.is_partly_hidden(namespace)
        || cluster.core("Namespace", "", namespace).is_some()
        || namespaces.any(|it| it.key.name == namespace && matches!(it.owner, Owner::Unit(_)))
        || creates(survey, app, namespace)
        || is_product(context, namespace)
        || survey.apps.iter().any(|it| {
            !it.is_rendered() && it.application.spec.effective_sources().iter().any(|s| s.chart.is_empty())
        })
        || is_named(context, namespace)
}

/// Whether a controller makes the namespace.
pub(super) fn is_product(context: &Context<'_>, namespace: &str) -> bool {
    let mut products = context.analyses().edges.all_products();
    products.any(|product| product.key.kind == "Namespace" && product.key.name == namespace)
}

/// Whether a script, a playbook, Terraform or a text for people names the namespace.
fn is_named(context: &Context<'_>, namespace: &str) -> bool {
    const ENDINGS: [&str; 13] = [
        ".sh", ".bash", ".tf", ".py", ".md", ".adoc", ".ps1", ".j2", ".hcl", ".mk", "Makefile", "justfile",
        ".go",
    ];
    let files = &context.survey.files;
    files.ending(&ENDINGS).any(|path| files.text(path).is_some_and(|text| text.contains(namespace)))
}

fn add(context: &Context<'_>, report: &mut Report, namespace: &str, object: &Object, app: &App) {
    let survey = context.survey;
    let is_destination = app.application.spec.destination.namespace == namespace;
    let place = if is_destination {
        survey.app_span(app, &keys(&["spec", "destination", "namespace"]))
    } else {
        survey.span(object, &keys(&["metadata", "namespace"]))
    };
    let mut diagnostic = RULE
        .diagnostic(format!("{} goes to namespace {namespace}, which nothing makes", object.title()))
        .at(place, "this namespace")
        .because(format!(
            "on a cluster without it the sync of {} fails: `namespaces \"{namespace}\" not found`",
            app.name()
        ));
    diagnostic = if is_destination {
        diagnostic.help("add `CreateNamespace=true` to spec.syncPolicy.syncOptions")
    } else {
        diagnostic.help("render the Namespace too; CreateNamespace makes only that of the destination")
    };
    report.add(RULE.finding(context, object, diagnostic).likely());
}
