//! # An object for which Flux has no namespace
//!
//! A Kustomization of Flux puts its objects where they say, or into its `targetNamespace`. An object that names
//! no namespace, in a Kustomization that has no `targetNamespace`, goes nowhere: Flux refuses it, and applies
//! nothing else of the Kustomization either.
//!
//! People see: `ConfigMap/web namespace not specified`, `dry-run failed: namespace not specified`.
//!
//! ## Bad
//! ```yaml
//! kind: ConfigMap
//! metadata: {name: web}
//! ```
//! ## Good
//! ```yaml
//! kind: ConfigMap
//! metadata: {name: web, namespace: shop}
//! ```
//! ## When to suppress
//! Where a patch that is not in the repository adds the namespace.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::Severity;
use tiphys_graph::{App, Object, Survey, is_of_flux, survey::is_namespaced};
use tiphys_value::ObjectExt;

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths::keys, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C5-flux-namespace",
    incident: "C5",
    severity: Severity::Warning,
    title: "an object for which Flux has no namespace",
    page: page!("c5_flux_namespace.rs"),
    check,
};

/// Groups of custom resources of which every kind lives in namespaces, but for those called `Cluster…`.
const IN_NAMESPACES: [&str; 14] = [
    "cert-manager.io",
    "external-secrets.io",
    "gateway.envoyproxy.io",
    "grafana.integreatly.org",
    "helm.toolkit.fluxcd.io",
    "image.toolkit.fluxcd.io",
    "kustomize.toolkit.fluxcd.io",
    "monitoring.coreos.com",
    "networking.istio.io",
    "notification.toolkit.fluxcd.io",
    "postgresql.cnpg.io",
    "source.toolkit.fluxcd.io",
    "traefik.io",
    "volsync.backube",
];

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey.flux.as_deref().unwrap_or(context.survey);
    if !survey.is_of_flux {
        return;
    }
    let (unplaced, namespaced) = (without_target(survey), kinds_in_namespaces(survey));
    let mut once = Once::default();
    for object in &survey.objects {
        let Some(app) =
            survey.app_of(object).filter(|app| app.is_rendered() && unplaced.contains(app.name()))
        else {
            continue;
        };
        let value = object.value();
        let is_placed = value.at(&["metadata", "namespace"]).is_some() || !object.key.namespace.is_empty();
        let is_named = !object.key.name.is_empty() && !placeholders::is_in(&object.key.name);
        let kind = (object.key.group.as_str(), object.key.kind.as_str());
        let is_known =
            namespaced.contains(&kind) || IN_NAMESPACES.contains(&kind.0) && !kind.1.starts_with("Cluster");
        if is_placed || !is_named || !is_namespaced(&value.gvk()).unwrap_or(is_known) {
            continue;
        }
        let diagnostic = RULE
            .diagnostic(format!("{} names no namespace, and Kustomization {} gives it none", object.title(), app.name()))
            .at(survey.span(object, &keys(&["metadata", "name"])), "in which namespace?")
            .because("`namespace not specified`: Flux refuses the object, and applies no other of the Kustomization")
            .help("name the namespace here, in the kustomization beside it, or as the Kustomization's `targetNamespace`");
        // The objects that Flux builds are those of another survey than the one that findings are sorted by.
        let finding = Finding::new(RULE.incident, diagnostic).app(app.name()).object(object.title()).likely();
        once.add_by(format!("{} {}", object.rendered.location.file, object.title()), finding);
    }
    once.report(report);
}

/// The names of the Kustomizations that give their objects no namespace, each of those that are called so.
fn without_target(survey: &Survey) -> BTreeSet<&str> {
    let mut all: BTreeMap<&str, bool> = BTreeMap::new();
    for object in survey.objects.iter().filter(|it| is_of_flux(it.value()) && it.key.kind == "Kustomization")
    {
        let has_none = object.value().at(&["spec", "targetNamespace"]).is_none();
        *all.entry(&object.key.name).or_insert(true) &= has_none;
    }
    let is_placed = |app: &&App| !app.application.spec.destination.namespace.is_empty();
    for app in survey.apps.iter().filter(is_placed) {
        all.insert(app.name(), false);
    }
    all.into_iter().filter(|(_, has_none)| *has_none).map(|(name, _)| name).collect()
}

/// The kinds, with their groups, of which another object names a namespace.
fn kinds_in_namespaces(survey: &Survey) -> BTreeSet<(&str, &str)> {
    let is_placed = |it: &&Object| it.value().at(&["metadata", "namespace"]).is_some();
    let placed = survey.objects.iter().filter(is_placed);
    placed.map(|it| (it.key.group.as_str(), it.key.kind.as_str())).collect()
}
