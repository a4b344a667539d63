//! Texts and objects with places to fill in: `{spec.secretName}`, `{spec.target.name|default}`.

use serde_json::{Map, Value};

/// How deep a template may be.
const DEPTH: usize = 32;

/// Fills in a template from an object. A text that is one place alone becomes the value itself; a value that
/// is not there and has no default leaves its field out, or is empty inside a longer text.
pub(crate) fn fill(template: &Value, object: &Value) -> Value {
    fill_at(template, object, DEPTH)
}

fn fill_at(template: &Value, object: &Value, depth: usize) -> Value {
    if depth == 0 {
        return Value::Null;
    }
    match template {
        Value::String(text) => fill_text(text, object),
        Value::Array(items) => items.iter().map(|item| fill_at(item, object, depth - 1)).collect(),
        Value::Object(map) => {
            let filled = map.iter().map(|(key, value)| (key.clone(), fill_at(value, object, depth - 1)));
            // What a template leaves empty was not meant to be there.
            Value::Object(
                filled.filter(|(key, value)| !value.is_null() || map[key].is_null()).collect::<Map<_, _>>(),
            )
        }
        other => other.clone(),
    }
}

fn fill_text(text: &str, object: &Value) -> Value {
    if let Some(place) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'))
        && !place.contains(['{', '}'])
    {
        return look_up(place, object);
    }
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((place, after)) = after.split_once('}') else { break };
        filled.push_str(before);
        match look_up(place, object) {
            Value::String(found) => filled.push_str(&found),
            Value::Null => {}
            other => filled.push_str(&other.to_string()),
        }
        rest = after;
    }
    filled.push_str(rest);
    filled.into()
}

fn look_up(place: &str, object: &Value) -> Value {
    let (path, default) = match place.split_once('|') {
        Some((path, default)) => (path, Some(default)),
        None => (place, None),
    };
    let found = path.split('.').try_fold(object, |value, key| value.get(key));
    match (found, default) {
        (Some(found), _) if !found.is_null() => found.clone(),
        // The default may itself be a place: `{spec.target.name|metadata.name}`.
        (_, Some(default)) if default.contains('.') => look_up(default, object),
        (_, Some(default)) => default.into(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_filled_in() {
        let object = json!({"metadata": {"name": "web"}, "spec": {"ports": [1], "empty": null}});
        let template = json!({"a": "{metadata.name}", "b": "x-{metadata.name}-{spec.none}", "c": "{spec.ports}",
            "d": "{spec.none}", "e": "{spec.empty|metadata.name}", "f": "{spec.none|fixed}", "g": 1});
        let expected = json!({"a": "web", "b": "x-web-", "c": [1], "e": "web", "f": "fixed", "g": 1});
        assert_eq!(fill(&template, &object), expected);
    }
}
