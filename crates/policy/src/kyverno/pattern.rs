//! Comparing an object with the pattern of a rule (Kyverno, `pkg/engine/validate` and `pkg/engine/anchor`).

use tiphys_value::{FieldPath, Map, Value};

use super::operand;
use crate::wildcard;

/// Why an object does not fit a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    /// It breaks it at this field.
    Breaks(FieldPath),
    /// A condition in it does not hold, so it is not about the object. `direct` if it is one of the map itself,
    /// and not one of all that is below.
    IsAboutOthers {
        /// See above.
        direct: bool,
    },
}

type Comparison = Result<(), Mismatch>;

/// What is said around the name of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    /// `(name)`: the rest of this map has to hold only if the field is there and fits.
    Condition,
    /// `<(name)`: the rest of the pattern has to hold only if the field is missing or fits.
    Global,
    /// `X(name)`: the field has to be missing.
    Negation,
    /// `=(name)`: the field has to fit if it is there.
    Equality,
    /// `^(name)`: at least one item of the list has to fit.
    Existence,
}

/// The anchor around a name, and the name.
fn anchor(key: &str) -> Option<(Anchor, &str)> {
    let key = key.trim();
    let inner = key.strip_suffix(')')?;
    let (anchor, name) = match inner.split_at_checked(1)? {
        ("(", name) => (Anchor::Condition, name),
        ("<", rest) => (Anchor::Global, rest.strip_prefix('(')?),
        ("X", rest) => (Anchor::Negation, rest.strip_prefix('(')?),
        ("=", rest) => (Anchor::Equality, rest.strip_prefix('(')?),
        ("^", rest) => (Anchor::Existence, rest.strip_prefix('(')?),
        _ => return None,
    };
    (!name.is_empty()).then_some((anchor, name))
}

/// Compares an object with a pattern.
pub(super) fn compare(object: &Value, pattern: &Value) -> Comparison {
    value(object, pattern, &FieldPath::default())
}

fn value(given: &Value, pattern: &Value, path: &FieldPath) -> Comparison {
    let breaks = || Err(Mismatch::Breaks(path.clone()));
    match (pattern, given) {
        (Value::Object(pattern), Value::Object(given)) => map(given, pattern, path),
        (Value::Array(pattern), Value::Array(given)) => items(given, pattern, path),
        (Value::Object(_) | Value::Array(_), _) => breaks(),
        // A scalar is meant for each item of a list.
        (scalar, Value::Array(given)) => match given.iter().all(|item| operand::fits(item, scalar)) {
            true => Ok(()),
            false => breaks(),
        },
        (scalar, given) if operand::fits(given, scalar) => Ok(()),
        _ => breaks(),
    }
}

fn map(given: &Map<String, Value>, pattern: &Map<String, Value>, path: &FieldPath) -> Comparison {
    let expanded = with_names_of_metadata(given, pattern);
    let pattern = expanded.as_ref().unwrap_or(pattern);
    let mut keys: Vec<&String> = pattern.keys().collect();
    keys.sort();
    let is_first = |key: &str| anchor(key).is_some_and(|(anchor, _)| anchor != Anchor::Global);
    let (anchored, rest): (Vec<&String>, Vec<&String>) = keys.into_iter().partition(|key| is_first(key));
    conditions(given, pattern, path, &anchored)?;
    // What has conditions below it is compared first, the last of them before the others.
    let (before, after): (Vec<&String>, Vec<&String>) =
        rest.into_iter().partition(|key| anchor(key).is_some() || has_anchors(&pattern[key.as_str()]));
    before.into_iter().rev().chain(after).try_for_each(|key| field(given, key, &pattern[key], path))
}

/// Compares the fields with anchors: those that are about others decide whether the rest counts.
fn conditions(
    given: &Map<String, Value>,
    pattern: &Map<String, Value>,
    path: &FieldPath,
    keys: &[&String],
) -> Comparison {
    let (mut skipped, mut skipped_directly, mut fitting) = (false, false, 0);
    for key in keys {
        match field(given, key, &pattern[key.as_str()], path) {
            Ok(()) => fitting += 1,
            Err(Mismatch::IsAboutOthers { direct }) => {
                skipped = true;
                skipped_directly |= direct;
            }
            Err(broken) if !skipped_directly => return Err(broken),
            Err(_) => {}
        }
    }
    match skipped && (fitting == 0 || skipped_directly) {
        true => Err(Mismatch::IsAboutOthers { direct: false }),
        false => Ok(()),
    }
}

