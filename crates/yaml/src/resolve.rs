//! The type of a plain scalar, as go-yaml's `resolve` finds it.

use crate::Profile;

/// A scalar with its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// `null`, `~`, nothing.
    Null,
    /// `true`, in go-yaml v2 also `yes`, `on`, `y`…
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// An integer above the signed range.
    Uint(u64),
    /// Any other number.
    Float(f64),
    /// A date, with or without time. Untyped decoding leaves it a string in v2.
    Timestamp(&'a str),
    /// `<<`
    Merge,
    /// Anything else.
    Str(&'a str),
}

impl Scalar<'_> {
    /// The short tag of the type.
    pub fn tag(&self) -> &'static str {
        match self {
            Scalar::Null => "!!null",
            Scalar::Bool(_) => "!!bool",
            Scalar::Int(_) | Scalar::Uint(_) => "!!int",
            Scalar::Float(_) => "!!float",
            Scalar::Timestamp(_) => "!!timestamp",
            Scalar::Merge => "!!merge",
            Scalar::Str(_) => "!!str",
        }
    }
}

/// What a plain, untagged scalar means.
pub fn resolve(text: &str, profile: Profile) -> Scalar<'_> {
    resolve_with(text, profile, true)
}

/// As [`resolve`]; go-yaml does not look for timestamps under a tag other than `!!timestamp`.
pub(crate) fn resolve_with(text: &str, profile: Profile, timestamps: bool) -> Scalar<'_> {
    let Some(&first) = text.as_bytes().first() else { return Scalar::Null };
    match first {
        b'0'..=b'9' | b'+' | b'-' => resolve_number(text, profile, timestamps),
        b'.' => resolve_point(text),
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => {
            resolve_word(text, profile)
        }
        _ => Scalar::Str(text),
    }
}

fn resolve_word(text: &str, profile: Profile) -> Scalar<'_> {
    match text {
        "true" | "True" | "TRUE" => Scalar::Bool(true),
        "false" | "False" | "FALSE" => Scalar::Bool(false),
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        _ if profile == Profile::Go2 => match yaml11_bool(text) {
            Some(value) => Scalar::Bool(value),
            None => Scalar::Str(text),
        },
        _ => Scalar::Str(text),
    }
}

/// The words that YAML 1.1 has for booleans beside `true` and `false`.
pub(crate) fn yaml11_bool(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn resolve_point(text: &str) -> Scalar<'_> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" => Scalar::Float(f64::INFINITY),
        _ => {
            // Go's ParseFloat allows underscores between digits here.
            let digits = underscores_between_digits(text).then(|| text.replace('_', ""));
            match digits.as_deref().and_then(parse_float) {
                Some(value) => Scalar::Float(value),
                None => Scalar::Str(text),
            }
        }
    }
}

fn underscores_between_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().all(|(at, &b)| {
        b != b'_'
            || at > 0
                && bytes[at - 1].is_ascii_digit()
                && bytes.get(at + 1).is_some_and(|next| next.is_ascii_digit())
    })
}

fn resolve_number(text: &str, profile: Profile, timestamps: bool) -> Scalar<'_> {
    match text {
        "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    if timestamps && is_timestamp(text) {
        return Scalar::Timestamp(text);
    }
    let cleaned;
    let plain = if text.contains('_') {
        cleaned = text.replace('_', "");
        cleaned.as_str()
    } else {
        text
    };
    if let Some(value) = parse_go_int(plain) {
        return value;
    }
    if let Some(value) = parse_float(plain) {
        return Scalar::Float(value);
    }
    let prefixes: &[(&str, u32)] = match profile {
        Profile::Go2 => &[("0b", 2)],
        Profile::Go3 => &[("0b", 2), ("0o", 8)],
    };
    for &(prefix, radix) in prefixes {
        if let Some(value) = parse_prefixed(plain, prefix, radix) {
            return value;
        }
    }
    Scalar::Str(text)
}

