//! Preemption: which less important pods have to leave a node so that a pod fits there
//! (Kubernetes documentation, "Pod Priority and Preemption").

use std::{cmp::Reverse, sync::Arc};

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{
    affinity::PodTerms, misfit::Misfit, node::Candidate, requests::Amounts, spread::Constraints,
    volumes::Volumes,
};
use crate::{
    Event, Reporter, View, Write,
    controller::Context,
    controllers::workload::delete_pod,
    labels::selects,
    object::{condition, resources, set_condition, status_of, with_status},
};

const REASON: &str = "PreemptionByScheduler";
/// What a priority is raised by before priorities are added up, so that every victim counts.
const SHIFT: i64 = 1 << 31;

/// A pod that fits nowhere as things are.
pub(super) struct Preemption<'a> {
    /// The pod.
    pub pod: &'a Arc<Object>,
    /// What it asks for.
    pub wanted: &'a Amounts,
    /// Its claims.
    pub volumes: &'a Volumes,
    /// Every node.
    pub candidates: &'a [Candidate],
    /// The cluster.
    pub view: &'a View<'a>,
}

/// What preemption comes to.
pub(super) enum Verdict {
    /// These pods leave the node for the pod.
    Victims {
        /// The node's place among the candidates.
        at: usize,
        /// Who leaves, the most important first.
        victims: Vec<Arc<Object>>,
    },
    /// Pods are leaving the node already.
    Underway,
    /// The misfits after preemption was tried, one for each node.
    Helpless(Vec<String>),
}

/// What taking pods off one node would cost, the lower the better.
type Cost = (usize, i64, i64, usize, Reverse<String>);

impl Preemption<'_> {
    /// Looks for the node where the least is lost.
    pub(super) fn find(&self, misfits: &[Misfit]) -> Verdict {
        if self.is_underway() {
            return Verdict::Underway;
        }
        let mut reasons = Vec::new();
        let mut best: Option<(Cost, usize, Vec<Arc<Object>>)> = None;
        for (at, misfit) in misfits.iter().enumerate() {
            if !misfit.is_resolvable {
                reasons.push("Preemption is not helpful for scheduling".to_owned());
                continue;
            }
            match self.victims(at) {
                Err(why) => reasons.extend(why),
                Ok((violations, victims)) => {
                    let cost = cost(violations, &victims);
                    if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
                        best = Some((cost, at, victims));
                    }
                }
            }
        }
        match best {
            Some((_, at, victims)) => Verdict::Victims { at, victims },
            None => Verdict::Helpless(reasons),
        }
    }

    /// Whether pods are already leaving the node that was chosen before.
    fn is_underway(&self) -> bool {
        let Some(node) = nominated(self.pod) else { return false };
        let there = self.candidates.iter().find(|candidate| candidate.node.name() == node);
        there.is_some_and(|candidate| {
            candidate.pods.iter().any(|other| {
                let is_victim = condition(other, "DisruptionTarget").is_some_and(|c| c["reason"] == REASON);
                other.is_terminating() && is_victim && priority(other) < priority(self.pod)
            })
        })
    }

    /// The fewest less important pods without which the pod fits on a node, and how many disruption budgets
    /// that violates; an error says why it would not fit even without all of them.
    fn victims(&self, at: usize) -> Result<(usize, Vec<Arc<Object>>), Vec<String>> {
        let own = priority(self.pod);
        if self.candidates[at].lowest_priority >= own {
            return Err(vec!["No preemption victims found for incoming pod".to_owned()]);
        }
        let (mut lower, mut kept): (Vec<_>, Vec<_>) =
            self.candidates[at].pods.iter().cloned().partition(|other| priority(other) < own);
        if let Some(misfit) = self.misfit_among(at, &kept) {
            return Err(misfit.reasons);
        }
        lower.sort_by_cached_key(|other| (Reverse(priority(other)), started(other)));
        let (violating, others) = self.by_budget(lower);
        let mut victims = Vec::new();
        let mut violations = 0;
        let all = violating.into_iter().map(|pod| (pod, 1)).chain(others.into_iter().map(|pod| (pod, 0)));
        for (other, violation) in all {
            kept.push(other);
            if self.misfit_among(at, &kept).is_some() {
                victims.extend(kept.pop());
                violations += violation;
            }
        }
        victims.sort_by_cached_key(|other| (Reverse(priority(other)), started(other)));
        Ok((violations, victims))
    }

    /// Why the pod would not fit on a node that has only these pods.
    fn misfit_among(&self, at: usize, pods: &[Arc<Object>]) -> Option<Misfit> {
        let node = &self.candidates[at].node;
        let trial = Candidate::with(node, pods);
        if let Some(misfit) =
            trial.misfit(self.pod, self.wanted).or_else(|| self.volumes.misfit(node, self.view))
        {
            return Some(misfit);
        }
        let mut all = self.candidates.to_vec();
        all[at] = trial;
        let spread = Constraints::from_pod(self.pod, &all).misfit(node);
        spread.or_else(|| PodTerms::from_pod(self.pod, &all, self.view).misfit(node))
    }

    /// Parts pods into those whose going a disruption budget forbids and the others; every going counts.
    fn by_budget(&self, pods: Vec<Arc<Object>>) -> (Vec<Arc<Object>>, Vec<Arc<Object>>) {
        let budgets = self.view.list(&resources::disruption_budgets(), None);
        let mut allowed: Vec<_> = budgets
            .iter()
            .map(|budget| budget.int_at(&["status", "disruptionsAllowed"]).unwrap_or(0))
            .collect();
        pods.into_iter().partition(|pod| {
            let mut violates = false;
            for (budget, left) in budgets.iter().zip(&mut allowed) {
                let is_selected = budget.namespace() == pod.namespace()
                    && selects(budget.at(&["spec", "selector"]), pod)
                    && budget.at(&["status", "disruptedPods", pod.name()]).is_none();
                if is_selected {
                    *left -= 1;
                    violates |= *left < 0;
                }
            }
            violates
        })
    }
}

