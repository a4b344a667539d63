//! Floats as Go prints them.

/// `strconv.FormatFloat(value, 'g', -1, 64)`, and `.inf`, `-.inf`, `.nan` for what is no number.
pub fn go_float(value: f64) -> String {
    special(value).map_or_else(|| shortest(&format!("{value:e}")), str::to_owned)
}

/// As [`go_float`], rounded to single precision first (`FormatFloat(value, 'g', -1, 32)`).
pub(crate) fn go_float32(value: f64) -> String {
    let value = value as f32;
    special(f64::from(value)).map_or_else(|| shortest(&format!("{value:e}")), str::to_owned)
}

fn special(value: f64) -> Option<&'static str> {
    match value {
        v if v.is_nan() => Some(".nan"),
        f64::INFINITY => Some(".inf"),
        f64::NEG_INFINITY => Some("-.inf"),
        _ => None,
    }
}

/// From Rust's scientific form, which has the same digits; Go keeps to it below 1e-4 and from 1e6.
fn shortest(scientific: &str) -> String {
    let (sign, unsigned) = match scientific.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", scientific),
    };
    let (mantissa, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if !(-4..6).contains(&exponent) {
        let sign_of_exponent = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{mantissa}e{sign_of_exponent}{:02}", exponent.abs());
    }
    let mut text = String::from(sign);
    if exponent < 0 {
        text.push_str("0.");
        text.extend(std::iter::repeat_n('0', (-exponent - 1) as usize));
        text.push_str(&digits);
        return text;
    }
    let point = exponent as usize + 1;
    for at in 0..point.max(digits.len()) {
        if at == point {
            text.push('.');
        }
        text.push(digits.as_bytes().get(at).map_or('0', |&digit| char::from(digit)));
    }
    text
}
