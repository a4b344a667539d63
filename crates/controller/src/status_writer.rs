//! Writing back what was found out.

use tiphys_cluster::{Cluster, ClusterError, LiveCache, PatchType, Resource};
use tiphys_model::{Application, has_null, names, packed_lists, tiphys_status};
use tiphys_value::{GroupKind, GroupVersionKind, Map, ObjectExt, ResourceKey, Value, json, pointer_step};

use crate::AppKey;

/// The name under which the engine writes the fields of an Application that are its own.
pub(crate) const FIELD_MANAGER: &str = "tiphys-controller";

/// The longest message of a status, in bytes: the API server takes no object larger than 1.5 MiB, and a
/// message that cannot be written tells nobody anything.
const MAX_MESSAGE: usize = 8 << 10;

/// A message as a status may carry it: of a longer one the beginning and the end, where the API server says
/// why.
pub(crate) fn bounded(message: String) -> String {
    if message.len() <= MAX_MESSAGE {
        return message;
    }
    let head = message.floor_char_boundary(MAX_MESSAGE / 4 * 3);
    let tail = message.ceil_char_boundary(message.len() - MAX_MESSAGE / 4);
    format!("{} … ({} bytes left out) … {}", &message[..head], tail - head, &message[tail..])
}

/// The kind Application.
pub(crate) fn application_kind() -> GroupKind {
    GroupKind::new(names::GROUP, "Application")
}

/// The key of an Application object.
pub(crate) fn own_key(app: &Application) -> ResourceKey {
    ResourceKey::new(names::GROUP, "Application", &app.metadata.namespace, &app.metadata.name)
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
    write_after(cache, key, before, after, None).await.map(drop)
}

/// As [`write`], refused if the Application has another version than the one that is given. Returns the
/// version that it has then, if it was written.
pub(crate) async fn write_after(
    cache: &LiveCache,
    key: &AppKey,
    before: &Value,
    after: &Value,
    follows: Option<String>,
) -> Result<Option<String>, ClusterError> {
    let (known, after) = (tiphys_status::put_back(before), packed_lists::pack(after));
    let Some((kind, mut patch)) = change(&packed_lists::pack(&known), before, &after) else {
        return Ok(None);
    };
    match (&mut patch, follows) {
        (_, None) => {}
        (Value::Array(operations), Some(version)) => {
            operations.push(json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}));
        }
        (patch, Some(version)) => patch["metadata"]["resourceVersion"] = version.into(),
    }
    if before.annotation(names::KEPT).is_some() {
        // Never taken away again: until it is back, what belongs there would be missing for a moment.
        let kept = tiphys_status::annotation_text(&after).unwrap_or_else(|| "{}".into());
        match &mut patch {
            Value::Array(operations) => {
                let path = format!("/metadata/annotations/{}", pointer_step(names::KEPT));
                operations.push(json!({"op": "add", "path": path, "value": kept}));
            }
            patch => patch["metadata"]["annotations"][names::KEPT] = kept.into(),
        }
    }
    let mut written = patch_application_by(cache, key, kind, &patch).await?;
    // Another definition of Application than ours is served, and dropped what is not Argo CD's.
    let there = tiphys_status::annotation_text(&packed_lists::pack(&tiphys_status::put_back(&written)));
    if let Some(kept) = tiphys_status::annotation_text(&after).filter(|kept| there.as_ref() != Some(kept)) {
        let patch = json!({"metadata": {"annotations": {names::KEPT: kept}}});
        written = patch_application(cache, key, &patch).await?;
    }
    Ok(Some(written.resource_version().to_owned()))
}

/// Patches an Application; the cache sees the result at once.
pub(crate) async fn patch_application(
    cache: &LiveCache,
    key: &AppKey,
    patch: &Value,
) -> Result<Value, ClusterError> {
    patch_application_by(cache, key, PatchType::Merge, patch).await
}

async fn patch_application_by(
    cache: &LiveCache,
    key: &AppKey,
    kind: PatchType,
    patch: &Value,
) -> Result<Value, ClusterError> {
    let resource = application_resource(cache.cluster()).await?;
    let name = (key.namespace.as_str(), key.name.as_str());
    let written = cache.cluster().patch(&resource, name, "", kind, patch, FIELD_MANAGER).await?;
    cache.observe(written.clone());
    Ok(written)
}

