//! Writing back what was found out.

use tiphys_cluster::{Cluster, ClusterError, LiveCache, PatchType, Resource};
use tiphys_model::names;
use tiphys_value::{GroupKind, GroupVersionKind, Map, Value};

use crate::AppKey;

/// The name under which the engine writes the fields of an Application that are its own.
const FIELD_MANAGER: &str = "tiphys-controller";

/// The kind Application.
pub(crate) fn application_kind() -> GroupKind {
    GroupKind::new(names::GROUP, "Application")
}

/// The resource of Applications.
pub(crate) async fn application_resource(cluster: &Cluster) -> Result<Resource, ClusterError> {
    cluster.resource(&GroupVersionKind::from_api_version(names::API_VERSION, "Application")).await
}

/// Brings an Application from what was read to what is to be written, if they differ. The write goes
/// to fields of the engine only, so that it cannot undo what a user changed meanwhile.
pub(crate) async fn write(
    cache: &LiveCache,
    key: &AppKey,
    before: &Value,
    after: &Value,
) -> Result<(), ClusterError> {
    let Some(patch) = merge_patch(before, after, 0) else { return Ok(()) };
    patch_application(cache, key, &patch).await.map(|_| ())
}

/// Patches an Application; the cache sees the result at once.
pub(crate) async fn patch_application(
    cache: &LiveCache,
    key: &AppKey,
    patch: &Value,
) -> Result<Value, ClusterError> {
    let resource = application_resource(cache.cluster()).await?;
    let name = (key.namespace.as_str(), key.name.as_str());
    let written = cache.cluster().patch(&resource, name, "", PatchType::Merge, patch, FIELD_MANAGER).await?;
    cache.observe(written.clone());
    Ok(written)
}

/// The merge patch (RFC 7396) that leads from one value to another; `None` if they are equal.
pub(crate) fn merge_patch(before: &Value, after: &Value, depth: usize) -> Option<Value> {
    const MAX_DEPTH: usize = 64;
    if before == after {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else { return Some(after.clone()) };
    if depth > MAX_DEPTH {
        return Some(after.clone());
    }
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(key) {
            None => {
                patch.insert(key.clone(), value.clone());
            }
            Some(known) => {
                if let Some(below) = merge_patch(known, value, depth + 1) {
                    patch.insert(key.clone(), below);
                }
            }
        }
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn patches_name_what_differs_only() {
        let before = json!({"status": {"a": 1, "b": {"c": 2, "d": 3}, "gone": true, "list": [1]}});
        let after = json!({"status": {"a": 1, "b": {"c": 2, "d": 4}, "list": [1, 2], "new": {}}});
        let patch = merge_patch(&before, &after, 0);
        assert_eq!(patch, Some(json!({"status": {"b": {"d": 4}, "gone": null, "list": [1, 2], "new": {}}})));
        assert_eq!(merge_patch(&after, &after, 0), None);
    }
}
