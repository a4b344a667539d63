//! Faults that somebody puts in on purpose: experiments of Chaos Mesh that are under way. Nothing else tells
//! of them, since pods and policies look as ever.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    cluster::{condition, has_condition, items, selector, time},
    finding::Finding,
    search_context::Look,
};

/// Kinds of experiments, and what they do to the pods that they select.
const KINDS: &[(&str, Cause, &str)] = &[
    ("NetworkChaos", Cause::NetDegraded, "disturbs the network of"),
    ("DNSChaos", Cause::DnsConfig, "disturbs the lookups of"),
    ("StressChaos", Cause::RunSaturated, "takes processor time and memory from"),
    ("PodChaos", Cause::RunExits, "ends"),
    ("IOChaos", Cause::VolumeMount, "disturbs the files of"),
    ("HTTPChaos", Cause::NetDegraded, "disturbs the requests of"),
];
/// Seconds by which something may be known to be red before its experiment is.
const BEFORE: i64 = 120;

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let all = KINDS.iter().flat_map(|(kind, cause, what)| {
        look.cluster.all(kind).iter().map(move |live| (*live, *cause, *what))
    });
    let under_way = all.filter(|(live, ..)| is_under_way(live));
    under_way.filter_map(|(live, cause, what)| experiment(look, live, cause, what)).collect()
}

/// Whether an experiment has been put in, and not been taken back.
fn is_under_way(live: &Value) -> bool {
    live.api_version().starts_with("chaos-mesh.org/")
        && has_condition(live, "AllInjected", "True")
        && !has_condition(live, "AllRecovered", "True")
        && !has_condition(live, "Paused", "True")
}

/// The pods that a selector of an experiment means.
fn selected<'a>(look: &Look<'a>, live: &Value, path: &[&str]) -> Vec<&'a Value> {
    let Some(selector) = live.at(path) else { return Vec::new() };
    let namespaces: Vec<&str> = items(selector, &["namespaces"]).filter_map(Value::as_str).collect();
    let wanted = selector.get("labelSelectors").and_then(Value::as_object);
    let is_meant = |pod: &&&Value| {
        let is_in = match namespaces.as_slice() {
            [] => pod.namespace() == live.namespace(),
            _ => namespaces.contains(&pod.namespace()),
        };
        is_in && wanted.is_none_or(|wanted| selector::has_all(selector::labels(pod), wanted))
    };
    look.cluster.all("Pod").iter().filter(is_meant).copied().collect()
}

/// An experiment that somebody suffers from.
fn experiment(look: &Look<'_>, live: &Value, cause: Cause, what: &str) -> Option<Finding> {
    let object = Object::from_live(live);
    let since = condition(live, "AllInjected").and_then(|it| time(it, &["lastTransitionTime"]));
    let since = since.or_else(|| time(live, &["metadata", "creationTimestamp"]));
    let is_later = |ill: Option<jiff::Timestamp>| match (ill, since) {
        (Some(ill), Some(since)) => ill.as_second() + BEFORE >= since.as_second(),
        _ => true,
    };
    let pods = selected(look, live, &["spec", "selector"]);
    let others = selected(look, live, &["spec", "target", "selector"]);
    let mut touched: Vec<Object> = Vec::new();
    for pod in pods.iter().chain(&others) {
        let workload = look.cluster.workload(pod);
        if !touched.contains(&workload) {
            touched.push(workload);
        }
    }
    // Who calls what is cut off is red, and what is cut off may look well.
    let services = look.cluster.all("Service").iter().filter(|service| {
        let behind = look.cluster.pods_of(service);
        behind.iter().any(|pod| touched.contains(&look.cluster.workload(pod)))
    });
    let callers = services.flat_map(|service| look.callers_of(&Object::from_live(service)).to_vec());
    let callers: Vec<Object> = callers.collect();
    let hit: Vec<&crate::search_context::Ill<'_>> = look
        .ill
        .iter()
        .filter(|ill| {
            (touched.contains(&ill.workload) || callers.contains(&ill.workload)) && is_later(ill.since)
        })
        .collect();
    let first = hit.first()?;
    let whom = touched.first().unwrap_or(&first.workload);
    let summary = format!("{object} is under way, and {what} {whom}");
    let action = live.str_at(&["spec", "action"]).unwrap_or_default();
    let finding = Finding::new(cause, object.clone(), 0.92, summary)
        .since(since)
        .evidence(object.to_string(), format!("AllInjected, not recovered; action: {action}"))
        .remedy("Pause or delete the experiment.", &[object.kubectl("delete")]);
    Some(hit.into_iter().fold(finding, |finding, ill| {
        let finding = finding.suffers(ill.workload.clone(), "is part of the experiment");
        ill.pods.iter().fold(finding, |finding, pod| finding.suffers(Object::from_live(pod), "is not well"))
    }))
}
