//! # A kustomization inflates charts, and Argo CD does not allow it
//!
//! kustomize inflates the charts of `helmCharts` only with `--enable-helm`, and Argo CD gives it that option
//! only where its settings say so (`kustomize.buildOptions`). The rule speaks where the settings of Argo CD are
//! in the repository, and no file of it names the option.
//!
//! People see: `must specify --enable-helm`, `trouble configuring builtin HelmChartInflationGenerator`.
//!
//! ## Bad
//! ```yaml
//! # values of the chart argo-cd
//! configs: {cm: {timeout.reconciliation: 60s}}
//! ```
//! ## Good
//! ```yaml
//! configs: {cm: {kustomize.buildOptions: --enable-helm}}
//! ```
//! ## When to suppress
//! Where the option is set in the cluster by hand.

use tiphys_diag::Severity;
use tiphys_kustomize::FILE_NAMES;
use tiphys_value::Location;
use tiphys_vfs::join;

use crate::{Context, Finding, Report, Rule, support::field_paths};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-enable-helm",
    incident: "D2",
    severity: Severity::Warning,
    title: "a kustomization inflates charts, and Argo CD does not allow it",
    page: page!("d2_enable_helm.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut inflating = survey.apps.iter().filter_map(|app| {
        let spec = &app.application.spec;
        let sources = spec.effective_sources();
        let at = sources.iter().position(|it| {
            let mut names = FILE_NAMES.iter().filter_map(|name| join(&it.path, name).ok());
            let inflates = names.any(|path| {
                app.read.contains(path.as_str())
                    && survey
                        .files
                        .text(&path)
                        .is_some_and(|text| text.lines().any(|it| it.starts_with("helmCharts:")))
            });
            it.plugin.is_none() && inflates
        })?;
        Some((app, field_paths::source(spec, at).key("path")))
    });
    let Some((app, field)) = inflating.next() else { return };
    let others = inflating.count();
    let chart = context.chart_uses().iter().find(|it| it.chart == "argo-cd" && !it.has_hidden_values);
    let is_set_up = survey.settings.own().is_some() || chart.is_some();
    let lost = &survey.settings.lost_build_options;
    let is_allowed = survey.files.ending(&[".yaml", ".yml"]).any(|path| {
        const WORDS: [&str; 3] = ["enable-helm", "enableHelm", "buildOptions"];
        let says_so = |text: &str| WORDS.iter().any(|word| text.contains(word));
        !lost.contains(path.as_ref()) && survey.files.text(path).is_some_and(|text| says_so(&text))
    });
    if !is_set_up || is_allowed {
        return;
    }
    let more = match others {
        0 => " inflates".to_owned(),
        others => format!(" and {others} more inflate"),
    };
    let mut diagnostic = RULE
        .diagnostic(format!(
            "Application {}{more} charts with kustomize, and the settings of Argo CD do not allow it",
            app.name()
        ))
        .at(survey.app_span(app, &field), "the kustomization there has `helmCharts`")
        .because("`must specify --enable-helm`: nothing of the Application is rendered")
        .help("set `kustomize.buildOptions: --enable-helm` in argocd-cm (`configs.cm` of the chart argo-cd)");
    if let Some(chart) = chart {
        diagnostic = diagnostic.see(chart.span.clone(), "Argo CD is set up here");
    }
    if let Some(file) = lost.first() {
        let place = survey.files.span(&Location::new(file.as_str(), 1, 0));
        diagnostic = diagnostic.see(place, "among the params of these values nothing reads it");
    }
    report.add(Finding::new(RULE.incident, diagnostic).app(app.name()).likely());
}
