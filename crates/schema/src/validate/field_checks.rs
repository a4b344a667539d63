//! What fields of many kinds are checked for: texts, numbers, labels, selectors, and what must not change.

use serde_json::Value;

use super::names;
use crate::{ErrorList, FieldError, Path};

/// A field that must not change; `pointer` is its JSON pointer.
pub(super) fn immutable(new: &Value, old: &Value, pointer: &str, errors: &mut ErrorList) {
    let value = new.pointer(pointer).cloned().unwrap_or_default();
    let before = old.pointer(pointer).cloned().unwrap_or_default();
    if value != before {
        // A text that is no pointer is empty, not null.
        let value = match pointer {
            "/spec/controller" | "/provisioner" | "/addressType" if value.is_null() => "".into(),
            _ => value,
        };
        let path = Path::new(pointer.trim_start_matches('/').replace('/', "."));
        errors.push(FieldError::invalid(&path, value, "field is immutable"));
    }
}

pub(super) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

pub(super) fn list<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object[key].as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn not_negative(value: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(number) = value.as_i64().filter(|number| *number < 0) {
        errors.push(FieldError::invalid(path, number, "must be greater than or equal to 0"));
    }
}

/// A number in a field that is zero where it is left out.
pub(super) fn not_negative_field(object: &Value, field: &str, path: &Path, errors: &mut ErrorList) {
    not_negative(&object[field], &path.child(field), errors);
}

/// The keys of annotations, and the room that they take.
pub(super) fn annotations(annotations: &Value, path: &Path, errors: &mut ErrorList) {
    const LONGEST: usize = 256 * 1024;
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        let lower = key.to_lowercase();
        faulty(names::qualified_name(&lower), key, path, errors);
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > LONGEST {
        errors.push(FieldError::too_long(path, LONGEST));
    }
}

/// A path whose first part is a domain, such as `example.com/name`.
pub(super) fn domain_path(value: &str, path: &Path, errors: &mut ErrorList) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let Some((host, rest)) =
        value.split_once('/').filter(|(host, rest)| !host.is_empty() && !rest.is_empty())
    else {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        errors.push(FieldError::invalid(path, value, detail));
        return;
    };
    faulty(names::dns1123_subdomain(host), host, path, errors);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/%!$&'()*+,;=:-._~".contains(c);
    if !rest.chars().all(is_plain) {
        let detail = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        errors.push(FieldError::invalid(path, rest, detail));
    }
}

/// Adds a fault of a text for each reason.
pub(super) fn faulty(reasons: Vec<String>, value: &str, path: &Path, errors: &mut ErrorList) {
    errors.extend(reasons.into_iter().map(|reason| FieldError::invalid(path, value, reason)));
}

/// A text that must be one of a few.
pub(super) fn one_of(value: &str, allowed: &[&str], path: &Path, errors: &mut ErrorList) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !allowed.contains(&value) {
        errors.push(FieldError::not_supported(path, value, allowed));
    }
}

/// The keys and values of labels.
pub(super) fn labels(labels: &Value, path: &Path, errors: &mut ErrorList) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        faulty(names::qualified_name(key), key, path, errors);
        let value = value.as_str().unwrap_or_default();
        faulty(names::label_value(value), value, path, errors);
    }
}

/// A `metav1.LabelSelector`.
pub(super) fn selector(selector: &Value, path: &Path, errors: &mut ErrorList) {
    labels(&selector["matchLabels"], &path.child("matchLabels"), errors);
    for (at, requirement) in list(selector, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions").index(at);
        let values = list(requirement, "values");
        match text(requirement, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(&path.child("values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(&path.child("values"), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                errors.push(FieldError::invalid(
                    &path.child("operator"),
                    other,
                    "not a valid selector operator",
                ));
            }
        }
        let key = text(requirement, "key");
        faulty(names::qualified_name(key), key, &path.child("key"), errors);
        for (at, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            faulty(names::label_value(value), value, &path.child("values").index(at), errors);
        }
    }
}

/// Why no selector can be made of a selector object: the first fault in it.
pub(super) fn selector_fault(object: &Value) -> Option<String> {
    let mut errors = ErrorList::new();
    selector(object, &Path::root(), &mut errors);
    errors.0.into_iter().next().map(|error| error.body())
}

/// Whether a selector object has no conditions.
pub(super) fn is_empty_selector(selector: &Value) -> bool {
    let labels = selector["matchLabels"].as_object().map_or(0, |map| map.len());
    labels + list(selector, "matchExpressions").len() == 0
}
