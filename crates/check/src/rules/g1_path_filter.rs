//! # A workflow waits for changes of files that are not there
//!
//! `paths` of `push` and `pull_request` name the files whose changes start a workflow, from the root of the
//! repository. When a folder moves and its filter stays, the workflow is never started again, and nothing
//! says so: a check that does not run looks like one that has nothing to do. The usual causes are a folder
//! that was renamed, the workflow's own file with the other ending (`.yml` for `.yaml`), and a path that
//! begins with `./` or `/`, which no file of Git does.
//!
//! People see: nothing. The images are not built, the manifests are not checked, and required checks of a
//! pull request wait with `Expected — Waiting for status to be reported`.
//!
//! The same is told of the filters of `dorny/paths-filter` and `tj-actions/changed-files`, and of `changes`
//! in GitLab's pipelines.
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
use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{
    Files,
    tools::{
        node_span,
        pipelines::{Format, Pipeline, steps},
    },
};
use tiphys_value::Value;
use tiphys_yaml::Node;

use crate::{Context, Finding, Report, Rule};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G1-path-filter",
    incident: "G1",
    severity: Severity::Warning,
    title: "a workflow waits for changes of files that are not there",
    page: page!("g1_path_filter.rs"),
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
    for pipeline in &context.survey.tools().pipelines {
        if pipeline.format != Format::Workflow {
            of_changes(files, pipeline, report);
            continue;
        }
        of_steps(files, pipeline, report);
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
            .map(|first| filter_finding(files, pipeline, never_starts(first, dead.len()), first))
            .into_iter()
            .collect();
    }
    slips.map(|it| filter_finding(files, pipeline, format!("no file matches {:?}", it.pattern), it)).collect()
}

/// The filters of steps that ask which files were changed: `dorny/paths-filter`, `tj-actions/changed-files`.
fn of_steps(files: &Files, pipeline: &Pipeline, report: &mut Report) {
    let jobs = pipeline.roots().iter().filter_map(|root| root.get("jobs")?.pairs()).flatten();
    for step in jobs.flat_map(|(_, job)| steps(job)) {
        let uses = step.get("uses").and_then(Node::as_str).unwrap_or_default();
        let input = |name: &str| step.get("with").and_then(|with| with.get(name));
        let lists: Vec<(&Node, Vec<String>)> = if uses.starts_with("dorny/paths-filter@") {
            let Some(node) = input("filters") else { continue };
            let Ok(filters) = tiphys_yaml::from_yaml(node.as_str().unwrap_or_default()) else { continue };
            let named = filters.as_object().into_iter().flat_map(|map| map.values());
            named.map(|patterns| (node, texts(patterns))).collect()
        } else if uses.starts_with("tj-actions/changed-files@") {
            let Some(node) = input("files") else { continue };
            let lines = node.as_str().unwrap_or_default().lines().map(str::trim).filter(|it| !it.is_empty());
            vec![(node, lines.map(str::to_owned).collect())]
        } else {
            continue;
        };
        for (node, patterns) in lists {
            if let Some(finding) =
                dead_list(files, pipeline, (node, &patterns), "this step never sees a change")
            {
                report.add(finding);
            }
        }
    }
}

/// `changes` of a GitLab pipeline.
fn of_changes(files: &Files, pipeline: &Pipeline, report: &mut Report) {
    let jobs = pipeline.roots().iter().filter_map(Node::pairs).flatten();
    for (_, job) in jobs {
        let rules = job.get("rules").and_then(Node::items).unwrap_or_default().iter();
        let only = ["only", "except"].into_iter().filter_map(|key| job.get(key));
        for changes in rules.chain(only).filter_map(|it| it.get("changes")) {
            let listed = changes.get("paths").unwrap_or(changes);
            let wanted = listed.items().unwrap_or_default().iter().filter_map(Node::as_str);
            let patterns: Vec<String> = wanted.map(str::to_owned).collect();
            // Paths of other projects' files, and variables.
            let is_plain = changes.get("compare_to").is_none() && patterns.iter().all(|it| !it.contains('$'));
            let what = "no change starts this job";
            let found = is_plain.then(|| dead_list(files, pipeline, (listed, &patterns), what)).flatten();
            found.into_iter().for_each(|finding| report.add(finding));
        }
    }
}

/// The texts of a filter: one, several, or several below the kinds of change.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.to_string()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(map) => map.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// What is told of a list of filters of which no file matches any, or one is a slip.
fn dead_list(
    files: &Files,
    pipeline: &Pipeline,
    (node, patterns): (&Node, &[String]),
    comes: &str,
) -> Option<Finding> {
    // Braces are alternatives, which GitHub's own filters do not have.
    let wanted: Vec<&String> = patterns.iter().filter(|it| !it.starts_with('!')).collect();
    if wanted.is_empty() || wanted.iter().any(|it| it.contains(['{', '(', '@'])) {
        return None;
    }
    let dead: Vec<Dead<'_>> = wanted
        .iter()
        .map(|it| is_dead(files, node, it))
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .flatten()
        .collect();
    let first =
        dead.iter().find(|it| it.slip.is_some()).or(dead.first().filter(|_| dead.len() == wanted.len()))?;
    let message = match dead.len() == wanted.len() {
        true => format!("no file matches {:?}: {comes}", first.pattern),
        false => format!("no file matches {:?}", first.pattern),
    };
    Some(filter_finding(files, pipeline, message, first))
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
            let nearest = similar_names::nearest_slip(step, beside.iter().map(|entry| entry.name.as_str()))?;
            return Some((step.to_owned(), nearest.to_owned()));
        }
        above = path;
    }
    None
}

/// A filter as a regular expression (GitHub's "filter pattern cheat sheet"); `None` if it is none, or still
/// to be filled in.
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

fn filter_finding(files: &Files, pipeline: &Pipeline, message: String, dead: &Dead<'_>) -> Finding {
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
