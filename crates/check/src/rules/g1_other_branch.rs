//! # A step asks for a branch that the workflows do not know
//!
//! Repositories have `main` or `master`, and seldom both. A script that was written for another one asks for
//! `origin/main`; where the branch is called `master`, Git finds nothing, and what the step compares with is
//! empty.
//!
//! People see: `fatal: ambiguous argument 'origin/main': unknown revision or path not in the working tree`,
//! `fatal: invalid reference: origin/master`.
//!
//! The rule speaks where all events of workflows, and the branch that is checked out, have the other name.
//!
//! ## Bad
//! ```yaml
//! on: {pull_request: {branches: [master]}}
//! jobs: {diff: {runs-on: ubuntu-latest, steps: [{run: git diff origin/main}]}}
//! ```
//! ## Good
//! ```yaml
//! on: {pull_request: {branches: [master]}}
//! jobs: {diff: {runs-on: ubuntu-latest, steps: [{run: git diff origin/master}]}}
//! ```
//! ## When to suppress
//! Where the repository has both branches.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_graph::{
    Survey,
    tools::pipelines::{Format, Pipeline},
};
use tiphys_yaml::Node;

use crate::{Context, Finding, Report, Rule, support::workflow::one_or_many};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G1-other-branch",
    incident: "G1",
    severity: Severity::Warning,
    title: "a step asks for a branch that the workflows do not know",
    page: page!("g1_other_branch.rs"),
    check,
};

/// The names that a repository's branch usually has.
const USUAL: [&str; 2] = ["main", "master"];
/// A branch of the remote.
static REMOTE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[^\w./:-])origin/(main|master)(?:[^\w./-]|$|\.\.)").expect("the pattern is well formed")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let Some(branch) = only_branch(survey) else { return };
    let files = &survey.files;
    for pipeline in workflows(survey) {
        for (script, _) in pipeline.scripts() {
            let lines = script.text.lines().zip(1..);
            let code = lines.filter(|(line, _)| !line.trim_start().starts_with('#'));
            let asked = |line: &str| REMOTE.captures(line)?.get(1).map(|it| it.as_str().to_owned());
            let found = code.filter_map(|(line, at)| Some((asked(line)?, at, line)));
            // One that tries both, or fetches from elsewhere, knows what it does.
            let others = found.filter(|(asked, ..)| asked != branch);
            let others: Vec<_> = others.filter(|(.., line)| !line.contains("||")).collect();
            let Some((asked, at, _)) = others.first() else { continue };
            if script.text.contains(&format!("origin/{branch}")) || script.text.contains("git remote add") {
                continue;
            }
            let diagnostic = RULE
                .diagnostic(format!(
                    "the step asks for origin/{asked}, and the repository's branch is {branch}"
                ))
                .at(script.span(files, *at), "there is no such branch")
                .because(format!("whatever else names the branch in this repository names {branch}"))
                .help(format!("write origin/{branch}"));
            let finding = Finding::new(RULE.incident, diagnostic).likely();
            report.add(finding.with_spelling(format!("origin/{asked}"), format!("origin/{branch}")));
        }
    }
}

fn workflows(survey: &Survey) -> impl Iterator<Item = &Pipeline> {
    survey.tools().pipelines.iter().filter(|it| it.format == Format::Workflow)
}

/// The one of the usual names that everything names which names one.
pub(super) fn only_branch(survey: &Survey) -> Option<&'static str> {
    let mut named: Vec<&str> = survey.branch.as_deref().into_iter().collect();
    let roots = workflows(survey).flat_map(Pipeline::roots);
    const EVENTS: [&str; 4] = ["push", "pull_request", "pull_request_target", "workflow_run"];
    let events = roots.filter_map(|root| root.get("on")).flat_map(|on| EVENTS.map(|event| on.get(event)));
    let branches = events.flatten().filter_map(|event| event.get("branches")).flat_map(one_or_many);
    named.extend(branches.filter_map(Node::as_str));
    let found: Vec<&str> = USUAL.into_iter().filter(|usual| named.contains(usual)).collect();
    let [only] = found[..] else { return None };
    Some(only)
}
