//! # A workflow waits for changes of files that are not there
//!
//! `paths` of `push` and `pull_request` name the files whose changes start a workflow, from the root of the repository. When
//! a folder moves and its filter stays, the workflow is never started again, and nothing says so: a check that does not
//! run looks like one that has nothing to do. The usual causes are a folder that was renamed, the workflow's own file with the
//! other ending (`.yml` for `.yaml`), and a path that begins with `./` or `/`, which no file of Git does.
//!
//! People see: nothing. The images are not built, the manifests are not checked, and required checks of a pull request wait
//! with `Expected — Waiting for status to be reported`.
//!
//! ## Bad
//! ```yaml
//! on:
//!   push:
//!     paths: ["service/web/**"]      # the folder is called services
//! ```
//! ## Good
//! ```yaml
//! on:
//!   push:
//!     paths: ["services/web/**"]
//! ```
//! ## When to suppress
//! Where the files are yet to come.

use std::collections::BTreeSet;

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_graph::{
    Files,
    tools::{
        ci::{Format, Pipeline},
        node_span,
    },
};
use tiphys_yaml::Node;

use crate::{Context, Finding, Report, Rule, support::similar};

/// See the module.
pub const RULE: Rule = Rule {
    id: "G1-path-filter",
    incident: "G1",
    severity: Severity::Warning,
    title: "a workflow waits for changes of files that are not there",
    source: include_str!("g1_path_filter.rs"),
    check,
};

/// The events that are filtered by paths.
const EVENTS: [&str; 3] = ["push", "pull_request", "pull_request_target"];

/// A filter that no file matches.
struct Dead<'n> {
    node: &'n Node,
    pattern: &'n str,
    /// A part of it, and what is there that has nearly its name and makes it match.
    slip: Option<(String, String)>,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for pipeline in context.survey.tools().pipelines.iter().filter(|it| it.format == Format::Workflow) {
        // The same list often stands at several events.
        let mut seen = BTreeSet::new();
        for on in pipeline.roots().iter().filter_map(|root| root.get("on")) {
            for event in EVENTS {
                for finding in of_event(files, pipeline, on, event) {
                    if seen.insert(finding.diagnostic.message.clone()) {
                        report.add(finding);
                    }
                }
            }
        }
    }
}

fn of_event(files: &Files, pipeline: &Pipeline, on: &Node, event: &str) -> Vec<Finding> {
    let listed = on.get(event).and_then(|event| event.get("paths")?.items()).unwrap_or_default();
    let wanted: Vec<(&Node, &str)> = listed
        .iter()
        .filter_map(|node| Some((node, node.as_str()?)))
        .filter(|(_, pattern)| !pattern.starts_with('!'))
        .collect();
    let judged: Option<Vec<_>> = wanted.iter().map(|(node, pattern)| is_dead(files, node, pattern)).collect();
    let dead: Vec<Dead<'_>> = judged.into_iter().flatten().flatten().collect();
    let mut slips = dead.iter().filter(|it| it.slip.is_some());
    if dead.len() == wanted.len() {
        let first = slips.next().or(dead.first());
        return first
            .map(|first| told(files, pipeline, never_starts(first, dead.len()), first))
            .into_iter()
            .collect();
    }
    slips.map(|it| told(files, pipeline, format!("no file matches {:?}", it.pattern), it)).collect()
}

/// `Some(Some(…))` of a filter that no file matches; `None` if it cannot be told.
fn is_dead<'n>(files: &Files, node: &'n Node, pattern: &'n str) -> Option<Option<Dead<'n>>> {
    let matched = |pattern: &str| -> Option<bool> {
        let expression = expression(pattern)?;
        Some(files.paths().any(|path| expression.is_match(path)))
    };
    if matched(pattern)? {
        return Some(None);
    }
    let slip = slip(files, pattern)
        .filter(|(wrong, meant)| matched(&pattern.replacen(wrong, meant, 1)) == Some(true));
    Some(Some(Dead { node, pattern, slip }))
}

/// The first step of a path that is not there, beside something that has nearly its name.
fn slip(files: &Files, pattern: &str) -> Option<(String, String)> {
    if let Some(rest) = pattern.strip_prefix("./").or_else(|| pattern.strip_prefix('/')) {
        return Some((pattern.to_owned(), rest.to_owned()));
    }
    let mut above = String::new();
    for step in pattern.split('/') {
        if step.contains(['*', '?', '+', '[', '\\']) {
            return None;
        }
        let path = if above.is_empty() { step.to_owned() } else { format!("{above}/{step}") };
        if !files.tree().exists(&path) {
            let beside = files.tree().read_dir(&above).unwrap_or_default();
            let nearest = similar::nearest(step, beside.iter().map(|entry| entry.name.as_str()))?;
            return Some((step.to_owned(), nearest.to_owned()));
        }
        above = path;
    }
    None
}

/// A filter as a regular expression (GitHub's "filter pattern cheat sheet"); `None` if it is none, or still to be
/// filled in.
fn expression(pattern: &str) -> Option<Regex> {
    if pattern.contains("${{") {
        return None;
    }
    let mut out = String::from("^");
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let (written, length) = if rest.starts_with("**/") {
            ("(?:.*/)?".to_owned(), 3)
        } else if rest.starts_with("**") {
            (".*".to_owned(), 2)
        } else {
            match first {
                '*' => ("[^/]*".to_owned(), 1),
                // Of what stands before: none or one, one or more.
                '?' | '+' => (first.to_string(), 1),
                '[' => {
                    let end = rest.find(']')? + 1;
                    (rest[..end].to_owned(), end)
                }
                '\\' => {
                    let escaped = rest[1..].chars().next()?;
                    (regex::escape(&escaped.to_string()), 1 + escaped.len_utf8())
                }
                other => (regex::escape(&other.to_string()), other.len_utf8()),
            }
        };
        out.push_str(&written);
        rest = &rest[length..];
    }
    Regex::new(&format!("{out}$")).ok()
}

/// That nothing starts a workflow by its paths.
fn never_starts(first: &Dead<'_>, count: usize) -> String {
    let others = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
    format!("no file matches {:?}{others}: no change starts this workflow by its paths", first.pattern)
}

fn told(files: &Files, pipeline: &Pipeline, message: String, dead: &Dead<'_>) -> Finding {
    let diagnostic = RULE
        .diagnostic(message)
        .at(node_span(files, &pipeline.file, dead.node), "no file of the repository")
        .because("paths count from the root of the repository; a workflow whose paths no change touches is left out, and nothing says so");
    let finding = Finding::new(RULE.incident, diagnostic).likely();
    match &dead.slip {
        Some((wrong, meant)) => finding.perhaps(wrong, Some(meant)),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_those_of_github() {
        for (pattern, path, matches) in [
            ("*", "README.md", true),
            ("*", "docs/README.md", false),
            ("**", "docs/a/b.md", true),
            ("docs/**/*.md", "docs/README.md", true),
            ("docs/**/*.md", "docs/a/b.md", true),
            ("**.js", "src/a/index.js", true),
            ("**/README.md", "README.md", true),
            ("*.jsx?", "page.js", true),
            ("*.jsx?", "page.jsx", true),
            ("v[12].txt", "v2.txt", true),
            ("a.b", "axb", false),
            ("./a", "a", false),
        ] {
            assert_eq!(expression(pattern).unwrap().is_match(path), matches, "{pattern} {path}");
        }
        assert!(expression("${{ x }}").is_none() && expression("a[").is_none());
    }
}
