//! Amounts of resources.

use tiphys_value::Value;

/// A quantity in thousandths: `500m` is 500, `1Gi` is 1024³·1000.
pub(crate) fn milli(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => {
            let number = number.as_f64()?;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "amounts of a cluster are far below the limit"
            )]
            Some((number * 1000.0) as i128)
        }
        Value::String(text) => from_text(text),
        _ => None,
    }
}

/// Reads a quantity's text.
pub(crate) fn from_text(text: &str) -> Option<i128> {
    const UNITS: &[(&str, i128)] = &[
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("Pi", 1 << 50),
        ("Ei", 1 << 60),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("P", 1_000_000_000_000_000),
        ("E", 1_000_000_000_000_000_000),
    ];
    let text = text.trim();
    if let Some(number) = text.strip_suffix('m') {
        return thousandths(number).map(|it| it / 1000);
    }
    match UNITS.iter().find(|(unit, _)| text.ends_with(unit)) {
        Some((unit, factor)) => thousandths(text.strip_suffix(unit)?)?.checked_mul(*factor),
        None => thousandths(text),
    }
}

fn thousandths(text: &str) -> Option<i128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part: String = part.chars().chain("000".chars()).take(3).collect();
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()?.into() };
    whole.checked_mul(1000)?.checked_add(part.parse::<i128>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        assert_eq!(from_text("500m"), Some(500));
        assert_eq!(from_text("1.5"), Some(1500));
        assert_eq!(from_text("1Ki"), Some(1_024_000));
        assert_eq!(from_text("much"), None);
    }
}
