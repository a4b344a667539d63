//! The scheduler: puts pods on nodes, the most important first, and says why one fits nowhere
//! (Kubernetes documentation, "Scheduling, Preemption and Eviction").

mod affinity;
mod misfit;
mod node;
mod preemption;
mod requests;
mod spread;
mod volumes;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

pub(super) use self::{
    affinity::wants_node,
    node::{has_untolerated_taint, is_driven_away, share_host_port, wants_host_port},
};
use self::{
    misfit::Misfit,
    node::Candidate,
    preemption::{Preemption, Verdict, nominated, priority},
    requests::requests,
};
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    object::{condition, resources, set_condition, status_of, with_status},
};

/// How long pods that fit nowhere are left alone after they were told so: the scheduler's first pause. Where
/// nodes join one after the other, or pods go, each of a thousand waiting pods would be told of each of them.
const PAUSE: Duration = Duration::from_secs(1);

/// The key of the pods that were told that they fit nowhere. Nobody looks at them again but for an event.
const REFUSED: &str = "refused";

/// Puts pods on nodes. One key stands for all pods that are new or for which others leave, another one for
/// all that wait.
pub(super) struct Scheduler;

impl Controller for Scheduler {
    fn name(&self) -> &'static str {
        "scheduler"
    }

    fn manager(&self) -> &'static str {
        "kube-scheduler"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        let is_waiting = || view.pod_count("") > 0;
        let refused = || Key { namespace: String::new(), name: REFUSED.to_owned() };
        let is_relevant = if change.resource == resources::pods() {
            let is_over = matches!(change.object.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"));
            let is_free = change.object.str_at(&["spec", "nodeName"]).is_none_or(str::is_empty);
            if is_free && !change.is_deleted {
                return vec![if is_refused(&change.object) { refused() } else { Key::default() }];
            }
            (is_over || change.is_deleted) && is_waiting()
        } else {
            let watched =
                [resources::nodes(), resources::claims(), resources::volumes(), resources::storage_classes()];
            watched.contains(&change.resource) && is_waiting()
        };
        if is_relevant { vec![Key::default(), refused()] } else { Vec::new() }
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let view = context.view;
        let is_looked_at = |pod: &Value| is_mine(pod) && (key.name == REFUSED || !is_refused(pod));
        let mut waiting: Vec<_> = view.pods_on("").into_iter().filter(|pod| is_looked_at(pod)).collect();
        if waiting.is_empty() {
            return Outcome::done();
        }
        waiting.sort_by_cached_key(|pod| {
            let created = pod.str_at(&["metadata", "creationTimestamp"]).unwrap_or_default().to_owned();
            (-priority(pod), nominated(pod).is_none(), created, Key::from_object(pod))
        });
        let nodes = view.list(&resources::nodes(), None);
        let mut candidates: Vec<_> = nodes.iter().map(|node| Candidate::new(node, view)).collect();
        let mut writes = Vec::new();
        let mut has_refused = false;
        for pod in &waiting {
            let placement = place(pod, &mut candidates, context);
            has_refused |= placement.is_refusal && !placement.writes.is_empty();
            writes.extend(placement.writes);
            // What the victims leave free is not there yet: the other pods are looked at once they are going.
            if placement.is_preempting {
                return writes.into();
            }
        }
        match has_refused && key.name == REFUSED {
            true => Outcome::from(writes).resting(PAUSE),
            false => writes.into(),
        }
    }
}

/// Whether a pod was told that it fits nowhere, and no pods leave a node for it.
fn is_refused(pod: &Value) -> bool {
    nominated(pod).is_none()
        && condition(pod, "PodScheduled")
            .is_some_and(|told| told["status"] == "False" && told["reason"] == UNSCHEDULABLE)
}

fn is_mine(pod: &Value) -> bool {
    let scheduler = pod.str_at(&["spec", "schedulerName"]).unwrap_or("default-scheduler");
    let is_over = matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"));
    scheduler == "default-scheduler" && !pod.is_terminating() && !is_over
}

/// What is done about one pod.
struct Placement {
    writes: Vec<Write>,
    is_preempting: bool,
    is_refusal: bool,
}

impl From<Vec<Write>> for Placement {
    fn from(writes: Vec<Write>) -> Self {
        Self { writes, is_preempting: false, is_refusal: false }
    }
}

