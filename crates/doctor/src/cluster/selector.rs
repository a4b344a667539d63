//! Label selectors.

use tiphys_value::{Map, ObjectExt as _, Value};

/// The labels of an object; empty if it has none.
pub(crate) fn labels(object: &Value) -> Option<&Map<String, Value>> {
    object.at(&["metadata", "labels"])?.as_object()
}

/// Whether labels hold every pair of a map, as a Service selects.
pub(crate) fn has_all(labels: Option<&Map<String, Value>>, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}

/// Whether a selector of `matchLabels` and `matchExpressions` takes these labels; an empty one takes all.
pub(crate) fn matches(selector: &Value, labels: Option<&Map<String, Value>>) -> bool {
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    if !wanted.is_none_or(|wanted| has_all(labels, wanted)) {
        return false;
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    expressions.into_iter().flatten().all(|expression| holds(expression, labels))
}

/// Whether one requirement holds, of a label selector or of a node selector.
pub(crate) fn holds(expression: &Value, labels: Option<&Map<String, Value>>) -> bool {
    let key = expression.str_at(&["key"]).unwrap_or_default();
    let values = || expression.get("values").and_then(Value::as_array).into_iter().flatten();
    let label = labels.and_then(|labels| labels.get(key));
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<i64>().ok());
    match expression.str_at(&["operator"]).unwrap_or_default() {
        "In" => label.is_some_and(|label| values().any(|value| value == label)),
        "NotIn" => !label.is_some_and(|label| values().any(|value| value == label)),
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        "Gt" => label.and_then(number) > values().next().and_then(number),
        "Lt" => label.and_then(number).is_some_and(|it| Some(it) < values().next().and_then(number)),
        _ => true,
    }
}
