//! Why the containers of a workload fail, where neither a log nor an event tells it and its objects do.

use tiphys_cause::Cause;
use tiphys_value::ObjectExt as _;

use crate::{
    Object,
    causes::control_plane::{expired, expired_secret},
    cluster::items,
    finding::Finding,
    search_context::Ill,
    search_context::Look,
};

/// Labels that programs give to their own pods, the value that is bad, and what it says.
const STATES: &[(&str, &str, &str)] = &[
    ("vault-sealed", "true", "is sealed"),
    ("vault-initialized", "false", "was never initialized"),
    ("openbao-sealed", "true", "is sealed"),
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
