//! # An expression that asks for a label value which is never written
//!
//! kube-state-metrics writes conditions in small letters and phases with a capital one. A matcher that has
//! the other finds no series: an alert never fires, or, behind `unless` and `absent`, it always does.
//! Prometheus takes any value.
//!
//! People see: nothing, or an alert for every pod.
//!
//! ## Bad
//! ```yaml
//! expr: kube_node_status_condition{condition="Ready",status="True"} == 0
//! ```
//! ## Good
//! ```yaml
//! expr: kube_node_status_condition{condition="Ready",status="true"} == 0
//! ```
//! ## When to suppress
//! Where relabelling writes the label otherwise.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::FieldPath;

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        pods::{list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-empty-series",
    incident: "C2",
    severity: Severity::Warning,
    title: "an expression that asks for a label value which is never written",
    page: page!("c2_empty_series.rs"),
    check,
};

const CONDITIONS: &[&str] = &["true", "false", "unknown"];
const PHASES: &[&str] = &["Pending", "Running", "Succeeded", "Failed", "Unknown"];
/// Metrics of kube-state-metrics, a label, and the values that it has (kube-state-metrics docs, "Exposed
/// metrics").
const LABELS: [(&str, &str, &[&str]); 12] = [
    ("kube_pod_status_ready", "condition", CONDITIONS),
    ("kube_pod_status_scheduled", "condition", CONDITIONS),
    ("kube_pod_status_initialized", "condition", CONDITIONS),
    ("kube_pod_status_phase", "phase", PHASES),
    ("kube_node_status_condition", "status", CONDITIONS),
    ("kube_deployment_status_condition", "status", CONDITIONS),
    ("kube_job_complete", "condition", CONDITIONS),
    ("kube_job_failed", "condition", CONDITIONS),
    ("kube_horizontalpodautoscaler_status_condition", "status", CONDITIONS),
    ("kube_persistentvolumeclaim_status_phase", "phase", &["Lost", "Bound", "Pending"]),
    ("kube_persistentvolume_status_phase", "phase", &["Pending", "Available", "Bound", "Released", "Failed"]),
    ("kube_namespace_status_phase", "phase", &["Active", "Terminating"]),
];

/// A metric with its matchers, which hold no braces.
static METRIC: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(kube_[a-z_]+)\s*\{([^{}]*)\}").expect("the pattern is well formed"));
/// A matcher that compares.
static MATCHER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"([a-z_]+)\s*(?:=~|!~|!=|=)\s*["']([^"']*)["']"#).expect("the pattern is well formed")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        if !matches!(object.key.kind.as_str(), "PrometheusRule" | "VMRule") {
            continue;
        }
        for (expression, field) in expressions(object) {
            for (metric, label, value, known) in misspelt(expression) {
                let message = format!(
                    "{} asks for {metric} with {label}=\"{value}\", which is never written",
                    object.title()
                );
                let diagnostic = RULE
                    .diagnostic(message)
                    .at(context.survey.span(object, &field), "finds no series")
                    .because("kube-state-metrics writes the value otherwise, and Prometheus tells capital letters from small ones")
                    .help(format!("write {known:?}"));
                once.add(&format!("{metric} {value}"), RULE.finding(context, object, diagnostic).likely());
            }
        }
    }
    once.report(report);
}

fn expressions(object: &Object) -> Vec<(&str, FieldPath)> {
    let mut found = Vec::new();
    for (at, group) in list(&object.value()["spec"], "groups").iter().enumerate() {
        let rules = keys(&["spec", "groups"]).index(at).key("rules");
        for (index, rule) in list(group, "rules").iter().enumerate() {
            found.push((text(rule, "expr"), rules.index(index).key("expr")));
        }
    }
    found
}

/// Metric, label, value, and the value that is written, where they differ in capital letters alone.
fn misspelt(expression: &str) -> Vec<(&str, &str, &str, &'static str)> {
    let mut found = Vec::new();
    for metric in METRIC.captures_iter(expression) {
        let (Some(name), Some(matchers)) = (metric.get(1), metric.get(2)) else { continue };
        for matcher in MATCHER.captures_iter(matchers.as_str()) {
            let (Some(label), Some(values)) = (matcher.get(1), matcher.get(2)) else { continue };
            let of_label =
                LABELS.iter().find(|(metric, known, _)| *metric == name.as_str() && *known == label.as_str());
            let Some((.., known)) = of_label else { continue };
            let values = values.as_str();
            for value in values.split('|') {
                let meant = known.iter().find(|it| it.eq_ignore_ascii_case(value) && **it != value);
                found.extend(meant.map(|meant| (name.as_str(), label.as_str(), value, *meant)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::misspelt;

    #[test]
    fn only_what_differs_in_capital_letters_is_told() {
        let values =
            |text: &str| -> Vec<String> { misspelt(text).into_iter().map(|it| it.2.to_owned()).collect() };
        assert_eq!(values(r#"kube_node_status_condition{condition="Ready", status="True"} == 0"#), ["True"]);
        assert_eq!(values(r#"sum(kube_pod_status_phase{phase=~"pending|Failed"}) > 0"#), ["pending"]);
        for text in [
            r#"kube_node_status_condition{condition="Ready",status="true"}"#,
            r#"kube_pod_status_phase{phase="Evicted"}"#,
            r#"my_condition{status="True"}"#,
            r#"kube_pod_status_phase{namespace="pending"}"#,
        ] {
            assert!(values(text).is_empty(), "{text}");
        }
    }
}
