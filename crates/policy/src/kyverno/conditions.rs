//! Conditions of `preconditions` and `deny`: a key, an operator and a value (Kyverno documentation,
//! "Preconditions"; `pkg/engine/variables/operator`).

use std::cmp::Ordering;

use tiphys_gocompat::time::Duration;
use tiphys_schema::Quantity;
use tiphys_value::Value;

use super::{list, matching::conjunction, operand, variables::Scope};
use crate::wildcard;

/// Whether conditions hold: those of a list all do, or at least one of `any` and each of `all`. `None` if that
/// is not known.
pub(super) fn hold(conditions: &Value, scope: &Scope) -> Option<bool> {
    let holds = |condition: &Value| holds(condition, scope);
    match conditions {
        Value::Null => Some(true),
        Value::Array(all) if all.iter().all(|it| it.get("any").is_some() || it.get("all").is_some()) => {
            conjunction(all.iter().map(|block| hold(block, scope)))
        }
        Value::Array(all) => conjunction(all.iter().map(holds)),
        block => {
            let any = conjunction(list(block, "any").iter().map(|it| holds(it).map(|it| !it)));
            let any = if block.get("any").is_some() { any.map(|none| !none) } else { Some(true) };
            conjunction([any, conjunction(list(block, "all").iter().map(holds))].into_iter())
        }
    }
}

fn holds(condition: &Value, scope: &Scope) -> Option<bool> {
    let key = scope.fill_in(condition.get("key").unwrap_or(&Value::Null))?;
    let value = scope.fill_in(condition.get("value").unwrap_or(&Value::Null))?;
    let operator = condition.get("operator").and_then(Value::as_str)?.to_lowercase();
    Some(match operator.as_str() {
        "equal" | "equals" => equals(&key, &value),
        "notequal" | "notequals" => !equals(&key, &value),
        "in" | "anyin" => is_in(&key, &value, Quantifier::Any)?,
        "allin" => is_in(&key, &value, Quantifier::All)?,
        "notin" | "allnotin" => !is_in(&key, &value, Quantifier::Any)?,
        "anynotin" => !is_in(&key, &value, Quantifier::All)?,
        "greaterthan" | "durationgreaterthan" => compare(&key, &value)? == Ordering::Greater,
        "greaterthanorequals" | "durationgreaterthanorequals" => compare(&key, &value)? != Ordering::Less,
        "lessthan" | "durationlessthan" => compare(&key, &value)? == Ordering::Less,
        "lessthanorequals" | "durationlessthanorequals" => compare(&key, &value)? != Ordering::Greater,
        _ => return None,
    })
}

fn equals(key: &Value, value: &Value) -> bool {
    match (key, value) {
        (Value::String(key), Value::String(value)) => {
            let as_durations = || Some(duration(key)? == duration(value)?);
            let as_quantities = || Some(key.parse::<Quantity>().ok()? == value.parse::<Quantity>().ok()?);
            as_durations().or_else(as_quantities).unwrap_or_else(|| wildcard::matches(value, key))
        }
        (Value::String(_), _) => compare(key, value) == Some(Ordering::Equal),
        (Value::Number(key), value) => number(value) == key.as_f64(),
        (key, value) => key == value,
    }
}

