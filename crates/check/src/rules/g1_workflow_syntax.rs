//! # A pipeline's file does not parse, or refers to what is not there
//!
//! A workflow of GitHub Actions or a `.gitlab-ci.yml` that is no YAML does not run at all: no job starts, no
//! image is built, and nothing but a red mark on each commit says so. Most often a block scalar (`run: |`)
//! ends early, because a line of the script, such as the body of a here-document, is not indented as far as
//! the block. The same happens where a job needs a job that does not exist, where a step has both `uses` and
//! `run`, or where a local action is not there; in GitLab where a job's stage is not declared, or a job needs
//! one of a later stage; in an action of several steps where one that runs a script does not say in which
//! shell.
//!
//! People see: `could not find expected ':'`, `Invalid workflow file`, `This workflow graph cannot be shown`,
//! `Job 'x' depends on unknown job 'y'`, `Can't find 'action.yml', 'action.yaml' or 'Dockerfile'`, `Required
//! property is missing: shell`, `chosen stage does not exist; available stages are .pre, build, test, deploy,
//! .post`.
//!
//! ## Bad
//! ```yaml
//! - run: |
//!     python <<'PY'
//! import json
//! PY
//! ```
//! ## Good
//! ```yaml
//! - run: |
//!     python <<'PY'
//!     import json
//!     PY
//! ```
//! The runner strips the indentation of the block, so the script itself sees none.
//!
//! ## When to suppress
//! Where a step before it writes the action that a later step uses.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_diag::{Diagnostic, Severity, Span, similar_names};
use tiphys_graph::{
    Files,
    tools::{
        Script, node_span,
        pipelines::{self, Format, Pipeline},
    },
};
use tiphys_value::Location;
use tiphys_yaml::{Error, Kind, Node};

use super::workflow_calls;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        gitlab,
        workflow::{
            self, WorkflowFault, action,
            expression::{self, Name, Part},
        },
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G1-workflow-syntax",
    incident: "G1",
    severity: Severity::Error,
    title: "a pipeline's file does not parse, or refers to what is not there",
    page: page!("g1_workflow_syntax.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for path in files.ending(&[".yml", ".yaml"]).filter(|path| is_workflow(path)) {
        if files.text(path).is_none() && files.tree().is_file(path) {
            let diagnostic = RULE
                .diagnostic(format!("{path} is no UTF-8 text, so none of its jobs will run"))
                .at(files.span(&Location::new(path.clone(), 1, 0)), "")
                .because("GitHub reads workflows as UTF-8")
                .help("save the file as UTF-8");
            report.add(Finding::new(RULE.incident, diagnostic));
        }
    }
    for pipeline in &context.survey.tools().pipelines {
        match (&pipeline.documents, pipeline.format) {
            (Err(error), _) => {
                report.add(Finding::new(RULE.incident, unreadable(files, &pipeline.file, error)))
            }
            (Ok(_), Format::Workflow) => Workflow { files, pipeline, report }.check(),
            (Ok(_), Format::GitLab) => {
                let because = "GitLab refuses the whole file: no pipeline is created";
                report_all(files, pipeline, gitlab::faults(pipeline), because, report);
            }
            (Ok(_), Format::Action) => {
                let because = "the runner refuses the action: the step that uses it fails";
                report_all(files, pipeline, action::faults(pipeline), because, report);
            }
        }
    }
}

fn report_all(
    files: &Files,
    pipeline: &Pipeline,
    faults: Vec<WorkflowFault<'_>>,
    because: &str,
    report: &mut Report,
) {
    for fault in faults {
        let span = node_span(files, &pipeline.file, fault.node);
        let diagnostic = RULE.diagnostic(fault.message).at(span, fault.label).because(because);
        report.add(Finding::new(RULE.incident, diagnostic));
    }
}

/// Whether a file is a workflow of GitHub.
fn is_workflow(path: &str) -> bool {
    path.strip_prefix(".github/workflows/").is_some_and(|name| !name.contains('/'))
}

