//! # A chart that could not be fetched is known to bring a CRD that is too large
//!
//! Client-side apply stores the whole object in the annotation
//! `kubectl.kubernetes.io/last-applied-configuration`, and the API server takes no more than 262,144 bytes of
//! annotations. Some charts bring CustomResourceDefinitions that are larger. This rule speaks where the chart
//! itself could not be looked at; what could be rendered is measured by `C1-last-applied-too-long`.
//!
//! People see: `CustomResourceDefinition.apiextensions.k8s.io "prometheuses.monitoring.coreos.com" is
//! invalid: metadata.annotations: Too long: may not be more than 262144 bytes`.
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

use tiphys_diag::{Severity, Span};
use tiphys_graph::App;
use tiphys_model::{ApplicationSource, HelmSource};
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        dedup::Once,
        known_charts,
        pods::{list, text},
        sync_options,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C1-chart-with-large-crd",
    incident: "C1",
    severity: Severity::Warning,
    title: "a chart that was not seen is known for a CRD too large for client-side apply",
    page: page!("c1_chart_with_large_crd.rs"),
    check,
};

const KNOWN: &str = include_str!("../../data/charts-with-large-crds.txt");

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for app in &context.survey.apps {
        if app.is_rendered() || app.application.sync_options().is_on("ServerSideApply") {
            continue;
        }
        let sources = app.application.spec.effective_sources();
        let wrapped = sources.iter().flat_map(|source| dependencies(context, source)).collect::<Vec<_>>();
        for source in sources.into_iter().chain(wrapped) {
            let Some((definition, bytes)) =
                large_definition(&source).filter(|_| !known_charts::leaves_out_crds(&source))
            else {
                continue;
            };
            let place = place(context, app);
            once.add_by(
                source.chart.clone(),
                finding(context, app, &source.chart, place, (definition, bytes)),
            );
        }
    }
    for used in context.chart_uses().iter().filter(|used| used.is_inflated) {
        let Some(app) = used.app.map(|app| context.survey.app(app)) else { continue };
        if app.is_rendered() || app.application.sync_options().is_on("ServerSideApply") {
            continue;
        }
        let source = ApplicationSource {
            chart: used.chart.clone(),
            target_revision: used.version.clone(),
            ..ApplicationSource::default()
        };
        let found = large_definition(&source).filter(|_| !used.leaves_out_definitions());
        if let Some((definition, bytes)) = found {
            let found = finding(context, app, &used.chart, used.span.clone(), (definition, bytes));
            once.add_by(used.chart.clone(), found);
        }
    }
    once.report(report);
}

/// Where an Application names its chart.
fn place(context: &Context<'_>, app: &App) -> Span {
    let spec = FieldPath::default().key("spec");
    let field = match app.application.spec.has_multiple_sources() {
        true => spec.key("sources"),
        false => spec.key("source").key("chart"),
    };
    context.survey.app_span(app, &field)
}

fn finding(
    context: &Context<'_>,
    app: &App,
    chart: &str,
    place: Span,
    (definition, bytes): (&str, &str),
) -> Finding {
    let message = format!(
        "chart {chart} brings CustomResourceDefinition {definition} of about {bytes} bytes, and Application {} does not apply on the server's side: \
         `metadata.annotations: Too long: may not be more than 262144 bytes`",
        app.name()
    );
    let diagnostic = RULE
        .diagnostic(message)
        .at(place, "this chart")
        .because("client-side apply writes the whole object into one of its own annotations, whose size is limited")
        .help("add `ServerSideApply=true` to spec.syncPolicy.syncOptions");
    let finding = Finding::new(RULE.incident, diagnostic).app(app.name()).likely();
    let edits = sync_options::add_sync_option(context.survey, app, "ServerSideApply=true");
    if edits.is_empty() { finding } else { finding.fix("apply the Application server-side", edits) }
}

/// The charts that a chart of the repository depends on, with the values that it gives them in its own
/// defaults.
fn dependencies(context: &Context<'_>, source: &ApplicationSource) -> Vec<ApplicationSource> {
    if !source.chart.is_empty() {
        return Vec::new();
    }
    let folder = source.path.trim_start_matches("./").trim_end_matches('/');
    let read = |name: &str| context.survey.files.value(&format!("{folder}/{name}")).unwrap_or_default();
    let (chart, values) = (read("Chart.yaml"), read("values.yaml"));
    let given = source.helm.as_ref().and_then(|helm| helm.values_object.clone()).unwrap_or_default();
    let listed =
        list(&chart, "dependencies").iter().filter(|it| !text(it, "repository").starts_with("file:"));
    let of = |wanted: &Value| {
        let (name, alias) = (text(wanted, "name"), text(wanted, "alias"));
        let key = if alias.is_empty() { name } else { alias };
        let own = given.get(key).or_else(|| values.get(key)).cloned();
        ApplicationSource {
            repo_url: text(wanted, "repository").to_owned(),
            chart: name.to_owned(),
            target_revision: text(wanted, "version").to_owned(),
            helm: Some(HelmSource { values_object: own, ..source.helm.clone().unwrap_or_default() }),
            ..ApplicationSource::default()
        }
    };
    listed.map(of).collect()
}

/// The largest definition that a chart is known for, and its size.
fn large_definition(source: &ApplicationSource) -> Option<(&'static str, &'static str)> {
    // In an OCI registry the chart is the last step of the address.
    let chart = source.chart.rsplit('/').next().filter(|chart| !chart.is_empty())?;
    let lines = KNOWN.lines().filter(|line| !line.starts_with('#'));
    let mut known = lines.map(|line| line.split_whitespace());
    known.find_map(|mut words| {
        let found = (words.next()? == chart).then_some((words.next()?, words.next()?))?;
        (!known_charts::is_older(&source.target_revision, words.next()?)).then_some(found)
    })
}
