//! Custom resources that are not ready: their operator, what they name, issuers, secret stores, the cloud's
//! rights.

mod certificates;
mod conditions;
mod duplicate_operators;
mod lookup;
mod operator_log;

use std::collections::BTreeMap;

use conditions::fault;
use duplicate_operators::two_owners;
use lookup::{is_custom, scaled_to_zero};
use tiphys_cause::Cause;
use tiphys_value::ObjectExt as _;

use crate::{Object, cluster::pods, finding::Finding, search_context::Look};

pub(crate) use conditions::rests_on_unseen;
pub(crate) use lookup::by_words;
pub(crate) use lookup::is_cared_for_by;
pub(crate) use lookup::words;

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut unattended: BTreeMap<Object, Vec<Object>> = BTreeMap::new();
    for live in &look.cluster.case.objects {
        if !is_custom(live) || live.is_terminating() {
            continue;
        }
        if let Some(operator) = scaled_to_zero(look, live) {
            unattended.entry(operator).or_default().push(Object::from_live(live));
            continue;
        }
        found.extend(fault(look, live));
    }
    found.extend(unattended.into_iter().map(|(operator, resources)| operator_down(operator, &resources)));
    found.extend(two_owners(look));
    found
}

/// The workload that should do something for an object, and is scaled to zero; none if another one may do it.
pub(crate) fn scaled_to_zero_among(look: &Look<'_>, workloads: &[Object], waits: &Object) -> Option<Finding> {
    let is_zero = |it: &Object| {
        let live = look.cluster.live(it);
        live.is_some_and(|live| live.kind() != "DaemonSet" && pods::replicas(live) == 0)
    };
    let first = workloads.first().filter(|_| workloads.iter().all(is_zero))?;
    Some(operator_down(first.clone(), std::slice::from_ref(waits)))
}

fn operator_down(operator: Object, resources: &[Object]) -> Finding {
    let finding = Finding::new(
        Cause::OperatorDown,
        operator.clone(),
        0.92,
        format!("{operator} is scaled to zero, and {} resources wait for it", resources.len()),
    )
    .field("spec.replicas")
    .evidence(operator.to_string(), "spec.replicas: 0")
    .remedy(
        "Scale the operator up.",
        &[format!(
            "kubectl -n {} scale {} {} --replicas=1",
            operator.namespace,
            operator.kind.to_lowercase(),
            operator.name
        )],
    );
    resources
        .iter()
        .fold(finding, |finding, object| finding.suffers(object.clone(), "waits for its operator"))
}
