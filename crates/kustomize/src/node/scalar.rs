//! The types of plain scalars as go-yaml v3 resolves them (YAML 1.2 booleans; octals of both
//! specifications; timestamps).

use super::Tag;

/// What a plain text means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Resolved {
    Null,
    Bool(bool),
    Int(i64),
    /// Above `i64::MAX`.
    UInt(u64),
    Float(f64),
    /// RFC 3339 text of the moment, as Go's `encoding/json` prints it.
    Timestamp(String),
    /// `<<`
    Merge,
    Str,
}

impl Resolved {
    /// The tag that go-yaml gives a text of this meaning.
    pub(crate) fn tag(&self) -> Tag {
        match self {
            Self::Null => Tag::Null,
            Self::Bool(_) => Tag::Bool,
            Self::Int(_) | Self::UInt(_) => Tag::Int,
            Self::Float(_) => Tag::Float,
            Self::Timestamp(_) => Tag::Timestamp,
            Self::Merge => Tag::Merge,
            Self::Str => Tag::Str,
        }
    }
}

/// What a plain scalar means to go-yaml v3.
pub(crate) fn resolve(text: &str) -> Resolved {
    let Some(first) = text.bytes().next() else { return Resolved::Null };
    match first {
        b'0'..=b'9' => number(text),
        b'+' | b'-' => special_float(text).unwrap_or_else(|| number(text)),
        b'.' => {
            special_float(text).or_else(|| parse_go_float(text).map(Resolved::Float)).unwrap_or(Resolved::Str)
        }
        b'<' if text == "<<" => Resolved::Merge,
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        _ => Resolved::Str,
    }
}

fn word(text: &str) -> Resolved {
    match text {
        "true" | "True" | "TRUE" => Resolved::Bool(true),
        "false" | "False" | "FALSE" => Resolved::Bool(false),
        "~" | "null" | "Null" | "NULL" => Resolved::Null,
        _ => Resolved::Str,
    }
}

fn special_float(text: &str) -> Option<Resolved> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(Resolved::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(Resolved::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => Some(Resolved::Float(f64::NEG_INFINITY)),
        _ => None,
    }
}

/// Text that starts like a number: timestamp, integer in some base, or float.
fn number(text: &str) -> Resolved {
    if let Some(moment) = timestamp(text) {
        return Resolved::Timestamp(moment);
    }
    let plain = if text.contains('_') { text.replace('_', "") } else { text.to_owned() };
    if let Some(found) = parse_go_int(&plain) {
        return found;
    }
    if is_yaml_float(&plain)
        && let Some(value) = parse_go_float(&plain)
    {
        return Resolved::Float(value);
    }
    Resolved::Str
}

/// Go's `ParseInt(…, 0, 64)`, then `ParseUint`: base from the prefix `0x`, `0o`, `0b` or `0`.
fn parse_go_int(text: &str) -> Option<Resolved> {
    let (negative, signed, digits) = match text.as_bytes().first()? {
        b'-' => (true, true, &text[1..]),
        b'+' => (false, true, &text[1..]),
        _ => (false, false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.bytes().all(|b| (b as char).is_digit(radix)) {
        return None;
    }
    let value = u128::from_str_radix(digits, radix).ok()?;
    match (negative, i64::try_from(value), u64::try_from(value)) {
        (false, Ok(value), _) => Some(Resolved::Int(value)),
        (false, Err(_), Ok(value)) if !signed => Some(Resolved::UInt(value)),
        (true, Ok(value), _) => Some(Resolved::Int(-value)),
        (true, Err(_), _) if value == 1 << 63 => Some(Resolved::Int(i64::MIN)),
        _ => None,
    }
}

/// go-yaml's shape of a float: `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_yaml_float(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let whole = digits(rest);
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let count = digits(fraction);
        if whole == 0 && count == 0 {
            return false;
        }
        rest = &fraction[count..];
    } else if whole == 0 {
        return false;
    }
    let Some(exponent) = rest.strip_prefix(['e', 'E']) else { return rest.is_empty() };
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    !exponent.is_empty() && digits(exponent) == exponent.len()
}

