//! # A chart that could not be fetched is known to bring a CRD that is too large
//!
//! Client-side apply stores the whole object in the annotation `kubectl.kubernetes.io/last-applied-configuration`,
//! and the API server takes no more than 262,144 bytes of annotations. Some charts bring
//! CustomResourceDefinitions that are larger. This rule speaks where the chart itself could not be looked at; what
//! could be rendered is measured by `C1-last-applied-too-long`.
//!
//! People see: `CustomResourceDefinition.apiextensions.k8s.io "prometheuses.monitoring.coreos.com" is invalid:
//! metadata.annotations: Too long: may not be more than 262144 bytes`.
//!
//! ## Bad
//! ```yaml
//! spec:
//!   source: {repoURL: https://charts.example.com, chart: kube-prometheus-stack, targetRevision: 80.0.0}
//!   syncPolicy:
//!     syncOptions: [CreateNamespace=true]
//! ```
//! ## Good
//! ```yaml
//!   syncPolicy:
//!     syncOptions: [CreateNamespace=true, ServerSideApply=true]
//! ```
//! Or leave the CRDs to something else: `helm: {skipCrds: true}`.
//!
//! ## When to suppress
//! Where values turn the definitions off in a way of their own.

use tiphys_diag::Severity;
use tiphys_graph::App;
use tiphys_model::ApplicationSource;
use tiphys_value::FieldPath;

use crate::{
    Context, Finding, Report, Rule,
    support::{charts, once::Once},
};

/// See the module.
pub const RULE: Rule = Rule {
    id: "C1-chart-with-large-crd",
    incident: "C1",
    severity: Severity::Warning,
    title: "a chart that was not seen is known for a CRD too large for client-side apply",
    source: include_str!("c1_chart_with_large_crd.rs"),
    check,
};

const KNOWN: &str = include_str!("../../data/charts-with-large-crds.txt");

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for app in &context.survey.apps {
        if app.is_rendered() || app.application.sync_options().is_on("ServerSideApply") {
            continue;
        }
        for source in app.application.spec.effective_sources() {
            let Some((definition, bytes)) =
                large_definition(&source).filter(|_| !charts::leaves_out_crds(&source))
            else {
                continue;
            };
            once.add_by(source.chart.clone(), finding(context, app, &source, definition, bytes));
        }
    }
    once.report(report);
}

fn finding(
    context: &Context<'_>,
    app: &App,
    source: &ApplicationSource,
    definition: &str,
    bytes: &str,
) -> Finding {
    let spec = FieldPath::default().key("spec");
    let message = format!(
        "chart {} brings CustomResourceDefinition {definition} of about {bytes} bytes, and Application {} does not apply on the server's side: \
         `metadata.annotations: Too long: may not be more than 262144 bytes`",
        source.chart,
        app.name()
    );
    let place = match app.application.spec.has_multiple_sources() {
        true => spec.key("sources"),
        false => spec.key("source").key("chart"),
    };
    let diagnostic = RULE
        .diagnostic(message)
        .at(context.survey.app_span(app, &place), "this chart")
        .because("client-side apply writes the whole object into one of its own annotations, whose size is limited")
        .help("add `ServerSideApply=true` to spec.syncPolicy.syncOptions");
    Finding::new(RULE.incident, diagnostic).app(app.name()).likely()
}

/// The largest definition that a chart is known for, and its size.
fn large_definition(source: &ApplicationSource) -> Option<(&'static str, &'static str)> {
    // In an OCI registry the chart is the last step of the address.
    let chart = source.chart.rsplit('/').next().filter(|chart| !chart.is_empty())?;
    let lines = KNOWN.lines().filter(|line| !line.starts_with('#'));
    let mut known = lines.map(|line| line.split_whitespace());
    known.find_map(|mut words| {
        let found = (words.next()? == chart).then_some((words.next()?, words.next()?))?;
        (!charts::is_older(&source.target_revision, words.next()?)).then_some(found)
    })
}