/// Compares one field of a map.
fn field(given: &Map<String, Value>, key: &str, pattern: &Value, path: &FieldPath) -> Comparison {
    let others = Err(Mismatch::IsAboutOthers { direct: true });
    let Some((anchor, name)) = anchor(key) else {
        let below = path.key(key);
        let found = given.get(key).unwrap_or(&Value::Null);
        return match pattern {
            Value::String(any) if any == "*" && found.is_null() => Err(Mismatch::Breaks(below)),
            Value::String(any) if any == "*" => Ok(()),
            _ => value(found, pattern, &below),
        };
    };
    let below = path.key(name);
    match (anchor, given.get(name)) {
        (Anchor::Condition, None) => others,
        (Anchor::Condition | Anchor::Global, Some(found)) => value(found, pattern, &below).or(others),
        (Anchor::Negation, Some(_)) => Err(Mismatch::Breaks(below)),
        (Anchor::Equality, Some(found)) => value(found, pattern, &below),
        (Anchor::Existence, Some(Value::Array(found))) => {
            let wanted = pattern.as_array().map(Vec::as_slice).unwrap_or_default();
            let is_there = |wanted: &Value| {
                wanted.is_object() && found.iter().any(|it| value(it, wanted, &below).is_ok())
            };
            match pattern.is_array() && wanted.iter().all(is_there) {
                true => Ok(()),
                false => Err(Mismatch::Breaks(below)),
            }
        }
        (Anchor::Existence, Some(_)) => Err(Mismatch::Breaks(below)),
        (Anchor::Global | Anchor::Negation | Anchor::Equality | Anchor::Existence, None) => Ok(()),
    }
}

fn items(given: &[Value], pattern: &[Value], path: &FieldPath) -> Comparison {
    match pattern.first() {
        None => Err(Mismatch::Breaks(path.clone())),
        // One map is meant for each item.
        Some(each @ Value::Object(_)) => {
            some_count(given.iter().enumerate().map(|(at, item)| value(item, each, &path.index(at))))
        }
        Some(Value::Array(_)) if given.len() < pattern.len() => Err(Mismatch::Breaks(path.clone())),
        Some(Value::Array(_)) => {
            let pairs = given.iter().zip(pattern).enumerate();
            some_count(pairs.map(|(at, (item, pattern))| value(item, pattern, &path.index(at))))
        }
        Some(scalar) => match given.iter().all(|item| operand::fits(item, scalar)) {
            true => Ok(()),
            false => Err(Mismatch::Breaks(path.clone())),
        },
    }
}

/// Items that a pattern is not about do not count, unless it is about none.
fn some_count(each: impl Iterator<Item = Comparison>) -> Comparison {
    let (mut fitting, mut skipped) = (0, 0);
    for comparison in each {
        match comparison {
            Ok(()) => fitting += 1,
            Err(Mismatch::IsAboutOthers { .. }) => skipped += 1,
            broken => return broken,
        }
    }
    match fitting == 0 && skipped > 0 {
        true => Err(Mismatch::IsAboutOthers { direct: false }),
        false => Ok(()),
    }
}

fn has_anchors(pattern: &Value) -> bool {
    match pattern {
        Value::Object(map) => map.iter().any(|(key, below)| anchor(key).is_some() || has_anchors(below)),
        Value::Array(items) => items.iter().any(has_anchors),
        _ => false,
    }
}

