//! Which pods a selector finds.

use tiphys_diag::similar_names;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, OriginKind, Value};

use super::pods::Pod;

/// Whether a Service selects the pods of a workload: of its namespace, by all of its labels. One without a
/// selector selects none.
pub(crate) fn selects(service: &Object, pod: &Pod<'_>) -> bool {
    if service.key.namespace != pod.object.key.namespace {
        return false;
    }
    let selector = labels(service);
    !selector.is_empty()
        && selector.iter().all(|(key, value)| pod.label(key) == Some(value) || is_given(pod, key, value))
}

/// The labels that the controller of a StatefulSet gives its pods.
pub(crate) const GIVEN: [&str; 2] = ["statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"];

/// Whether a StatefulSet's controller gives one of its pods a label: its name, which ends in a number, or the
/// number.
fn is_given(pod: &Pod<'_>, key: &str, value: &str) -> bool {
    let [name, index] = GIVEN;
    let number = match key {
        _ if key == name => {
            value.strip_prefix(pod.object.key.name.as_str()).and_then(|rest| rest.strip_prefix('-'))
        }
        _ if key == index => Some(value),
        _ => None,
    };
    pod.object.key.kind == "StatefulSet" && number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The labels that a Service selects by.
pub(crate) fn labels(service: &Object) -> Vec<(&str, &str)> {
    let map = service.value().at(&["spec", "selector"]).and_then(Value::as_object);
    map.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

/// The labels of a selector that selects by labels alone; `None` if it selects by more, or all.
pub(crate) fn match_labels(selector: &Value) -> Option<Vec<(&str, &str)>> {
    let labels = selector.get("matchLabels")?.as_object()?;
    let is_plain = selector.get("matchExpressions").is_none() && !labels.is_empty();
    is_plain.then(|| labels.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect())
}

/// The labels of a selector without those that a kustomization put in, and those that it did.
pub(crate) fn without_transformed<'l>(
    object: &Object,
    place: &FieldPath,
    wanted: &[(&'l str, &'l str)],
) -> (Labels<'l>, Labels<'l>) {
    wanted.iter().partition(|(key, _)| !is_transformed(object, &place.key(*key)))
}

/// Labels of a selector.
pub(crate) type Labels<'l> = Vec<(&'l str, &'l str)>;

/// Whether a transformer of a kustomization, such as `commonLabels`, wrote a field last.
pub(crate) fn is_transformed(object: &Object, field: &FieldPath) -> bool {
    let first = object.rendered.origins.lookup(field).first();
    first.is_some_and(|origin| origin.kind == OriginKind::Transformer)
}

/// Whether labels are those that a selector wants but for one, whose value is nearly the same.
pub(crate) fn is_slip<'a>(wanted: &[(&str, &str)], label: impl Fn(&str) -> Option<&'a str>) -> bool {
    let others: Vec<(&str, Option<&str>)> = wanted
        .iter()
        .map(|(key, value)| (*value, label(key)))
        .filter(|(value, own)| *own != Some(value))
        .collect();
    let [(value, Some(own))] = others[..] else { return false };
    // `db-1` and `db-2` are two of several.
    !similar_names::differ_in_digits_only(value, own)
        && similar_names::nearest_slip(value, [own].into_iter()).is_some()
}
