//! # A command takes a chart from a repository that nothing adds
//!
//! `helm install web charts/web` means a repository that is called `charts` on the machine that runs it, if no
//! folder of that name is there. A runner of a pipeline, and a new machine, have none but those that the
//! script adds.
//!
//! People see: `Error: repo jetstack not found`, `Error: INSTALLATION FAILED: repo jetstack not found`.
//!
//! ## Bad
//! ```sh
//! helm repo update
//! helm upgrade --install cert-manager jetstack/cert-manager
//! ```
//! ## Good
//! ```sh
//! helm repo add jetstack https://charts.jetstack.io
//! helm upgrade --install cert-manager jetstack/cert-manager
//! ```
//! ## When to suppress
//! Where somebody has added the repository on every machine that runs the command.

use tiphys_diag::Severity;
use tiphys_graph::tools::{Action, Tool, What};

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, placeholders, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G1-chart-alias",
    incident: "G1",
    severity: Severity::Warning,
    title: "a command takes a chart from a repository that nothing adds",
    page: page!("g1_chart_alias.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    let is_command = |tool: Tool| !matches!(tool, Tool::Terraform | Tool::Helmfile);
    let releases =
        survey.tools().writers.iter().filter(|it| it.action == Action::Apply && is_command(it.tool));
    for writer in releases {
        let What::Release { chart, repository, .. } = &writer.what else { continue };
        let Some((alias, name)) = chart.split_once('/').filter(|_| repository.is_empty()) else { continue };
        let is_plain = |text: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        };
        let file = &writer.span.file;
        let is_folder = survey.files.paths().any(|path| path.split('/').any(|step| step == alias));
        if !is_plain(alias)
            || !is_plain(name)
            || is_folder
            || is_added(context, alias)
            || placeholders::is_skeleton(file)
            || unused_files::is_in_unused_folder(file)
        {
            continue;
        }
        let diagnostic = RULE
            .diagnostic(format!(
                "{} takes chart {chart}, and nothing adds repository {alias}",
                writer.tool.name()
            ))
            .at(writer.span.clone(), "repo not found")
            .because("helm knows repositories by names that were added on the machine that it runs on")
            .help(format!("add it first: helm repo add {alias} ADDRESS"));
        once.add(alias, Finding::new(RULE.incident, diagnostic).likely());
    }
    once.report(report);
}

/// Whether a file adds the repository: a command, a task, a list of a tool.
fn is_added(context: &Context<'_>, alias: &str) -> bool {
    let files = &context.survey.files;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let has_word = |line: &str| line.split(|c| !is_part(c)).any(|word| word == alias);
    // An address beside the name gives it.
    let adds = |line: &str| has_word(line) && (line.contains("repo add") || line.contains("://"));
    let lists = |text: &str| {
        text.contains("helm_repository")
            || text.contains("repositories:")
            || text.contains("helmRepositories")
    };
    let names = |line: &str| {
        has_word(line) && !line.contains(&format!("{alias}/")) || line.contains("name:") && has_word(line)
    };
    // A loop over variables may add anything.
    let is_open = |line: &str| line.contains("repo add") && (line.contains("$") || line.contains("{{"));
    files.paths().any(|path| {
        files.text(path).is_some_and(|text| {
            let is_document = path.ends_with(".md");
            !is_document
                && (text.lines().any(|line| adds(line) || is_open(line))
                    || lists(&text) && text.lines().any(names))
        })
    })
}
