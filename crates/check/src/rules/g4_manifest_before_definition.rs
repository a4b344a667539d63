//! # Terraform plans a custom resource before its definition is there
//!
//! `kubernetes_manifest` asks the cluster for the kind while it plans. `depends_on` orders what is applied,
//! and not the plan: where the same module installs the chart with the definitions, a new cluster has no such
//! kind, and nothing is planned at all.
//!
//! People see: `API did not recognize GroupVersionKind from manifest (CRD may not be installed)`, `no matches
//! for kind "Application" in group "argoproj.io"`.
//!
//! ## Bad
//! ```hcl
//! resource "helm_release" "argocd" { chart = "argo-cd" }
//! resource "kubernetes_manifest" "root" {
//!   manifest   = yamldecode(file("root.yaml"))
//!   depends_on = [helm_release.argocd]
//! }
//! ```
//! ## Good
//! ```hcl
//! resource "helm_release" "root" {
//!   chart      = "${path.module}/charts/root"
//!   depends_on = [helm_release.argocd]
//! }
//! ```
//! ## When to suppress
//! Where the module is applied in two steps, with `-target`.

use tiphys_diag::Severity;
use tiphys_graph::tools::terraform::{Block, Expression};
use tiphys_render::manifest;
use tiphys_value::{GroupVersionKind, ObjectExt};
use tiphys_vfs::join;

use crate::{
    Context, Finding, Report, Rule,
    support::{chart_crds::Defining, cloud_facts::is_example, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G4-manifest-before-definition",
    incident: "G4",
    severity: Severity::Warning,
    title: "Terraform plans a custom resource before its definition is there",
    page: page!("g4_manifest_before_definition.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let terraform = &context.survey.tools().terraform;
    for (folder, blocks) in terraform.modules() {
        if is_example(folder) || unused_files::is_in_unused_folder(folder) {
            continue;
        }
        let releases: Vec<&&Block> = blocks.iter().filter(|it| it.is_resource("helm_release")).collect();
        let manifests = blocks.iter().filter(|it| it.is_resource("kubernetes_manifest"));
        for manifest in manifests.filter(|_| !releases.is_empty()) {
            for (group, kind) in kinds(context, folder, manifest) {
                let defines = |it: &&&&Block| {
                    let chart = it.str("chart").unwrap_or_default();
                    Defining::find_named(chart).is_some_and(|it| it.defines(&group, &kind))
                };
                if let Some(release) = releases.iter().find(defines) {
                    report.add(finding(manifest, release, &kind));
                    break;
                }
            }
        }
    }
}

/// The groups and kinds of a manifest: one that is written out, or those of a file that it reads.
fn kinds(context: &Context<'_>, folder: &str, block: &Block) -> Vec<(String, String)> {
    let Some(expression) = block.get("manifest") else { return Vec::new() };
    let text = |key: &str| expression.get(key).and_then(Expression::as_str);
    if let (Some(version), Some(kind)) = (text("apiVersion"), text("kind")) {
        let gvk = GroupVersionKind::from_api_version(version, kind);
        return vec![(gvk.group, gvk.kind)];
    }
    let reads = context.survey.tools().terraform.reads.iter().filter(|it| {
        it.span.file == expression.span.file && it.span.start.line == expression.span.start.line
    });
    let files = &context.survey.files;
    let texts = reads.filter_map(|read| {
        let path = read.path.trim_start_matches("${path.module}/");
        let path = join(folder, path).ok()?;
        Some((files.text(&path)?, path))
    });
    texts
        .flat_map(|(text, path)| {
            let objects = manifest::parse_objects(&path, &text, true).unwrap_or_default();
            let gvk = objects.iter().map(|it| it.value.gvk());
            gvk.map(|it| (it.group, it.kind)).collect::<Vec<_>>()
        })
        .collect()
}

fn finding(manifest: &Block, release: &Block, kind: &str) -> Finding {
    let diagnostic = RULE
        .diagnostic(format!("{} needs kind {kind}, which only {} brings", manifest.address(), release.address()))
        .at(manifest.span.clone(), "the kind has to be there when this is planned")
        .see(release.span.clone(), "this brings its definition, when it is applied")
        .because("kubernetes_manifest asks the cluster for the kind while it plans: on a new cluster the plan fails as a whole")
        .help("put it into a chart that a second helm_release installs, or into a module that is applied later");
    Finding::new(RULE.incident, diagnostic).likely()
}
