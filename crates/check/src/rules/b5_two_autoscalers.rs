//! # Two controllers change one field of a workload
//!
//! Two autoscalers of one workload each set the number of replicas to what they measure: pods come and go. A
//! HorizontalPodAutoscaler stops where a second one selects the same pods. A VerticalPodAutoscaler that
//! applies what it recommends changes the requests by which a HorizontalPodAutoscaler measures: each answers
//! the other.
//!
//! People see: `AmbiguousSelector: pods by selector … are controlled by multiple HPAs`, replicas that go up
//! and down, `the workload 'web' of type 'apps/v1.Deployment' is already managed by the hpa 'web'`.
//!
//! ## Bad
//! ```yaml
//! kind: HorizontalPodAutoscaler
//! spec: {scaleTargetRef: {kind: Deployment, name: web}}
//! ---
//! kind: ScaledObject
//! spec: {scaleTargetRef: {name: web}}
//! ```
//! ## Good
//! One of the two.
//!
//! ## When to suppress
//! Where one of them is switched off.

use std::collections::BTreeMap;

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "B5-two-autoscalers",
    incident: "B5",
    severity: Severity::Warning,
    title: "two controllers change one field of a workload",
    page: page!("b5_two_autoscalers.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        let mut by_target: BTreeMap<ResourceKey, Vec<&Object>> = BTreeMap::new();
        for scaler in cluster.objects.iter().copied() {
            if let Some(key) = target(scaler) {
                by_target.entry(key).or_default().push(scaler);
            }
        }
        for scalers in by_target.values().filter(|scalers| scalers.len() > 1) {
            for (at, one) in scalers.iter().enumerate() {
                for other in &scalers[at + 1..] {
                    if let Some(why) = clash(one, other) {
                        add(context, (one, other), why, &mut once);
                    }
                }
            }
        }
    }
    once.report(report);
}

/// The workload that an autoscaler is about.
fn target(scaler: &Object) -> Option<ResourceKey> {
    let field = match (scaler.key.group.as_str(), scaler.key.kind.as_str()) {
        ("autoscaling", "HorizontalPodAutoscaler") | ("keda.sh", "ScaledObject") => "scaleTargetRef",
        ("autoscaling.k8s.io", "VerticalPodAutoscaler") => "targetRef",
        _ => return None,
    };
    let of = scaler.value().at(&["spec", field]).filter(|it| !placeholders::has_placeholder(it))?;
    let kind = of.str_at(&["kind"]).unwrap_or("Deployment");
    // Versions of a group are the same workload.
    let api = of.str_at(&["apiVersion"]).unwrap_or("apps/v1");
    let group = api.split_once('/').map_or("", |(group, _)| group);
    Some(ResourceKey::new(group, kind, &scaler.key.namespace, of.str_at(&["name"])?))
}

/// What comes of two autoscalers of one workload; `None` if they go together.
fn clash(one: &Object, other: &Object) -> Option<&'static str> {
    const TRANSFERS: &str = "scaledobject.keda.sh/transfer-hpa-ownership";
    if one.key == other.key || [one, other].iter().any(|it| it.value().annotation(TRANSFERS).is_some()) {
        return None;
    }
    let is_vertical = |it: &Object| it.key.kind == "VerticalPodAutoscaler";
    match (is_vertical(one), is_vertical(other)) {
        (false, false) => Some("both set the number of replicas, each to what it measures"),
        (true, true) => None,
        (true, false) => both_measure(one, other),
        (false, true) => both_measure(other, one),
    }
}

/// Whether a vertical autoscaler changes the requests by which a horizontal one measures.
fn both_measure(vertical: &Object, horizontal: &Object) -> Option<&'static str> {
    let spec = &vertical.value()["spec"];
    let mode = spec.str_at(&["updatePolicy", "updateMode"]).unwrap_or("Auto");
    let policies = spec.at(&["resourcePolicy", "containerPolicies"]).and_then(Value::as_array);
    let controls = |resource: &str| {
        policies.is_none_or(|policies| {
            policies.iter().any(|policy| {
                let named = list(policy, "controlledResources");
                text(policy, "mode") != "Off" && (named.is_empty() || named.iter().any(|it| it == resource))
            })
        })
    };
    let measures = |metric: &Value| {
        let resource = metric.str_at(&["resource", "name"]).unwrap_or_default();
        metric.str_at(&["resource", "target", "type"]) == Some("Utilization") && controls(resource)
    };
    let old = horizontal.value().at(&["spec", "targetCPUUtilizationPercentage"]).is_some() && controls("cpu");
    let shared = old || list(&horizontal.value()["spec"], "metrics").iter().any(measures);
    (shared && matches!(mode, "Auto" | "Recreate" | "InPlaceOrRecreate"))
        .then_some("the one changes the requests, of which the other one's measure is a share")
}

fn add(context: &Context<'_>, (one, other): (&Object, &Object), why: &str, once: &mut Once) {
    let field = |it: &Object| {
        let name = if it.key.kind == "VerticalPodAutoscaler" { "targetRef" } else { "scaleTargetRef" };
        keys(&["spec", name])
    };
    let what = format!("{} and {} are for one workload", one.title(), other.title());
    let diagnostic = RULE
        .diagnostic(what.clone())
        .at(context.survey.span(other, &field(other)), "for this workload")
        .see(context.survey.span(one, &field(one)), "and this one, too")
        .because(why.to_owned())
        .help("leave one of them out");
    once.add(&what, RULE.finding(context, other, diagnostic).likely());
}
