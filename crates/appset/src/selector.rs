//! Label selectors over texts: labels of clusters, and parameters of generators.

use serde_json::Value;
use tiphys_schema::names::{label_value, qualified_name};
use tiphys_value::{ObjectExt, label_selector};

/// Whether a selector names nothing.
pub fn selects_nothing(selector: &Value) -> bool {
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
    label_selector::selects(selector, label).map_err(|error| error.to_string())
}

/// Whether a selector can be used at all: keys are label keys, operators have the values that they need. Of
/// values nothing is asked, so that parameters such as addresses can be selected by.
///
/// # Errors
/// It cannot.
pub fn check_selector(selector: &Value) -> Result<(), String> {
    let named = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    for (key, _) in named {
        check_key(key)?;
    }
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let values = expression.get("values").and_then(Value::as_array).map_or(0, Vec::len);
        match (expression.str_at(&["operator"]).unwrap_or_default(), values) {
            ("In" | "NotIn", 0) => {
                return Err("for 'in', 'notin' operators, values set can't be empty".into());
            }
            ("Exists" | "DoesNotExist", 1..) => {
                return Err("values set must be empty for exists and does not exist".into());
            }
            ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
            (other, _) => return Err(format!("{other:?} is not a valid label selector operator")),
        }
        check_key(expression.str_at(&["key"]).unwrap_or_default())?;
    }
    Ok(())
}

/// Whether the values of a selector can be values of labels.
///
/// # Errors
/// One cannot.
pub(crate) fn check_values(selector: &Value) -> Result<(), String> {
    let equal = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    let listed = expressions.filter_map(|expression| expression.get("values")?.as_array()).flatten();
    for value in equal.map(|(_, value)| value).chain(listed).filter_map(Value::as_str) {
        let faults = label_value(value);
        if !faults.is_empty() {
            return Err(format!("values: Invalid value: {value:?}: {}", faults.join("; ")));
        }
    }
    Ok(())
}

fn check_key(key: &str) -> Result<(), String> {
    let faults = qualified_name(key);
    if faults.is_empty() {
        Ok(())
    } else {
        Err(format!("key: Invalid value: {key:?}: {}", faults.join("; ")))
    }
}
