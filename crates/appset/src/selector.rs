//! Label selectors over texts: labels of clusters, and parameters of generators.

use serde_json::Value;
use tiphys_value::ObjectExt;

/// Whether a selector names nothing.
pub fn is_empty(selector: &Value) -> bool {
    let has = |key: &str| match selector.get(key) {
        Some(Value::Object(map)) => !map.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        _ => false,
    };
    !has("matchLabels") && !has("matchExpressions")
}

/// Whether a selector selects something with these labels.
///
/// # Errors
/// An operator is unknown.
pub fn selects(selector: &Value, label: &dyn Fn(&str) -> Option<String>) -> Result<bool, String> {
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        if label(key).as_deref() != value.as_str() {
            return Ok(false);
        }
    }
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let have = label(expression.str_at(&["key"]).unwrap_or_default());
        let values = expression.get("values").and_then(Value::as_array);
        let listed = have.as_ref().is_some_and(|have| {
            values.is_some_and(|values| values.iter().any(|value| value.as_str() == Some(have)))
        });
        let selected = match expression.str_at(&["operator"]).unwrap_or_default() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => have.is_some(),
            "DoesNotExist" => have.is_none(),
            other => return Err(format!("{other:?} is not a valid label selector operator")),
        };
        if !selected {
            return Ok(false);
        }
    }
    Ok(true)
}
