//! Taking over fields from managers before us, as `kubectl apply --server-side` does from that of client-side
//! apply: else a field that leaves the sources would stay because its old manager still owns it.

use tiphys_cluster::{Cluster, ClusterError, PatchType};
use tiphys_model::names;
use tiphys_value::{GroupVersionKind, Map, ObjectExt, ResourceKey, Value, json};

/// Makes us the applier of every field that the named managers hold, however they wrote it and in whatever
/// version.
pub(crate) async fn take_over(
    cluster: &Cluster,
    gvk: &GroupVersionKind,
    key: &ResourceKey,
    managers: &[String],
) -> Result<(), ClusterError> {
    let resource = cluster.resource(gvk).await?;
    let Some(live) = cluster.get(&resource, &key.namespace, &key.name).await? else { return Ok(()) };
    let Some(entries) = migrated(&live, managers, &gvk.api_version()) else { return Ok(()) };
    let patch = json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version()},
    ]);
    let name = (key.namespace.as_str(), key.name.as_str());
    cluster.patch(&resource, name, "", PatchType::Json, &patch, names::FIELD_MANAGER).await?;
    Ok(())
}

/// The managedFields with the entries of the managers merged into ours; `None` if they have none.
fn migrated(live: &Value, managers: &[String], api_version: &str) -> Option<Vec<Value>> {
    let entries = live.at(&["metadata", "managedFields"])?.as_array()?;
    let is_whole = |entry: &Value| entry.str_at(&["subresource"]).unwrap_or_default().is_empty();
    let is_ours = |entry: &&Value| {
        entry.str_at(&["manager"]) == Some(names::FIELD_MANAGER)
            && entry.str_at(&["operation"]) == Some("Apply")
            && is_whole(entry)
    };
    let is_old = |entry: &&Value| {
        let manager = entry.str_at(&["manager"]).unwrap_or_default();
        managers.iter().any(|old| old == manager) && is_whole(entry) && !is_ours(entry)
    };
    let old: Vec<&Value> = entries.iter().filter(is_old).collect();
    let first = old.first()?;
    let mut ours = entries.iter().find(is_ours).map_or_else(|| (*first).clone(), Clone::clone);
    ours["manager"] = names::FIELD_MANAGER.into();
    ours["operation"] = "Apply".into();
    // An API server forgets what is recorded in a version that it does not serve any more.
    ours["apiVersion"] = api_version.into();
    for entry in &old {
        if let Some(fields) = entry.get("fieldsV1") {
            unite(&mut ours["fieldsV1"], fields, 0);
        }
    }
    let mut kept: Vec<Value> =
        entries.iter().filter(|entry| !is_old(entry) && !is_ours(entry)).cloned().collect();
    kept.push(ours);
    Some(kept)
}

/// The union of two sets of fields in the form of `fieldsV1`.
fn unite(into: &mut Value, from: &Value, depth: usize) {
    const MAX_DEPTH: usize = 128;
    let Value::Object(from) = from else { return };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    if let Value::Object(into) = into
        && depth < MAX_DEPTH
    {
        for (field, below) in from {
            unite(into.entry(field.clone()).or_insert_with(|| json!({})), below, depth + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_client_side_apply_become_ours() {
        let live = json!({"metadata": {"managedFields": [
            {"manager": "kubectl-client-side-apply", "operation": "Update", "fieldsV1": {"f:data": {"f:a": {}}}},
            {"manager": "tiphys", "operation": "Apply", "fieldsV1": {"f:data": {"f:b": {}}}},
            {"manager": "other", "operation": "Update", "fieldsV1": {}},
        ]}});
        let entries = migrated(&live, &["kubectl-client-side-apply".into()], "v1").expect("there is one");
        let managers: Vec<_> = entries.iter().filter_map(|entry| entry.str_at(&["manager"])).collect();
        assert_eq!(managers, ["other", "tiphys"]);
        assert_eq!(entries[1]["fieldsV1"], json!({"f:data": {"f:a": {}, "f:b": {}}}));
        assert_eq!(migrated(&live, &["nobody".into()], "v1"), None);
    }

    #[test]
    fn all_that_a_manager_holds_becomes_ours() {
        let entry = |operation: &str, version: &str, field: &str| {
            json!({"manager": "argocd-controller", "operation": operation,
            "apiVersion": version, "fieldsV1": {"f:spec": {field: {}}}})
        };
        let mut status = entry("Update", "apps/v1", "f:d");
        status["subresource"] = "status".into();
        let live = json!({"metadata": {"managedFields": [
            entry("Apply", "apps/v1", "f:a"), entry("Update", "apps/v1", "f:b"), entry("Update", "apps/v1beta1", "f:c"),
            status]}});
        let entries = migrated(&live, &["argocd-controller".into()], "apps/v1").expect("there are some");
        assert_eq!(entries[0], status, "what came by a subresource stays");
        assert_eq!(
            entries[1..],
            [json!({"manager": "tiphys", "operation": "Apply", "apiVersion": "apps/v1",
            "fieldsV1": {"f:spec": {"f:a": {}, "f:b": {}, "f:c": {}}}})]
        );
    }
}
