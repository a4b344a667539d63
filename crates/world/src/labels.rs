//! Label selectors as workloads and Services carry them (API conventions, "LabelSelector").

use serde_json::Value;
use tiphys_value::ObjectExt;

/// Whether a workload's `spec.selector` (matchLabels and matchExpressions) selects an object. An
/// absent or empty selector selects nothing here: no workload may own everything.
pub fn selects(selector: Option<&Value>, object: &Value) -> bool {
    let Some(selector) = selector else { return false };
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    if labels.is_none_or(|labels| labels.is_empty()) && expressions.is_none_or(Vec::is_empty) {
        return false;
    }
    has_labels(labels.into_iter().flatten(), object)
        && expressions.into_iter().flatten().all(|expression| holds(expression, object))
}

/// Whether a Service's `spec.selector` (a plain map) selects an object; an absent one selects nothing.
pub fn service_selects(service: &Value, object: &Value) -> bool {
    let selector = service.at(&["spec", "selector"]).and_then(Value::as_object);
    selector.is_some_and(|labels| !labels.is_empty() && has_labels(labels, object))
}

/// The Service that an EndpointSlice belongs to.
pub fn service_key(slice: &Value) -> Option<&str> {
    slice.label("kubernetes.io/service-name")
}

fn has_labels<'a>(labels: impl IntoIterator<Item = (&'a String, &'a Value)>, object: &Value) -> bool {
    labels.into_iter().all(|(key, value)| object.label(key) == value.as_str())
}

fn holds(expression: &Value, object: &Value) -> bool {
    let label = object.label(expression.str_at(&["key"]).unwrap_or_default());
    let values = expression.get("values").and_then(Value::as_array);
    let is_listed = label.is_some_and(|label| values.into_iter().flatten().any(|value| value == label));
    match expression.str_at(&["operator"]) {
        Some("In") => is_listed,
        Some("NotIn") => !is_listed,
        Some("Exists") => label.is_some(),
        Some("DoesNotExist") => label.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_and_expressions_must_all_hold() {
        let pod = json!({"metadata": {"labels": {"app": "a", "tier": "x"}}});
        let selector = json!({"matchLabels": {"app": "a"}, "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["x", "y"]},
            {"key": "old", "operator": "DoesNotExist"}]});
        assert!(selects(Some(&selector), &pod));
        assert!(!selects(Some(&json!({"matchLabels": {"app": "b"}})), &pod));
        assert!(!selects(Some(&json!({})), &pod));
        assert!(!selects(None, &pod));
    }
}
