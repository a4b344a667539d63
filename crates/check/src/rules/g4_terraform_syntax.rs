//! # A file that Terraform cannot read
//!
//! Terraform reads every `.tf` file of a folder before it does anything. One that does not parse stops the
//! plan, and with it the pipeline. The classic is the syntax of old versions for a variable by itself:
//! `${var.name}` without quotes.
//!
//! People see: `Error: Invalid expression`, `Error: Argument or block definition required`, `Error: Invalid
//! character`.
//!
//! ## Bad
//! ```hcl
//! user = ${var.user}
//! ```
//! ## Good
//! ```hcl
//! user = var.user
//! ```
//! ## When to suppress
//! Where another tool makes the file from this one.

use tiphys_diag::Severity;

use crate::{Context, Finding, Report, Rule, support::placeholders};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G4-terraform-syntax",
    incident: "G4",
    severity: Severity::Warning,
    title: "a file that Terraform cannot read",
    page: page!("g4_terraform_syntax.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    for unreadable in &context.survey.tools().terraform.unreadable {
        let file = unreadable.span.file.as_ref();
        let text = context.survey.files.text(file).unwrap_or_else(|| "".into());
        let is_template = ["{{", "<%", "%{ "].iter().any(|mark| text.contains(mark))
            || placeholders::has_bracketed_name(&text);
        // The last of two keys of an object counts, and Terraform says nothing.
        let is_read = unreadable.message.contains("redefined");
        if is_read || !file.ends_with(".tf") || is_template || placeholders::is_skeleton(file) {
            continue;
        }
        let diagnostic = RULE
            .diagnostic(format!("Terraform cannot read {file}: {}", unreadable.message))
            .at(unreadable.span.clone(), "it cannot be read on from here")
            .because("Terraform reads all files of a folder before it does anything");
        report.add(Finding::new(RULE.incident, diagnostic).likely());
    }
}
