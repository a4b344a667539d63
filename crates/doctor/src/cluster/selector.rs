//! Label selectors.

use tiphys_value::{Map, ObjectExt as _, Value, label_selector};

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
    label_selector::selects(selector, |key| value_of(labels, key)).unwrap_or(true)
}

fn value_of<'l>(labels: Option<&'l Map<String, Value>>, key: &str) -> Option<&'l str> {
    labels?.get(key)?.as_str()
}

/// Whether one requirement holds, of a label selector or of a node selector.
pub(crate) fn holds(expression: &Value, labels: Option<&Map<String, Value>>) -> bool {
    label_selector::meets(expression, |key| value_of(labels, key)).unwrap_or(true)
}
