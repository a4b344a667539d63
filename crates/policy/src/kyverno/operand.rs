//! Comparing a value with a scalar of a pattern: `"?*"`, `">= 2"`, `"!latest"`, `"10Mi-1Gi | 0"` (Kyverno,
//! `pkg/engine/pattern`).

use std::cmp::Ordering;

use tiphys_gocompat::time::Duration;
use tiphys_schema::Quantity;
use tiphys_value::Value;

use crate::wildcard;

/// How a part of a pattern compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    More,
    MoreEqual,
    Less,
    LessEqual,
}

/// Whether a value fits a scalar of a pattern.
pub(super) fn fits(value: &Value, pattern: &Value) -> bool {
    match pattern {
        Value::Bool(wanted) => value == wanted,
        Value::Number(wanted) => {
            let given = match value {
                Value::Number(number) => number.as_f64(),
                Value::String(text) => text.parse().ok(),
                _ => None,
            };
            given.is_some_and(|given| Some(given) == wanted.as_f64())
        }
        Value::Null => match value {
            Value::Null => true,
            Value::Bool(given) => !given,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(_) | Value::Object(_) => false,
        },
        Value::String(wanted) => fits_text(value, wanted),
        Value::Object(_) => value.is_object(),
        Value::Array(_) => false,
    }
}

/// Alternatives stand between `|`, what has to hold together between `&`.
fn fits_text(value: &Value, pattern: &str) -> bool {
    value == pattern
        || pattern.split('|').any(|part| part.split('&').all(|part| fits_part(value, part.trim_matches(' '))))
}

fn fits_part(value: &Value, pattern: &str) -> bool {
    let (operator, rest) = operator(pattern);
    if operator == Operator::Equal {
        if let Some((low, high)) = range(pattern, "!-") {
            return compares(value, low, Operator::Less) || compares(value, high, Operator::More);
        }
        if let Some((low, high)) = range(pattern, "-") {
            return compares(value, low, Operator::MoreEqual) && compares(value, high, Operator::LessEqual);
        }
    }
    compares(value, rest.trim(), operator)
}

fn operator(pattern: &str) -> (Operator, &str) {
    const ALL: [(&str, Operator); 5] = [
        (">=", Operator::MoreEqual),
        ("<=", Operator::LessEqual),
        (">", Operator::More),
        ("<", Operator::Less),
        ("!", Operator::NotEqual),
    ];
    if pattern.len() < 2 {
        return (Operator::Equal, pattern);
    }
    let found = ALL.iter().find_map(|(sign, operator)| Some((*operator, pattern.strip_prefix(sign)?)));
    found.unwrap_or((Operator::Equal, pattern))
}

/// The ends of a range of numbers, each of which may have a unit: `10Mi-1Gi`.
fn range<'p>(pattern: &'p str, sign: &str) -> Option<(&'p str, &'p str)> {
    pattern.match_indices(sign).find_map(|(at, _)| {
        let ends = (&pattern[..at], &pattern[at + sign.len()..]);
        (is_end(ends.0) && is_end(ends.1)).then_some(ends)
    })
}

/// Whether a text is a number with letters after it.
fn is_end(text: &str) -> bool {
    let text = text.strip_prefix(['-', '|', '+']).unwrap_or(text);
    let number = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    match number.split_once('.') {
        Some((whole, fraction)) => is_digits(whole) && is_digits(fraction),
        None => is_digits(number),
    }
}

/// Durations and quantities are compared as such, all else as text.
fn compares(value: &Value, wanted: &str, operator: Operator) -> bool {
    let ordering = measure(value).and_then(|given| {
        let as_durations = || Some(Duration::parse(&given).ok()?.0.cmp(&Duration::parse(wanted).ok()?.0));
        let as_quantities = || given.parse::<Quantity>().ok()?.partial_cmp(&wanted.parse::<Quantity>().ok()?);
        as_durations().or_else(as_quantities)
    });
    if let Some(ordering) = ordering {
        return match operator {
            Operator::Equal => ordering == Ordering::Equal,
            Operator::NotEqual => ordering != Ordering::Equal,
            Operator::More => ordering == Ordering::Greater,
            Operator::MoreEqual => ordering != Ordering::Less,
            Operator::Less => ordering == Ordering::Less,
            Operator::LessEqual => ordering != Ordering::Greater,
        };
    }
    let given = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(given) => given.to_string(),
        _ => return false,
    };
    match operator {
        Operator::Equal => wildcard::matches(wanted, &given),
        Operator::NotEqual => !wildcard::matches(wanted, &given),
        _ => false,
    }
}

/// A value as a text that may be a duration or a quantity. What is missing is zero.
fn measure(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("0".to_owned()),
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fits;

    #[test]
    fn scalars_are_compared_by_their_type() {
        for (value, pattern, expected) in [
            (json!("a"), json!("?*"), true),
            (json!(null), json!("?*"), false),
            (json!(""), json!("?*"), false),
            (json!("nginx:latest"), json!("!*:latest"), false),
            (json!("nginx:1.2"), json!("!*:latest"), true),
            (json!(true), json!(true), true),
            (json!(null), json!(false), false),
            (json!(false), json!("false"), true),
            (json!(3), json!(">=2"), true),
            (json!(1), json!(">= 2"), false),
            (json!("512Mi"), json!("<=1Gi"), true),
            (json!("2Gi"), json!("<=1Gi"), false),
            (json!("2Gi"), json!("256Mi-1Gi"), false),
            (json!("300Mi"), json!("256Mi-1Gi"), true),
            (json!("300Mi"), json!("256Mi!-1Gi"), false),
            (json!("30s"), json!(">1m"), false),
            (json!("90s"), json!(">1m"), true),
            (json!("b"), json!("a | b"), true),
            (json!("c"), json!("a | b"), false),
            (json!("prod-eu"), json!("prod-* & !*-us"), true),
            (json!(null), json!(null), true),
            (json!("x"), json!(null), false),
            (json!("8080"), json!(8080), true),
            (json!("RuntimeDefault"), json!("RuntimeDefault | Localhost"), true),
        ] {
            assert_eq!(fits(&value, &pattern), expected, "{value} {pattern}");
        }
    }
}
