//! What the log of an operator says about one resource, where the resource's conditions do not tell why.

use tiphys_cause::{Cause, absent_key};
use tiphys_value::{ObjectExt as _, Value};

use super::{
    condition_words::{is_denied, names},
    conditions::refused_write,
};
use crate::{Log, Object, cluster::pods, dependencies, finding::Finding, search_context::Look};

/// The fault of another object that an operator names in a line about a resource: a refused write, a missing
/// key.
pub(super) fn told_by_operator(look: &Look<'_>, live: &Value, operators: &[Object]) -> Option<Finding> {
    let object = Object::from_live(live);
    let pods = operators.iter().flat_map(|it| pods::of_workload(look.cluster, it));
    let logs: Vec<&Log> = pods.flat_map(|pod| look.cluster.logs(pod.namespace(), pod.name())).collect();
    // An operator whose name tells nothing is known by what it says.
    let all = look.cluster.case.logs.iter().filter(|_| operators.is_empty());
    let found = logs.into_iter().chain(all).filter_map(|log| {
        let is_about = |line: &&str| {
            names(line, live.name())
                && (!operators.is_empty() || names(line, live.namespace()) && speaks_of(line, live.kind()))
        };
        let mut lines = log.last_lines().filter(is_about);
        lines.find_map(|line| {
            let forbidden = || {
                let forbidden = tiphys_cause::forbidden(line).into_iter().next()?;
                let pod = look.cluster.get("Pod", &log.namespace, &log.pod)?;
                crate::causes::api::rights_fault(look, &look.cluster.workload(pod), &forbidden)
            };
            let found = refused_write(look, &object, line)
                .or_else(|| missing_key(look, live, line))
                .or_else(|| missing_data(look, live, line))
                .or_else(forbidden)?;
            let is_own = found.cause == Cause::OperatorReference;
            let is_sure = found.is_asserted() && (is_own || found.object != object);
            is_sure.then(|| found.evidence(log.source(), line).suffers(object.clone(), "its operator fails"))
        })
    });
    found.into_iter().next()
}

/// The fault of an operator whose identity lacks a right in the cloud, as its log says in a line about
/// something that has a name.
pub(crate) fn denial(look: &Look<'_>, operators: &[Object], name: &str) -> Option<Finding> {
    operators.iter().find_map(|operator| {
        let pods = pods::of_workload(look.cluster, operator).into_iter();
        let mut logs = pods.flat_map(|pod| look.cluster.logs(pod.namespace(), pod.name()));
        let (source, line) = logs.find_map(|log| {
            let line = log.last_lines().find(|line| names(line, name) && is_denied(line))?;
            Some((log.source(), line))
        })?;
        let summary =
            format!("the cloud does not let {operator} do what {name} needs: its identity lacks the right");
        let remedy =
            "Give its identity (role, trust, workload identity) the rights that the cloud's words name.";
        Some(
            Finding::new(Cause::OperatorCloudCredentials, operator.clone(), 0.9, summary)
                .evidence(source, line)
                .remedy(remedy, &[]),
        )
    })
}

/// Whether a line speaks of a kind, as controllers name themselves after it.
pub(super) fn speaks_of(line: &str, kind: &str) -> bool {
    line.to_ascii_lowercase().contains(&kind.to_ascii_lowercase())
}

/// Whether anything that the operators of a resource say was saved.
pub(super) fn is_heard(look: &Look<'_>, operators: &[Object]) -> bool {
    let mut pods = operators.iter().flat_map(|it| pods::of_workload(look.cluster, it));
    pods.any(|pod| !look.cluster.logs(pod.namespace(), pod.name()).is_empty())
}

/// The Secret or ConfigMap that a line says is not there, beside the resource that it speaks of.
fn missing_data(look: &Look<'_>, live: &Value, line: &str) -> Option<Finding> {
    let absent = tiphys_cause::absent(&line.replace("\\\"", "\"")).filter(|it| it.key.is_none())?;
    let object = Object::new(absent.kind, live.namespace(), &absent.name);
    let is_told = !absent.name.is_empty() && matches!(absent.kind, "Secret" | "ConfigMap");
    if !is_told || !look.cluster.has_kind(absent.kind) || look.cluster.live(&object).is_some() {
        return None;
    }
    let resource = Object::from_live(live);
    let summary = format!("{object} does not exist, and {resource} needs it");
    // What a resource names itself is its own fault; what is behind another one is not.
    if dependencies::upstream(look.cluster, &resource).contains(&object) {
        let summary = format!("{resource} names {object}, which does not exist");
        let finding = Finding::new(Cause::OperatorReference, resource.clone(), 0.88, summary)
            .remedy(format!("Make {object}, or correct the reference."), &[]);
        return Some(dependencies::upstream(look.cluster, &object).into_iter().fold(finding, Finding::below));
    }
    let finding = Finding::new(Cause::ConfigMissing, object.clone(), 0.88, summary)
        .remedy(format!("Make {object}, or correct the reference."), &[]);
    Some(dependencies::upstream(look.cluster, &object).into_iter().fold(finding, Finding::below))
}

/// The key that a line misses in an object which is there without it.
fn missing_key(look: &Look<'_>, live: &Value, line: &str) -> Option<Finding> {
    let (absent, namespace) = absent_key(line)?;
    let key = absent.key?;
    let namespace = namespace.unwrap_or_else(|| live.namespace().to_owned());
    let object = Object::new(absent.kind, &namespace, &absent.name);
    let data = look.cluster.live(&object)?.get("data")?.as_object()?;
    if data.contains_key(&key) {
        return None;
    }
    let summary = format!("{object} has no key {key}, which {} needs", Object::from_live(live));
    Some(
        Finding::new(Cause::ConfigKeyMissing, object.clone(), 0.9, summary)
            .field(format!("data.{key}"))
            .remedy(
                format!("Add the key {key}, or correct the reference."),
                &[format!(
                    "kubectl -n {namespace} get {} {} -o jsonpath='{{.data}}'",
                    object.kind.to_lowercase(),
                    object.name
                )],
            ),
    )
}