/// The patch that leads from one value to another; `None` if they are equal. A merge patch, which leaves
/// alone what others change meanwhile; where a null is to be written, which that would take for a removal, a
/// JSON patch of what is `stored`.
pub(crate) fn change(before: &Value, stored: &Value, after: &Value) -> Option<(PatchType, Value)> {
    let patch = merge_patch(before, after, 0)?;
    if !writes_null(before, after) {
        return Some((PatchType::Merge, patch));
    }
    let mut operations = Vec::new();
    add_operations(stored, after, "", &mut operations);
    Some((PatchType::Json, operations.into()))
}

fn writes_null(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (before, after) if before == after => false,
        (Value::Object(old), Value::Object(new)) => new.iter().any(|(key, value)| match old.get(key) {
            None => has_null(value),
            Some(known) => writes_null(known, value),
        }),
        (_, after) => has_null(after),
    }
}

/// The operations of a JSON patch (RFC 6902) that lead from one value to another.
fn add_operations(before: &Value, after: &Value, path: &str, operations: &mut Vec<Value>) {
    if before == after {
        return;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        operations.push(json!({"op": "replace", "path": path, "value": after}));
        return;
    };
    let below = |key: &str| format!("{path}/{}", pointer_step(key));
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        operations.push(json!({"op": "remove", "path": below(key)}));
    }
    for (key, value) in new {
        match old.get(key) {
            None => operations.push(json!({"op": "add", "path": below(key), "value": value})),
            Some(known) => add_operations(known, value, &below(key), operations),
        }
    }
}

/// The merge patch (RFC 7396) that leads from one value to another; `None` if they are equal.
fn merge_patch(before: &Value, after: &Value, depth: usize) -> Option<Value> {
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

    #[test]
    fn of_a_long_message_the_ends_are_kept() {
        let long = format!("Deployment: {}: field is immutable", "ä".repeat(MAX_MESSAGE));
        let short = bounded(long.clone());
        assert!(short.len() < MAX_MESSAGE + 50 && short.starts_with("Deployment: ä"), "{short}");
        assert!(short.ends_with("ä: field is immutable"), "{short}");
        assert!(short.contains(" bytes left out) … ä"), "{short}");
        let exact = "a".repeat(MAX_MESSAGE);
        assert_eq!(bounded(exact.clone()), exact);
    }

    #[test]
    fn patches_name_what_differs_only() {
        let before = json!({"status": {"a": 1, "b": {"c": 2, "d": 3}, "gone": true, "list": [1]}});
        let after = json!({"status": {"a": 1, "b": {"c": 2, "d": 4}, "list": [1, 2], "new": {}}});
        let patch = merge_patch(&before, &after, 0);
        assert_eq!(patch, Some(json!({"status": {"b": {"d": 4}, "gone": null, "list": [1, 2], "new": {}}})));
        assert_eq!(merge_patch(&after, &after, 0), None);
    }

    #[test]
    fn a_null_that_is_to_stand_is_written_by_a_json_patch() {
        let before = json!({"status": {"a/b": {"x": 1}, "gone": 1}, "operation": {}});
        let after = json!({"status": {"a/b": {"x": 2, "values": {"rollingUpdate": null}}}});
        let (kind, patch) = change(&before, &before, &after).unwrap();
        assert_eq!(kind, PatchType::Json);
        let expected = json!([
            {"op": "remove", "path": "/operation"},
            {"op": "remove", "path": "/status/gone"},
            {"op": "add", "path": "/status/a~1b/values", "value": {"rollingUpdate": null}},
            {"op": "replace", "path": "/status/a~1b/x", "value": 2},
        ]);
        assert_eq!(patch, expected);
        let same = json!({"status": {"a/b": {"x": 3, "values": {"rollingUpdate": null}}}});
        assert_eq!(change(&after, &after, &same).unwrap().0, PatchType::Merge, "it stands already");
    }
}
