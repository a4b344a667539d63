//! What of an object is kept: no value of a Secret, and no field set of a status, which fill the memory.

use serde_json::Value;
use tiphys_cluster::Resource;
use tiphys_value::ObjectExt as _;

use crate::commands::doctor::mask::strip_secret;

/// Whether a kind is that of Secrets.
pub(super) fn is_secret(resource: &Resource) -> bool {
    resource.gvk.group.is_empty() && resource.gvk.kind == "Secret"
}

/// An object as it is kept. Who wrote a status, and when, stays; which fields of it does not.
pub(super) fn trimmed(mut object: Value) -> Value {
    if object.kind() == "Secret"
        && let Some(map) = object.as_object_mut()
    {
        strip_secret(map);
    }
    let entries = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("managedFields"));
    for entry in entries.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
    {
        if entry.get("subresource").is_some_and(|subresource| subresource == "status") {
            entry.remove("fieldsV1");
        }
    }
    object
}

/// Gives the type back to a release of Helm of which only the metadata was read.
pub(super) fn mark_release(secret: &mut Value) {
    if let Some(secret) = secret.as_object_mut() {
        secret.insert("type".to_owned(), "helm.sh/release.v1".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn field_sets_of_a_status_go_and_others_stay() {
        let fields = json!({"f:spec": {}});
        let entry = |subresource: &str| json!({"manager": "m", "time": "t", "subresource": subresource, "fieldsV1": fields});
        let object =
            trimmed(json!({"kind": "Pod", "metadata": {"managedFields": [entry("status"), entry("")]}}));
        let entries = &object["metadata"]["managedFields"];
        assert_eq!(entries[0], json!({"manager": "m", "time": "t", "subresource": "status"}));
        assert_eq!(entries[1]["fieldsV1"], fields);
    }
}
