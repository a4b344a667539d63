//! Label selectors as workloads and Services carry them (API conventions, "LabelSelector").

use serde_json::Value;
use tiphys_value::{ObjectExt, label_selector};

/// Whether a label selector (matchLabels and matchExpressions) selects an object: an absent one selects
/// nothing, an empty one everything.
pub(crate) fn selects(selector: Option<&Value>, object: &Value) -> bool {
    let Some(selector) = selector.filter(|selector| selector.is_object()) else { return false };
    label_selector::selects(selector, |key| object.label(key)).unwrap_or(false)
}

/// Whether a workload's `spec.selector` selects an object. As [`selects`], but an empty one selects nothing:
/// no workload may own everything.
pub(crate) fn claims(selector: &Value, object: &Value) -> bool {
    let is_empty = |part: Option<&Value>| match part {
        Some(Value::Object(labels)) => labels.is_empty(),
        Some(Value::Array(expressions)) => expressions.is_empty(),
        _ => true,
    };
    let says_something =
        !is_empty(selector.get("matchLabels")) || !is_empty(selector.get("matchExpressions"));
    says_something && selects(Some(selector), object)
}

/// Whether a Service's `spec.selector` (a plain map) selects an object; an absent one selects nothing.
pub(crate) fn service_selects(service: &Value, object: &Value) -> bool {
    let selector = service.at(&["spec", "selector"]).and_then(Value::as_object);
    selector.is_some_and(|labels| !labels.is_empty() && has_labels(labels, object))
}

/// A label selector as Go prints a pointer to one.
pub(crate) fn selector_in_go(selector: &Value) -> String {
    if !selector.is_object() {
        return "nil".to_owned();
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut labels: Vec<_> = labels.map(|(key, value)| format!("{key}: {},", text(value))).collect();
    labels.sort();
    let requirement = |term: &Value| {
        let values = term["values"].as_array().into_iter().flatten().map(text);
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            text(&term["key"]),
            text(&term["operator"]),
            values.collect::<Vec<_>>().join(" ")
        )
    };
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
        labels.concat(),
        expressions.map(requirement).collect::<String>()
    )
}

/// The Service that an EndpointSlice belongs to.
pub(crate) fn service_key(slice: &Value) -> Option<&str> {
    slice.label("kubernetes.io/service-name")
}

fn has_labels<'a>(labels: impl IntoIterator<Item = (&'a String, &'a Value)>, object: &Value) -> bool {
    labels.into_iter().all(|(key, value)| object.label(key) == value.as_str())
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
        assert!(!selects(None, &pod) && !selects(Some(&Value::Null), &pod));
        assert!(selects(Some(&json!({})), &pod));
        assert!(!claims(&json!({}), &pod) && !claims(&json!({"matchLabels": null}), &pod));
        assert!(claims(&selector, &pod));
    }
}
