//! Resources that their operator never looked at, or not since they were changed.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use super::{
    condition_words::{is_denied, names, own_complaint},
    failed_calls::telling_line,
    lookup::{has_no_status, is_waiting},
    operator_log::speaks_of,
};
use crate::{
    Object,
    address_target::Target,
    cluster::{conditions, pods},
    dependencies,
    finding::Finding,
    log_evidence::{Fact, LogFact},
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
    if look.cluster.age(live) < 600 {
        return None;
    }
    let object = Object::from_live(live);
    if !is_waiting(look, live) {
        return complained_of(look, live, operators);
    }
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

/// A resource without conditions of which the last word of its operator is a complaint that lies with it.
fn complained_of(look: &Look<'_>, live: &Value, operators: &[Object]) -> Option<Finding> {
    if conditions(live).next().is_some() || has_no_status(live) {
        return None;
    }
    // An operator whose name tells nothing is known by what it speaks of.
    let is_unknown = operators.is_empty();
    let about = |line: &&str| {
        names(line, live.name())
            && names(line, live.namespace())
            && (!is_unknown || speaks_of(line, live.kind()))
    };
    // Most logs complain of no login, and need not be read for each resource.
    let complains = |fact: &&LogFact| {
        let of_login = |cause| matches!(cause, Cause::ConfigCredentials | Cause::OperatorCloudCredentials);
        matches!(&fact.fact, Fact::Complaint(complaint) if of_login(complaint.cause))
    };
    let green = look.green().into_iter().flat_map(|(_, facts)| facts);
    let facts = green.chain(look.ill.iter().flat_map(|ill| &ill.facts)).filter(complains);
    let sources: Vec<&str> = facts.map(|fact| fact.source.as_str()).collect();
    if sources.is_empty() {
        return None;
    }
    let pods = operators.iter().flat_map(|it| pods::of_workload(look.cluster, it));
    let known = pods.flat_map(|pod| look.cluster.logs(pod.namespace(), pod.name()));
    let logs = known.chain(look.cluster.case.logs.iter().filter(|_| is_unknown));
    let mut logs =
        logs.filter(|log| log.text.contains(live.name()) && sources.contains(&log.source().as_str()));
    let (source, line) =
        logs.find_map(|log| Some((log.source(), log.last_lines().find(about)?.to_owned())))?;
    let cause = own_complaint(&line).map(|it| it.cause).filter(|cause| *cause == Cause::ConfigCredentials);
    let cause = cause.or_else(|| is_denied(&line).then_some(Cause::OperatorCloudCredentials))?;
    let object = Object::from_live(live);
    let what = format!("{object} is refused, as the last word of its operator says");
    let finding = Finding::new(cause, object.clone(), 0.75, what)
        .evidence(source, line)
        .remedy("Correct what the line of the log names.", &[]);
    Some(dependencies::upstream(look.cluster, &object).into_iter().fold(finding, Finding::below))
}

/// Whether an operator runs here whose kinds only roles would tell, and none was saved.
fn hides_operator(look: &Look<'_>) -> bool {
    let has_roles = look.cluster.has_kind("ClusterRole") || look.cluster.has_kind("Role");
    let is_operator =
        |live: &&Value| ["operator", "controller-manager"].iter().any(|word| live.name().contains(word));
    !has_roles && look.cluster.all("Deployment").iter().any(is_operator)
}
