//! The stages of a deletion: which there are, and how far one came.

use std::time::Duration;

use tiphys_cluster::{Cluster, ClusterError, Propagation};
use tiphys_model::{Condition, ConditionType, HookType, names};
use tiphys_value::{ObjectExt, Value};

use crate::{reconcile::report::Next, status_writer::bounded};

/// How long after a deletion was refused it is asked for again.
pub(super) const RETRY: Duration = Duration::from_secs(5);
/// How long an object may take to go before it is told of with what holds it.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Each stage that hooks have, with its finalizer.
pub(super) const HOOKS: [(HookType, &str, &str); 2] = [
    (HookType::PreDelete, names::PRE_DELETE_FINALIZER, names::PRE_DELETE_CLEANUP_FINALIZER),
    (HookType::PostDelete, names::POST_DELETE_FINALIZER, names::POST_DELETE_CLEANUP_FINALIZER),
];

/// How far a stage of a deletion came.
pub(super) enum Stage {
    /// It is over.
    Done,
    /// Changes in the cluster lead back here, or time does; with what the status says of it.
    Waits { next: Next, condition: Option<Condition> },
}

impl Stage {
    /// Nothing new is to be said.
    pub(super) fn waits(next: Next) -> Self {
        Self::Waits { next, condition: None }
    }

    /// It cannot go on for a reason that somebody has to know.
    pub(super) fn fails(next: Next, why: String) -> Self {
        Self::waits_for(next, ConditionType::DeletionError, why)
    }

    /// It cannot go on before this is so, which somebody may have to know.
    pub(super) fn waits_for(next: Next, kind: ConditionType, message: String) -> Self {
        Self::Waits { next, condition: Some(Condition::new(kind, bounded(message))) }
    }
}

/// Deletes an object, whoever holds it.
pub(super) async fn delete(
    cluster: &Cluster,
    object: &Value,
    propagation: Propagation,
) -> Result<(), ClusterError> {
    let resource = cluster.resource(&object.gvk()).await?;
    let name = (object.namespace(), object.name());
    match cluster.delete(&resource, name, propagation, object.uid(), false).await {
        // Another object of that name took its place; it is not ours.
        Err(error) if error.is_conflict() => Ok(()),
        other => other.map(|_| ()),
    }
}
