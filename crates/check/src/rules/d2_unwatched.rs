//! # An Application that no engine reads, or that goes to no cluster
//!
//! Argo CD reads Applications, ApplicationSets and AppProjects of its own namespace, and of others only where
//! it is told (`application.namespaces`). One in another namespace is stored like any object, and nothing
//! comes of it: often its name and its namespace changed places, or it got the namespace of the workload. And
//! the address of a cluster is a URL: one without its scheme is the address of none.
//!
//! People see: an Application without any status that the user interface does not show; `there are no
//! clusters with this name or server`, `cluster "kubernetes.default.svc" not found`.
//!
//! ## Bad
//! ```yaml
//! kind: Application
//! metadata: {name: argocd, namespace: shop}
//! spec: {destination: {server: kubernetes.default.svc}}
//! ```
//! ## Good
//! ```yaml
//! kind: Application
//! metadata: {name: shop, namespace: argocd}
//! spec: {destination: {server: "https://kubernetes.default.svc"}}
//! ```
//! ## When to suppress
//! Where Argo CD is told outside of the repository to read that namespace, too.

use std::collections::BTreeMap;

use tiphys_diag::Severity;
use tiphys_graph::{Environment, Object, Owner, survey::declared_span};
use tiphys_model::names;
use tiphys_value::ObjectExt;

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths::keys, placeholders, sync_options, unrendered_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-unwatched",
    incident: "D2",
    severity: Severity::Warning,
    title: "an Application that no engine reads, or that goes to no cluster",
    page: page!("d2_unwatched.rs"),
    check,
};

/// How many have to be in one namespace for it to be the engine's.
const ENOUGH: usize = 3;
/// The settings that name further namespaces, in ConfigMaps and in the values of the chart.
const SETTINGS: [&str; 4] = [
    "application.namespaces",
    "applicationsetcontroller.namespaces",
    "--application-namespaces",
    "sourceNamespaces",
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    if !SETTINGS.iter().any(|setting| sync_options::mentions(context.survey, setting)) {
        elsewhere(context, &mut once);
    }
    for app in &context.survey.apps {
        let server = app.application.spec.destination.server.as_str();
        if server.is_empty() || server.contains("://") || placeholders::is_in(server) {
            continue;
        }
        let path = keys(&["spec", "destination", "server"]);
        let diagnostic = RULE
            .diagnostic(format!(
                "Application {} goes to {server:?}, which is the address of no cluster",
                app.name()
            ))
            .at(declared_span(&context.survey.files, &app.declared, &path), "no URL")
            .because(
                "the engine knows clusters by their whole address, and this one is in none of its Secrets",
            )
            .help(format!("write https://{server}"));
        let finding = Finding::new(RULE.incident, diagnostic).app(app.name());
        once.add(server, finding);
    }
    once.report(report);
}

/// What lies in another namespace than nearly all others do.
fn elsewhere(context: &Context<'_>, once: &mut Once) {
    let survey = context.survey;
    let mut by_namespace: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
    for object in &survey.objects {
        let is_read = object.key.group == names::GROUP
            && matches!(object.key.kind.as_str(), "Application" | "ApplicationSet" | "AppProject");
        let namespace = object.key.namespace.as_str();
        if is_read
            && !namespace.is_empty()
            && !placeholders::is_in(namespace)
            && !unrendered_files::is_from_unused_chart(survey, object)
            && !unrendered_files::may_be_a_patch(survey, object)
        {
            by_namespace.entry(namespace).or_default().push(object);
        }
    }
    let Some((home, _)) = by_namespace.iter().max_by_key(|(_, objects)| objects.len()) else { return };
    let (home, at_home) = (*home, by_namespace[home].len());
    for (namespace, objects) in by_namespace.iter().filter(|(namespace, _)| **namespace != home) {
        // Several there are a second engine, or one that is told.
        let [object] = objects[..] else { continue };
        let has_engine = namespace.contains("argo") || namespace.contains("gitops");
        // Who writes the namespace that it goes to wrote one field twice.
        let goes_there = object.value().str_at(&["spec", "destination", "namespace"]) == Some(*namespace);
        let enough = if goes_there { ENOUGH - 1 } else { ENOUGH };
        if at_home < enough || has_engine || is_of_another(survey.environments.as_slice(), object) {
            continue;
        }
        let what = format!("{} lies in namespace {namespace}, where no engine looks for it", object.title());
        let mut diagnostic = RULE
            .diagnostic(what.clone())
            .at(survey.span(object, &keys(&["metadata", "namespace"])), "this namespace")
            .because(format!(
                "Argo CD reads Applications of its own namespace, and the {at_home} others are in {home}"
            ));
        let is_swapped = object.key.name == home;
        diagnostic = diagnostic.help(match is_swapped {
            true => {
                format!("name and namespace changed places: write `name: {namespace}`, `namespace: {home}`")
            }
            false => format!("write `namespace: {home}`"),
        });
        once.add(&what, RULE.finding(context, object, diagnostic).likely());
    }
}

/// Whether an object belongs to an environment beside others, each of which may have an engine of its own.
fn is_of_another(environments: &[Environment], object: &Object) -> bool {
    environments.len() > 1 && matches!(object.owner, Owner::App(_))
}
