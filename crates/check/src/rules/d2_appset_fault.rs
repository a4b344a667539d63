//! # An ApplicationSet yields no Applications
//!
//! A generator that fails, or a template that does not come out as an Application, stops the whole set:
//! none of its Applications is created, and changes no longer reach those that exist.
//!
//! People see: the condition `ErrorOccurred` of the ApplicationSet, and Applications that are missing.
//!
//! ## Bad
//! ```yaml
//! generators: [{list: {elements: [{name: web}]}}]
//! template: {metadata: {name: "{{.nmae}}"}}       # with goTemplateOptions: [missingkey=error]
//! ```
//! ## Good
//! ```yaml
//! template: {metadata: {name: "{{.name}}"}}
//! ```
//! ## When to suppress
//! Where the generator reads what only the cluster has.

use tiphys_diag::Severity;
use tiphys_graph::survey::declared_span;
use tiphys_value::ObjectExt;

use crate::{Context, Finding, Report, Rule, support::fields::keys};

/// See the module.
pub const RULE: Rule = Rule {
    id: "D2-appset-fault",
    incident: "D2",
    severity: Severity::Error,
    title: "an ApplicationSet that yields no Applications",
    source: include_str!("d2_appset_fault.rs"),
    check,
};

/// What a message says of what is not done here.
const UNSUPPORTED: &str = "not supported";

fn check(context: &Context<'_>, report: &mut Report) {
    for set in &context.survey.sets {
        let Some(fault) = set.fault.as_deref() else { continue };
        if set.symbolic || set.unseen || fault.contains(UNSUPPORTED) {
            continue;
        }
        let field = if fault.contains("template") { "template" } else { "generators" };
        let span = declared_span(&context.survey.files, &set.declared, &keys(&["spec", field]));
        let name = set.declared.value.name();
        let diagnostic = RULE
            .diagnostic(format!("ApplicationSet {name} yields no Applications: {fault}"))
            .at(span, "here")
            .because("the controller gives up on the whole set: it creates, changes and deletes none of its Applications");
        report.add(Finding::new(RULE.incident, diagnostic).object(format!("ApplicationSet/{name}")));
    }
}
