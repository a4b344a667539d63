//! Definitions of custom resources.

use tiphys_schema::{ErrorList, validate_crd};
use tiphys_value::{Value, json};

use crate::meta::items;

/// The status of a new definition.
pub(super) fn begin_status(crd: &mut Value) {
    crd["status"] = json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored_versions(crd)});
}

/// Validation, but of the status.
pub(super) fn validate(subresource: Option<&str>, crd: &Value, old: Option<&Value>) -> Option<ErrorList> {
    if subresource == Some("status") {
        return None;
    }
    let mut errors = validate_crd(crd, old);
    check_rules(crd, old, &mut errors);
    Some(errors)
}

fn stored_versions(crd: &Value) -> Vec<Value> {
    items(crd, "/spec/versions").filter(|v| v["storage"] == true).map(|v| v["name"].clone()).collect()
}

/// Every version that was ever the storage version stays in `status.storedVersions`.
pub(super) fn keep_stored_versions(crd: &mut Value) {
    let now = stored_versions(crd);
    if let Some(list) = crd.pointer_mut("/status/storedVersions").and_then(Value::as_array_mut) {
        for version in now {
            if !list.contains(&version) {
                list.push(version);
            }
        }
    }
}

/// Checks the CEL rules of a definition's schemas that are new or changed.
fn check_rules(crd: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    if old.is_some_and(|old| old["spec"] == crd["spec"]) {
        return;
    }
    let known = old.map(tiphys_schema::crd_schemas).unwrap_or_default();
    for (schema, path) in tiphys_schema::crd_schemas(crd) {
        // Rules about a schema that is not understood would only be misunderstood.
        let start = path.to_string();
        if !errors.iter().any(|error| error.field.starts_with(&start)) {
            let is_known = known.iter().any(|(other, _)| *other == schema);
            errors.extend(tiphys_expr::cel::Rules::check(schema, &path, is_known));
        }
    }
}
