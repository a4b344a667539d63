//! Client-side apply as `kubectl apply` does it, for the few objects that server-side apply refuses though an
//! API server stores them: items of a list that have one key and each an effect. What was applied is in an
//! annotation (Kubernetes docs, "Declarative Management of Kubernetes Objects", "How apply calculates
//! differences"), so that what leaves the sources is removed.

use tiphys_cluster::{ApplyOptions, Cluster, ClusterError};
use tiphys_diff::{DiffOptions, Fields, applied_form, compare, has_rivals, last_only};
use tiphys_model::names::{CLIENT_SIDE_APPLY_MANAGER as MANAGER, LAST_APPLIED};
use tiphys_value::{ObjectExt, Value};

/// Whether an object cannot be applied otherwise. Of custom resources an API server stores none that have
/// such items.
pub(crate) fn is_needed(object: &Value) -> bool {
    let Some(fields) = Fields::built_in(&object.gvk()) else { return false };
    has_rivals(&applied_form(object, Some(fields)), fields)
}

/// How often an object is written that others write at the same time.
const TRIES: usize = 5;

/// Fails where the object has fields that its kind does not have: client-side apply would drop them.
pub(crate) async fn validate(cluster: &Cluster, object: &Value) -> Result<(), ClusterError> {
    let options = ApplyOptions { field_manager: MANAGER.into(), force: true, dry_run: true, validate: true };
    let once = Fields::built_in(&object.gvk()).map(|fields| last_only(object, fields));
    cluster.apply(once.as_ref().unwrap_or(object), &options).await.map(drop)
}

/// Applies an object; says what was done.
pub(crate) async fn apply(
    cluster: &Cluster,
    object: &Value,
    dry_run: bool,
) -> Result<(Value, &'static str), ClusterError> {
    for _ in 1..TRIES {
        match apply_once(cluster, object, dry_run).await {
            Err(ClusterError::Api { code: 409, .. }) => {}
            ended => return ended,
        }
    }
    apply_once(cluster, object, dry_run).await
}

async fn apply_once(
    cluster: &Cluster,
    object: &Value,
    dry_run: bool,
) -> Result<(Value, &'static str), ClusterError> {
    let resource = cluster.resource(&object.gvk()).await?;
    let live = cluster.get(&resource, object.namespace(), object.name()).await?;
    match live {
        None => Ok((cluster.create(&with_record(object, object), MANAGER, dry_run).await?, "created")),
        Some(live) => {
            let merged = merged(object, &live);
            Ok((cluster.replace(&merged, MANAGER, dry_run).await?, "configured"))
        }
    }
}

/// What the live object becomes: what others set stays, what was applied before and is no longer goes.
fn merged(object: &Value, live: &Value) -> Value {
    let options = DiffOptions {
        fields: Fields::built_in(&object.gvk()),
        compare_status: true,
        ..DiffOptions::default()
    };
    let mut merged = with_record(&compare(object, live, &options).predicted, object);
    merged["metadata"]["resourceVersion"] = live.resource_version().into();
    merged
}

/// An object with the record of what was applied.
fn with_record(object: &Value, applied: &Value) -> Value {
    let mut out = object.clone();
    out["metadata"]["annotations"][LAST_APPLIED] = applied.to_string().into();
    out
}

/// How many bytes the annotations of an object may have (`k8s.io/apimachinery`, `TotalAnnotationSizeLimitB`).
const MAX_ANNOTATIONS: usize = 262_144;

/// What `kubectl apply` would keep of an object in an annotation, if it is longer than the API server takes.
/// A record that fits says nothing, and Tiphys keeps none.
pub(crate) fn record_that_is_too_long(object: &Value) -> Option<String> {
    Some(object.to_string()).filter(|record| record.len() > MAX_ANNOTATIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_record_that_is_too_long_is_kept() {
        let object = |size: usize| serde_json::json!({"kind": "ConfigMap", "data": {"a": "x".repeat(size)}});
        assert_eq!(record_that_is_too_long(&object(1000)), None);
        let large = object(300_000);
        assert_eq!(record_that_is_too_long(&large), Some(large.to_string()));
    }
}