/// `strconv.ParseInt(text, 0, 64)`, then `ParseUint`.
fn parse_go_int(text: &str) -> Option<Scalar<'static>> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("+", &text[1..]),
        _ => ("", text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', _, ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    if sign == "-" {
        return i64::from_str_radix(&format!("-{digits}"), radix).ok().map(Scalar::Int);
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    match i64::try_from(value) {
        Ok(value) => Some(Scalar::Int(value)),
        Err(_) if sign.is_empty() => Some(Scalar::Uint(value)),
        Err(_) => None,
    }
}

/// What go-yaml itself reads behind `0b` and `0o` when strconv did not: signs after the prefix.
fn parse_prefixed(text: &str, prefix: &str, radix: u32) -> Option<Scalar<'static>> {
    if let Some(digits) = text.strip_prefix(prefix) {
        return i64::from_str_radix(digits, radix).ok().map(Scalar::Int);
    }
    let digits = text.strip_prefix('-')?.strip_prefix(prefix)?;
    if digits.starts_with(['-', '+']) {
        return None;
    }
    i64::from_str_radix(&format!("-{digits}"), radix).ok().map(Scalar::Int)
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?` within the range of f64.
fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !all_digits(whole) || !all_digits(fraction) || whole.is_empty() && fraction.is_empty() {
        return None;
    }
    if let Some(exponent) = exponent {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if digits.is_empty() || !all_digits(digits) {
            return None;
        }
    }
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

/// Whether go-yaml reads the text as a timestamp: a date, or a date and time behind `T`, `t` (with
/// zone) or a space (without).
pub(crate) fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 8 || bytes[4] != b'-' || !bytes[..4].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let mut cursor = Cursor { bytes, at: 5 };
    let Some(month) = cursor.number(2).filter(|month| (1..=12).contains(month)) else { return false };
    if !cursor.eat(b'-') {
        return false;
    }
    let Some(day) = cursor.number(2) else { return false };
    let year = bytes[..4].iter().fold(0, |year, b| year * 10 + u32::from(b - b'0'));
    if day < 1 || day > days_in(month, year) {
        return false;
    }
    match cursor.peek() {
        None => true,
        Some(b'T' | b't') => {
            cursor.at += 1;
            cursor.time() && cursor.zone() && cursor.peek().is_none()
        }
        Some(b' ') => {
            while cursor.eat(b' ') {}
            cursor.time() && cursor.peek().is_none()
        }
        Some(_) => false,
    }
}

fn days_in(month: u32, year: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// One to `most` digits.
    fn number(&mut self, most: usize) -> Option<u32> {
        let from = self.at;
        let mut value = 0;
        while self.at - from < most
            && let Some(digit) = self.peek().filter(u8::is_ascii_digit)
        {
            value = value * 10 + u32::from(digit - b'0');
            self.at += 1;
        }
        (self.at > from).then_some(value)
    }

    /// `15:4:5.999`
    fn time(&mut self) -> bool {
        let in_range = self.number(2).is_some_and(|hour| hour < 24)
            && self.eat(b':')
            && self.number(2).is_some_and(|minute| minute < 60)
            && self.eat(b':')
            && self.number(2).is_some_and(|second| second < 60);
        if !in_range {
            return false;
        }
        if matches!(self.peek(), Some(b'.' | b','))
            && self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit)
        {
            self.at += 1;
            while self.peek().is_some_and(|b| b.is_ascii_digit()) {
                self.at += 1;
            }
        }
        true
    }

    /// `Z` or `+07:00`
    fn zone(&mut self) -> bool {
        if self.eat(b'Z') {
            return true;
        }
        let from = self.at;
        (self.eat(b'+') || self.eat(b'-'))
            && self.number(2).is_some_and(|hour| hour <= 24)
            && self.eat(b':')
            && self.number(2).is_some_and(|minute| minute <= 60)
            && self.at - from == 6
    }
}
