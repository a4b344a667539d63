//! `FormatFloat` and `ParseFloat`.

use std::fmt::Write as _;

use super::NumError;

/// How to write a float.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FloatFormat {
    /// `d.dddde±dd` (`%e`)
    Exponent,
    /// `ddd.ddd` (`%f`)
    Decimal,
    /// [`FloatFormat::Exponent`] for exponents below -4 and for large ones, else [`FloatFormat::Decimal`]
    /// (`%g`). Exponents are large from the precision on, and from 6 on for the shortest form.
    General,
    /// `ddddp±ddd`: mantissa and binary exponent in decimal (`%b`)
    Binary,
    /// `0xd.dddp±dd` (`%x`)
    Hex,
}

/// Whole numbers below this have no exponent in any shortest form.
const SMALL: f64 = 1e6;

/// Writes a float; `precision` is the number of digits, or `None` for the shortest that reads back equal.
pub fn format_float(value: f64, format: FloatFormat, precision: Option<usize>) -> String {
    let mut out = String::new();
    append_float(&mut out, value, format, precision);
    out
}

/// As [`format_float`], appending.
pub fn append_float(out: &mut String, value: f64, format: FloatFormat, precision: Option<usize>) {
    if value.is_nan() {
        out.push_str("NaN");
        return;
    }
    if value.is_infinite() {
        out.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
        return;
    }
    if value.is_sign_negative() {
        out.push('-');
    }
    let value = value.abs();
    let plain = precision.is_none() && matches!(format, FloatFormat::General | FloatFormat::Decimal);
    if plain && value < SMALL && value.fract() == 0.0 {
        // A whole number that small fits, and both forms write it as it is.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole = value as u32;
        // Writing to a string cannot fail.
        let _ = write!(out, "{whole}");
        return;
    }
    match format {
        FloatFormat::Exponent => exponent_form(out, value, precision),
        FloatFormat::Decimal => decimal_form(out, value, precision),
        FloatFormat::General => general_form(out, value, precision),
        FloatFormat::Binary => binary_form(out, value),
        FloatFormat::Hex => hex_form(out, value, precision),
    }
}

/// `digits e exponent` with an exponent of at least two digits.
fn exponent_form(out: &mut String, value: f64, precision: Option<usize>) {
    let text = match precision {
        Some(digits) => format!("{value:.digits$e}"),
        None => format!("{value:e}"),
    };
    push_go_exponent(out, &text);
}

/// Rewrites Rust's `1.5e7` as Go's `1.5e+07`.
fn push_go_exponent(out: &mut String, text: &str) {
    let (digits, exponent) = text.split_once('e').expect("the format has an exponent");
    out.push_str(digits);
    let (sign, number) = match exponent.strip_prefix('-') {
        Some(number) => ('-', number),
        None => ('+', exponent),
    };
    out.push('e');
    out.push(sign);
    if number.len() < 2 {
        out.push('0');
    }
    out.push_str(number);
}

fn decimal_form(out: &mut String, value: f64, precision: Option<usize>) {
    // Writing to a string cannot fail.
    let _ = match precision {
        Some(digits) => write!(out, "{value:.digits$}"),
        None => write!(out, "{value}"),
    };
}

/// The exponent from which the shortest general form is written with an exponent.
const SHORTEST_LIMIT: i32 = 6;

fn general_form(out: &mut String, value: f64, precision: Option<usize>) {
    let Some(precision) = precision else {
        let text = format!("{value:e}");
        let exponent: i32 = text.split_once('e').map_or(0, |(_, exponent)| exponent.parse().unwrap_or(0));
        if !(-4..SHORTEST_LIMIT).contains(&exponent) {
            push_go_exponent(out, &text);
        } else {
            decimal_form(out, value, None);
        }
        return;
    };
    let precision = precision.max(1);
    let text = format!("{value:.*e}", precision - 1);
    let (digits, exponent) = text.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // As in C, but the precision of an exact integer counts only the digits that are there.
    let significant = digits.trim_end_matches('0').trim_end_matches('.');
    let count = significant.chars().filter(char::is_ascii_digit).count() as i32;
    let mut threshold = precision as i32;
    if threshold > count && count > exponent {
        threshold = count.max(exponent + 1);
    }
    if exponent < -4 || exponent >= threshold {
        push_go_exponent(out, &format!("{significant}e{exponent}"));
    } else {
        let decimals = (count - 1 - exponent).max(0) as usize;
        decimal_form(out, value, Some(decimals));
    }
}

fn binary_form(out: &mut String, value: f64) {
    let (mantissa, exponent) = decompose(value);
    out.push_str(&format!("{mantissa}p{exponent:+}"));
}

