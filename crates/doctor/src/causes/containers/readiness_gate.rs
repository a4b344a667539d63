//! Pods whose containers are ready and that wait for a readiness gate: its controller tells why.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    causes::operator::{by_words, denial, words},
    cluster::{condition, condition_text, has_condition, items},
    finding::Finding,
    search_context::{Ill, Look},
};

/// Why the pods of a workload wait for a gate.
pub(super) fn gated(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let (pod, gate) = ill.pods.iter().find_map(|pod| Some((*pod, closed_gate(pod)?)))?;
    let object = Object::from_live(pod);
    let told = condition(pod, gate).map(condition_text).filter(|words| !words.is_empty());
    let told = told.or_else(|| condition(pod, "Ready").map(condition_text)).unwrap_or_default();
    // GROUP/NAME: whose gate it is, and for what.
    let (group, name) = gate.split_once('/').unwrap_or((gate, ""));
    let controllers = by_words(look, &words(group));
    if let Some(finding) = denial(look, &controllers, name) {
        return Some(finding.evidence(object.to_string(), told));
    }
    let finding = Finding::new(
        Cause::RunReadiness,
        ill.workload.clone(),
        0.6,
        format!("{} is not ready; it waits for the readiness gate {gate}", ill.workload),
    )
    .field("spec.template.spec.readinessGates")
    .evidence(object.to_string(), told)
    .remedy("Find out why the controller of the gate does not set its condition.", &[])
    .shallow();
    Some(controllers.into_iter().fold(finding, Finding::below))
}

/// The gate that keeps a pod from being ready while its containers are.
fn closed_gate(pod: &Value) -> Option<&str> {
    let mut gates = items(pod, &["spec", "readinessGates"]).filter_map(|it| it.str_at(&["conditionType"]));
    let is_open = |gate: &&str| !has_condition(pod, gate, "True");
    gates.find(is_open).filter(|_| has_condition(pod, "ContainersReady", "True"))
}
