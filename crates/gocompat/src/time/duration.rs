//! Durations.

use crate::strconv::quote;
use std::fmt;

/// Nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub i64);

/// A text that is no duration, with Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time: {0} {text}", text = quote(.1))]
pub struct DurationError(String, String);

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl Duration {
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);

    /// `time.ParseDuration`: `1h15m30.918s`
    ///
    /// # Errors
    /// Go's texts.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        let fail = |what: &str| DurationError(what.to_owned(), text.to_owned());
        let invalid = || fail("invalid duration");
        let (negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total = 0u64;
        while !rest.is_empty() {
            let whole = digits(&mut rest);
            let fraction = rest.strip_prefix('.').map(|after| {
                rest = after;
                digits(&mut rest)
            });
            if whole.is_empty() && fraction.is_none_or(str::is_empty) {
                return Err(invalid());
            }
            let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
            let (unit, after) = rest.split_at(end);
            rest = after;
            if unit.is_empty() {
                return Err(fail("missing unit in duration"));
            }
            let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
                return Err(fail(&format!("unknown unit {} in duration", quote(unit))));
            };
            let amount = amount(whole, fraction.unwrap_or(""), *scale).ok_or_else(invalid)?;
            total = total.checked_add(amount).filter(|total| *total <= 1 << 63).ok_or_else(invalid)?;
        }
        if negative {
            return Ok(Self((total as i64).wrapping_neg()));
        }
        i64::try_from(total).map(Self).map_err(|_| invalid())
    }

    /// `Duration.Round`: to the nearest multiple, halves away from zero.
    pub fn round(self, unit: Self) -> Self {
        if unit.0 <= 0 {
            return self;
        }
        let rest = self.0 % unit.0;
        let down = self.0 - rest;
        if rest.unsigned_abs() * 2 < unit.0.unsigned_abs() {
            return Self(down);
        }
        Self(if self.0 < 0 { down.saturating_sub(unit.0) } else { down.saturating_add(unit.0) })
    }
}

/// Takes the digits at the start.
fn digits<'t>(rest: &mut &'t str) -> &'t str {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (taken, after) = rest.split_at(end);
    *rest = after;
    taken
}

fn amount(whole: &str, fraction: &str, scale: u64) -> Option<u64> {
    let whole: u64 =
        if whole.is_empty() { 0 } else { whole.parse().ok().filter(|whole| *whole <= 1 << 63)? };
    let mut value = whole.checked_mul(scale).filter(|value| *value <= 1 << 63)?;
    // Digits beyond what fits are dropped, as in Go.
    let (mut digits, mut divisor) = (0u64, 1f64);
    for byte in fraction.bytes() {
        match digits.checked_mul(10).and_then(|digits| digits.checked_add(u64::from(byte - b'0'))) {
            Some(next) if next <= 1 << 63 => {
                digits = next;
                divisor *= 10.0;
            }
            _ => break,
        }
    }
    if digits > 0 {
        value = value.checked_add((digits as f64 * (scale as f64 / divisor)) as u64)?;
    }
    Some(value)
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let (small, unit) = match nanos {
            0 => return f.write_str("0s"),
            1..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => {
                let seconds = nanos / 1_000_000_000;
                let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if seconds >= 60 {
                    write!(f, "{minutes}m")?;
                }
                return write_fraction(f, nanos % 60_000_000_000, 1_000_000_000, "s");
            }
        };
        write_fraction(f, nanos, small, unit)
    }
}

fn write_fraction(f: &mut fmt::Formatter<'_>, nanos: u64, scale: u64, unit: &str) -> fmt::Result {
    write!(f, "{}", nanos / scale)?;
    if !nanos.is_multiple_of(scale) {
        let width = scale.ilog10() as usize;
        let text = format!("{:0width$}", nanos % scale);
        write!(f, ".{}", text.trim_end_matches('0'))?;
    }
    f.write_str(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        for text in ["1h15m30.918s", "-1m0s", "1.5µs", "100ms", "0s", "2562047h47m16.854775807s", "24h0m0s"]
        {
            assert_eq!(Duration::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(
            Duration::parse("1d").unwrap_err().to_string(),
            r#"time: unknown unit "d" in duration "1d""#
        );
        assert_eq!(Duration::parse("3").unwrap_err().to_string(), r#"time: missing unit in duration "3""#);
        assert_eq!(Duration::parse("").unwrap_err().to_string(), r#"time: invalid duration """#);
    }
}