/// Mantissa and exponent such that the value is `mantissa × 2^exponent`.
fn decompose(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let exponent = ((bits >> 52) & 0x7FF) as i32;
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

fn hex_form(out: &mut String, value: f64, precision: Option<usize>) {
    let (mut mantissa, mut exponent) = decompose(value);
    if mantissa == 0 {
        exponent = 0;
    } else {
        exponent += 52;
        mantissa <<= 8;
        while mantissa & (1 << 60) == 0 {
            mantissa <<= 1;
            exponent -= 1;
        }
    }
    if let Some(digits) = precision.filter(|digits| *digits < 15) {
        (mantissa, exponent) = round_hex(mantissa, exponent, digits);
    }
    out.push_str("0x");
    out.push(char::from(b'0' + (mantissa >> 60 & 1) as u8));
    let mut rest = mantissa << 4;
    if precision.map_or(rest != 0, |digits| digits > 0) {
        out.push('.');
        let mut written = 0;
        while precision.map_or(rest != 0, |digits| written < digits) {
            out.push(char::from(b"0123456789abcdef"[(rest >> 60) as usize]));
            rest <<= 4;
            written += 1;
        }
    }
    out.push_str(&format!("p{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()));
}

fn round_hex(mantissa: u64, exponent: i32, digits: usize) -> (u64, i32) {
    let shift = 60 - 4 * digits as u32;
    let extra = mantissa & ((1 << shift) - 1);
    let mut kept = mantissa >> shift;
    let half = 1 << (shift - 1);
    if extra > half || (extra == half && kept & 1 == 1) {
        kept += 1;
    }
    let mut mantissa = kept << shift;
    let mut exponent = exponent;
    if mantissa & (1 << 61) != 0 {
        mantissa >>= 1;
        exponent += 1;
    }
    (mantissa, exponent)
}

/// `strconv.ParseFloat(text, 64)`: decimal and hexadecimal floats, infinities, underscores only with a base
/// prefix.
///
/// # Errors
/// [`NumError::Syntax`], or [`NumError::Range`] where Go gives an infinity and an error.
pub fn parse_float(text: &str) -> Result<f64, NumError> {
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let sign = if negative { -1.0 } else { 1.0 };
    if rest.eq_ignore_ascii_case("inf") || rest.eq_ignore_ascii_case("infinity") {
        return Ok(sign * f64::INFINITY);
    }
    if text.eq_ignore_ascii_case("nan") {
        return Ok(f64::NAN);
    }
    if let Some(hex) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        return parse_hex_float(hex, text).map(|value| sign * value);
    }
    if text.contains('_') && !super::int::underscores_ok(text) {
        return Err(NumError::Syntax);
    }
    let rest = rest.replace('_', "");
    let valid = rest.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
        && rest.bytes().any(|b| b.is_ascii_digit());
    if !valid {
        return Err(NumError::Syntax);
    }
    let value: f64 = rest.parse().map_err(|_| NumError::Syntax)?;
    if value.is_infinite() { Err(NumError::Range) } else { Ok(sign * value) }
}

fn parse_hex_float(hex: &str, whole: &str) -> Result<f64, NumError> {
    if hex.contains('_') && !super::int::underscores_ok(whole) {
        return Err(NumError::Syntax);
    }
    let hex = hex.replace('_', "");
    let (digits, exponent) = hex.split_once(['p', 'P']).ok_or(NumError::Syntax)?;
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NumError::Syntax);
    }
    let mut exponent: i64 =
        exponent.parse().unwrap_or(if exponent.starts_with('-') { -100_000 } else { 100_000 });
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(NumError::Syntax);
    }
    let (mut mantissa, mut sticky) = (0u128, false);
    for (at, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = digit.to_digit(16).ok_or(NumError::Syntax)?;
        if mantissa >> 100 == 0 {
            mantissa = mantissa << 4 | u128::from(digit);
            exponent -= if at >= whole.len() { 4 } else { 0 };
        } else {
            sticky |= digit != 0;
            exponent += if at < whole.len() { 4 } else { 0 };
        }
    }
    scale_hex(mantissa << 1 | u128::from(sticky), exponent - 1)
}

/// `mantissa × 2^exponent`, rounded once to the nearest even.
fn scale_hex(mantissa: u128, exponent: i64) -> Result<f64, NumError> {
    if mantissa <= 1 {
        return Ok(0.0);
    }
    let top = 127 - i64::from(mantissa.leading_zeros());
    let lowest = (top + exponent - 52).max(-1074);
    let shift = lowest - exponent;
    let kept = if shift <= 0 {
        mantissa << (-shift).min(60)
    } else if shift > 126 {
        0
    } else {
        let kept = mantissa >> shift;
        let rest = mantissa & ((1 << shift) - 1);
        let half = 1u128 << (shift - 1);
        kept + u128::from(rest > half || (rest == half && kept & 1 == 1))
    };
    let lowest = if shift <= 0 { exponent - (-shift).min(60) } else { lowest };
    let value =
        kept as f64 * 2f64.powi((lowest.max(-1022)) as i32) * 2f64.powi((lowest - lowest.max(-1022)) as i32);
    if value.is_infinite() { Err(NumError::Range) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_is_go_s() {
        let g = |value| format_float(value, FloatFormat::General, None);
        assert_eq!(g(1e6), "1e+06");
        assert_eq!(g(100000.0), "100000");
        assert_eq!(g(1e21), "1e+21");
        assert_eq!(g(123456789.0), "1.23456789e+08");
        assert_eq!(g(1e-5), "1e-05");
        assert_eq!(g(0.1 + 0.2), "0.30000000000000004");
        assert_eq!(g(-0.0), "-0");
    }

    #[test]
    fn general_with_precision_is_go_s() {
        let g = |value, digits| format_float(value, FloatFormat::General, Some(digits));
        assert_eq!(g(100000.0, 3), "1e+05");
        assert_eq!(g(1234.5678, 6), "1234.57");
        assert_eq!(g(0.00001234, 2), "1.2e-05");
        assert_eq!(g(100.0, 6), "100");
    }

    #[test]
    fn hex_floats_read() {
        assert_eq!(parse_float("0x1p-2"), Ok(0.25));
        assert_eq!(parse_float("0x1.8p1"), Ok(3.0));
        assert_eq!(parse_float("0x1p-1074"), Ok(5e-324));
        assert_eq!(parse_float("0x1"), Err(NumError::Syntax));
        assert_eq!(parse_float("1e999"), Err(NumError::Range));
    }
}
