//! The statuses of custom resources in the form that the definition of their kind demands. What an operator
//! does is known here once for all its versions, and they differ in whether a number is a text and in which
//! fields have to be there.

use jiff::Timestamp;
use serde_json::{Map, Value};
use tiphys_value::ObjectExt;

use crate::object::time;

/// Deeper parts are left as they are.
const DEPTH: usize = 16;

/// Brings a value into the form of a schema: numbers and texts into each other, and what is required and
/// missing is there, empty.
pub(super) fn fit(value: &mut Value, schema: &Value, now: Timestamp) {
    fit_at(value, schema, now, DEPTH);
}

fn fit_at(value: &mut Value, schema: &Value, now: Timestamp, depth: usize) {
    if depth == 0 {
        return;
    }
    match value {
        Value::Object(map) => {
            let known = schema.get("properties").and_then(Value::as_object);
            for (name, schema) in known.into_iter().flatten() {
                if let Some(value) = map.get_mut(name) {
                    fit_at(value, schema, now, depth - 1);
                }
            }
            fill_required(map, schema, now);
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            items.iter_mut().for_each(|item| fit_at(item, schema, now, depth - 1));
        }
        Value::Number(number) if type_of(schema) == "string" => *value = number.to_string().into(),
        Value::Bool(flag) if type_of(schema) == "string" => *value = flag.to_string().into(),
        Value::String(text) if matches!(type_of(schema), "integer" | "number") => {
            if let Ok(number) = text.parse::<i64>() {
                *value = number.into();
            }
        }
        _ => {}
    }
}

fn fill_required(map: &mut Map<String, Value>, schema: &Value, now: Timestamp) {
    for name in
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        let field = schema.at(&["properties", name]);
        if let (None, Some(field)) = (map.get(name), field) {
            map.insert(name.to_owned(), empty(field, now));
        }
    }
}

/// The emptiest value that a schema takes.
fn empty(schema: &Value, now: Timestamp) -> Value {
    let first = schema.get("enum").and_then(Value::as_array).and_then(|values| values.first());
    match (first, type_of(schema)) {
        (Some(first), _) => first.clone(),
        (None, "integer" | "number") => 0.into(),
        (None, "boolean") => false.into(),
        (None, "array") => Value::Array(Vec::new()),
        (None, "object") => Value::Object(Map::new()),
        (None, _) if schema.str_at(&["format"]) == Some("date-time") => time(now),
        (None, _) => "".into(),
    }
}

fn type_of(schema: &Value) -> &str {
    schema.str_at(&["type"]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_has_the_form_of_its_definition() {
        let text = json!({"type": "string"});
        let schema = json!({"type": "object", "required": ["paused", "since", "phase"], "properties": {
            "paused": {"type": "boolean"}, "since": {"type": "string", "format": "date-time"},
            "phase": {"type": "string", "enum": ["New", "Old"]}, "observedGeneration": text, "count": {"type": "integer"},
            "conditions": {"type": "array", "items": {"type": "object", "required": ["reason", "weight"],
                "properties": {"reason": text, "weight": {"type": "number"}}}},
        }});
        let mut status =
            json!({"observedGeneration": 3, "count": "4", "other": 1, "conditions": [{"reason": true}]});
        fit(&mut status, &schema, Timestamp::UNIX_EPOCH);
        let expected = json!({"observedGeneration": "3", "count": 4, "other": 1, "paused": false,
            "since": "1970-01-01T00:00:00Z", "phase": "New", "conditions": [{"reason": "true", "weight": 0}]});
        assert_eq!(status, expected);
        // What is there stays, so that a second look changes nothing.
        fit(&mut status, &schema, Timestamp::MAX);
        assert_eq!(status, expected);
    }
}
