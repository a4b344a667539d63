//! `ParseInt` and `ParseUint`.

/// Why a number does not parse, with `strconv`'s texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumError {
    /// Not a number at all.
    #[error("invalid syntax")]
    Syntax,
    /// Too large or too small.
    #[error("value out of range")]
    Range,
}

/// `strconv.ParseUint(text, base, 64)`; base 0 takes Go's prefixes and underscores.
///
/// # Errors
/// See [`NumError`].
pub fn parse_uint(text: &str, base: u32) -> Result<u64, NumError> {
    let (digits, radix) = if base == 0 { prefixed(text) } else { (text, base) };
    if digits.is_empty() {
        return Err(NumError::Syntax);
    }
    let mut value = 0u64;
    let mut overflow = false;
    let mut underscores = false;
    for c in digits.chars() {
        if c == '_' && base == 0 {
            underscores = true;
            continue;
        }
        let digit = c.to_digit(radix).ok_or(NumError::Syntax)?;
        match value.checked_mul(radix.into()).and_then(|v| v.checked_add(digit.into())) {
            Some(next) => value = next,
            None => overflow = true,
        }
    }
    if underscores && !underscores_ok(text) {
        return Err(NumError::Syntax);
    }
    if overflow { Err(NumError::Range) } else { Ok(value) }
}

/// Digits and base of a number with Go's prefixes.
fn prefixed(text: &str) -> (&str, u32) {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'0') {
        return (text, 10);
    }
    match bytes.get(1).map(u8::to_ascii_lowercase) {
        Some(b'b') if bytes.len() >= 3 => (&text[2..], 2),
        Some(b'o') if bytes.len() >= 3 => (&text[2..], 8),
        Some(b'x') if bytes.len() >= 3 => (&text[2..], 16),
        Some(_) => (&text[1..], 8),
        None => (text, 10),
    }
}

/// `strconv.ParseInt(text, base, 64)`.
///
/// # Errors
/// See [`NumError`].
pub fn parse_int(text: &str, base: u32) -> Result<i64, NumError> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let value = parse_uint(digits, base)?;
    if negative {
        if value <= 1 << 63 { Ok((value as i64).wrapping_neg()) } else { Err(NumError::Range) }
    } else {
        i64::try_from(value).map_err(|_| NumError::Range)
    }
}

/// Whether underscores stand only between digits, or between a base prefix and a digit.
pub(super) fn underscores_ok(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text).as_bytes();
    let (mut last, mut at, mut hex) = (b'^', 0, false);
    if text.len() >= 2 && text[0] == b'0' && matches!(text[1].to_ascii_lowercase(), b'b' | b'o' | b'x') {
        (last, at, hex) = (b'0', 2, text[1].eq_ignore_ascii_case(&b'x'));
    }
    for &byte in &text[at..] {
        if byte.is_ascii_digit() || (hex && byte.is_ascii_hexdigit()) {
            last = b'0';
        } else if byte == b'_' {
            if last != b'0' {
                return false;
            }
            last = b'_';
        } else {
            if last == b'_' {
                return false;
            }
            last = b'!';
        }
    }
    last != b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_literals() {
        assert_eq!(parse_int("0x1F", 0), Ok(31));
        assert_eq!(parse_int("1_000", 0), Ok(1000));
        assert_eq!(parse_int("0_7", 0), Ok(7));
        assert_eq!(parse_int("_7", 0), Err(NumError::Syntax));
        assert_eq!(parse_int("08", 0), Err(NumError::Syntax));
        assert_eq!(parse_int("-9223372036854775808", 10), Ok(i64::MIN));
        assert_eq!(parse_int("9223372036854775808", 10), Err(NumError::Range));
    }
}
