//! Disruption budgets that forbid an eviction that somebody asked for.

use tiphys_cause::{Cause, EvictionRefusal, eviction_refusal};
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Event, Object,
    cluster::{condition_text, conditions, items, selector},
    finding::Finding,
    search_context::Look,
};

/// A refused eviction, and who tells of it.
struct ReportedRefusal<'a> {
    refusal: EvictionRefusal,
    about: Object,
    source: String,
    text: &'a str,
}

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let reported =
        reported_by_events(look).chain(reported_by_conditions(look)).chain(reported_by_drainers(look));
    let mut found: Vec<Finding> = reported.filter_map(|it| fault(look, &it)).collect();
    // Who drains tells which budget hinders; others on the node may not matter.
    if found.is_empty() {
        found = undeletable(look);
    }
    found
}

/// Nodes that somebody wants to delete, with pods that no budget lets go: nobody needs to tell of it.
fn undeletable(look: &Look<'_>) -> Vec<Finding> {
    let nodes = look
        .cluster
        .all("Node")
        .iter()
        .filter(|node| node.is_terminating() && look.is_red(&Object::from_live(node)));
    let found = nodes.flat_map(|node| {
        let about = Object::from_live(node);
        of_deleted_node(look, node).into_iter().map(move |budget| {
            let refusal = EvictionRefusal {
                budget: Some((budget.namespace.clone(), budget.name.clone())),
                is_of_several: has_room(look, &budget),
                ..EvictionRefusal::default()
            };
            let source = format!("{about}, metadata.deletionTimestamp");
            ReportedRefusal { refusal, about: about.clone(), source, text: "pods of the budget run on it" }
        })
    });
    found.filter_map(|it| fault(look, &it)).collect()
}

fn has_room(look: &Look<'_>, budget: &Object) -> bool {
    let live = look.cluster.live(budget);
    live.and_then(|live| live.int_at(&["status", "disruptionsAllowed"])).is_some_and(|room| room > 0)
}

fn reported_by_events<'a>(look: &'a Look<'_>) -> impl Iterator<Item = ReportedRefusal<'a>> {
    let recent = |event: &&Event| {
        event.last.and_then(|time| look.cluster.seconds_since(time)).is_none_or(|age| age < 3600)
    };
    look.cluster.case.events.iter().filter(recent).filter_map(|event| {
        let refusal = eviction_refusal(&event.message)?;
        let is_meant = event.object.kind == "Pod" || is_drained(look, &event.object);
        is_meant.then(|| ReportedRefusal {
            refusal,
            about: event.object.clone(),
            source: format!("Event of {}", event.object),
            text: &event.message,
        })
    })
}

/// What waits for a drain says so in its conditions.
fn reported_by_conditions<'a>(look: &'a Look<'_>) -> impl Iterator<Item = ReportedRefusal<'a>> {
    let open = look.red.keys().filter_map(|object| look.cluster.live(object));
    open.flat_map(|live| conditions(live).map(move |condition| (live, condition))).filter_map(
        |(live, condition)| {
            let text = condition.str_at(&["message"])?;
            let about = Object::from_live(live);
            let source = format!("{about}, condition {}", condition.str_at(&["type"]).unwrap_or_default());
            Some(ReportedRefusal { refusal: eviction_refusal(text)?, about, source, text })
        },
    )
}

/// A program that drains, and does not get on, logs the pod that stays.
fn reported_by_drainers<'a>(look: &'a Look<'_>) -> impl Iterator<Item = ReportedRefusal<'a>> {
    look.cluster.case.logs.iter().filter_map(|log| {
        let pod = Object::new("Pod", &log.namespace, &log.pod);
        if !look.is_red(&pod) {
            return None;
        }
        let (text, refusal) = log.last_lines().find_map(|line| Some((line, eviction_refusal(line)?)))?;
        // Without the pod's name nothing tells whose budget it is.
        refusal.pod.as_ref()?;
        let about = look.cluster.live(&pod).map_or(pod, |live| look.cluster.workload(live));
        Some(ReportedRefusal { refusal, about, source: log.source(), text })
    })
}

/// Whether somebody empties a node: those who only look for a cheaper one say so all the time.
fn is_drained(look: &Look<'_>, object: &Object) -> bool {
    const TAINTS: &[&str] =
        &["karpenter.sh/disrupted", "karpenter.sh/disruption", "node.kubernetes.io/unschedulable"];
    let Some(live) = look.cluster.live(object) else { return false };
    let is_tainted = items(live, &["spec", "taints"])
        .filter_map(|taint| taint.str_at(&["key"]))
        .any(|key| TAINTS.contains(&key));
    live.is_terminating()
        || is_tainted
        || live.at(&["spec", "unschedulable"]).and_then(Value::as_bool) == Some(true)
        || node_of(live).filter(|node| node != object).is_some_and(|node| is_drained(look, &node))
}

/// The node that a resource stands for: itself, or the one that it names.
fn node_of(live: &Value) -> Option<Object> {
    let paths: [&[&str]; 4] = [
        &["spec", "nodeName"],
        &["status", "nodeName"],
        &["status", "nodeRef", "name"],
        &["spec", "nodeRef", "name"],
    ];
    let named = || paths.iter().find_map(|path| live.str_at(path));
    let name = if live.kind() == "Node" { Some(live.name()) } else { named() };
    name.map(|name| Object::new("Node", "", name))
}

