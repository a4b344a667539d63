//! # A template includes one that no file defines
//!
//! `include` and `template` take the name of a `define` of the chart or of one of its dependencies. A name
//! that was changed in one place only, or lost its ending, is noticed when the line is reached: where it
//! stands below a condition that the chart's own values leave off, that is at whoever turns it on first.
//!
//! People see: `Error: template: web/templates/ingress.yaml:2:17: executing "web/templates/ingress.yaml" at
//! <include "web" .>: error calling include: template: no template "web" associated with template "gotpl"`.
//!
//! ## Bad
//! ```yaml
//! # _helpers.tpl defines web.fullname
//! {{- if .Values.ingress.enabled }}
//! {{- $fullName := include "web" . }}
//! ```
//! ## Good
//! ```yaml
//! {{- $fullName := include "web.fullname" . }}
//! ```
//! ## When to suppress
//! Where a dependency that is fetched later defines a name that begins as the chart's own do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use regex::Regex;
use tiphys_diag::{Severity, Span, similar_names};
use tiphys_graph::{Files, Outcome, Survey, tools::Lines};
use tiphys_value::Value;
use tiphys_vfs::{is_below, join};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_templates,
        pods::{list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-missing-template",
    incident: "D2",
    severity: Severity::Warning,
    title: "a template includes one that no file defines",
    page: page!("d2_missing_template.rs"),
    check,
};

/// A template that is called by its name as it is written.
static CALL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\b(?:include|template)\s+"([^"{}%<>]+)""#).expect("the expression is right")
});
/// A template that is defined.
static DEFINITION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\{\{-?\s*(?:define|block)\s+["`]([^"`]+)["`]"#).expect("the expression is right")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for folder in chart_templates::charts(files) {
        let path = if folder.is_empty() { "Chart.yaml".to_owned() } else { format!("{folder}/Chart.yaml") };
        let Some(chart) = files.value(&path) else { continue };
        for call in missing(files, folder, &chart) {
            if !is_told(context.survey, &call.name) {
                report.add(finding(&call));
            }
        }
    }
}

/// A call of a template that nothing defines.
struct Call {
    name: String,
    at: Span,
    nearest: Option<String>,
}

fn missing(files: &Files, folder: &str, chart: &Value) -> Vec<Call> {
    let below = |inner: &str| if folder.is_empty() { inner.to_owned() } else { format!("{folder}/{inner}") };
    let (templates, charts) = (below("templates"), below("charts"));
    let mut folders = vec![templates.clone(), charts.clone()];
    // Whether something out of reach may define names, too.
    let mut is_open = files.paths().any(|path| is_below(path, &charts) && path.ends_with(".tgz"));
    for dependency in list(chart, "dependencies") {
        let (name, repository) = (text(dependency, "name"), text(dependency, "repository"));
        let beside = repository.strip_prefix("file://").and_then(|path| join(folder, path).ok());
        match beside.filter(|it| files.has_folder(it)) {
            Some(beside) => folders.push(beside),
            None => is_open |= !files.has_folder(&format!("{charts}/{name}")),
        }
    }
    is_open |= files.contains(&below("requirements.yaml"));
    let own: Vec<&Arc<str>> = files.paths().filter(|path| is_below(path, &templates)).collect();
    let all = files.paths().filter(|path| folders.iter().any(|folder| is_below(path, folder)));
    let texts: BTreeMap<&str, Arc<str>> =
        all.filter_map(|path| Some((path.as_ref(), files.text(path)?))).collect();
    let defined: BTreeSet<&str> = texts
        .values()
        .flat_map(|text| DEFINITION.captures_iter(text).filter_map(|it| it.get(1)).map(|it| it.as_str()))
        .collect();
    // What is called as the chart itself is its own, unless a dependency is called so.
    let prefix = text(chart, "name");
    let is_shared = list(chart, "dependencies").iter().any(|it| text(it, "name") == prefix);
    let may_be_elsewhere = |name: &str| is_open && (is_shared || name.split('.').next() != Some(prefix));
    let called: BTreeSet<&str> = texts
        .values()
        .flat_map(|text| CALL.captures_iter(text).filter_map(|it| it.get(1)).map(|it| it.as_str()))
        .collect();
    // What stands in a template that nobody calls is not reached.
    let is_reached = |text: &str, at: usize| {
        let within =
            DEFINITION.captures_iter(text).filter_map(|it| it.get(1)).take_while(|it| it.start() < at);
        within.last().is_none_or(|it| called.contains(it.as_str()))
    };
    let mut found: Vec<Call> = Vec::new();
    for path in own {
        let Some(text) = texts.get(path.as_ref()) else { continue };
        for action in chart_templates::ACTION.find_iter(text) {
            if chart_templates::inner(action.as_str()).is_none() {
                continue;
            }
            for name in CALL.captures_iter(action.as_str()).filter_map(|call| call.get(1)) {
                let told = name.as_str();
                let is_known = defined.contains(told) || told.contains('/') || may_be_elsewhere(told);
                if is_known || found.iter().any(|call| call.name == told) {
                    continue;
                }
                let at = action.start() + name.start();
                if !is_reached(text, at) {
                    continue;
                }
                let nearest = similar_names::nearest_slip(told, defined.iter().copied()).map(str::to_owned);
                let nearest = nearest.or_else(|| {
                    // The name of the chart alone is mostly meant to be that of its objects.
                    let longer = format!("{told}.");
                    let full = format!("{told}.fullname");
                    let mut ours = defined.iter().filter(|it| it.starts_with(&longer));
                    let first = ours.next().map(|it| (*it).to_owned());
                    if defined.contains(full.as_str()) { Some(full) } else { first }
                });
                let at = Lines::new(path, text).span(at..at + told.len());
                found.push(Call { name: told.to_owned(), at, nearest });
            }
        }
    }
    found
}

/// Whether an Application does not get past the very call: that is told as it is.
fn is_told(survey: &Survey, name: &str) -> bool {
    let says = |outcome: &Outcome| matches!(outcome, Outcome::Failed(error) if error.to_string().contains(&format!("{name:?}")));
    survey.apps.iter().any(|app| says(&app.outcome))
}

fn finding(call: &Call) -> Finding {
    let diagnostic = RULE
        .diagnostic(format!("no template {:?} associated with template \"gotpl\"", call.name))
        .at(call.at.clone(), "no file of the chart defines it")
        .because("Helm looks the name up when it reaches the line: the chart cannot be rendered with values that lead there");
    Finding::new(RULE.incident, diagnostic).likely().perhaps(&call.name, call.nearest.as_deref())
}
