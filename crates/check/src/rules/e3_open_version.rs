//! # A chart whose version is left open
//!
//! `*`, `>=1.0.0` or no version at all means the newest release of a chart, whatever it is. With automated
//! sync the next major release is installed without a commit, and there is nothing in Git to go back to.
//!
//! People see: an Application that broke overnight, though nobody changed anything.
//!
//! ## Bad
//! ```yaml
//! source: {chart: web, repoURL: https://charts.example.com, targetRevision: "*"}
//! ```
//! ## Good
//! ```yaml
//! source: {chart: web, repoURL: https://charts.example.com, targetRevision: 1.4.2}
//! ```
//! ## When to suppress
//! Where the chart is meant to be followed, as in a cluster for trying things out.

use tiphys_diag::Severity;
use tiphys_graph::App;

use crate::{
    Context, Finding, Report, Rule,
    support::{field_paths, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E3-open-version",
    incident: "E3",
    severity: Severity::Warning,
    title: "a chart whose version is left open",
    page: page!("e3_open_version.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut open: Vec<(&App, usize, String, String)> = Vec::new();
    for app in survey.apps.iter().filter(|app| app.application.automated_policy().is_some()) {
        for (at, source) in app.application.spec.effective_sources().into_iter().enumerate() {
            if !source.chart.is_empty()
                && is_open(&source.target_revision)
                && !placeholders::is_in(&source.chart)
            {
                open.push((app, at, source.chart, source.target_revision));
            }
        }
    }
    // The same chart in several environments is one that is left open.
    open.sort_by(|one, other| (&one.2, one.0.name()).cmp(&(&other.2, other.0.name())));
    open.dedup_by(|one, other| one.2 == other.2);
    let Some((app, at, chart, version)) = open.first() else { return };
    let shown = if version.is_empty() { "no version" } else { version.as_str() };
    let more = match open.len() {
        1 => String::new(),
        number => format!(", and {} more are left open", number - 1),
    };
    let span = |app: &App, at: usize, version: &str| {
        let place = field_paths::source(&app.application.spec, at);
        survey.app_span(app, &place.key(if version.is_empty() { "chart" } else { "targetRevision" }))
    };
    let mut diagnostic = RULE
        .diagnostic(format!("Application {} takes any version of chart {chart} ({shown}){more}", app.name()))
        .at(span(app, *at, version), "the newest release, whatever it is")
        .because("with automated sync the next major release is installed without a commit")
        .help("name the version, and let a bot propose newer ones");
    for (app, at, chart, version) in &open[1..] {
        diagnostic = diagnostic.see(span(app, *at, version), format!("chart {chart} is left open, too"));
    }
    report.add(Finding::new(RULE.incident, diagnostic).app(app.name()).likely());
}

/// Whether a version of a chart stands for every later major release, too.
fn is_open(version: &str) -> bool {
    let version = version.trim();
    let is_least = version.starts_with('>') && !version.contains('<') && !version.contains(',');
    matches!(version, "" | "*" | "x" | "X" | "latest" | "HEAD") || is_least
}
