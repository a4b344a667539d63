//! Why the containers of a workload fail, where neither a log nor an event tells it and its objects do.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    causes::control_plane::{expired, expired_secret},
    cluster::{items, pods},
    finding::Finding,
    search_context::{Ill, Look},
};

/// Labels that programs give to their own pods, the value that is bad, and what it says.
const STATES: &[(&str, &str, &str)] = &[
    ("vault-sealed", "true", "is sealed"),
    ("vault-initialized", "false", "was never initialized"),
    ("openbao-sealed", "true", "is sealed"),
];
/// What a program is asked by its readiness probe, and in which state it is while that fails.
const ASKED: &[(&str, &str)] = &[
    ("vault status", "is sealed, or was never initialized,"),
    ("bao status", "is sealed, or was never initialized,"),
];
/// Seconds by which a program may notice an expired certificate before it expires: clocks differ.
const SLACK: i64 = 3600;

/// The state that a program tells by the labels of its own pods.
pub(super) fn labelled_state(ill: &Ill<'_>) -> Option<Finding> {
    let (pod, (label, value, what)) = ill.pods.iter().find_map(|pod| {
        let told = STATES.iter().find(|(label, value, _)| pod.label(label) == Some(*value))?;
        Some((pod, *told))
    })?;
    let summary = format!("{} {what}, and does not serve", ill.workload);
    Some(
        Finding::new(Cause::AppBackendState, ill.workload.clone(), 0.9, summary)
            .evidence(Object::from_live(pod).to_string(), format!("label {label}: {value}"))
            .remedy("Bring it into a state in which it serves: initialize it, or unseal it.", &[]),
    )
}

/// The state that a program is in while it runs and denies what its readiness probe asks.
pub(super) fn denied_state(ill: &Ill<'_>) -> Option<Finding> {
    const LIKELY: f64 = 0.6;
    let is_running = |pod: &Value| {
        pods::statuses(pod).all(|it| it.at(&["state", "running"]).is_some()) && !pods::is_ready(pod)
    };
    let pod = ill.pods.iter().find(|pod| is_running(pod))?;
    let (command, what) = items(pod, &["spec", "containers"]).find_map(|container| {
        let words = items(container, &["readinessProbe", "exec", "command"]).filter_map(Value::as_str);
        let command = words.collect::<Vec<_>>().join(" ");
        let (_, what) = ASKED.iter().find(|(asked, _)| command.contains(asked))?;
        Some((command, *what))
    })?;
    let summary = format!("{} {what} and does not serve", ill.workload);
    Some(
        Finding::new(Cause::AppBackendState, ill.workload.clone(), LIKELY, summary)
            .evidence(Object::from_live(pod).to_string(), format!("it runs, and its probe fails: {command}"))
            .remedy("Bring it into a state in which it serves: initialize it, or unseal it.", &[]),
    )
}

/// A certificate that a workload mounts and that expired before it fell ill, if the workload says nothing.
pub(super) fn expired_mount(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    if !ill.facts.is_empty() {
        return None;
    }
    let mounted = items(ill.spec(), &["volumes"]).filter_map(|it| it.str_at(&["secret", "secretName"]));
    let secrets = mounted.filter_map(|name| look.cluster.get("Secret", ill.namespace(), name));
    let (secret, at) = secrets.filter_map(|secret| Some((secret, expired(look, secret)?))).next()?;
    let since = ill.since?;
    // Who was ill before has another trouble.
    if at.as_second() > since.as_second() + SLACK {
        return None;
    }
    let finding = expired_secret(look, secret, at);
    let what = format!("it mounts {}, and fails since {since}", Object::from_live(secret));
    Some(Finding { confidence: 0.75, ..finding }.evidence(ill.workload.to_string(), what))
}
