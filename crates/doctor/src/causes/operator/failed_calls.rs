//! Calls that fail for a resource, as its condition, its events and the log of its operator tell them.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use super::{
    condition_words::{is_denied, names, own_complaint},
    operator_log::speaks_of,
};
use crate::{
    Object,
    calls::{self, Caller},
    cluster::pods,
    finding::Finding,
    log_evidence::Fact,
    search_context::Look,
};

/// From here on a call is explained by objects, and not by words alone.
const SURE: f64 = 0.8;

/// A call of the operator that fails outside of the cluster, where nothing else tells more.
pub(super) fn outward_call(
    look: &Look<'_>,
    live: &Value,
    operators: &[Object],
    words: &str,
) -> Option<Finding> {
    const LIKELY: f64 = 0.6;
    // What the platform's own operators call from outside are its own routes.
    if live.kind() == "ClusterOperator" {
        return None;
    }
    failed_calls(look, live, operators, words)
        .into_iter()
        .find(|finding| finding.cause == Cause::ExternalDown && finding.confidence >= LIKELY)
}

/// The line by which a resource's own pods, or its operator speaking of it, say what is wrong.
pub(super) fn telling_line(look: &Look<'_>, live: &Value, operators: &[Object]) -> Option<(String, String)> {
    let of_pods = |owner: &Object| pods::of_workload(look.cluster, owner);
    let owned = of_pods(&Object::from_live(live));
    // Some operators own nothing, and name what they make after the resource.
    let prefix = format!("{}-", live.name());
    let is_namesake = |pod: &&&Value| owned.is_empty() && pod.name().starts_with(&prefix);
    let namesakes = look.cluster.pods_in(live.namespace()).iter().filter(is_namesake).copied();
    let own: Vec<(&Value, bool)> = owned.iter().copied().chain(namesakes).map(|pod| (pod, false)).collect();
    let others = operators.iter().flat_map(of_pods).map(|pod| (pod, true));
    let complains = |line: &str| own_complaint(line).is_some() || is_denied(line);
    // An operator whose name tells nothing is known by what it says.
    let unknown = || {
        let green = look.green().into_iter().flat_map(|(_, facts)| facts);
        let mut facts = green.chain(look.ill.iter().flat_map(|ill| &ill.facts));
        let fact = facts.find(|fact| {
            operators.is_empty()
                && matches!(fact.fact, Fact::Complaint(_))
                && names(&fact.line, live.name())
                && names(&fact.line, live.namespace())
                && speaks_of(&fact.line, live.kind())
                && complains(&fact.line)
        })?;
        Some((fact.source.clone(), fact.line.clone()))
    };
    let known = own.into_iter().chain(others).find_map(|(pod, is_operator)| {
        look.cluster.logs(pod.namespace(), pod.name()).into_iter().find_map(|log| {
            let line = log
                .last_lines()
                .find(|line| (!is_operator || names(line, live.name())) && complains(line))?;
            Some((log.source(), line.to_owned()))
        })
    });
    known.or_else(unknown)
}

/// The last line in which the operator of a resource says that a call for it failed.
pub(super) fn call_line(look: &Look<'_>, live: &Value, operators: &[Object]) -> Option<(String, String)> {
    let pods = operators.iter().flat_map(|it| pods::of_workload(look.cluster, it));
    let mut logs = pods.flat_map(|pod| look.cluster.logs(pod.namespace(), pod.name()));
    logs.find_map(|log| {
        let line = log.last_lines().find(|line| {
            names(line, live.name())
                && tiphys_cause::failed_calls(line).iter().any(|call| !call.targets.is_empty())
        })?;
        Some((log.source(), line.to_owned()))
    })
}

/// The call of an operator that fails, as the condition or the last warning about the resource tells it.
pub(super) fn failed_call(
    look: &Look<'_>,
    live: &Value,
    operators: &[Object],
    words: &str,
) -> Option<Finding> {
    failed_calls(look, live, operators, words).into_iter().find(|finding| finding.confidence >= SURE)
}

/// What explains the calls of an operator that fail.
fn failed_calls(look: &Look<'_>, live: &Value, operators: &[Object], words: &str) -> Vec<Finding> {
    let object = Object::from_live(live);
    let warning = look.cluster.events(&object).rfind(|event| event.is_warning());
    let told = [(format!("{object}, status"), words)]
        .into_iter()
        .chain(warning.map(|event| (format!("Event of {object}"), event.message.as_str())));
    let operator = operators.first().cloned().unwrap_or_else(|| object.clone());
    let caller = Caller::of_workload(look.cluster, operator);
    let sufferer = (&object, "its operator calls in vain");
    let line = call_line(look, live, operators);
    let line = line.iter().map(|(source, line)| (source.clone(), line.as_str()));
    let told = told.chain(line);
    told.flat_map(|(source, text)| calls::explain_text(look, &caller, (&source, text), sufferer)).collect()
}
