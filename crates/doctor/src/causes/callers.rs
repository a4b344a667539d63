//! Callers that are green while their calls fail: their logs tell of Services that lead nowhere and policies
//! that cut them off. Only what is evaluated counts here; words alone prove nothing about a program that is
//! ready.

use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Cause,
    calls::{self, Caller},
    cluster::pods,
    finding::Finding,
    log_evidence::{Fact, LogFact},
    pod_addresses::settings,
    search_context::Look,
};

/// Causes that are proved by objects, and not by the caller's words.
const EVALUATED: &[Cause] = &[
    Cause::ServiceSelector,
    Cause::ServicePort,
    Cause::ServiceProtocol,
    Cause::ServiceTrafficPolicy,
    Cause::ServiceMissing,
    Cause::RunScaledZero,
    Cause::NetPolicyIngress,
    Cause::NetPolicyEgress,
    Cause::NetPolicyDns,
    Cause::NetPolicyApiServer,
    Cause::MeshMtls,
    Cause::MeshAuthorization,
    Cause::DnsPolicy,
    Cause::ConfigWrongValue,
];
/// A line that is lighter than this stands far from the end, or is only a warning.
const WEIGHTY: i32 = 100;

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let green = look.green().into_iter().filter(|(pod, _)| pods::is_ready(pod));
    green.filter_map(|(pod, facts)| failing_call(look, pod, facts)).collect()
}

/// The call that the last lines of a pod's log complain about.
fn failing_call<'a>(look: &Look<'a>, pod: &'a Value, facts: &[LogFact]) -> Option<Finding> {
    let first = facts.first().filter(|fact| fact.weight >= WEIGHTY)?;
    let Fact::Call(call) = &first.fact else { return None };
    let caller = Caller {
        workload: look.cluster.workload(pod),
        pods: vec![pod],
        settings: settings(look.cluster, pod.get("spec")?, pod.namespace()),
    };
    let finding = calls::explain(look, &caller, call, &first.source)?;
    let is_sure = finding.confidence >= 0.85 && EVALUATED.contains(&finding.cause);
    is_sure.then_some(Finding { confidence: finding.confidence - 0.05, ..finding })
}
