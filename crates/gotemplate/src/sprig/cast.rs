//! Conversions to numbers as spf13/cast does them: what cannot be converted is zero.

use crate::{Kind, Value};
use tiphys_gocompat::strconv;

/// `cast.ToInt64`, and `cast.ToInt` too, since both have 64 bits.
pub(super) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(value) | Value::Int64(value) => *value,
        Value::Uint8(value) => i64::from(*value),
        Value::Uint64(value) => *value as i64,
        Value::Float64(value) => float_to_int(*value),
        Value::Bool(value) => i64::from(*value),
        Value::String(text) => strconv::parse_int(trim_zero_decimal(text), 0).unwrap_or(0),
        Value::Object(object) if object.kind() == Kind::Named && castable(&object.type_name()) => {
            object.content().map_or(0, |content| to_int(&content))
        }
        _ => 0,
    }
}

/// `cast.ToFloat64`
pub(super) fn to_float(value: &Value) -> f64 {
    match value {
        Value::Float64(value) => *value,
        Value::String(text) => strconv::parse_float(text).unwrap_or(0.0),
        Value::Uint64(value) => *value as f64,
        other => to_int(other) as f64,
    }
}

fn castable(type_name: &str) -> bool {
    matches!(type_name, "time.Month" | "time.Weekday")
}

/// Go's conversion on this kind of machine: what does not fit becomes the smallest integer.
pub(super) fn float_to_int(value: f64) -> i64 {
    let fits = (-9.223372036854776e18..9.223372036854776e18).contains(&value);
    if fits { value as i64 } else { i64::MIN }
}

/// Drops a fraction of zeros: `3.00` is an integer.
fn trim_zero_decimal(text: &str) -> &str {
    let trimmed = text.trim_end_matches('0');
    match trimmed.strip_suffix('.') {
        Some(whole) if trimmed.len() < text.len() => whole,
        _ => text,
    }
}