/// The fault of a file that does not parse, with the place at which a block scalar ended early.
fn unreadable(files: &Files, file: &Arc<str>, error: &Error) -> Diagnostic {
    let line = error.position().map_or(1, |at| at.line);
    let message = error.to_string();
    let message = message.strip_prefix("yaml: ").unwrap_or(&message);
    let diagnostic = RULE.diagnostic(format!("{file} is no YAML, so none of its jobs will run: {message}"));
    let text = files.text(file).unwrap_or_else(|| "".into());
    let place = |line: usize| files.span(&Location::new(file.clone(), u32::try_from(line).unwrap_or(1), 0));
    match early_end(&text, line as usize) {
        Some((start, end)) => diagnostic
            .at(place(end), "the block ends before this line, which is not indented as far as the block")
            .see(place(start), "the block starts here")
            .because("a block scalar goes on only as long as its lines are indented further than its key; what follows is read as YAML again")
            .help("indent the line, and those after it, as far as the lines of the block before it"),
        None => diagnostic.at(place(line as usize), "it cannot be read on from here"),
    }
}

/// The line on which the last block scalar before a fault starts, and the first one that is not in it any
/// more, if that one is no key or item.
fn early_end(text: &str, fault: usize) -> Option<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let last = fault.min(lines.len());
    (1..=last).rev().find_map(|start| {
        let header = lines[start - 1];
        let mark = header.split(" #").next().unwrap_or_default().trim_end();
        let opener = mark.rsplit(' ').next().unwrap_or_default();
        let is_block = opener.starts_with(['|', '>']) && opener.len() <= 3 && mark.contains(':');
        if !is_block {
            return None;
        }
        let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let key = header.trim_start_matches([' ', '-']);
        let parent = header.len() - key.len();
        let rest = lines.iter().enumerate().skip(start);
        let (end, line) = rest
            .map(|(at, line)| (at + 1, *line))
            .find(|(_, line)| !line.trim().is_empty() && indent(line) <= parent)?;
        (end <= last + 1 && (!looks_like_yaml(line) || is_foreign(&lines[..start], line)))
            .then_some((start, end))
    })
}

/// Whether a line is a key at the left margin that no workflow has there, behind its jobs.
fn is_foreign(before: &[&str], line: &str) -> bool {
    const TOP: [&str; 8] =
        ["name", "run-name", "on", "permissions", "env", "defaults", "concurrency", "jobs"];
    let key = line.split(':').next().unwrap_or_default();
    let is_key = key.starts_with(|c: char| c.is_ascii_alphabetic());
    is_key && !TOP.contains(&key) && before.iter().any(|line| line.starts_with("jobs:"))
}

/// Whether a line is a key, an item or a comment.
fn looks_like_yaml(line: &str) -> bool {
    let line = line.trim();
    if line.starts_with('#') || line.starts_with("- ") || line == "-" || line.starts_with("---") {
        return true;
    }
    let Some((key, rest)) = line.split_once(':') else { return false };
    let is_word = key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '"' | '\'' | '/'));
    is_word && (rest.is_empty() || rest.starts_with(' '))
}

struct Workflow<'a, 'r> {
    files: &'a Files,
    pipeline: &'a Pipeline,
    report: &'r mut Report,
}

impl Workflow<'_, '_> {
    fn check(&mut self) {
        let [root] = self.pipeline.roots() else { return };
        if root.pairs().is_none() {
            return;
        }
        self.duplicates(root);
        if root.get("on").is_none() {
            self.add(
                self.span(root),
                "the workflow has no `on`, so nothing starts it",
                "what starts it is missing",
            );
        }
        let jobs = root.get("jobs").and_then(Node::pairs);
        let Some(jobs) = jobs.filter(|jobs| !jobs.is_empty()) else {
            let at = root.key_node("jobs").unwrap_or(root);
            return self.add(self.span(at), "the workflow has no jobs", "expected a mapping of jobs");
        };
        let names: BTreeSet<&str> = jobs.iter().filter_map(|(name, _)| name.as_str()).collect();
        for (name, job) in jobs {
            if job.kind() != Kind::Alias && name.as_str() != Some("<<") {
                self.job(name, job, &names);
            }
        }
    }

