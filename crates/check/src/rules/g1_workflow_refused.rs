//! # A workflow that GitHub refuses, or reads in another way than it is meant
//!
//! The file is good YAML, and yet no workflow: a key is misspelt, an expression asks for what is not there at
//! that place (`env` and `secrets` in the condition of a job, `env` in `env`), a text in it stands between
//! double quotes, jobs wait for each other, an identifier has a dot. GitHub starts nothing then; the only
//! trace is a failed run without jobs.
//!
//! Other faults are taken, and told as warnings: a condition with text beside its `${{ }}` is a text then,
//! and a text always holds; of events, types and filters that it does not know GitHub takes no notice; inputs
//! and outputs that nobody declares are empty; an event that is compared with a name that none has; a
//! job for a runner that GitHub has no more waits for a day.
//!
//! People see: `Invalid workflow file`, `Unrecognized named-value: 'secrets'. Located at position 1 within
//! expression`, `Unexpected value ''`, `Unexpected symbol: '"main"'`, `The identifier 'v1.2' is invalid`,
//! `Required property is missing: type`, ``you may only define one of `branches` and `branches-ignore` for a
//! single event``, `creates a cycle in the dependency graph`.
//!
//! ## Bad
//! ```yaml
//! jobs:
//!   deploy:
//!     if: secrets.TOKEN != ''
//! ```
//! ## Good
//! ```yaml
//! jobs:
//!   deploy:
//!     if: vars.DEPLOYS == 'yes'
//! ```
//! ## When to suppress
//! Where GitHub has learnt a word that the rule does not know.

use tiphys_diag::{Severity, Span};
use tiphys_graph::{
    Files,
    tools::{Script, node_span, pipelines::Format},
};

use crate::{
    Context, Finding, Report, Rule,
    support::workflow::{Effect, faults},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G1-workflow-refused",
    incident: "G1",
    severity: Severity::Error,
    title: "a workflow that GitHub refuses, or reads in another way than it is meant",
    page: page!("g1_workflow_refused.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for pipeline in context.survey.tools().pipelines.iter().filter(|it| it.format == Format::Workflow) {
        let [root] = pipeline.roots() else { continue };
        if root.get("jobs").is_none() {
            continue;
        }
        for fault in faults(root) {
            let span = match Script::of_node(&pipeline.file, fault.node) {
                Some(script) if fault.line > 1 => script.span(files, fault.line),
                _ => node_span(files, &pipeline.file, fault.node),
            };
            if fault.effect == Effect::AlwaysEmpty && is_asked_for(files, &span) {
                continue;
            }
            let mut diagnostic = RULE.diagnostic(fault.message).at(span, fault.label);
            diagnostic = match fault.effect {
                Effect::Refused => diagnostic.because("GitHub refuses the whole file: none of its jobs runs"),
                Effect::AlwaysTrue => diagnostic
                    .because(
                        "what is not within `${{ }}` makes a text of the condition, and every text holds",
                    )
                    .help("write the whole condition as one expression"),
                Effect::NeverTrue => diagnostic.because(
                    "`github.event_name` is the name of the event that started the run, as it stands below `on`",
                ),
                Effect::AlwaysEmpty => diagnostic.because(
                    "an expression that names what is not there is an empty string; no error tells of it",
                ),
                Effect::NeverRuns => diagnostic.because(
                    "the job waits for a runner with that label, and fails after a day without having run",
                ),
                Effect::Ignored => diagnostic.because("GitHub takes no notice of what it does not know here"),
            };
            if fault.effect != Effect::Refused {
                diagnostic.severity = Severity::Warning;
            }
            report.add(Finding::new(RULE.incident, diagnostic));
        }
    }
}

/// Whether an expression is the value of a variable that a script of the file asks for emptiness, or gives a
/// default.
fn is_asked_for(files: &Files, span: &Span) -> bool {
    let Some(text) = files.text(&span.file) else { return false };
    let line = text.lines().nth(span.start.line.max(1) as usize - 1).unwrap_or_default();
    let Some((variable, _)) = line.split_once(':') else { return false };
    let variable = variable.trim().trim_start_matches("- ");
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if variable.is_empty() || !variable.chars().all(is_name) {
        return false;
    }
    let forms = [
        format!("-z \"${variable}\""),
        format!("-n \"${variable}\""),
        format!("-z ${variable}"),
        format!("-n ${variable}"),
        format!("-z \"${{{variable}"),
        format!("-n \"${{{variable}"),
        format!("${{{variable}:-"),
        format!("${{{variable}:+"),
        format!("${{{variable}:?"),
    ];
    forms.iter().any(|form| text.contains(form.as_str()))
}
