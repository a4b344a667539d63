//! # An Application reads a branch that the repository does not have
//!
//! Repositories have `main` or `master`, and seldom both. An Application that reads the other one from its own
//! repository finds nothing.
//!
//! People see: `unable to resolve 'main' to a commit SHA`, `ComparisonError`.
//!
//! The rule speaks where all events of workflows, and the branch that is checked out, have the other name.
//!
//! ## Bad
//! ```yaml
//! source: {repoURL: https://git.example.com/shop.git, targetRevision: main, path: web}   # the branch is master
//! ```
//! ## Good
//! ```yaml
//! source: {repoURL: https://git.example.com/shop.git, targetRevision: master, path: web}
//! ```
//! ## When to suppress
//! Where the repository has both branches.

use tiphys_diag::Severity;

use super::g1_other_branch::only_branch;
use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-other-branch",
    incident: "D2",
    severity: Severity::Warning,
    title: "an Application reads a branch that the repository does not have",
    page: page!("d2_other_branch.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let Some(branch) = only_branch(survey) else { return };
    let other = if branch == "main" { "master" } else { "main" };
    let mut once = Once::default();
    // What was read in the repository itself is asked for in it.
    for app in survey.apps.iter().filter(|app| app.is_rendered() && !app.read.is_empty()) {
        let spec = &app.application.spec;
        let sources = spec.effective_sources();
        let [source] = sources.as_slice() else { continue };
        if !source.chart.is_empty() || source.target_revision != other {
            continue;
        }
        let diagnostic = RULE
            .diagnostic(format!(
                "Application {} reads branch {other}, and the repository's branch is {branch}",
                app.name()
            ))
            .at(
                survey.app_span(app, &field_paths::source(spec, 0).key("targetRevision")),
                "there is no such branch",
            )
            .because(format!(
                "`unable to resolve '{other}' to a commit SHA`: nothing of the Application is rendered"
            ))
            .help(format!("write targetRevision: {branch}"));
        let finding = Finding::new(RULE.incident, diagnostic).app(app.name()).likely();
        once.add(other, finding.with_spelling(other, branch));
    }
    once.report(report);
}
