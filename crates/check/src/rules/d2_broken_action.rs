//! # A template action that a formatter or a dash broke
//!
//! Formatters of YAML take `{{ .Values.url }}` for two maps and write `{ { .Values.url } }`: Helm leaves that
//! as it is, and what reads the file finds no YAML or a map in place of a text. A dash in the name of a value
//! ends the name: `.Values.prd-argo.url` is refused, and needs `index`. A text with something behind it lacks
//! the function: `{{ "%s-web" .Release.Name }}` lacks `printf`.
//!
//! Templates themselves are rendered, and what is wrong there is told by `D2-cannot-render`. This rule is about
//! the other files of a chart, which its templates take with `tpl`, and about what still renders.
//!
//! People see: `bad character U+002D '-'`, `can't give argument to non-function "%s-web"`, `did not find
//! expected ',' or '}'`, a page without its links.
//!
//! ## Bad
//! ```yaml
//! href: { { .Values.shop.url } }
//! link: {{ .Values.prd-shop.url }}
//! ```
//! ## Good
//! ```yaml
//! href: {{ .Values.shop.url }}
//! link: {{ (index .Values "prd-shop").url }}
//! ```
//! ## When to suppress
//! Where a text for people shows such an action.

use std::sync::{Arc, LazyLock};

use regex::Regex;
use tiphys_diag::{Severity, Span};
use tiphys_graph::{Outcome, Survey, tools::Lines};
use tiphys_vfs::is_below;

use crate::{
    Context, Finding, Report, Rule,
    support::chart_templates::{self, in_chart},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-broken-action",
    incident: "D2",
    severity: Severity::Warning,
    title: "a template action that a formatter or a dash broke",
    page: page!("d2_broken_action.rs"),
    check,
};

/// Braces that a formatter took apart, around what only a template has.
static SPLIT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\{ \{-? *(?:\$?\.(?:Values|Release|Chart)\.|include |tpl |toYaml )[^}\n]*\} \}")
        .expect("the expression is right")
});
/// A text at the beginning of an action, with something behind it that only a function takes.
static UNCALLED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\{\{-?\s*(?:\$\w+\s*:?=\s*)?("(?:[^"\\\n{}]|\\.)*")\s+(?:\$|\.[A-Za-z]|\()"#)
        .expect("the expression is right")
});
/// A value whose name has a dash, as an action reads it.
static DASHED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\{\{[^}\n]*?(\.Values(?:\.\w+)*\.[A-Za-z]\w*-[A-Za-z][\w.-]*)[^}\n]*\}\}")
        .expect("the expression is right")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for folder in chart_templates::charts(files) {
        let own = in_chart(folder, "templates");
        let paths: Vec<&Arc<str>> =
            files.paths().filter(|path| folder.is_empty() || is_below(path, folder)).collect();
        let calls_tpl = chart_templates::templates(files, folder)
            .any(|(_, text)| text.contains("tpl") && text.contains(".Files."));
        for path in paths.into_iter().filter(|path| is_text(&path[folder.len()..])) {
            let Some(text) = files.text(path) else { continue };
            let lines = Lines::new(path, &text);
            let is_template = is_below(path, &own);
            if let Some(found) = SPLIT.find(&text).filter(|_| is_template || calls_tpl) {
                report.add(split(lines.span(found.range())));
            }
            if let Some(text) = UNCALLED
                .captures(&text)
                .and_then(|it| it.get(1))
                .filter(|_| is_template && !is_told(context.survey, path))
            {
                report.add(uncalled(lines.span(text.range()), text.as_str()));
            }
            let dashed = DASHED.captures(&text).and_then(|it| it.get(1));
            if let Some(name) = dashed.filter(|it| !is_template && calls_tpl && !it.as_str().contains("--")) {
                report.add(with_dash(lines.span(name.range()), name.as_str()));
            }
        }
    }
}

/// Whether a file is one that templates print.
fn is_text(path: &str) -> bool {
    const ENDS: [&str; 8] = [".yaml", ".yml", ".tpl", ".json", ".toml", ".conf", ".ini", ".txt"];
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_vendored = path.contains("/charts/") || path.starts_with("charts/");
    ENDS.iter().any(|end| name.ends_with(end))
        && !name.starts_with("values")
        && name != "NOTES.txt"
        && !is_vendored
}

fn split(span: Span) -> Finding {
    let diagnostic = RULE
        .diagnostic("the braces of a template action are apart, so that Helm leaves it as it is")
        .at(span, "no action")
        .because("an action begins with {{ and ends with }}, without a blank between the braces")
        .help("write {{ and }}, and keep the formatter off the file");
    Finding::new(RULE.incident, diagnostic).likely()
}

/// Whether rendering ends in a file: then that tells of it.
fn is_told(survey: &Survey, path: &str) -> bool {
    let of_apps = survey.apps.iter().map(|app| &app.outcome);
    let of_units = survey.units.iter().map(|unit| &unit.outcome);
    of_apps.chain(of_units).any(|outcome| match outcome {
        Outcome::Failed(error) => error.place().is_some_and(|place| path.ends_with(place.file.as_ref())),
        _ => false,
    })
}

fn uncalled(span: Span, text: &str) -> Finding {
    let diagnostic = RULE
        .diagnostic(format!("can't give argument to non-function {text}"))
        .at(span, "a text, and no function")
        .because("the first word of an action is called with what follows it: the template fails where it comes to this")
        .help(format!("write printf {text}"));
    Finding::new(RULE.incident, diagnostic).likely()
}

fn with_dash(span: Span, name: &str) -> Finding {
    let diagnostic = RULE
        .diagnostic(format!("a template asks for {name}: bad character U+002D '-'"))
        .at(span, "a name ends before a dash")
        .because("templates take a field by its name only if that is made of letters, digits and underscores")
        .help("write (index .Values \"name-with-dash\")");
    Finding::new(RULE.incident, diagnostic).likely()
}
