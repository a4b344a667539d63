//! # A chart that is called with the name of its repository
//!
//! `helm repo add` gives a repository a name on one machine, and its charts are then called `name/chart`
//! there. An Application gives the address of the repository and the chart's own name, which has no slash:
//! the index of a repository cannot hold one. In registries, whose addresses have no scheme, it may have one.
//!
//! People see: `chart "grafana/loki" version "5.1.0" not found in https://… repository`, `unable to get
//! helm chart`; an Application whose comparison fails.
//!
//! ## Bad
//! ```yaml
//! source: {repoURL: https://charts.example.com, chart: example/web, targetRevision: 1.2.3}
//! ```
//! ## Good
//! ```yaml
//! source: {repoURL: https://charts.example.com, chart: web, targetRevision: 1.2.3}
//! ```
//! ## When to suppress
//! Where the server of the repository answers for such names all the same.

use tiphys_diag::Severity;

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-chart-name",
    incident: "D2",
    severity: Severity::Warning,
    title: "a chart that is called with the name of its repository",
    page: page!("d2_chart_name.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for app in &context.survey.apps {
        let spec = &app.application.spec;
        for (at, source) in spec.effective_sources().iter().enumerate() {
            let is_repository = ["https://", "http://"].iter().any(|it| source.repo_url.starts_with(it));
            let Some((_, name)) = source.chart.rsplit_once('/').filter(|(_, name)| !name.is_empty()) else {
                continue;
            };
            if !is_repository || placeholders::is_in(&source.chart) {
                continue;
            }
            let diagnostic = RULE
                .diagnostic(format!(
                    "chart {} of Application {} is not found in {}",
                    source.chart,
                    app.name(),
                    source.repo_url
                ))
                .at(
                    context.survey.app_span(app, &field_paths::source(spec, at).key("chart")),
                    "what precedes the slash is no part of a chart's name",
                )
                .because("the index of a chart repository lists charts by their own names")
                .help(format!("write chart: {name}"));
            let finding = Finding::new(RULE.incident, diagnostic).app(app.name()).likely();
            once.add(&source.chart, finding.with_spelling(source.chart.as_str(), name.to_owned()));
        }
    }
    once.report(report);
}
