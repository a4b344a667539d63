//! # A template prints a value that nobody gives
//!
//! What is not among a chart's values is nothing, and Helm silently prints nothing: the field is empty
//! in what is applied. It happens when a value is renamed in one of two places, or a template is copied from
//! a chart that has it.
//!
//! People see: `spec.data[0].remoteRef.key: Required value`, an empty host, an object that waits for what has
//! no name.
//!
//! The rule speaks of charts of the repository, where a template prints the value as a whole field: outside
//! of any condition if Applications render the chart and at least five others that its templates print so are
//! given, and anywhere if a value is given that is called alike and that no template reads.
//!
//! ## Bad
//! ```yaml
//! # values: {bucketCredentialsId: 4711}
//! remoteRef: {key: {{ .Values.s3CredentialsId }}}
//! ```
//! ## Good
//! ```yaml
//! remoteRef: {key: {{ .Values.bucketCredentialsId }}}
//! ```
//! ## When to suppress
//! Where the field may be empty.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use regex::Regex;
use tiphys_diag::{Severity, Span, similar_names};
use tiphys_graph::{App, tools::Lines};
use tiphys_value::ObjectExt;
use tiphys_vfs::is_below;

use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_templates::{self, ACTION, in_chart},
        given_values::GivenValues,
        misspelled_names::is_one_word_apart,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-unset-value",
    incident: "D2",
    severity: Severity::Warning,
    title: "a template prints a value that nobody gives",
    page: page!("d2_unset_value.rs"),
    check,
};

/// How many values have to be given, for each that is not.
const ENOUGH: usize = 5;

/// A value that is printed as it is, or with quotes around.
static PRINTED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\$?\.Values((?:\.[A-Za-z_]\w*)+)(?:\s*\|\s*(?:quote|squote))?$")
        .expect("the expression is right")
});

/// A value of a chart that a template prints as a whole field.
struct Printed {
    /// Its keys, with dots between them.
    path: String,
    span: Span,
    /// Whether a condition about something else decides whether it is printed.
    is_conditional: bool,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    for folder in chart_templates::charts(&survey.files) {
        let chart = in_chart(folder, "Chart.yaml");
        let apps: Vec<&App> = survey.apps.iter().filter(|app| app.read.contains(chart.as_str())).collect();
        let has_plugin = |app: &&App| {
            app.application.spec.effective_sources().iter().any(|source| source.plugin.is_some())
        };
        if apps.iter().any(has_plugin) {
            continue;
        }
        let given = GivenValues::of_chart(context, folder);
        let parameters: BTreeSet<String> = apps
            .iter()
            .flat_map(|app| app.application.spec.effective_sources())
            .filter_map(|it| it.helm.clone())
            .flat_map(|helm| helm.parameters.into_iter().map(|it| it.name))
            .collect();
        let values = Values { given: &given, parameters: &parameters };
        let is_rendered =
            !apps.is_empty() && apps.iter().all(|app| app.is_rendered() && !survey.is_symbolic(app));
        let templates = ChartTemplates::read(context, folder);
        for (it, near) in lacking(&templates, &values, is_rendered) {
            let key = it.path.rsplit('.').next().unwrap_or_default();
            if is_rendered || !is_spoken_of(context, folder, key) {
                report.add(finding(it, near));
            }
        }
    }
}

/// Whether a file outside of a chart's templates speaks of a value: it may be one that gives it.
fn is_spoken_of(context: &Context<'_>, folder: &str, key: &str) -> bool {
    let (files, own) = (&context.survey.files, in_chart(folder, "templates"));
    let mut others = files.paths().filter(|path| !is_below(path, &own));
    others.any(|path| files.text(path).is_some_and(|text| text.contains(key)))
}

/// What a chart is given.
struct Values<'a> {
    given: &'a [GivenValues],
    parameters: &'a BTreeSet<String>,
}

impl<'a> Values<'a> {
    fn has(&self, path: &str) -> bool {
        let steps: Vec<&str> = path.split('.').collect();
        self.given.iter().any(|it| it.values.at(&steps).is_some())
            || self.parameters.iter().any(|name| name.starts_with(path))
    }

    fn keys(&self) -> BTreeSet<&'a str> {
        let maps = self.given.iter().filter_map(|it| it.values.as_object());
        maps.flat_map(|map| map.keys()).map(String::as_str).collect()
    }
}

