//! What the log of an operator says about one resource, where the resource's conditions do not tell why.

use tiphys_cause::{Cause, absent_key};
use tiphys_value::{ObjectExt as _, Value};

use super::{
    condition_words::{is_denied, named_but_absent, names},
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
                .or_else(forbidden)
                .or_else(|| missing_object(look, live, line))?;
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

/// Any other object that a line says is not there: a class, an account, a resource of another operator.
fn missing_object(look: &Look<'_>, live: &Value, line: &str) -> Option<Finding> {
    let named = named_but_absent(line).filter(|_| tells_of_error(line))?;
    let kind =
        if named.kind.is_empty() { kind_of_plural(look, line, &named.name)? } else { named.kind.clone() };
    let is_there = |namespace: &str| look.cluster.get(&kind, namespace, &named.name).is_some();
    if is_there(live.namespace())
        || is_there("")
        || named.name == live.name()
        || !look.cluster.has_kind(&kind)
    {
        return None;
    }
    let resource = Object::from_live(live);
    let summary = format!("{resource} needs {kind} {}, which does not exist", named.name);
    Some(
        Finding::new(Cause::OperatorReference, resource, 0.85, summary)
            .remedy(format!("Make {kind} {}, or correct its name.", named.name), &[])
            .below(Object::new(&kind, live.namespace(), &named.name))
            .below(Object::new(&kind, "", &named.name)),
    )
}

/// Whether what a line says is not there is there by now.
fn names_what_is_there(look: &Look<'_>, live: &Value, line: &str) -> bool {
    let Some(named) = named_but_absent(line) else { return false };
    let plural = || kind_of_plural(look, line, &named.name);
    let kind = Some(named.kind.clone()).filter(|kind| !kind.is_empty()).or_else(plural);
    kind.is_some_and(|kind| {
        let is_known = |namespace: &str| look.cluster.get(&kind, namespace, &named.name).is_some();
        is_known(live.namespace()) || is_known("")
    })
}

/// The kind that the word before a quoted name means: `priorityclasses.scheduling.k8s.io "high"`.
fn kind_of_plural(look: &Look<'_>, line: &str, name: &str) -> Option<String> {
    let plain = line.replace("\\\"", "\"");
    let at = plain.find(&format!("\"{name}\""))?;
    let word = plain.get(..at)?.split_whitespace().next_back()?;
    let plural = word.split('.').next()?.to_ascii_lowercase();
    let is_meant = |kind: &str| {
        let kind = kind.to_ascii_lowercase();
        plural == kind || plural == format!("{kind}s") || plural == format!("{kind}es")
    };
    look.cluster.case.objects.iter().map(|it| it.kind()).find(|kind| is_meant(kind)).map(str::to_owned)
}

/// Whether a line tells of something that failed.
pub(super) fn tells_of_error(line: &str) -> bool {
    const WORDS: &[&str] = &["error", "failed", "cannot ", "could not", "unable to", "fatal"];
    let low = line.to_ascii_lowercase();
    WORDS.iter().any(|word| low.contains(word))
}

/// The last line in which an operator tells of an error about a resource.
pub(super) fn error_line(look: &Look<'_>, live: &Value, operators: &[Object]) -> Option<(String, String)> {
    let pods = operators.iter().flat_map(|it| pods::of_workload(look.cluster, it));
    let mut logs = pods.flat_map(|pod| look.cluster.logs(pod.namespace(), pod.name()));
    let is_about = |line: &&str| {
        names(line, live.name())
            && (live.namespace().is_empty() || names(line, live.namespace()) || speaks_of(line, live.kind()))
            && tells_of_error(line)
            && !names_what_is_there(look, live, line)
    };
    logs.find_map(|log| {
        let line = log.text.contains(live.name()).then(|| log.last_lines().find(is_about)).flatten()?;
        Some((log.source(), line.to_owned()))
    })
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
