//! # Terraform makes a Secret in another namespace than its reader's
//!
//! A `kubernetes_secret` or `kubernetes_config_map` whose metadata name no namespace is made in the provider's,
//! which is `default`. Pods and releases read those of their own namespace only.
//!
//! People see: `Error: secret "db" not found`, `CreateContainerConfigError`, while Terraform says that it was
//! created.
//!
//! ## Bad
//! ```hcl
//! resource "kubernetes_secret" "db" {
//!   metadata { name = "db" }
//! }
//! resource "helm_release" "shop" {
//!   namespace = "shop"
//!   set { name = "existingSecret", value = kubernetes_secret.db.metadata[0].name }
//! }
//! ```
//! ## Good
//! ```hcl
//! resource "kubernetes_secret" "db" {
//!   metadata {
//!     name      = "db"
//!     namespace = "shop"
//!   }
//! }
//! ```
//! ## When to suppress
//! Where the provider is configured with the namespace of the reader.

use tiphys_diag::{Severity, Span};
use tiphys_graph::tools::terraform::{Block, Terraform};
use tiphys_vfs::parent;

use crate::{
    Context, Finding, Report, Rule,
    support::{pod_references, pods},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G4-secret-namespace",
    incident: "G4",
    severity: Severity::Warning,
    title: "Terraform makes a Secret in another namespace than its reader's",
    page: page!("g4_secret_namespace.rs"),
    check,
};

/// What Terraform makes in the namespace of its provider.
struct Made<'a> {
    block: &'a Block,
    /// The folder of its module.
    folder: &'a str,
    kind: &'static str,
    /// The object's name, where that is written out.
    name: Option<&'a str>,
    span: Span,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let terraform = &context.survey.tools().terraform;
    for made in made_secrets(terraform) {
        let reader = reader_in_module(terraform, &made).or_else(|| reading_pod(context, &made));
        let Some((namespace, reader)) = reader else { continue };
        let diagnostic = RULE
            .diagnostic(format!(
                "{} makes a {} in the namespace of its provider, and it is read in {namespace}",
                made.block.address(),
                made.kind
            ))
            .at(made.span.clone(), "names no namespace: default")
            .see(reader, format!("reads one of namespace {namespace}"))
            .because("what reads a Secret or ConfigMap finds those of its own namespace only")
            .help(format!("add namespace = \"{namespace}\" to its metadata"));
        report.add(Finding::new(RULE.incident, diagnostic).likely());
    }
}

fn made_secrets(terraform: &Terraform) -> Vec<Made<'_>> {
    const KINDS: [(&str, &str); 4] = [
        ("kubernetes_config_map", "ConfigMap"),
        ("kubernetes_config_map_v1", "ConfigMap"),
        ("kubernetes_secret", "Secret"),
        ("kubernetes_secret_v1", "Secret"),
    ];
    let mut found = Vec::new();
    for (file, blocks) in &terraform.files {
        for block in blocks.iter().filter(|block| block.kind == "resource") {
            let of_kind = |(label, _): &&(&str, &str)| block.labels.first().is_some_and(|it| it == label);
            let Some((_, kind)) = KINDS.iter().find(of_kind) else { continue };
            let Some(metadata) = block.children("metadata").next() else { continue };
            if metadata.get("namespace").is_some() || block.get("provider").is_some() {
                continue;
            }
            let folder = parent(file).unwrap_or_default();
            found.push(Made { block, folder, kind, name: metadata.str("name"), span: metadata.span.clone() });
        }
    }
    found
}

/// A release of the same module that is handed the name, and its namespace.
fn reader_in_module(terraform: &Terraform, made: &Made<'_>) -> Option<(String, Span)> {
    let files = terraform.files.iter().filter(|(file, _)| parent(file).unwrap_or_default() == made.folder);
    let releases = files.flat_map(|(_, blocks)| blocks).filter(|block| block.is_resource("helm_release"));
    releases.into_iter().find_map(|release| {
        let namespace = release.str("namespace").filter(|it| !it.is_empty() && *it != "default")?;
        let names = |path: &[String]| {
            matches!(path, [kind, name, metadata, ..] if made.block.labels == [kind.as_str(), name.as_str()] && metadata == "metadata")
        };
        let reference = release.references().into_iter().find(|reference| names(&reference.path))?;
        Some((namespace.to_owned(), reference.span.clone()))
    })
}

/// A pod that reads an object of that name, where nothing else of the repository has the name.
fn reading_pod(context: &Context<'_>, made: &Made<'_>) -> Option<(String, Span)> {
    let survey = context.survey;
    let name = made.name?;
    if survey.objects.iter().any(|object| object.key.name == name && pods::pod_of(object).is_none()) {
        return None;
    }
    survey.objects.iter().filter_map(pods::pod_of).find_map(|pod| {
        let namespace = pod.object.key.namespace.as_str();
        let reads = |it: &pod_references::Reference<'_>| it.kind == made.kind && it.name == name;
        let reference = pod_references::of_pod(&pod).into_iter().find(reads)?;
        let is_elsewhere = !namespace.is_empty() && namespace != "default";
        is_elsewhere.then(|| (namespace.to_owned(), survey.span(pod.object, &reference.path)))
    })
}