/// What templates print and nobody gives, where that is no purpose, each with the value that is called alike.
fn lacking<'a>(
    templates: &'a ChartTemplates,
    values: &Values<'a>,
    is_rendered: bool,
) -> Vec<(&'a Printed, Option<&'a str>)> {
    let (known, lacking): (Vec<&Printed>, Vec<&Printed>) =
        templates.printed.values().partition(|it| values.has(&it.path));
    let plain = lacking.iter().filter(|it| !it.is_conditional).count();
    let is_odd = is_rendered && known.len() >= ENOUGH * plain;
    let keys = values.keys();
    let unread: Vec<&str> =
        keys.into_iter().filter(|key| !templates.text.contains(&format!(".Values.{key}"))).collect();
    let near = |it: &Printed| {
        similar_names::nearest_slip(&it.path, unread.iter().copied())
            .or_else(|| unread.iter().copied().find(|key| is_one_word_apart(&it.path, key)))
    };
    let all = lacking.into_iter().map(|it| (it, near(it)));
    all.filter(|(it, near)| near.is_some() || is_odd && !it.is_conditional).collect()
}

fn finding(it: &Printed, near: Option<&str>) -> Finding {
    let diagnostic = RULE
        .diagnostic(format!(
            "the template prints .Values.{}, which nobody gives: the field is empty",
            it.path
        ))
        .at(it.span.clone(), "nothing is printed here")
        .because("what is not among the values of a chart is nothing, and Helm prints it without a word");
    let diagnostic = match near {
        Some(near) => diagnostic.help(format!("the chart is given {near}, which no template reads")),
        None => diagnostic.help("give it in values.yaml, or print the value that took its place"),
    };
    Finding::new(RULE.incident, diagnostic).likely()
}

/// The templates of a chart.
struct ChartTemplates {
    /// What they print as whole fields, each path by its first place.
    printed: BTreeMap<String, Printed>,
    /// All of them, one behind the other.
    text: String,
}

impl ChartTemplates {
    fn read(context: &Context<'_>, folder: &str) -> Self {
        let mut all = Self { printed: BTreeMap::new(), text: String::new() };
        for (path, text) in chart_templates::templates(&context.survey.files, folder) {
            all.text.push_str(&text);
            if !path.ends_with(".yaml") {
                continue;
            }
            for it in printed_in(path, &text) {
                all.printed.entry(it.path.clone()).or_insert(it);
            }
        }
        all
    }
}

fn printed_in(path: &Arc<str>, text: &Arc<str>) -> Vec<Printed> {
    let lines = Lines::new(path, text);
    // What begins the blocks that the action stands in.
    let mut blocks: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for action in ACTION.find_iter(text) {
        let Some(inner) = chart_templates::inner(action.as_str()) else { continue };
        match inner.split_whitespace().next().unwrap_or_default() {
            "if" | "with" | "range" | "define" | "block" => blocks.push(inner),
            "end" => drop(blocks.pop()),
            _ => {}
        }
        let Some(keys) = PRINTED.captures(inner) else { continue };
        let value = keys[1].trim_start_matches('.');
        let first = format!(".Values.{}", value.split('.').next().unwrap_or_default());
        let is_guarded = blocks.iter().any(|block| !block.starts_with("if") || block.contains(&first));
        if !is_guarded && is_whole_field(text, action.range()) {
            found.push(Printed {
                path: value.to_owned(),
                span: lines.span(action.range()),
                is_conditional: !blocks.is_empty(),
            });
        }
    }
    found
}

/// Whether an action is all that a line says of a key, with or without quotes.
fn is_whole_field(text: &str, action: std::ops::Range<usize>) -> bool {
    let before = text[..action.start].rsplit('\n').next().unwrap_or_default();
    let after = text[action.end..].split('\n').next().unwrap_or_default();
    let before = before.trim_end_matches(['"', '\'']);
    let is_comment = before.trim_start().starts_with('#');
    !is_comment && before.ends_with(": ") && after.trim_matches(['"', '\'', ' ', '\r']).is_empty()
}

#[cfg(test)]
mod tests {
    use super::printed_in;

    #[test]
    fn whole_fields_are_printed() {
        let text = "a: {{ .Values.one }}\nb: \"{{ .Values.two.three }}\"\nc: x{{ .Values.part }}\n{{- if .Values.on }}\nd: {{ .Values.four }}\n{{- end }}\n# e: {{ .Values.five }}\nf: {{ .Values.six | default 1 }}\n";
        let found: Vec<String> =
            printed_in(&"a.yaml".into(), &text.into()).into_iter().map(|it| it.path).collect();
        assert_eq!(found, ["one", "two.three", "four"]);
    }
}
