//! Whose change a self-heal takes back (incident B5).

use tiphys_model::{Operation, names};
use tiphys_sync::{Comparison, LiveObject};
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

/// How many are told of.
const MOST: usize = 20;

/// What a self-heal is about to take back, one line for each object.
pub(crate) fn reverted(
    operation: &Operation,
    comparison: &Comparison,
    live: &std::collections::BTreeMap<ResourceKey, LiveObject>,
) -> Vec<String> {
    let heals = operation.sync.as_ref().is_some_and(|sync| sync.auto_heal_attempts_count > 0);
    if !heals {
        return Vec::new();
    }
    let lines = comparison.differences.iter().filter(|(key, _)| !comparison.prunable.contains(*key));
    lines.take(MOST).map(|(key, paths)| line(key, paths, live.get(key))).collect()
}

fn line(key: &ResourceKey, paths: &[FieldPath], live: Option<&LiveObject>) -> String {
    let Some(live) = live else { return format!("{key} was deleted; it is created again") };
    let shown: Vec<String> = paths.iter().take(3).map(ToString::to_string).collect();
    let more = if paths.len() > 3 { format!(" and {} more fields", paths.len() - 3) } else { String::new() };
    let whose = culprit(&live.object, paths).map_or_else(String::new, |by| format!(", changed by {by}"));
    format!("{key}: {}{more}{whose}", shown.join(", "))
}

/// The manager other than us that wrote one of the fields last, with when.
fn culprit(object: &Value, paths: &[FieldPath]) -> Option<String> {
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array)?;
    let owning = entries.iter().filter(|entry| {
        entry.str_at(&["manager"]) != Some(names::FIELD_MANAGER)
            && entry.get("subresource").is_none()
            && paths.iter().any(|path| tiphys_diff::owns(entry.get("fieldsV1"), &path.0))
    });
    let latest = owning.max_by_key(|entry| entry.str_at(&["time"]).unwrap_or_default().to_owned())?;
    let manager = latest.str_at(&["manager"])?;
    Some(match latest.str_at(&["time"]) {
        Some(time) => format!("{manager} at {time}"),
        None => manager.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn the_manager_of_the_field_is_named() {
        let object = json!({"metadata": {"managedFields": [
            {"manager": "tiphys", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "kubectl-scale", "time": "2026-01-02T00:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "other", "time": "2026-01-03T00:00:00Z", "fieldsV1": {"f:metadata": {"f:labels": {"f:x": {}}}}}]}});
        let path = FieldPath::default().key("spec").key("replicas");
        assert_eq!(culprit(&object, &[path]).as_deref(), Some("kubectl-scale at 2026-01-02T00:00:00Z"));
        assert_eq!(culprit(&object, &[FieldPath::default().key("data")]), None);
    }
}