/// Go's `ParseFloat` for decimal texts; out of range is an error there.
fn parse_go_float(text: &str) -> Option<f64> {
    let first = text.bytes().find(|b| !matches!(b, b'+' | b'-'))?;
    if !(first.is_ascii_digit() || first == b'.') {
        return None;
    }
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

/// go-yaml's timestamps: `2006-1-2`, with a time after `T`, `t` (and a zone) or a space (and none).
fn timestamp(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    if bytes.len() < 8 || bytes[4] != b'-' || !bytes[..4].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let year: u32 = text[..4].parse().ok()?;
    let (month, rest) = one_or_two(&text[5..])?;
    let (day, rest) = one_or_two(rest.strip_prefix('-')?)?;
    if !(1..=12).contains(&month) || day == 0 || day > days_in(year, month) {
        return None;
    }
    let date = format!("{year:04}-{month:02}-{day:02}");
    if rest.is_empty() {
        return Some(format!("{date}T00:00:00Z"));
    }
    let with_zone = rest.starts_with(['T', 't']);
    let (clock, rest) = clock(rest.strip_prefix(['T', 't', ' '])?)?;
    if !with_zone {
        return rest.is_empty().then(|| format!("{date}T{clock}Z"));
    }
    zone(rest).map(|zone| format!("{date}T{clock}{zone}"))
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A number of one or two digits, and what follows.
fn one_or_two(text: &str) -> Option<(u32, &str)> {
    let count = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    Some((text.get(..count)?.parse().ok()?, &text[count..]))
}

/// `15:4:5` with a fraction; printed with trailing zeros of the fraction dropped.
fn clock(text: &str) -> Option<(String, &str)> {
    let hours = text.get(..2).filter(|h| h.bytes().all(|b| b.is_ascii_digit()));
    let (hour, rest) = match hours {
        Some(hour) => (hour.parse().ok()?, &text[2..]),
        None => one_or_two(text)?,
    };
    let (minute, rest) = one_or_two(rest.strip_prefix(':')?)?;
    let (second, rest) = one_or_two(rest.strip_prefix(':')?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut printed = format!("{hour:02}:{minute:02}:{second:02}");
    let Some(fraction) = rest.strip_prefix(['.', ',']) else { return Some((printed, rest)) };
    let count = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 {
        return None;
    }
    let digits = fraction[..count.min(9)].trim_end_matches('0');
    if !digits.is_empty() {
        printed.push('.');
        printed.push_str(digits);
    }
    Some((printed, &fraction[count..]))
}

fn zone(text: &str) -> Option<String> {
    if text == "Z" {
        return Some("Z".to_owned());
    }
    let bytes = text.as_bytes();
    let well_formed = bytes.len() == 6 && matches!(bytes[0], b'+' | b'-') && bytes[3] == b':';
    if !well_formed || !text[1..3].bytes().chain(text[4..].bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes): (u32, u32) = (text[1..3].parse().ok()?, text[4..].parse().ok()?);
    if hours > 24 || minutes > 60 {
        return None;
    }
    Some(if hours == 0 && minutes == 0 { "Z".to_owned() } else { text.to_owned() })
}

/// Whether both go-yaml v3 and v2 read a plain text as a string; where they do not, kyaml quotes it.
pub(crate) fn reads_as_string(text: &str) -> bool {
    let old_bool = matches!(
        text,
        "y" | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "off"
            | "Off"
            | "OFF"
    );
    !old_bool && matches!(resolve(text), Resolved::Str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_as_go_yaml_v3_does() {
        for (text, expected) in [
            ("", Resolved::Null),
            ("~", Resolved::Null),
            ("yes", Resolved::Str),
            ("True", Resolved::Bool(true)),
            ("0777", Resolved::Int(511)),
            ("0o14", Resolved::Int(12)),
            ("0x1F", Resolved::Int(31)),
            ("1_000", Resolved::Int(1000)),
            ("-12", Resolved::Int(-12)),
            ("18446744073709551615", Resolved::UInt(u64::MAX)),
            ("089", Resolved::Float(89.0)),
            ("1e3", Resolved::Float(1000.0)),
            (".5", Resolved::Float(0.5)),
            ("1.", Resolved::Float(1.0)),
            ("1.2.3", Resolved::Str),
            ("12e", Resolved::Str),
            ("<<", Resolved::Merge),
            ("-", Resolved::Str),
            ("2020-01-01", Resolved::Timestamp("2020-01-01T00:00:00Z".into())),
            ("2020-1-2 3:4:5", Resolved::Timestamp("2020-01-02T03:04:05Z".into())),
            ("2020-01-01T01:02:03.50+02:00", Resolved::Timestamp("2020-01-01T01:02:03.5+02:00".into())),
            ("2020-13-01", Resolved::Str),
            ("2021-02-29", Resolved::Str),
        ] {
            assert_eq!(resolve(text), expected, "{text}");
        }
    }
}
