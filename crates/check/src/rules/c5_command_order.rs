//! # A command applies custom resources before the one that installs their definitions
//!
//! Scripts and playbooks run from top to bottom. What applies an Application of Argo CD, an issuer or a
//! monitor needs its kind to be known; where the same file installs the chart with the definitions further
//! down, a new cluster refuses the first command.
//!
//! People see: `no matches for kind "Application" in version "argoproj.io/v1alpha1"`, `Failed to find exact
//! match for argoproj.io/v1alpha1.Application by [kind, name, singularName, shortNames]`.
//!
//! ## Bad
//! ```sh
//! kubectl apply -f bootstrap/root.yaml
//! helm upgrade --install argocd argo/argo-cd --namespace argocd
//! ```
//! ## Good
//! ```sh
//! helm upgrade --install argocd argo/argo-cd --namespace argocd
//! kubectl apply -f bootstrap/root.yaml
//! ```
//! ## When to suppress
//! Where the file is only run on clusters that have the definitions.

use tiphys_diag::Severity;
use tiphys_graph::tools::{Action, Tool, What, Writer};

use crate::{
    Context, Finding, Report, Rule,
    support::{chart_crds::Defining, placeholders, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C5-command-order",
    incident: "C5",
    severity: Severity::Warning,
    title: "a command applies custom resources before the one that installs their definitions",
    page: page!("c5_command_order.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let is_ordered =
        |it: &&Writer| it.action == Action::Apply && !matches!(it.tool, Tool::Terraform | Tool::Helmfile);
    let writers: Vec<&Writer> = context.survey.tools().writers.iter().filter(is_ordered).collect();
    for (at, writer) in writers.iter().enumerate() {
        let file = &writer.span.file;
        if placeholders::is_skeleton(file) || unused_files::is_in_unused_folder(file) {
            continue;
        }
        if let Some((installer, kind)) = installed_later(&writers, at) {
            report.add(finding(writer, installer, &kind));
        }
    }
}

/// The command of the same file, further down, that installs the definition of what a command applies, where
/// no command of any file does it otherwise.
fn installed_later<'a>(writers: &[&'a Writer], at: usize) -> Option<(&'a Writer, String)> {
    let writer = writers[at];
    for key in writer.objects().iter().filter(|key| key.group.contains('.')) {
        let defines = |it: &&&Writer| match &it.what {
            What::Release { chart, .. } => {
                Defining::find_named(chart).is_some_and(|known| known.defines(&key.group, &key.kind))
            }
            What::Address(address) => {
                let address = address.to_ascii_lowercase();
                Defining::defining(&key.group, &key.kind).any(|known| address.contains(known.address))
            }
            _ => false,
        };
        let all: Vec<&&Writer> = writers.iter().filter(defines).collect();
        let is_below =
            |it: &&&&Writer| it.span.file == writer.span.file && it.span.start.line > writer.span.start.line;
        if let Some(installer) = all.iter().find(is_below).filter(|_| all.iter().all(|it| is_below(&it))) {
            return Some((installer, format!("{}/{}", key.kind, key.name)));
        }
    }
    None
}

fn finding(writer: &Writer, installer: &Writer, what: &str) -> Finding {
    let diagnostic = RULE
        .diagnostic(format!(
            "{} applies {what} before {} brings its definition",
            writer.tool.name(),
            installer.subject()
        ))
        .at(writer.span.clone(), "on a new cluster this kind is not known yet")
        .see(installer.span.clone(), "this installs it, further down")
        .because(
            "the API server refuses a kind that it has no definition of, and what comes after does not run",
        )
        .help("install the chart first");
    Finding::new(RULE.incident, diagnostic).likely()
}