/// Puts one pod on the best node that takes it.
fn place(pod: &Arc<Object>, candidates: &mut [Candidate], context: &Context<'_>) -> Placement {
    let gates = pod.at(&["spec", "schedulingGates"]).and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        let message = "Scheduling is blocked due to non-empty scheduling gates";
        return refuse(pod, "SchedulingGated", message, None, context).into();
    }
    let volumes = match volumes::claimed_volumes(pod, context.view) {
        Ok(volumes) => volumes,
        Err(why) => return unschedulable(pod, &before_any_node(&why, candidates.len()), context),
    };
    let wanted = requests(pod);
    let spread = spread::Constraints::from_pod(pod, candidates);
    let affinity = affinity::PodTerms::from_pod(pod, candidates, context.view);
    let mut misfits = Vec::new();
    let mut best: Option<(usize, (i64, usize, usize))> = None;
    for (at, candidate) in candidates.iter().enumerate() {
        let misfit = candidate
            .misfit(pod, &wanted)
            .or_else(|| volumes.misfit(&candidate.node, context.view))
            .or_else(|| spread.misfit(&candidate.node))
            .or_else(|| affinity.misfit(&candidate.node));
        match misfit {
            Some(misfit) => misfits.push(misfit),
            None => {
                let score = candidate.score(pod, affinity.preference(&candidate.node));
                if best.as_ref().is_none_or(|(_, lowest)| score < *lowest) {
                    best = Some((at, score));
                }
            }
        }
    }
    let Some((at, _)) = best else {
        let preemption =
            Preemption { pod, wanted: &wanted, volumes: &volumes, candidates, view: context.view };
        let placement = no_place(&preemption, &misfits, context);
        // What is being made free for the pod is for nobody who is less important.
        let chosen = nominated(pod);
        if let Some(candidate) = candidates.iter_mut().find(|c| Some(c.node.name()) == chosen) {
            candidate.take(pod, &wanted);
        }
        return placement;
    };
    let node = candidates[at].node.name().to_owned();
    if volumes.are_waiting() {
        return volumes.select(&node, context.view).into();
    }
    candidates[at].take(pod, &wanted);
    let message = format!("Successfully assigned {}/{} to {node}", pod.namespace(), pod.name());
    vec![
        Write::Bind { key: Key::from_object(pod), node },
        Event::normal(pod, Reporter::Scheduler, "Scheduled", message).into(),
    ]
    .into()
}

/// What is done about a pod that fits on no node: others leave for it, or it is told why it waits.
fn no_place(preemption: &Preemption<'_>, misfits: &[Misfit], context: &Context<'_>) -> Placement {
    let (pod, candidates) = (preemption.pod, preemption.candidates);
    let failed = no_node(misfits, candidates.len());
    if candidates.is_empty() {
        return unschedulable(pod, &failed, context);
    }
    if pod.str_at(&["spec", "preemptionPolicy"]) == Some("Never") {
        let message =
            format!("{failed} {NO_CLAIMS}, preemption: not eligible due to preemptionPolicy=Never.");
        return unschedulable(pod, &message, context);
    }
    match preemption.find(misfits) {
        Verdict::Underway => Vec::new().into(),
        Verdict::Helpless(reasons) => {
            let message = format!("{failed} {}", helpless(&reasons, candidates.len()));
            unschedulable(pod, &message, context)
        }
        Verdict::Victims { at, victims } => {
            let node = candidates[at].node.name();
            let mut writes: Vec<_> =
                victims.iter().flat_map(|victim| preemption::evict(victim, pod, node, context)).collect();
            writes.extend(refuse(pod, UNSCHEDULABLE, &failed, Some(node), context));
            writes.push(Event::warning(pod, Reporter::Scheduler, "FailedScheduling", failed).into());
            Placement { writes, is_preempting: true, is_refusal: false }
        }
    }
}

/// The reason of the condition of a pod that fits nowhere.
const UNSCHEDULABLE: &str = "Unschedulable";

fn unschedulable(pod: &Value, message: &str, context: &Context<'_>) -> Placement {
    let mut writes = refuse(pod, UNSCHEDULABLE, message, None, context);
    if !writes.is_empty() {
        writes.push(Event::warning(pod, Reporter::Scheduler, "FailedScheduling", message).into());
    }
    Placement { writes, is_preempting: false, is_refusal: true }
}

/// Says in the pod's status why it waits, and for which node, if it does not say so already.
fn refuse(pod: &Value, reason: &str, message: &str, node: Option<&str>, context: &Context<'_>) -> Vec<Write> {
    let mut status = status_of(pod);
    let condition = json!({
        "type": "PodScheduled", "status": "False", "lastProbeTime": null, "reason": reason, "message": message,
    });
    set_condition(&mut status, condition, context.now);
    match node {
        Some(node) => status.insert("nominatedNodeName".into(), node.into()),
        None => status.remove("nominatedNodeName"),
    };
    let changed = with_status(pod, status.into());
    changed.map(|object| Write::UpdateStatus { resource: resources::pods(), object }).into_iter().collect()
}

/// What the plugin for dynamic resources has to say about every pod.
const NO_CLAIMS: &str = "no new claims to deallocate";

/// The message when a pod fits on no node whatever the nodes are.
///
/// Preemption looks for the node's verdict then and finds none, which Kubernetes 1.36 adds in these words.
fn before_any_node(why: &str, nodes: usize) -> String {
    format!("0/{nodes} nodes are available: {why}. not found")
}

/// The message when no node fits: how many nodes for which reason, in the scheduler's form.
fn no_node(misfits: &[Misfit], nodes: usize) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let counted = histogram(misfits.iter().flat_map(|misfit| misfit.reasons.iter().map(String::as_str)));
    format!("0/{nodes} nodes are available: {counted}.")
}

/// What follows when nobody's leaving would help.
fn helpless(reasons: &[String], nodes: usize) -> String {
    let counted = histogram(reasons.iter().map(String::as_str));
    format!("{NO_CLAIMS}, preemption: 0/{nodes} nodes are available: {counted}.")
}

/// `2 this, 1 that`, sorted as texts.
fn histogram<'a>(reasons: impl Iterator<Item = &'a str>) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for reason in reasons {
        *counts.entry(reason).or_default() += 1;
    }
    let mut texts: Vec<_> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    texts.sort();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_many_nodes_for_which_reason() {
        let taint = Misfit::lasting("node(s) had untolerated taint(s)");
        let cpu = Misfit::resolvable("Insufficient cpu");
        assert_eq!(
            no_node(&[taint, cpu.clone(), cpu], 3),
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
        );
    }
}
