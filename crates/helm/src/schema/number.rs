//! Numbers of values and schemas, compared for what they are worth.

use std::{
    cmp::Ordering,
    collections::HashMap,
    hash::{BuildHasher, Hash, Hasher, RandomState},
};

use tiphys_value::Value;

/// Whether a number is whole.
pub(super) fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Compares two numbers; other values are equal to everything.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    let integer = |value: &Value| value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
    if let (Some(a), Some(b)) = (integer(a), integer(b)) {
        return a.cmp(&b);
    }
    let float = |value: &Value| value.as_f64().unwrap_or_default();
    float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal)
}

/// Whether one number is a whole multiple of another, in decimal.
pub(super) fn is_multiple(number: &Value, of: &Value) -> bool {
    let exact = || {
        let (a, a_scale) = decimal(&number.to_string())?;
        let (b, b_scale) = decimal(&of.to_string())?;
        let scale = a_scale.max(b_scale);
        let a = a.checked_mul(10i128.checked_pow(scale - a_scale)?)?;
        let b = b.checked_mul(10i128.checked_pow(scale - b_scale)?)?;
        (b != 0).then(|| a % b == 0)
    };
    exact().unwrap_or_else(|| {
        let quotient = number.as_f64().unwrap_or_default() / of.as_f64().unwrap_or(1.0);
        quotient.fract() == 0.0
    })
}

/// A decimal number as digits and the count of those behind the point.
fn decimal(text: &str) -> Option<(i128, u32)> {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let value: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    match u32::try_from(scale) {
        Ok(scale) => Some((value, scale)),
        Err(_) => Some((value.checked_mul(10i128.checked_pow(scale.unsigned_abs())?)?, 0)),
    }
}

/// A number as the validator prints it in English: thousands grouped, or with a power of ten where Go's `%g`
/// has one.
pub(super) fn format_number(number: f64) -> String {
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse().unwrap_or_default() {
        -4..6 => grouped(&number.to_string()),
        exponent => format!("{digits}×10{}", superscript(exponent)),
    }
}

/// An exponent of at least two digits, raised.
fn superscript(exponent: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let sign = if exponent < 0 { "⁻" } else { "" };
    let digits = format!("{:02}", exponent.unsigned_abs());
    sign.chars().chain(digits.bytes().map(|digit| DIGITS[usize::from(digit - b'0')])).collect()
}

/// Decimal digits with commas between the thousands.
fn grouped(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let mut digits = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            digits.push(',');
        }
        digits.push(digit);
    }
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{digits}{point}{fraction}")
}

/// A count as the validator prints it.
pub(super) fn count(number: usize) -> String {
    grouped(&number.to_string())
}

/// Equality of JSON values, numbers by what they are worth.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => compare(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

/// The first item of a list that equals one before it, behind the first of those. By hashes, since lists may
/// be long.
pub(super) fn first_equal(items: &[Value]) -> Option<(usize, usize)> {
    let state = RandomState::new();
    let mut known: HashMap<u64, Vec<usize>> = HashMap::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let mut hasher = state.build_hasher();
        hash(item, &mut hasher);
        let alike = known.entry(hasher.finish()).or_default();
        if let Some(earlier) = alike.iter().find(|earlier| equal(&items[**earlier], item)) {
            return Some((*earlier, at));
        }
        alike.push(at);
    }
    None
}

/// Hashes a value so that equal ones have equal hashes.
fn hash(value: &Value, hasher: &mut impl Hasher) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Value::Null => {}
        Value::Bool(value) => value.hash(hasher),
        // Zero has two signs.
        Value::Number(number) => (number.as_f64().unwrap_or_default() + 0.0).to_bits().hash(hasher),
        Value::String(text) => text.hash(hasher),
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| hash(item, hasher));
        }
        Value::Object(map) => {
            map.len().hash(hasher);
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            for (key, value) in entries {
                key.hash(hasher);
                hash(value, hasher);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    #[test]
    fn multiples_are_exact_in_decimal() {
        for (number, of, yes) in [
            (json!(0.07), json!(0.01), true),
            (json!(0.075), json!(0.01), false),
            (json!(1e30), json!(1), true),
            (json!(10), json!(2.5), true),
        ] {
            assert_eq!(is_multiple(&number, &of), yes, "{number} {of}");
        }
    }

    #[test]
    fn the_first_equal_pair_is_that_of_the_smallest_second_item() {
        for (items, expected) in [
            (json!([3, 1, 2, 1.0, 3]), Some((1, 3))),
            (json!([1, 1, 1]), Some((0, 1))),
            (json!([0, -0.0]), Some((0, 1))),
            (json!([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]), Some((0, 1))),
            (json!([1, "1", true, null, [1], {"a": 1}]), None),
            (json!([9_007_199_254_740_993_u64, 9_007_199_254_740_992_u64]), None),
        ] {
            assert_eq!(first_equal(items.as_array().unwrap()), expected, "{items}");
        }
    }

    #[test]
    fn numbers_are_printed_in_english() {
        for (number, text) in [
            (0.0, "0"),
            (-1234.5, "-1,234.5"),
            (999_999.0, "999,999"),
            (1_000_000.0, "1×10⁰⁶"),
            (-12_345_678.5, "-1.23456785×10⁰⁷"),
            (0.0001, "0.0001"),
            (1.2345e-5, "1.2345×10⁻⁰⁵"),
            (1.5e300, "1.5×10³⁰⁰"),
        ] {
            assert_eq!(format_number(number), text);
        }
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000_000), "1,000,000");
    }
}
