//! Resources that their operator never looked at, or not since they were changed.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use super::{
    condition_words::{is_denied, own_complaint},
    failed_calls::telling_line,
    lookup::{has_no_status, is_waiting},
};
use crate::{
    Object, address_target::Target, cluster::pods, dependencies, finding::Finding, log_evidence::Fact,
    search_context::Look,
};

/// Whether somebody calls a Service that is not there and would be named after a resource.
fn is_called(look: &Look<'_>, object: &Object) -> bool {
    let calls = look.ill.iter().flat_map(|ill| ill.facts.iter().map(move |fact| (ill, fact)));
    let mut calls = calls.filter_map(|(ill, fact)| match &fact.fact {
        Fact::Call(call) => Some((ill, call)),
        _ => None,
    });
    calls.any(|(ill, call)| {
        call.targets.iter().any(|address| match look.cluster.target(address, ill.namespace()) {
            Target::Absent { namespace, name } => {
                namespace == object.namespace && name.starts_with(&object.name)
            }
            _ => false,
        })
    })
}

/// A resource that its operator never looked at, or not since it was changed.
pub(super) fn unattended(look: &Look<'_>, live: &Value, operators: &[Object]) -> Option<Finding> {
    if !is_waiting(look, live) || look.cluster.age(live) < 600 {
        return None;
    }
    let object = Object::from_live(live);
    let ill: Vec<&Object> = operators
        .iter()
        .filter(|it| look.is_red(it) || look.ill.iter().any(|ill| ill.workload == **it))
        .collect();
    let never = has_no_status(live);
    // Whoever rests needs no status: while nothing is red beside it, nobody misses it.
    let is_missed = look
        .red
        .keys()
        .any(|red| red.namespace == object.namespace && *red != object || object.namespace.is_empty());
    let told = || telling_line(look, live, operators);
    if let Some((source, line)) = never.then(told).flatten().filter(|_| ill.is_empty()) {
        let own = own_complaint(&line).map(|it| it.cause).unwrap_or(Cause::OperatorCloudCredentials);
        let cause = if is_denied(&line) { Cause::OperatorCloudCredentials } else { own };
        let what = format!("{object} has no status: its operator fails, as its log says");
        let finding = Finding::new(cause, object.clone(), 0.75, what)
            .evidence(source, line)
            .remedy("Correct what the line of the log names.", &[]);
        return Some(dependencies::upstream(look.cluster, &object).into_iter().fold(finding, Finding::below));
    }
    if ill.is_empty() && !is_missed && !is_called(look, &object) {
        return None;
    }
    if ill.is_empty() {
        // An operator that works may leave a kind alone.
        let is_absent = operators.is_empty()
            && never
            && look.cluster.has_kind("Deployment")
            && look.cluster.all("Deployment").len() > 2
            && !hides_operator(look);
        let confidence = match (is_absent, is_called(look, &object)) {
            (true, true) => 0.8,
            (true, false) => 0.45,
            _ => 0.3,
        };
        let what =
            if is_absent { "no operator for it was found" } else { "its operator does not look at it" };
        return never.then(|| {
            Finding::new(
                Cause::OperatorDown,
                object.clone(),
                confidence,
                format!("{object} has no status: {what}"),
            )
            .evidence(object.to_string(), "it has no status")
            .remedy("Install the operator of its kind, or let it watch this namespace.", &[])
            .shallow()
        });
    }
    // Why an operator does not work is told by its pods.
    let confidence = if look.cluster.has_kind("Pod") { 0.6 } else { 0.45 };
    let finding = Finding::new(
        Cause::OperatorDown,
        ill[0].clone(),
        confidence,
        format!("{} does not work, and {object} waits for it", ill[0]),
    )
    .shallow()
    .suffers(object, "waits for its operator");
    Some(
        ill.into_iter()
            .flat_map(|it| pods::of_workload(look.cluster, it))
            .fold(finding, |finding, pod| finding.below(Object::from_live(pod))),
    )
}

/// Whether an operator runs here whose kinds only roles would tell, and none was saved.
fn hides_operator(look: &Look<'_>) -> bool {
    let has_roles = look.cluster.has_kind("ClusterRole") || look.cluster.has_kind("Role");
    let is_operator =
        |live: &&Value| ["operator", "controller-manager"].iter().any(|word| live.name().contains(word));
    !has_roles && look.cluster.all("Deployment").iter().any(is_operator)
}