fn cost(violations: usize, victims: &[Arc<Object>]) -> Cost {
    let highest = victims.iter().map(|victim| priority(victim)).max().unwrap_or(i64::MIN);
    let sum = victims.iter().map(|victim| priority(victim).saturating_add(SHIFT)).sum();
    let of_highest = victims.iter().filter(|victim| priority(victim) == highest);
    let earliest = of_highest.map(|victim| started(victim)).min().unwrap_or_default();
    (violations, highest, sum, victims.len(), Reverse(earliest))
}

/// A pod's priority.
pub(super) fn priority(pod: &Value) -> i64 {
    pod.int_at(&["spec", "priority"]).unwrap_or(0)
}

/// The node on which room is being made for a pod.
pub(super) fn nominated(pod: &Value) -> Option<&str> {
    pod.str_at(&["status", "nominatedNodeName"]).filter(|node| !node.is_empty())
}

/// When a pod started; a pod that has not started counts as the youngest.
fn started(pod: &Value) -> String {
    pod.str_at(&["status", "startTime"]).unwrap_or("9999").to_owned()
}

/// Takes a victim away and says for whom.
pub(super) fn evict(victim: &Arc<Object>, pod: &Value, node: &str, context: &Context<'_>) -> Vec<Write> {
    if victim.is_terminating() {
        return Vec::new();
    }
    let scheduler = pod.str_at(&["spec", "schedulerName"]).unwrap_or("default-scheduler");
    let mut status = status_of(victim);
    let mut target = json!({
        "type": "DisruptionTarget", "status": "True", "lastProbeTime": null, "reason": REASON,
        "message": format!("{scheduler}: preempting to accommodate a higher priority pod"),
    });
    if victim.generation() > 0 {
        target["observedGeneration"] = victim.generation().into();
    }
    set_condition(&mut status, target, context.now);
    let marked = with_status(victim, status.into());
    let marked = marked.map(|object| Write::UpdateStatus { resource: resources::pods(), object });
    let message = format!("Preempted by pod {} on node {node}", pod.uid());
    let told = Event::normal(victim, Reporter::Scheduler, "Preempted", message);
    marked.into_iter().chain([delete_pod(victim), told.into()]).collect()
}
