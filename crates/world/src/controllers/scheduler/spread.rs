//! Topology spread constraints that must hold (`whenUnsatisfiable: DoNotSchedule`).

use std::collections::BTreeMap;

use serde_json::Value;
use tiphys_schema::LabelSelector;
use tiphys_value::ObjectExt;

use super::{
    affinity,
    misfit::Misfit,
    node::{Candidate, has_untolerated_taint},
};

/// One constraint, counted out.
struct Constraint {
    key: String,
    max_skew: i64,
    /// Pods that it selects, by value of the key, over the nodes that count.
    counts: BTreeMap<String, i64>,
    least: i64,
    /// 1 if the pod itself is among those that it selects.
    own: i64,
}

/// What a pod demands.
pub(super) struct Constraints(Vec<Constraint>);

impl Constraints {
    /// Counts the pods on all nodes.
    pub(super) fn from_pod(pod: &Value, candidates: &[Candidate]) -> Self {
        let all = pod.at(&["spec", "topologySpreadConstraints"]).and_then(Value::as_array);
        let hard =
            all.into_iter().flatten().filter(|c| c.str_at(&["whenUnsatisfiable"]) != Some("ScheduleAnyway"));
        Self(hard.map(|constraint| count(constraint, pod, candidates)).collect())
    }

    /// Why the pod may not be on a node.
    pub(super) fn misfit(&self, node: &Value) -> Option<Misfit> {
        for constraint in &self.0 {
            let Some(value) = node.label(&constraint.key) else {
                let reason = "node(s) didn't match pod topology spread constraints (missing required label)";
                return Some(Misfit::lasting(reason));
            };
            let here = constraint.counts.get(value).copied().unwrap_or(0);
            if here + constraint.own - constraint.least > constraint.max_skew {
                return Some(Misfit::resolvable("node(s) didn't match pod topology spread constraints"));
            }
        }
        None
    }
}

fn count(constraint: &Value, pod: &Value, candidates: &[Candidate]) -> Constraint {
    let key = constraint.str_at(&["topologyKey"]).unwrap_or_default().to_owned();
    let selector = selector(constraint, pod);
    let selects = |other: &Value| {
        !other.is_terminating()
            && other.namespace() == pod.namespace()
            && selector
                .as_ref()
                .is_some_and(|s| s.matches(other.at(&["metadata", "labels"]).unwrap_or(&Value::Null)))
    };
    let honours_affinity = constraint.str_at(&["nodeAffinityPolicy"]) != Some("Ignore");
    let honours_taints = constraint.str_at(&["nodeTaintsPolicy"]) == Some("Honor");
    let mut counts = BTreeMap::<String, i64>::new();
    for candidate in candidates {
        let node: &Value = &candidate.node;
        let counts_here = (!honours_affinity || affinity::wants_node(pod, node))
            && (!honours_taints || !has_untolerated_taint(pod, node));
        if let Some(value) = node.label(&key).filter(|_| counts_here) {
            let here = candidate.pods.iter().filter(|other| selects(other)).count();
            *counts.entry(value.to_owned()).or_default() += here as i64;
        }
    }
    let too_few = constraint.int_at(&["minDomains"]).is_some_and(|least| (counts.len() as i64) < least);
    let least = if too_few { 0 } else { counts.values().copied().min().unwrap_or(0) };
    Constraint {
        key,
        max_skew: constraint.int_at(&["maxSkew"]).unwrap_or(1),
        counts,
        least,
        own: i64::from(selects(pod)),
    }
}

/// The constraint's selector, narrowed by the pod's own values of `matchLabelKeys`.
fn selector(constraint: &Value, pod: &Value) -> Option<LabelSelector> {
    let mut selector = LabelSelector::from_object(&constraint["labelSelector"]).ok().flatten()?;
    let keys = constraint.get("matchLabelKeys").and_then(Value::as_array).into_iter().flatten();
    for key in keys.filter_map(Value::as_str) {
        if let Some(value) = pod.label(key) {
            let labels = serde_json::json!({key: value});
            selector.0.extend(LabelSelector::from_labels(&labels).0);
        }
    }
    Some(selector)
}
