//! # A template of a Workflow asks for an input that it does not have
//!
//! A template of Argo Workflows fills in `{{inputs.parameters.NAME}}` with the parameters that stand under
//! its own `inputs`, and `{{workflow.parameters.NAME}}` with those of the whole Workflow. A name that does
//! not stand there, or the singular `inputs.parameter`, is refused.
//!
//! People see: `failed to resolve {{inputs.parameters.subfolder}}`, `templates.build: failed to resolve …`.
//!
//! ## Bad
//! ```yaml
//! - name: build
//!   inputs: {parameters: [{name: folder}]}
//!   container: {image: "builder:v1", args: ["{{inputs.parameter.folder}}"]}
//! ```
//! ## Good
//! ```yaml
//! - name: build
//!   inputs: {parameters: [{name: folder}]}
//!   container: {image: "builder:v1", args: ["{{inputs.parameters.folder}}"]}
//! ```
//! ## When to suppress
//! Where the text is for another program.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::{Severity, similar_names};
use tiphys_graph::Object;
use tiphys_value::{ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        pods::{list, text},
        unrendered_files,
        value_steps::{each_text, path_below},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-workflow-input",
    incident: "C2",
    severity: Severity::Warning,
    title: "a template of a Workflow asks for an input that it does not have",
    page: page!("c2_workflow_input.rs"),
    check,
};

/// A parameter that a text asks for: the word before its name, and its name.
static INPUT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\{\{\s*inputs\.(parameters?|artifacts?)\.([A-Za-z0-9_-]+)\s*\}\}")
        .expect("the pattern is well formed")
});

/// Where templates stand, by kind.
fn holder(kind: &str) -> Option<&'static [&'static str]> {
    match kind {
        "Workflow" | "WorkflowTemplate" | "ClusterWorkflowTemplate" => Some(&["spec", "templates"]),
        "CronWorkflow" => Some(&["spec", "workflowSpec", "templates"]),
        _ => None,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    for object in survey.objects.iter().filter(|it| it.key.group == "argoproj.io") {
        let Some(holder) = holder(&object.key.kind) else { continue };
        let templates = object.value().at(holder).and_then(Value::as_array).into_iter().flatten();
        for (at, template) in templates.enumerate() {
            let mut asked = Vec::new();
            each_text(template, &mut Vec::new(), &|_| true, &mut |steps, text| {
                for found in INPUT.captures_iter(text) {
                    asked.push((
                        found[1].to_owned(),
                        found[2].to_owned(),
                        path_below(keys(holder).index(at), steps),
                    ));
                }
            });
            parameters_of_workflow(context, object, (holder, at), template, &mut once);
            for (word, name, path) in asked {
                let Some((what, meant)) = fault(template, &word, &name) else { continue };
                if unrendered_files::may_be_a_patch(survey, object) {
                    break;
                }
                let diagnostic = RULE
                    .diagnostic(format!(
                        "template {} of {} asks for {what}",
                        text(template, "name"),
                        object.title()
                    ))
                    .at(survey.span(object, &path), "in this text")
                    .because("the Workflow is refused: what stands in the braces cannot be resolved")
                    .help(format!("there is {meant}"));
                once.add(
                    &format!("{} {what}", object.title()),
                    RULE.finding(context, object, diagnostic).likely(),
                );
            }
        }
    }
    once.report(report);
}

/// A parameter of the whole Workflow that a text asks for: its name.
static PARAMETER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\{\{\s*workflow\.parameters\.([A-Za-z0-9_-]+)\s*\}\}").expect("the pattern is well formed")
});

/// Parameters of the whole Workflow that a template asks for. Who starts a Workflow from a WorkflowTemplate
/// may give it more than that declares: one is told only if nothing in the repository gives it, and the
/// object declares others.
fn parameters_of_workflow(
    context: &Context<'_>,
    object: &Object,
    (holder, at): (&[&str], usize),
    template: &Value,
    once: &mut Once,
) {
    let survey = context.survey;
    let spec = holder.split_last().map_or(holder, |(_, above)| above);
    let declared = |object: &Object| -> Vec<String> {
        let place: Vec<&str> = spec.iter().copied().chain(["arguments", "parameters"]).collect();
        let own = object.value().at(&place).and_then(Value::as_array).into_iter().flatten();
        own.map(|it| text(it, "name").to_owned()).collect()
    };
    let known = declared(object);
    if known.is_empty() {
        return;
    }
    each_text(template, &mut Vec::new(), &|_| true, &mut |steps, said| {
        for found in PARAMETER.captures_iter(said) {
            let name = &found[1];
            let given = format!("name: {name}");
            let gives = |file: &str| survey.files.text(file).is_some_and(|text| names(&text, &given));
            let is_given = || survey.files.ending(&[".yaml", ".yml", ".sh"]).any(|file| gives(file));
            if known.iter().any(|it| it == name)
                || unrendered_files::may_be_a_patch(survey, object)
                || is_given()
            {
                continue;
            }
            let what = format!("workflow.parameters.{name}");
            let diagnostic = RULE
                .diagnostic(format!(
                    "template {} of {} asks for {what}",
                    text(template, "name"),
                    object.title()
                ))
                .at(survey.span(object, &path_below(keys(holder).index(at), steps)), "in this text")
                .because("the Workflow is refused: what stands in the braces cannot be resolved")
                .help(format!("spec.arguments declares {}", known.join(", ")));
            once.add(
                &format!("{} {what}", object.title()),
                RULE.finding(context, object, diagnostic).likely(),
            );
        }
    });
}

/// Whether a text has words that are no part of longer ones.
fn names(text: &str, words: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    text.match_indices(words).any(|(at, _)| !is_part(text[at + words.len()..].chars().next()))
}

/// An input that is asked for and is not there, and what there is.
fn fault(template: &Value, word: &str, name: &str) -> Option<(String, String)> {
    let list_name = if word.starts_with("parameter") { "parameters" } else { "artifacts" };
    let what = format!("inputs.{word}.{name}");
    if word != list_name {
        return Some((what, format!("inputs.{list_name}.{name}")));
    }
    let known: Vec<&str> = list(&template["inputs"], list_name).iter().map(|it| text(it, "name")).collect();
    if known.contains(&name) {
        return None;
    }
    let meant = similar_names::nearest_slip(name, known.iter().copied()).map(str::to_owned);
    Some((what, meant.unwrap_or_else(|| if known.is_empty() { "none".to_owned() } else { known.join(", ") })))
}
