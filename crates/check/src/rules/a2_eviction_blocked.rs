//! # A budget that lets no pod go
//!
//! A PodDisruptionBudget asks for as many pods as there are, or allows none to be missing. No pod may ever be
//! evicted: nodes are not drained, and their upgrade waits for ever.
//!
//! People see: `Cannot evict pod as it would violate the pod's disruption budget.`, a node that stays
//! `SchedulingDisabled`, an upgrade of nodes that ends with a time-out.
//!
//! ## Bad
//! ```yaml
//! spec: {minAvailable: 1}        # for a Deployment with one replica
//! ```
//! ## Good
//! ```yaml
//! spec: {maxUnavailable: 1}
//! ```
//! ## When to suppress
//! Where a person is to decide on each eviction.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_schema::LabelSelector;
use tiphys_value::{ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{cluster::Cluster, dedup::Once, field_paths::keys, pods::Pod},
};

/// See the module.
pub const RULE: Rule = Rule {
    id: "A2-eviction-blocked",
    incident: "A2",
    severity: Severity::Warning,
    title: "a PodDisruptionBudget that lets no pod be evicted",
    page: page!("a2_eviction_blocked.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        let budgets = cluster
            .objects
            .iter()
            .filter(|it| it.key.kind == "PodDisruptionBudget" && it.key.group == "policy");
        for budget in budgets {
            let Some((pod, replicas)) = selected(cluster, budget) else { continue };
            let Some((field, why)) = blocks(budget.value(), replicas) else { continue };
            let diagnostic = RULE
                .diagnostic(format!("{} lets no pod of {} be evicted", budget.title(), pod.object.title()))
                .at(context.survey.span(budget, &keys(&["spec", field])), why)
                .see(
                    context.survey.span(pod.object, &keys(&["spec", "replicas"])),
                    format!("there are {replicas} pods"),
                )
                .because("a drain waits until the pod may go, which is never: nodes cannot be upgraded")
                .help("use `maxUnavailable: 1`, or run more replicas");
            once.add("", RULE.finding(context, budget, diagnostic));
        }
    }
    once.report(report);
}

/// The one workload whose pods a budget is about, and how many there are; nothing if that cannot be told.
fn selected<'a, 'c>(cluster: &'c Cluster<'a>, budget: &Object) -> Option<(&'c Pod<'a>, i64)> {
    let selector = LabelSelector::from_object(budget.value().at(&["spec", "selector"])?).ok()??;
    let mut pods = cluster.pods.iter().filter(|pod| {
        let labels = pod.template.at(&["metadata", "labels"]).unwrap_or(&Value::Null);
        pod.object.key.namespace == budget.key.namespace && selector.matches(labels)
    });
    let (Some(pod), None) = (pods.next(), pods.next()) else { return None };
    let object = pod.object;
    let is_scaled = cluster.objects.iter().any(|it| {
        it.key.namespace == object.key.namespace
            && it.value().str_at(&["spec", "scaleTargetRef", "name"]) == Some(object.key.name.as_str())
    });
    let counts = matches!(object.key.kind.as_str(), "Deployment" | "StatefulSet");
    let replicas = object.value().int_at(&["spec", "replicas"]).unwrap_or(1);
    (counts && !is_scaled && replicas > 0).then_some((pod, replicas))
}

/// The field that forbids every eviction, and what it says.
fn blocks(budget: &Value, replicas: i64) -> Option<(&'static str, String)> {
    let percent = |value: &Value| value.as_str()?.strip_suffix('%')?.parse::<i64>().ok();
    if let Some(most) = budget.at(&["spec", "maxUnavailable"]) {
        let none = most.as_i64() == Some(0) || percent(most) == Some(0);
        return none.then(|| ("maxUnavailable", "none may be missing".to_owned()));
    }
    let least = budget.at(&["spec", "minAvailable"])?;
    // A part of a pod counts as a whole one.
    let wanted = percent(least).map(|part| (replicas * part + 99) / 100).or_else(|| least.as_i64())?;
    (wanted >= replicas).then(|| ("minAvailable", format!("{wanted} have to be there")))
}