/// Texts are durations only with a unit.
fn duration(text: &str) -> Option<i64> {
    Duration::parse(text).ok().filter(|_| text != "0").map(|it| it.0)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Numbers are seconds beside durations. `None` if the two cannot be compared.
fn compare(key: &Value, value: &Value) -> Option<Ordering> {
    let text = |it: &Value| it.as_str().map(str::to_owned);
    let nanoseconds = |it: &Value| match it {
        Value::String(text) => duration(text).map(|it| it as f64),
        Value::Number(number) => number.as_f64().map(|seconds| seconds * 1e9),
        _ => None,
    };
    let has_unit = |it: &Value| it.as_str().is_some_and(|it| duration(it).is_some());
    if has_unit(key) || has_unit(value) {
        return nanoseconds(key)?.partial_cmp(&nanoseconds(value)?);
    }
    let quantities =
        || text(key)?.parse::<Quantity>().ok()?.partial_cmp(&text(value)?.parse::<Quantity>().ok()?);
    quantities().or_else(|| number(key)?.partial_cmp(&number(value)?))
}

/// Whether at least one of the keys is among the values, or each.
#[derive(Clone, Copy)]
enum Quantifier {
    Any,
    All,
}

/// Whether keys are among values, each of which may be a pattern; `None` if they cannot be compared.
fn is_in(key: &Value, value: &Value, quantifier: Quantifier) -> Option<bool> {
    let keys = match key {
        Value::Array(items) => items.iter().map(as_text).collect(),
        Value::String(_) | Value::Number(_) | Value::Bool(_) => vec![as_text(key)],
        _ => return None,
    };
    let is_range = |text: &str| {
        text.contains('-')
            && text.starts_with(|it: char| it.is_ascii_digit())
            && !text.contains(['*', '.', '/'])
    };
    let is_among = |key: &String| -> bool {
        let fits = |value: &str| wildcard::matches(value, key) || wildcard::matches(key, value);
        match value {
            Value::Array(items) => items.iter().any(|item| fits(&as_text(item))),
            Value::String(text) if text.starts_with('[') => match serde_json::from_str::<Vec<String>>(text) {
                Ok(items) => items.iter().any(|item| fits(item)),
                Err(_) => fits(text),
            },
            Value::String(text) if is_range(text) => operand::fits(&Value::String(key.clone()), value),
            other => fits(&as_text(other)),
        }
    };
    match value {
        Value::Null | Value::Object(_) => None,
        _ => Some(match quantifier {
            Quantifier::Any => keys.iter().any(is_among),
            Quantifier::All => keys.iter().all(is_among),
        }),
    }
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operators_compare_texts_numbers_durations_and_lists() {
        let scope = Scope::new(json!({"object": {"tags": ["a", "b"], "replicas": 3}}));
        for (key, operator, value, expected) in [
            (json!("{{ request.object.replicas }}"), "GreaterThan", json!(2), Some(true)),
            (json!("a"), "Equals", json!("a*"), Some(true)),
            (json!("1Gi"), "Equals", json!("1024Mi"), Some(true)),
            (json!("1h"), "GreaterThanOrEquals", json!("30m"), Some(true)),
            (json!(30), "LessThan", json!("1m"), Some(true)),
            (json!("{{ request.object.tags }}"), "AnyIn", json!(["b"]), Some(true)),
            (json!("{{ request.object.tags }}"), "AllIn", json!(["b"]), Some(false)),
            (json!("{{ request.object.tags }}"), "AnyNotIn", json!(["b"]), Some(true)),
            (json!("{{ request.object.tags }}"), "AllNotIn", json!(["c"]), Some(true)),
            (json!("{{ request.operation }}"), "Equals", json!("DELETE"), None),
            (json!(5), "AnyIn", json!("1-10"), Some(true)),
            (json!("x"), "NotEquals", json!("y"), Some(true)),
            (json!("x"), "Unheard", json!("y"), None),
        ] {
            let condition = json!({"key": key, "operator": operator, "value": value});
            assert_eq!(hold(&json!([condition]), &scope), expected, "{condition}");
        }
    }

    #[test]
    fn any_and_all_are_joined() {
        let scope = Scope::new(json!({}));
        let yes = json!({"key": "a", "operator": "Equals", "value": "a"});
        let no = json!({"key": "a", "operator": "Equals", "value": "b"});
        let open = json!({"key": "{{ request.userInfo }}", "operator": "Equals", "value": "b"});
        assert_eq!(hold(&json!({"any": [no, yes], "all": [yes]}), &scope), Some(true));
        assert_eq!(hold(&json!({"any": [no], "all": [yes]}), &scope), Some(false));
        assert_eq!(hold(&json!({"any": [open, yes]}), &scope), Some(true));
        assert_eq!(hold(&json!({"any": [open, no]}), &scope), None);
        assert_eq!(hold(&json!([{"any": [yes]}, {"all": [no]}]), &scope), Some(false));
    }
}
