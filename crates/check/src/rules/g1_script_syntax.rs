//! # A script that the shell cannot read
//!
//! A step of a workflow, or a script of the repository, that opens a quote, `$(`, `${`, a loop or a
//! here-document and does not close it fails as soon as the shell reaches the line, and often later, far from
//! the slip. YAML and GitHub see only a text.
//!
//! People see: ``unexpected EOF while looking for matching `"'``, ``unexpected EOF while looking for matching
//! `)'``, ``warning: here-document at line 4 delimited by end-of-file (wanted `EOF')``.
//!
//! ## Bad
//! ```yaml
//! - run: |
//!     TAG=$(git describe --tags
//!     echo "tag=$TAG" >> "$GITHUB_OUTPUT"
//! ```
//! ## Good
//! ```yaml
//! - run: |
//!     TAG=$(git describe --tags)
//!     echo "tag=$TAG" >> "$GITHUB_OUTPUT"
//! ```
//! ## When to suppress
//! Where the step's shell is one of another language.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use tiphys_diag::{Severity, Span};
use tiphys_graph::tools::{
    Script,
    pipelines::{Format, Pipeline, steps},
};
use tiphys_value::Location;
use tiphys_yaml::Node;

use crate::{
    Context, Finding, Report, Rule,
    support::{
        placeholders,
        shell_syntax::{self, Opened},
        unused_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G1-script-syntax",
    incident: "G1",
    severity: Severity::Warning,
    title: "a script that the shell cannot read",
    page: page!("g1_script_syntax.rs"),
    check,
};

/// What GitHub fills in before a shell sees the script.
static FILLED_IN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?s)\$\{\{.*?\}\}").expect("the pattern is well formed"));

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for pipeline in &context.survey.tools().pipelines {
        for script in scripts(pipeline) {
            // What is filled in keeps its lines, and is a word.
            let blank = |it: &Captures<'_>| format!("x{}", "\n".repeat(it[0].matches('\n').count()));
            let text = FILLED_IN.replace_all(&script.text, blank);
            if let Some((opened, line)) = shell_syntax::unclosed(&text) {
                report.add(finding(opened, script.span(files, line)));
            }
        }
    }
    for path in files.ending(&[".sh"]) {
        let Some(text) = files.text(path).filter(|_| !unused_files::is_in_unused_folder(path)) else {
            continue;
        };
        let first = text.lines().next().unwrap_or_default();
        // What another tool fills in is no script yet, and other shells have rules of their own.
        let is_bourne = !first.starts_with("#!")
            || first.ends_with("sh") && !first.contains("fish") && !first.contains("zsh");
        if !is_bourne || text.contains("{{") || text.contains("{%") || placeholders::is_template(&text) {
            continue;
        }
        if let Some((opened, line)) = shell_syntax::unclosed(&text) {
            report.add(finding(opened, files.span(&Location::new(path.clone(), line, 0))));
        }
    }
}

fn finding(opened: Opened, span: Span) -> Finding {
    let what = match opened {
        Opened::HereDocument => "the script ends within a here-document".to_owned(),
        other => format!("the script ends before what {} opens is closed", other.text()),
    };
    let because = match opened {
        Opened::HereDocument => {
            "no line is the delimiter and nothing else, without blanks before it: the rest of the script is its text"
        }
        _ => "the shell reads on to the end of the script, and refuses it: unexpected EOF",
    };
    let diagnostic = RULE.diagnostic(what).at(span, "opened here").because(because);
    Finding::new(RULE.incident, diagnostic).likely()
}

/// The scripts that a shell of the Bourne family reads.
fn scripts(pipeline: &Pipeline) -> Vec<Script> {
    let mut found = Vec::new();
    for root in pipeline.roots() {
        match pipeline.format {
            Format::Workflow => {
                let default = default_shell(root);
                for (_, job) in root.get("jobs").and_then(Node::pairs).unwrap_or_default() {
                    let default = default_shell(job).or(default);
                    let usual = if may_be_windows(job) { None } else { Some("bash") };
                    of_steps(pipeline, job, default.or(usual), &mut found);
                }
            }
            Format::Action => {
                let runs = root.get("runs");
                runs.into_iter().for_each(|runs| of_steps(pipeline, runs, None, &mut found));
            }
            // Its lines are run one after the other, and one may close what another opens.
            Format::GitLab => {}
        }
    }
    found
}

fn of_steps(pipeline: &Pipeline, owner: &Node, usual: Option<&str>, found: &mut Vec<Script>) {
    for step in steps(owner) {
        let shell = step.get("shell").and_then(Node::as_str).or(usual).unwrap_or_default();
        let program = shell.split_whitespace().next().unwrap_or_default();
        if matches!(program, "bash" | "sh") {
            found.extend(step.get("run").and_then(|run| Script::of_node(&pipeline.file, run)));
        }
    }
}

fn default_shell(owner: &Node) -> Option<&str> {
    owner.get("defaults")?.get("run")?.get("shell")?.as_str()
}

/// Whether a job may run where PowerShell is the usual shell.
fn may_be_windows(job: &Node) -> bool {
    fn names_it(node: &Node) -> bool {
        node.as_str().is_some_and(|text| text.to_lowercase().contains("win"))
            || node.items().into_iter().flatten().any(names_it)
            || node.pairs().into_iter().flatten().any(|(_, below)| names_it(below))
    }
    ["runs-on", "strategy"].iter().filter_map(|key| job.get(key)).any(names_it)
}
