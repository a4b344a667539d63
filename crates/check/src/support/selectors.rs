//! Which pods a selector finds.

use tiphys_graph::Object;
use tiphys_value::{ObjectExt, Value};

use super::pods::Pod;

/// Whether a Service selects the pods of a workload: of its namespace, by all of its labels. One without a
/// selector selects none.
pub fn selects(service: &Object, pod: &Pod<'_>) -> bool {
    let selector = labels(service);
    service.key.namespace == pod.object.key.namespace
        && !selector.is_empty()
        && selector.iter().all(|(key, value)| pod.label(key) == Some(value))
}

/// The labels that a Service selects by.
pub fn labels(service: &Object) -> Vec<(&str, &str)> {
    let map = service.value().at(&["spec", "selector"]).and_then(Value::as_object);
    map.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}
