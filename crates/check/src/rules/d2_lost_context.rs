//! # A template looks for the chart's values in a value
//!
//! Inside of `with` and `range` the dot is what they name, and no longer the chart's own context: `.Values`,
//! `.Release` and `.Chart` are looked for in the value, and are not there. It is the same with a named
//! template that reads them, and is called there with the dot. Nobody notices as long as the value is empty,
//! as it is in the chart's own values; the chart fails for the first who gives it. `$` is the context
//! everywhere.
//!
//! People see: `executing "web/templates/deployment.yaml" at <.Values.nodeSelector>: nil pointer evaluating
//! interface {}.nodeSelector`, or `can't evaluate field Release in type interface {}`.
//!
//! ## Bad
//! ```yaml
//! {{- with .Values.nodeSelector }}
//! nodeSelector: {{- toYaml .Values.nodeSelector | nindent 8 }}
//! {{- end }}
//! ```
//! ## Good
//! ```yaml
//! {{- with .Values.nodeSelector }}
//! nodeSelector: {{- toYaml . | nindent 8 }}
//! {{- end }}
//! ```
//! ## When to suppress
//! Where the value itself holds a context, under these names.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use regex::Regex;
use tiphys_diag::{Edit, Severity, Span};
use tiphys_graph::{Outcome, Survey, tools::Lines};

use crate::{Context, Finding, Report, Rule, support::chart_templates};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-lost-context",
    incident: "D2",
    severity: Severity::Warning,
    title: "a template looks for the chart's values in a value",
    page: page!("d2_lost_context.rs"),
    check,
};

/// Something of the chart's context, of which something is read: that fails where it is not there.
static READ: LazyLock<Regex> = LazyLock::new(|| {
    let read = r"(?:^|[\s(,|])(\.(?:Values|Release|Chart|Capabilities|Files|Template)\.[A-Za-z_]\w*)";
    Regex::new(read).expect("the expression is right")
});
/// A named template that is called with the dot.
static CALL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\b((?:include|template)\s+"([^"]+)"\s+\.)(?:[\s)|]|$)"#).expect("the expression is right")
});
/// What `with` and `range` go into: a value of the chart, or as many numbers as said.
static VALUE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\(?\s*(?:\$?\.Values(?:\.\w+)*|until\s+\S+)\s*\)?$").expect("the expression is right")
});
/// The texts of an action, in which nothing is read.
static TEXT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#""(?:[^"\\]|\\.)*"|`[^`]*`"#).expect("the expression is right"));

/// What the dot is.
#[derive(Clone, Copy, PartialEq)]
enum Dot {
    /// The chart's context, or what a named template was called with.
    Given,
    /// A value, since the action at a byte of the file.
    Value(usize),
    /// Nobody knows.
    Open,
}

/// What an action begins, until its `end`.
struct Block<'a> {
    /// What the dot was before, which it is again in an `else`.
    before: Dot,
    /// The name, if it defines a template.
    defines: Option<&'a str>,
}

/// Something that is read of the dot, or a call that is given it.
struct Use<'a> {
    text: &'a str,
    at: usize,
    dot: Dot,
    /// The template that is called; `None` where the action reads by itself.
    called: Option<&'a str>,
    /// The template in whose definition it stands.
    within: Option<&'a str>,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for folder in chart_templates::charts(files) {
        let texts: Vec<(&Arc<str>, Arc<str>)> = chart_templates::templates(files, folder).collect();
        let uses: Vec<Vec<Use<'_>>> = texts.iter().map(|(_, text)| uses(text)).collect();
        let needy = needy(uses.iter().flatten());
        for ((path, text), uses) in texts.iter().zip(&uses) {
            let mut blocks: BTreeMap<usize, Vec<&Use<'_>>> = BTreeMap::new();
            for found in uses {
                let Dot::Value(since) = found.dot else { continue };
                if found.called.is_none_or(|name| needy.contains(name)) {
                    blocks.entry(since).or_default().push(found);
                }
            }
            let lines = Lines::new(path, text);
            for (since, found) in blocks {
                let places: Vec<Span> =
                    found.iter().map(|it| lines.span(it.at..it.at + it.text.len())).collect();
                if !places.iter().any(|at| is_told(context.survey, path, at)) {
                    report.add(finding(&found, &places, lines.span(since..since + 2)));
                }
            }
        }
    }
}

/// The named templates that read something of the context that they are called with, themselves or through
/// others.
fn needy<'a>(uses: impl Iterator<Item = &'a Use<'a>> + Clone) -> BTreeSet<&'a str> {
    let given = || uses.clone().filter(|it| it.dot == Dot::Given);
    let mut calls: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut needy = BTreeSet::new();
    for found in given() {
        let Some(within) = found.within else { continue };
        match found.called {
            None => drop(needy.insert(within)),
            Some(called) => calls.entry(called).or_default().push(within),
        }
    }
    let mut open: Vec<&str> = needy.iter().copied().collect();
    while let Some(name) = open.pop() {
        for caller in calls.get(name).into_iter().flatten() {
            if needy.insert(caller) {
                open.push(caller);
            }
        }
    }
    needy
}