/// A pattern with names like `team-*` in `metadata.labels` and `metadata.annotations` replaced by the names of
/// the object that they stand for.
fn with_names_of_metadata(
    given: &Map<String, Value>,
    pattern: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let named = |map: &Map<String, Value>, name: &str| {
        map.keys().find(|key| *key == name || anchor(key).is_some_and(|(_, it)| it == name)).cloned()
    };
    let metadata = named(pattern, "metadata")?;
    let given = given.get("metadata")?;
    let mut found: Option<Map<String, Value>> = None;
    for field in ["labels", "annotations"] {
        let names = pattern[&metadata].as_object().and_then(|it| named(it, field));
        let (Some(key), Some(given)) = (names, given.get(field).and_then(Value::as_object)) else { continue };
        let Some(wanted) = pattern[&metadata][&key].as_object() else { continue };
        if !wanted.keys().any(|key| wildcard::is_pattern(key)) {
            continue;
        }
        let renamed = wanted.iter().map(|(key, value)| (name_in(given, key), value.clone())).collect();
        let whole = found.get_or_insert_with(|| pattern.clone());
        whole[&metadata][&key] = Value::Object(renamed);
    }
    found
}

/// The name of a map that a pattern of names stands for, with the pattern's anchor.
fn name_in(given: &Map<String, Value>, pattern: &str) -> String {
    let name = anchor(pattern).map_or(pattern, |(_, name)| name);
    let found = given.keys().find(|key| wildcard::is_pattern(name) && wildcard::matches(name, key));
    found.map_or_else(|| pattern.to_owned(), |found| pattern.replacen(name, found, 1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(object: Value, pattern: Value) -> String {
        match compare(&object, &pattern) {
            Ok(()) => "fits".to_owned(),
            Err(Mismatch::Breaks(path)) => path.to_string(),
            Err(Mismatch::IsAboutOthers { .. }) => "others".to_owned(),
        }
    }

    #[test]
    fn maps_and_lists_are_compared_field_by_field() {
        let pod =
            || json!({"spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "x"}]}});
        assert_eq!(
            outcome(pod(), json!({"spec": {"containers": [{"image": "*:*"}]}})),
            ".spec.containers[1].image"
        );
        assert_eq!(outcome(pod(), json!({"spec": {"containers": [{"name": "?*"}]}})), "fits");
        assert_eq!(outcome(pod(), json!({"spec": {"volumes": [{"name": "?*"}]}})), ".spec.volumes");
        assert_eq!(outcome(pod(), json!({"spec": {"=(volumes)": [{"name": "?*"}]}})), "fits");
        assert_eq!(outcome(pod(), json!({"spec": {"X(hostNetwork)": "null"}})), "fits");
    }

    #[test]
    fn anchors_make_conditions() {
        let container = |image: &str, policy: &str| json!([{"image": image, "imagePullPolicy": policy}]);
        let pattern = || json!([{"(image)": "*:latest", "imagePullPolicy": "!Never"}]);
        assert_eq!(outcome(container("a:latest", "Never"), pattern()), "[0].imagePullPolicy");
        assert_eq!(outcome(container("a:latest", "Always"), pattern()), "fits");
        assert_eq!(outcome(container("a:1", "Never"), pattern()), "others");
        let volumes = json!({"volumes": [{"name": "a"}, {"name": "b", "hostPath": {"path": "/"}}]});
        assert_eq!(
            outcome(volumes.clone(), json!({"=(volumes)": [{"X(hostPath)": "null"}]})),
            ".volumes[1].hostPath"
        );
        assert_eq!(outcome(volumes.clone(), json!({"^(volumes)": [{"name": "b"}]})), "fits");
        assert_eq!(outcome(volumes, json!({"^(volumes)": [{"name": "c"}]})), ".volumes");
        let secured = json!({"a": {"kind": "x"}, "b": 1});
        assert_eq!(outcome(secured.clone(), json!({"a": {"<(kind)": "y"}, "b": 2})), "others");
        assert_eq!(outcome(secured, json!({"a": {"<(kind)": "x"}, "b": 2})), ".b");
    }

    #[test]
    fn names_of_labels_may_be_patterns() {
        let object = json!({"metadata": {"labels": {"team.example.com/name": ""}}});
        let pattern = json!({"metadata": {"labels": {"team.*/name": "?*"}}});
        assert_eq!(outcome(object, pattern.clone()), r#".metadata.labels["team.example.com/name"]"#);
        let object = json!({"metadata": {"labels": {"team.example.com/name": "a"}}});
        assert_eq!(outcome(object, pattern), "fits");
    }
}
