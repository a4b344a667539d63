//! # A budget that lets no pod go
//!
//! A PodDisruptionBudget asks for as many pods as there are, or allows none to be missing. No pod may ever be
//! evicted: nodes are not drained, and their upgrade waits for ever.
//!
//! A budget over the pods of a DaemonSet allows none to go either, unless `minAvailable` is a number. For
//! `maxUnavailable` and for shares the number of wanted pods is asked for, and a DaemonSet cannot tell it.
//!
//! People see: `Cannot evict pod as it would violate the pod's disruption budget.`, a node that stays
//! `SchedulingDisabled`, an upgrade of nodes that ends with a time-out; `Failed to calculate the number of
//! expected pods: daemonsets.apps does not implement the scale subresource`, a budget that is Degraded.
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
    Context, Finding, Report, Rule,
    support::{cluster::Cluster, dedup::Once, field_paths::keys, pods::Pod},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
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
            if let Some(finding) = uncounted(context, cluster, budget) {
                once.add("", finding);
            }
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

/// The finding for a budget whose pods are those of DaemonSets, which its controller cannot count.
fn uncounted(context: &Context<'_>, cluster: &Cluster<'_>, budget: &Object) -> Option<Finding> {
    let pods: Vec<&Pod<'_>> = matching(cluster, budget)?.collect();
    let first = pods.first().filter(|_| pods.iter().all(|pod| pod.object.key.kind == "DaemonSet"))?;
    let field = needs_scale(budget.value())?;
    let text = format!(
        "{} cannot count its pods: daemonsets.apps does not implement the scale subresource",
        budget.title()
    );
    let diagnostic = RULE
        .diagnostic(text)
        .at(context.survey.span(budget, &keys(&["spec", field])), "asks for the number of wanted pods")
        .see(context.survey.span(first.object, &keys(&["kind"])), "the pods are those of a DaemonSet")
        .because("a budget whose pods cannot be counted lets none of them be evicted, and stays Degraded")
        .help("leave the budget out: a drain does not evict the pods of a DaemonSet, and an update is limited by its `updateStrategy`");
    Some(RULE.finding(context, budget, diagnostic))
}

/// The field of a budget for which the controller asks a workload how many pods it wants.
fn needs_scale(budget: &Value) -> Option<&'static str> {
    if budget.at(&["spec", "maxUnavailable"]).is_some_and(|most| !most.is_null()) {
        return Some("maxUnavailable");
    }
    budget.at(&["spec", "minAvailable"])?.is_string().then_some("minAvailable")
}

/// The workloads of a cluster whose pods a budget selects; nothing where the selector cannot be read.
fn matching<'a, 'c>(
    cluster: &'c Cluster<'a>,
    budget: &'c Object,
) -> Option<impl Iterator<Item = &'c Pod<'a>>> {
    let selector = LabelSelector::from_object(budget.value().at(&["spec", "selector"])?).ok()??;
    Some(cluster.pods.iter().filter(move |pod| {
        let labels = pod.template.at(&["metadata", "labels"]).unwrap_or(&Value::Null);
        pod.object.key.namespace == budget.key.namespace && selector.matches(labels)
    }))
}

/// The one workload whose pods a budget is about, and how many there are; nothing if that cannot be told.
fn selected<'a, 'c>(cluster: &'c Cluster<'a>, budget: &'c Object) -> Option<(&'c Pod<'a>, i64)> {
    let mut pods = matching(cluster, budget)?;
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