/// The budgets without room for which the pods of a node wait that somebody wants to delete.
pub(crate) fn of_deleted_node(look: &Look<'_>, live: &Value) -> Vec<Object> {
    let Some(node) = node_of(live).filter(|_| live.kind() != "Pod") else { return Vec::new() };
    let on_node = look
        .cluster
        .all("Pod")
        .iter()
        .filter(|pod| pod.str_at(&["spec", "nodeName"]) == Some(node.name.as_str()));
    let mut found: Vec<Object> = Vec::new();
    for budget in on_node.filter_map(|pod| full_budget(look, pod)) {
        let budget = Object::from_live(budget);
        if !found.contains(&budget) {
            found.push(budget);
        }
    }
    found
}

/// The budget that selects a pod and has no room, or the first of several that select it: of a pod with
/// several budgets the API refuses every eviction.
fn full_budget<'a>(look: &Look<'a>, pod: &Value) -> Option<&'a Value> {
    let selects = |budget: &&Value| {
        budget.namespace() == pod.namespace()
            && budget.at(&["spec", "selector"]).is_some_and(|it| selector::matches(it, selector::labels(pod)))
    };
    let of_pod: Vec<&Value> =
        look.cluster.all("PodDisruptionBudget").iter().copied().filter(selects).collect();
    let full = of_pod.iter().find(|budget| budget.int_at(&["status", "disruptionsAllowed"]) == Some(0));
    full.copied().or_else(|| of_pod.iter().copied().filter(|_| of_pod.len() > 1).min_by_key(|it| it.name()))
}

/// The budget that a refusal is about; a name alone if it was not saved.
fn budget_of(look: &Look<'_>, reported: &ReportedRefusal<'_>) -> Option<Object> {
    let EvictionRefusal { budget, pod, .. } = &reported.refusal;
    let pod = match pod {
        Some((namespace, name)) => Object::new("Pod", namespace, name),
        None => reported.about.clone(),
    };
    let pod_namespace = if pod.kind == "Pod" { pod.namespace.as_str() } else { "" };
    if let Some((namespace, name)) = budget {
        let is_named =
            |it: &&&Value| it.name() == name && [namespace.as_str(), pod_namespace].contains(&it.namespace());
        let mut all = look.cluster.all("PodDisruptionBudget").iter();
        let live = all.find(is_named).map(|live| Object::from_live(live));
        let namespace = if namespace.is_empty() { pod_namespace } else { namespace };
        return live.or_else(|| {
            (!namespace.is_empty()).then(|| Object::new("PodDisruptionBudget", namespace, name))
        });
    }
    let of_pod = look.cluster.live(&pod).filter(|live| live.kind() == "Pod");
    if let Some(budget) = of_pod.and_then(|pod| full_budget(look, pod)) {
        return Some(Object::from_live(budget));
    }
    let of_node =
        look.cluster.live(&reported.about).map(|live| of_deleted_node(look, live)).unwrap_or_default();
    <[Object; 1]>::try_from(of_node).ok().map(|[only]| only)
}

fn fault(look: &Look<'_>, reported: &ReportedRefusal<'_>) -> Option<Finding> {
    let object = budget_of(look, reported)?;
    let live = look.cluster.live(&object);
    let is_of_several = reported.refusal.is_of_several;
    if has_room(look, &object) && !is_of_several {
        return None;
    }
    let summary = if is_of_several {
        format!("{object} and another budget select the same pods, so none of them can be evicted")
    } else {
        format!("{object} allows no disruption, so no pod can be evicted")
    };
    let mut finding = Finding::new(Cause::ScaleBudget, object.clone(), 0.9, summary)
        .field("spec")
        .evidence(reported.source.clone(), reported.text)
        .suffers(reported.about.clone(), "cannot be evicted")
        .remedy(
            if is_of_several {
                "Leave one budget for each pod."
            } else {
                "Run one more replica than the budget demands, or relax the budget."
            },
            &[],
        );
    let pod = look.cluster.live(&reported.about).and_then(node_of).filter(|node| is_drained(look, node));
    finding = pod.into_iter().fold(finding, |finding, node| finding.suffers(node, "cannot be emptied"));
    let Some(live) = live else { return Some(finding) };
    let spec = live.get("spec").map(ToString::to_string).unwrap_or_default();
    let room = live.int_at(&["status", "disruptionsAllowed"]).unwrap_or(0);
    finding = finding.evidence(object.to_string(), format!("{spec}, disruptionsAllowed {room}"));
    finding = conditions(live)
        .fold(finding, |finding, it| finding.evidence(object.to_string(), condition_text(it)));
    // A budget has no room while its pods are ill: they come first.
    let wanted = live.at(&["spec", "selector"]).cloned().unwrap_or_default();
    let ill = look.cluster.pods_in(&object.namespace).iter().filter(|pod| {
        selector::matches(&wanted, selector::labels(pod)) && look.is_red(&Object::from_live(pod))
    });
    Some(ill.fold(finding, |finding, pod| finding.below(Object::from_live(pod))))
}
