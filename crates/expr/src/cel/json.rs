//! From a CEL value to JSON.

use kube_cel::cel::{Value, objects::Key};
use serde_json::{Map, Value as Json};

/// How deep values are followed; expressions make no deeper ones.
const MAX_DEPTH: usize = 200;

/// A value as JSON; `None` for what JSON has no form for, such as functions.
pub fn to_json(value: &Value) -> Option<Json> {
    convert(value, 0)
}

fn convert(value: &Value, depth: usize) -> Option<Json> {
    if depth > MAX_DEPTH {
        return None;
    }
    Some(match value {
        Value::Null => Json::Null,
        Value::Bool(on) => (*on).into(),
        Value::Int(number) => (*number).into(),
        Value::UInt(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::String(text) => text.as_str().into(),
        Value::List(items) => {
            Json::Array(items.iter().map(|item| convert(item, depth + 1)).collect::<Option<_>>()?)
        }
        Value::Map(map) => {
            let entry = |(key, value): (&Key, &Value)| match key {
                Key::String(key) => Some((key.to_string(), convert(value, depth + 1)?)),
                _ => None,
            };
            Json::Object(map.map.iter().map(entry).collect::<Option<Map<_, _>>>()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn there_and_back() {
        let value = json!({"a": [1, "x", null, true], "b": {"c": 1.5}});
        assert_eq!(to_json(&crate::cel::plain(&value)), Some(value));
    }
}
