//! Workloads that are scaled to zero, and that others wait for.

use tiphys_cause::Cause;
use tiphys_value::ObjectExt as _;

use crate::{Object, cluster::pods, finding::Finding, search_context::Look};

/// The workload that should do something for an object, and is scaled to zero; none if another one may do it.
pub(crate) fn scaled_to_zero_among(look: &Look<'_>, workloads: &[Object], waits: &Object) -> Option<Finding> {
    let is_zero = |it: &Object| {
        let live = look.cluster.live(it);
        live.is_some_and(|live| live.kind() != "DaemonSet" && pods::replicas(live) == 0)
    };
    let first = workloads.first().filter(|_| workloads.iter().all(is_zero))?;
    Some(operator_down(first.clone(), std::slice::from_ref(waits)))
}

pub(super) fn operator_down(operator: Object, resources: &[Object]) -> Finding {
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
