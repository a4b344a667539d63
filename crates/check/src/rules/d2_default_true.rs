//! # A default that replaces the value that is given
//!
//! `default` of Helm's templates takes its own value wherever the other one is empty, and `false` and `0` are
//! empty. What is switched off in the values stays on, and nothing tells so.
//!
//! People see: nothing: a feature that is off in the values, and on in the cluster.
//!
//! ## Bad
//! ```yaml
//! # values.yaml: metrics: {enabled: false}
//! enabled: {{ .Values.metrics.enabled | default true }}
//! ```
//! ## Good
//! ```yaml
//! enabled: {{ .Values.metrics.enabled }}
//! ```
//! ## When to suppress
//! Where nobody may switch it off.

use std::sync::{Arc, LazyLock};

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_value::{Location, ObjectExt, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::{chart_templates, dedup::Once, given_values::GivenValues},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-default-true",
    incident: "D2",
    severity: Severity::Warning,
    title: "a default that replaces the value that is given",
    page: page!("d2_default_true.rs"),
    check,
};

/// A value with a default behind it, or before it, that is not empty.
static DEFAULTED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"\.Values\.([A-Za-z0-9_.]+)\s*\|\s*default\s+(true|[1-9]\d*)\b|\bdefault\s+(true|[1-9]\d*)\s+\$?\.Values\.([A-Za-z0-9_.]+)",
    )
    .expect("the pattern is well formed")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    let mut once = Once::default();
    for folder in chart_templates::charts(files) {
        let templates = chart_templates::in_chart(folder, "templates/");
        let mut given = None;
        for path in files.paths().filter(|path| path.starts_with(&templates)) {
            let Some(text) = files.text(path).filter(|text| text.contains("default ")) else { continue };
            let given = given.get_or_insert_with(|| GivenValues::of_chart(context, folder));
            for (line, content) in (1..).zip(text.lines()) {
                of_line(context, given, &Location::new(Arc::clone(path), line, 0), content, &mut once);
            }
        }
    }
    once.report(report);
}

fn of_line(context: &Context<'_>, given: &[GivenValues], at: &Location, line: &str, once: &mut Once) {
    for found in DEFAULTED.captures_iter(line) {
        let part =
            |at: usize, or: usize| found.get(at).or_else(|| found.get(or)).map_or("", |it| it.as_str());
        let (name, default) = (part(1, 4), part(2, 3));
        let steps: Vec<&str> = name.split('.').collect();
        let is_replaced = |it: &&GivenValues| match it.values.at(&steps) {
            Some(Value::Bool(value)) => default == "true" && !value,
            Some(Value::Number(value)) => default != "true" && value.as_i64() == Some(0),
            _ => false,
        };
        let Some(by) = given.iter().find(is_replaced) else { continue };
        let value = if default == "true" { "false" } else { "0" };
        let diagnostic = RULE
            .diagnostic(format!("{name} is {value} in {}, and the template makes {default} of it", by.who))
            .at(context.survey.files.span(at), format!("{value} counts as empty here"))
            .because("`default` takes its own value wherever the other one is empty: \"\", 0, false, nil")
            .help("write the value without `default`, and the default into values.yaml");
        once.add(name, Finding::new(RULE.incident, diagnostic).likely());
    }
}