/// What the actions of a template read of the dot.
fn uses(text: &str) -> Vec<Use<'_>> {
    let mut found = Vec::new();
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut dot = Dot::Given;
    // Definitions that look first at what they are given know what to do.
    let mut careful: BTreeSet<&str> = BTreeSet::new();
    for action in chart_templates::ACTION.find_iter(text) {
        let Some(inner) = chart_templates::inner(action.as_str()) else { continue };
        let (word, rest) = inner.split_once(|c: char| c.is_whitespace() || c == '(').unwrap_or((inner, ""));
        let within = blocks.iter().rev().find_map(|block| block.defines);
        if inner.contains("hasKey .") || inner.contains("kindIs") || inner.contains("typeIs") {
            careful.extend(within);
        }
        let before = dot;
        match word {
            "end" => {
                if let Some(block) = blocks.pop() {
                    dot = block.before;
                }
                continue;
            }
            "else" => {
                dot = blocks.last().map_or(Dot::Given, |block| block.before);
            }
            "define" | "block" => {
                let name = rest.trim().trim_matches(['"', '`']);
                let name = name.split(['"', '`']).next().unwrap_or(name);
                blocks.push(Block { before, defines: Some(name) });
                dot = Dot::Given;
                continue;
            }
            _ => {}
        }
        reads(text, action.range(), dot, within, &mut found);
        match word {
            "if" => blocks.push(Block { before, defines: None }),
            "with" | "range" => {
                blocks.push(Block { before, defines: None });
                dot = inside(inner[word.len()..].trim(), action.start());
            }
            "else" if rest.trim_start().starts_with("with") => {
                dot = inside(rest.trim_start().trim_start_matches("with").trim(), action.start());
            }
            _ => {}
        }
    }
    found.retain(|it| it.within.is_none_or(|name| !careful.contains(name)));
    found
}

/// What the dot is inside of a `with` or `range` of an expression.
fn inside(expression: &str, at: usize) -> Dot {
    let value = expression.split_once(":=").map_or(expression, |(_, value)| value.trim());
    if VALUE.is_match(value) { Dot::Value(at) } else { Dot::Open }
}

fn reads<'a>(
    text: &'a str,
    action: std::ops::Range<usize>,
    dot: Dot,
    within: Option<&'a str>,
    found: &mut Vec<Use<'a>>,
) {
    let whole = &text[action.clone()];
    let texts: Vec<_> = TEXT.find_iter(whole).map(|it| it.range()).collect();
    for read in READ.captures_iter(whole).filter_map(|it| it.get(1)) {
        if !texts.iter().any(|text| text.contains(&read.start())) {
            found.push(Use {
                text: read.as_str(),
                at: action.start + read.start(),
                dot,
                called: None,
                within,
            });
        }
    }
    for call in CALL.captures_iter(whole) {
        let (Some(said), Some(name)) = (call.get(1), call.get(2)) else { continue };
        let at = action.start + said.start();
        let said = &text[at..action.start + said.end()];
        found.push(Use { text: said, at, dot, called: Some(name.as_str()), within });
    }
}

/// Whether an Application does not get past the very line: that is told as it is.
fn is_told(survey: &Survey, path: &str, at: &Span) -> bool {
    let name = path.rsplit_once("/templates/").map_or(path, |(_, name)| name);
    let line = format!("templates/{name}:{}:", at.start.line);
    let says =
        |outcome: &Outcome| matches!(outcome, Outcome::Failed(error) if error.to_string().contains(&line));
    survey.apps.iter().any(|app| says(&app.outcome))
}

/// One finding for what a block reads, with all of its places in the patch.
fn finding(block: &[&Use<'_>], places: &[Span], since: Span) -> Finding {
    let edit = |(found, at): (&&Use<'_>, &Span)| {
        let replacement = match (found.called, found.text.strip_suffix('.')) {
            (Some(_), Some(call)) => format!("{call}$"),
            _ => format!("${}", found.text),
        };
        Edit { span: at.clone(), replacement }
    };
    let edits = block.iter().zip(places).map(edit).collect();
    let what = match block[0].called {
        Some(name) => format!("template {name:?} is called with a value, and reads the chart's context"),
        None => format!("{} is looked for in a value, where it is not", block[0].text),
    };
    let mut diagnostic =
        RULE.diagnostic(what).at(places[0].clone(), "the dot is a value here, and not the chart's context");
    for more in &places[1..] {
        diagnostic = diagnostic.see(more.clone(), "so it is here");
    }
    let diagnostic = diagnostic
        .see(since, "it is that value from here on")
        .because(
            "with values that lead there the chart cannot be rendered: nil pointer evaluating interface {}",
        )
        .help(match block[0].called {
            Some(_) => "call it with `$`, which is the chart's context everywhere".to_owned(),
            None => format!("write `${}`, or `.` for the value itself", block[0].text),
        });
    Finding::new(RULE.incident, diagnostic).likely().fix("read the chart's context", edits)
}
