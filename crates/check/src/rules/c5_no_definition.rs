//! # Custom resources of a chart that was not asked for their definition
//!
//! Some charts bring the definitions of their kinds only if a value asks for it: cert-manager's does with
//! `crds.enabled: true`. Where nothing asks, and nothing else in the repository brings the definitions, the
//! controller ends at once, and every custom resource is refused.
//!
//! People see: `The Kubernetes API could not find cert-manager.io/ClusterIssuer for requested resource`, `no
//! matches for kind "Certificate" in version "cert-manager.io/v1"`.
//!
//! ## Bad
//! ```yaml
//! source: {chart: cert-manager, helm: {valuesObject: {replicaCount: 2}}}
//! ```
//! ## Good
//! ```yaml
//! source: {chart: cert-manager, helm: {valuesObject: {crds: {enabled: true}, replicaCount: 2}}}
//! ```
//! ## When to suppress
//! Where somebody applies the definitions by hand.

use tiphys_diag::Severity;
use tiphys_graph::Object;

use crate::{
    Context, Finding, Report, Rule,
    support::{chart_crds::Defining, chart_uses::ChartUse, cluster::Cluster},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C5-no-definition",
    incident: "C5",
    severity: Severity::Warning,
    title: "custom resources of a chart that was not asked for their definition",
    page: page!("c5_no_definition.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut told: Vec<&str> = Vec::new();
    for cluster in context.clusters() {
        for (used, chart) in charts_of(context, cluster) {
            let is_asked = used.has_hidden_values || !used.brings_definitions;
            if is_asked
                || told.contains(&chart.chart)
                || chart.brings(&used.values)
                || chart.is_told(&used.values)
            {
                continue;
            }
            let defined = |it: &&&Object| chart.defines(&it.key.group, &it.key.kind);
            let Some(first) = cluster.objects.iter().find(defined) else { continue };
            if is_brought_otherwise(context, cluster, chart, used) {
                continue;
            }
            told.push(chart.chart);
            report.add(finding(context, used, chart, first));
        }
    }
}

/// The charts with definitions that are released into a cluster, all of whose values are seen.
fn charts_of<'a>(
    context: &'a Context<'_>,
    cluster: &'a Cluster<'_>,
) -> impl Iterator<Item = (&'a ChartUse, &'static Defining)> + 'a {
    let is_here = |used: &&ChartUse| used.release.as_ref().is_some_and(|it| it.scope == *cluster.scope());
    let all = context.chart_uses().iter().filter(is_here);
    all.filter_map(|used| Some((used, Defining::find(&used.chart)?)))
}

/// Whether something else brings the definitions: a manifest, another chart, an Application that is called
/// after definitions, a script or a text that speaks of them.
fn is_brought_otherwise(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    chart: &Defining,
    used: &ChartUse,
) -> bool {
    let survey = context.survey;
    let is_definition =
        |it: &Object| it.key.kind == "CustomResourceDefinition" && it.key.name.ends_with(chart.group());
    let speaks = |line: &str| {
        let line = line.to_ascii_lowercase();
        line.contains("crd") && line.contains(chart.chart)
    };
    let by_chart = charts_of(context, cluster).any(|(other, known)| {
        !std::ptr::eq(other, used) && known.chart == chart.chart && known.brings(&other.values)
    });
    let by_app = survey.apps.iter().filter(|app| !app.is_rendered()).any(|app| {
        let sources = app.application.spec.effective_sources();
        let mut texts = sources.iter().flat_map(|it| [it.chart.as_str(), &it.path]).chain([app.name()]);
        texts.any(|text| text.to_ascii_lowercase().contains("crd"))
    });
    by_chart
        || by_app
        || survey.objects.iter().any(is_definition)
        || survey.files.any_text(|text| text.lines().any(speaks))
        || survey.tools().writers.iter().any(|it| it.subject().contains(chart.chart))
}

fn finding(context: &Context<'_>, used: &ChartUse, chart: &Defining, object: &Object) -> Finding {
    let kind = object.key.group_kind();
    let diagnostic = RULE
        .diagnostic(format!(
            "{} is of {kind}, whose definition chart {} brings only if a value asks for it",
            object.title(),
            chart.chart
        ))
        .at(used.span.clone(), "no value of this release asks for the definitions")
        .see(context.survey.start(object), "this kind is never known")
        .because("the API server refuses what it has no definition of, and the controller ends without them")
        .help("set crds.enabled: true; before version 1.15 of cert-manager the value is installCRDs");
    RULE.finding(context, object, diagnostic).likely()
}