    fn job(&mut self, name: &Node, job: &Node, names: &BTreeSet<&str>) {
        let title = name.as_str().unwrap_or_default().to_owned();
        if job.pairs().is_none() {
            return self.add(
                self.span(name),
                &format!("job {title} is empty"),
                "expected `runs-on` and `steps`",
            );
        }
        self.duplicates(job);
        for needed in texts(job.get("needs")) {
            let known =
                needed.as_str().is_some_and(|needed| names.contains(needed) || needed.contains("${{"));
            if !known {
                let message = format!(
                    "job {title} needs job {}, which does not exist",
                    needed.as_str().unwrap_or_default()
                );
                self.add(self.span(needed), &message, "no job of this workflow has that name");
            }
        }
        if job.get("<<").is_some() {
            return;
        }
        self.unknown(job, workflow::keys_of_job());
        self.expressions(&title, job);
        if let Some(used) = job.get("uses") {
            self.reusable(used);
            for fault in workflow_calls::faults(self.files, &self.pipeline.file, job, used) {
                self.add(fault.span, &fault.message, &fault.label);
            }
            return;
        }
        if job.get("runs-on").is_none() {
            self.add(
                self.span(name),
                &format!("job {title} has no `runs-on`"),
                "which machine runs it is missing",
            );
        }
        match job.get("steps") {
            None => {
                self.add(self.span(name), &format!("job {title} has no `steps`"), "what it does is missing")
            }
            Some(_) => self.steps(&title, &pipelines::steps(job)),
        }
    }

    fn steps(&mut self, job: &str, steps: &[&Node]) {
        let mut ids: BTreeSet<&str> = BTreeSet::new();
        let mut is_elsewhere = false;
        for step in steps.iter().filter(|step| step.pairs().is_some() && step.get("<<").is_none()) {
            self.duplicates(step);
            self.unknown(step, workflow::keys_of_step());
            if let Some(id) = step.get("id").and_then(Node::as_str)
                && !ids.insert(id)
            {
                let message = format!("two steps of job {job} have the id {id}");
                self.add(self.span(step.get("id").unwrap_or(step)), &message, "an id is given once");
            }
            match (step.get("uses"), step.get("run")) {
                (Some(uses), Some(_)) => {
                    let message = format!("a step of job {job} has both `uses` and `run`");
                    self.add(self.span(uses), &message, "a step does one of the two");
                }
                (None, None) if OF_BACKGROUND.iter().any(|key| step.get(key).is_some()) => {}
                (None, None) => {
                    let message = format!("a step of job {job} has neither `uses` nor `run`");
                    self.add(self.span(step), &message, "it does nothing");
                }
                (Some(uses), None) => {
                    let arguments = step.get("with");
                    let elsewhere = |key| arguments.and_then(|with| with.get(key)).is_some();
                    let is_checkout = uses.as_str().is_some_and(|uses| uses.contains("checkout@"));
                    is_elsewhere |=
                        is_checkout && (elsewhere("path") || elsewhere("repository") || elsewhere("ref"));
                    if !is_elsewhere {
                        self.local_action(uses);
                    }
                }
                (None, Some(_)) => {}
            }
        }
    }

    /// Expressions that ask for steps or jobs that are not there: they are empty, which nothing reports.
    fn expressions(&mut self, title: &str, job: &Node) {
        let steps = pipelines::steps(job);
        if steps.iter().any(|step| step.kind() == Kind::Alias || step.get("<<").is_some()) {
            return;
        }
        let ids: BTreeSet<&str> = steps.iter().filter_map(|step| step.get("id")?.as_str()).collect();
        let needs: BTreeSet<&str> = texts(job.get("needs")).filter_map(Node::as_str).collect();
        let mut scalars = Vec::new();
        collect(job, false, &mut scalars, MAX_DEPTH);
        let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
        for (node, is_condition) in scalars {
            for (what, name, line) in referenced_names(node.as_str().unwrap_or_default(), is_condition) {
                let known = if what == "steps" { &ids } else { &needs };
                if known.contains(name.as_str()) || !seen.insert((what.clone(), name.clone())) {
                    continue;
                }
                let Some(script) = Script::of_node(&self.pipeline.file, node) else { continue };
                let (message, label) = if what == "steps" {
                    (format!("job {title} has no step with the id {name}"), "this is always empty")
                } else {
                    (
                        format!("job {title} does not need job {name}, so it knows nothing of it"),
                        "this is always empty",
                    )
                };
                let mut diagnostic =
                    RULE.diagnostic(message).at(script.span(self.files, line), label).because(
                        "an expression that names what is not there is an empty string; no error tells of it",
                    );
                diagnostic.severity = Severity::Warning;
                self.report.add(Finding::new(RULE.incident, diagnostic));
            }
        }
    }

