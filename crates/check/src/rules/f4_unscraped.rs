//! # A monitor or rule that no Prometheus selects
//!
//! A Prometheus of the operator takes only the ServiceMonitors, PodMonitors, Probes and PrometheusRules that
//! its selectors find. The chart kube-prometheus-stack selects by the label `release` with the name of its
//! release, unless it is told otherwise. What lacks the label is stored, and nobody reads it: there is no
//! target, and no alert.
//!
//! People see: nothing: the target is missing in the list of Prometheus, dashboards are empty, alerts never
//! fire.
//!
//! The rule is silent where another program reads the monitors, too, such as Grafana Alloy or the operator of
//! VictoriaMetrics.
//!
//! ## Bad
//! ```yaml
//! kind: ServiceMonitor
//! metadata: {name: web}                                  # the release is called monitoring
//! ```
//! ## Good
//! ```yaml
//! kind: ServiceMonitor
//! metadata: {name: web, labels: {release: monitoring}}
//! ```
//! ## When to suppress
//! Where a Prometheus that the repository does not show selects it.

use std::collections::BTreeMap;

use tiphys_diag::{Severity, Span};
use tiphys_graph::{App, Object};
use tiphys_value::{ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        chart_uses::ChartUse,
        cluster::Cluster,
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F4-unscraped",
    incident: "F4",
    severity: Severity::Warning,
    title: "a monitor or rule that no Prometheus selects",
    page: page!("f4_unscraped.rs"),
    check,
};

const GROUP: &str = "monitoring.coreos.com";

/// The kinds that a Prometheus selects, with the beginning of the fields that do.
const SELECTED: [(&str, &str); 4] = [
    ("ServiceMonitor", "serviceMonitor"),
    ("PodMonitor", "podMonitor"),
    ("Probe", "probe"),
    ("PrometheusRule", "rule"),
];

/// Words in the names of programs that read monitors without a Prometheus.
const OTHER_READERS: [&str; 10] = [
    "alloy",
    "victoria",
    "vm-operator",
    "vmagent",
    "opentelemetry",
    "otel",
    "grafana-agent",
    "mimir",
    "datadog",
    "k8s-monitoring",
];

/// Which labels a Prometheus asks for.
enum Wanted {
    /// It takes all, or that cannot be told.
    Anything,
    /// All of these.
    Labels(BTreeMap<String, String>),
}

/// A Prometheus of a cluster.
struct Selecting {
    title: String,
    span: Span,
    /// What it asks for, by the kinds of [`SELECTED`].
    wanted: Vec<Wanted>,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        let monitors: Vec<&Object> = cluster
            .objects
            .iter()
            .copied()
            .filter(|it| it.key.group == GROUP && kind_at(it).is_some())
            .collect();
        if monitors.is_empty() || has_other_reader(context, cluster) {
            continue;
        }
        let Some(all) = selecting(context, cluster).filter(|all| !all.is_empty()) else { continue };
        for monitor in monitors {
            unselected(context, monitor, &all, &mut once);
        }
    }
    once.report(report);
}

fn kind_at(object: &Object) -> Option<usize> {
    SELECTED.iter().position(|(kind, _)| object.key.kind == *kind)
}

/// Whether another program of the cluster may read the monitors.
fn has_other_reader(context: &Context<'_>, cluster: &Cluster<'_>) -> bool {
    let is_reader = |name: &str| OTHER_READERS.iter().any(|word| name.contains(word));
    let reads = |app: &App| {
        let sources = app.application.spec.effective_sources();
        is_reader(app.name()) || sources.iter().any(|it| is_reader(&it.chart) || is_reader(&it.path))
    };
    apps_of(context, cluster).any(reads)
        || context.chart_uses().iter().any(|it| is_reader(&it.chart))
        || cluster.objects.iter().any(|it| it.key.kind == "PrometheusAgent" || is_reader(&it.key.group))
}

fn apps_of<'c>(context: &'c Context<'_>, cluster: &'c Cluster<'_>) -> impl Iterator<Item = &'c App> {
    context.survey.apps.iter().filter(|app| cluster.is_filled_by(app))
}

/// Every Prometheus of a cluster; `None` if one of them cannot be read.
fn selecting(context: &Context<'_>, cluster: &Cluster<'_>) -> Option<Vec<Selecting>> {
    let mut all = Vec::new();
    for object in cluster.objects.iter().filter(|it| it.key.group == GROUP && it.key.kind == "Prometheus") {
        let spec = &object.value()["spec"];
        let wanted = SELECTED.iter().map(|(_, field)| by_object(spec, field)).collect();
        all.push(Selecting { title: object.title(), span: context.survey.start(object), wanted });
    }
    for used in context.chart_uses().iter().filter(|it| it.chart == "kube-prometheus-stack") {
        // Which cluster a chart is for that no Application names is not told.
        let app = context.survey.app(used.app?);
        if !cluster.is_filled_by(app) || app.is_rendered() && !used.is_inflated && !all.is_empty() {
            continue;
        }
        all.push(by_chart(context, used, app)?);
    }
    Some(all)
}

