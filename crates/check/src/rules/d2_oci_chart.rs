//! # A chart beside an oci:// address
//!
//! A source whose address begins with `oci://` is an OCI artifact: Argo CD pulls what the address itself
//! names, and does not look at `chart`. A chart in a registry is named without the scheme, or with the chart
//! as the address's last step.
//!
//! People see: `403 Forbidden` or `manifest unknown` for a repository without the chart's name.
//!
//! ## Bad
//! ```yaml
//! source: {repoURL: oci://registry.example.com/charts, chart: web, targetRevision: 1.2.3}
//! ```
//! ## Good
//! ```yaml
//! source: {repoURL: registry.example.com/charts, chart: web, targetRevision: 1.2.3}
//! ```
//! ## When to suppress
//! Where another tool than Argo CD reads the Application.

use tiphys_diag::Severity;

use crate::{Context, Finding, Report, Rule, support::field_paths};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-oci-chart",
    incident: "D2",
    severity: Severity::Warning,
    title: "a chart beside an oci:// address",
    page: page!("d2_oci_chart.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    for app in &context.survey.apps {
        let spec = &app.application.spec;
        for (at, source) in spec.effective_sources().iter().enumerate() {
            let Some(address) = source.repo_url.strip_prefix("oci://") else { continue };
            // An address that ends with the chart is the chart's own, and `.` names it once more.
            let is_whole = ["", "."].contains(&source.chart.as_str());
            if is_whole || address.rsplit('/').next() == Some(&source.chart) {
                continue;
            }
            let diagnostic = RULE
                .diagnostic(format!("Application {}: chart {} is not looked at beside {}", app.name(), source.chart, source.repo_url))
                .at(context.survey.app_span(app, &field_paths::source(spec, at).key("repoURL")), "an OCI artifact by itself")
                .because("what begins with oci:// is pulled as it is; only an address without a scheme is one of charts")
                .help(format!("write repoURL: {address}"));
            report.add(Finding::new(RULE.incident, diagnostic).app(app.name()).likely());
        }
    }
}