    fn local_action(&mut self, uses: &Node) {
        let Some(path) = uses.as_str().and_then(|uses| uses.strip_prefix("./")) else { return };
        let path = path.trim_end_matches('/');
        let join = |base: &str| if path.is_empty() { base.to_owned() } else { format!("{path}/{base}") };
        let exists = ["action.yml", "action.yaml", "Dockerfile"]
            .iter()
            .any(|base| self.files.tree().is_file(&join(base)));
        // What a step before it may write (a build, another checkout) is not known; a missing folder below
        // .github is.
        if !exists && path.starts_with(".github/") {
            let message = format!("Can't find 'action.yml', 'action.yaml' or 'Dockerfile' under '{path}'");
            self.add(self.span(uses), &message, "there is no such action in the repository");
        }
    }

    fn reusable(&mut self, used: &Node) {
        let Some(path) = used.as_str().and_then(|used| used.strip_prefix("./")) else { return };
        if !self.files.tree().is_file(path) {
            let message = format!("the workflow {path} that a job calls does not exist");
            self.add(self.span(used), &message, "there is no such file");
        }
    }

    /// Keys that a mapping cannot have: GitHub refuses the file.
    fn unknown(&mut self, mapping: &Node, known: impl Iterator<Item = &'static str> + Clone) {
        for (key, _) in mapping.pairs().unwrap_or_default() {
            let name = key.as_str().unwrap_or_default();
            if !name.is_empty() && !known.clone().any(|it| it.eq_ignore_ascii_case(name)) {
                let meant = similar_names::nearest_slip(name, known.clone());
                let label = meant.map_or_else(|| "no such key".to_owned(), |it| format!("{it} is meant"));
                let finding = finding(self.span(key), &format!("Unexpected value '{name}'"), &label);
                self.report.add(match meant {
                    Some(meant) => finding.with_spelling(name, meant),
                    None => finding,
                });
            }
        }
    }

    /// Keys that a mapping has twice: GitHub refuses the file.
    fn duplicates(&mut self, mapping: &Node) {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for (key, _) in mapping.pairs().unwrap_or_default() {
            if let Some(name) = key.as_str()
                && !seen.insert(name)
            {
                self.add(
                    self.span(key),
                    &format!("'{name}' is already defined"),
                    "the key stands here twice",
                );
            }
        }
    }

    fn span(&self, node: &Node) -> Span {
        node_span(self.files, &self.pipeline.file, node)
    }

    fn add(&mut self, span: Span, message: &str, label: &str) {
        self.report.add(finding(span, message, label));
    }
}

/// Keys of steps that have to do with steps in the background: such a step runs nothing of its own.
const OF_BACKGROUND: [&str; 4] = ["wait", "wait-all", "cancel", "parallel"];

/// How deep a job is looked into.
const MAX_DEPTH: usize = 32;

/// The scalars below a node, with whether they are conditions, which need no `${{ }}`.
fn collect<'a>(node: &'a Node, is_condition: bool, found: &mut Vec<(&'a Node, bool)>, depth: usize) {
    if depth == 0 {
        return;
    }
    if node.as_str().is_some() {
        found.push((node, is_condition));
    }
    for item in node.items().unwrap_or_default() {
        collect(item, false, found, depth - 1);
    }
    for (key, value) in node.pairs().unwrap_or_default() {
        collect(value, key.as_str() == Some("if"), found, depth - 1);
    }
}

fn finding(span: Span, message: &str, label: &str) -> Finding {
    let diagnostic = RULE
        .diagnostic(message)
        .at(span, label)
        .because("GitHub refuses the whole file: none of its jobs runs");
    Finding::new(RULE.incident, diagnostic)
}

/// The steps and jobs that the expressions of a text ask for: `steps` or `needs`, the name, the line from 1.
/// An expression that cannot be read is told of elsewhere.
fn referenced_names(text: &str, is_condition: bool) -> Vec<(String, String, u32)> {
    let mut parts = expression::parts(text).unwrap_or_default();
    if is_condition && parts.is_empty() {
        parts.push(Part { text, start: 0 });
    }
    let mut found = Vec::new();
    for part in parts {
        for name in expression::names(part.text).unwrap_or_default() {
            let Name::Context { name, at, path } = name else { continue };
            let what = name.to_lowercase();
            if let ("steps" | "needs", [of, _, ..]) = (what.as_str(), &path[..])
                && *of != "*"
            {
                let line = text[..part.start + at].matches('\n').count() + 1;
                found.push((what, (*of).to_owned(), u32::try_from(line).unwrap_or(u32::MAX)));
            }
        }
    }
    found
}

/// The texts of a node that is one or a list of them.
fn texts(node: Option<&Node>) -> impl Iterator<Item = &Node> {
    node.into_iter().flat_map(workflow::one_or_many)
}