/// What a selector of a Prometheus asks for. Without one it takes nothing, which is meant where the kind is
/// not used at all.
fn by_object(spec: &Value, field: &str) -> Wanted {
    let selector = &spec[format!("{field}Selector").as_str()];
    labels_of(selector).map_or(Wanted::Anything, Wanted::Labels)
}

/// The labels that a selector asks for, if it asks for nothing else.
fn labels_of(selector: &Value) -> Option<BTreeMap<String, String>> {
    let map = selector.get("matchLabels")?.as_object()?;
    let is_plain = list(selector, "matchExpressions").is_empty() && !placeholders::has_placeholder(selector);
    let labels = map.iter().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    (is_plain && !map.is_empty()).then(|| labels.collect())
}

/// What the chart's Prometheus asks for; `None` if not all of the chart's values can be read.
fn by_chart(context: &Context<'_>, used: &ChartUse, app: &App) -> Option<Selecting> {
    let sources = app.application.spec.effective_sources();
    let files: Vec<&String> =
        sources.iter().flat_map(|it| it.helm.iter()).flat_map(|helm| &helm.value_files).collect();
    let is_read = |file: &str| match file.strip_prefix('$').and_then(|rest| rest.split_once('/')) {
        Some((_, path)) => context.survey.files.contains(path),
        None => sources.iter().all(|it| it.chart.is_empty()),
    };
    let is_off = used.value(&["prometheus", "enabled"]) == Some(&Value::Bool(false));
    if used.is_inflated || is_off || !files.into_iter().all(|file| is_read(file)) {
        return None;
    }
    let of_source = sources.iter().filter_map(|it| it.helm.as_ref()).map(|helm| helm.release_name.as_str());
    let release = of_source.into_iter().find(|name| !name.is_empty()).unwrap_or(app.name());
    if placeholders::is_in(release) {
        return None;
    }
    let spec = ["prometheus", "prometheusSpec"];
    let wanted = SELECTED.iter().map(|(_, field)| {
        let selector = used.value(&[spec[0], spec[1], &format!("{field}Selector")]);
        if let Some(selector) = selector.filter(|it| it.as_object().is_some_and(|map| !map.is_empty())) {
            return labels_of(selector).map_or(Wanted::Anything, Wanted::Labels);
        }
        let own = used.value(&[spec[0], spec[1], &format!("{field}SelectorNilUsesHelmValues")]);
        match own {
            None | Some(Value::Bool(true)) => {
                Wanted::Labels(BTreeMap::from([("release".to_owned(), release.to_owned())]))
            }
            _ => Wanted::Anything,
        }
    });
    let title = format!("the Prometheus of chart kube-prometheus-stack (release {release})");
    Some(Selecting { title, span: used.span.clone(), wanted: wanted.collect() })
}

fn unselected(context: &Context<'_>, monitor: &Object, all: &[Selecting], once: &mut Once) {
    let Some(at) = kind_at(monitor) else { return };
    let fits = |it: &Selecting| match &it.wanted[at] {
        Wanted::Anything => true,
        Wanted::Labels(labels) => {
            labels.iter().all(|(key, value)| monitor.value().label(key) == Some(value.as_str()))
        }
    };
    // What an agent or another engine of rules takes is labelled for it.
    let is_open = placeholders::has_placeholder(&monitor.value()["metadata"]["labels"]);
    if is_open || all.iter().any(fits) {
        return;
    }
    let near = &all[0];
    let Wanted::Labels(labels) = &near.wanted[at] else { return };
    let shown: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let shown = shown.join(", ");
    let field = keys(&["metadata", "labels"]);
    let own = labels.keys().find_map(|key| Some((key, monitor.value().label(key)?)));
    let (field, has) = match own {
        Some((key, other)) => (field.key(key), format!("has {key}={other}")),
        None => (field, "has no such label".to_owned()),
    };
    let diagnostic = RULE
        .diagnostic(format!(
            "{} is selected by no Prometheus: {} takes what has {shown}",
            monitor.title(),
            near.title
        ))
        .at(context.survey.span(monitor, &field), has)
        .see(near.span.clone(), "this one selects")
        .because("the operator leaves out what the selector does not find, and nothing tells so")
        .help(format!("give it the label {shown}, or let the Prometheus select all"));
    let app = context.survey.app_of(monitor).map(App::name).unwrap_or_default();
    let kind = text(monitor.value(), "kind");
    once.add_by(format!("{kind} {app} {shown}"), RULE.finding(context, monitor, diagnostic).likely());
}
