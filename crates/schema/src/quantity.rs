//! Resource quantities (`100m`, `1.5Gi`): reading, canonical form, comparison, as apimachinery's
//! `resource.Quantity`.

use std::{cmp::Ordering, fmt, str::FromStr};

/// How a quantity was written, which decides how it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    DecimalSi,
    BinarySi,
    DecimalExponent,
}

/// Nano units (10⁻⁹), the finest that a quantity keeps.
const NANO: i128 = 1_000_000_000;
/// The largest magnitude: beyond it values are capped.
const MAX: i128 = (i64::MAX as i128) * NANO;

/// A resource quantity; compares by amount, whatever the notation.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nano: i128,
    format: Format,
}

/// Why a text is no quantity, in the API server's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// Nothing there.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// A suffix that does not exist.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    /// The pattern that generated definitions of custom kinds have for quantities.
    pub const PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

    /// A whole number of units.
    pub fn from_units(units: i64) -> Self {
        Self { nano: i128::from(units) * NANO, format: Format::DecimalSi }
    }

    /// A number of thousandths, as CPUs are counted.
    pub fn from_milli(milli: i64) -> Self {
        Self { nano: i128::from(milli) * (NANO / 1000), format: Format::DecimalSi }
    }

    /// Whole units, rounded up.
    pub fn units(&self) -> i64 {
        clamp(div_ceil(self.nano, NANO))
    }

    /// Thousandths, rounded up.
    pub fn milli(&self) -> i64 {
        clamp(div_ceil(self.nano, NANO / 1000))
    }

    /// −1, 0 or 1.
    pub fn signum(&self) -> i32 {
        self.nano.signum() as i32
    }

    /// Whether the amount is a whole number of units.
    pub fn is_whole(&self) -> bool {
        self.nano % NANO == 0
    }

    /// The sum, in the notation of `self` (of `other` if `self` is zero).
    pub fn plus(&self, other: &Self) -> Self {
        let format = if self.nano == 0 { other.format } else { self.format };
        Self { nano: (self.nano + other.nano).clamp(-MAX, MAX), format }
    }

    /// The difference, in the notation of `self`.
    pub fn minus(&self, other: &Self) -> Self {
        Self { nano: (self.nano - other.nano).clamp(-MAX, MAX), format: self.format }
    }
}

fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

fn div_ceil(value: i128, by: i128) -> i128 {
    value.div_euclid(by) + i128::from(value.rem_euclid(by) != 0)
}

/// Rounds away from zero.
fn div_away(value: i128, by: i128) -> i128 {
    value.signum() * ((value.abs() + by - 1) / by)
}

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (negative, rest) = match text.as_bytes().first() {
            None => return Err(ParseQuantityError::Format),
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            Some(_) => (false, text),
        };
        let whole_end = digits(rest);
        let (whole, rest) = rest.split_at(whole_end);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(digits(rest)),
            None => ("", rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(ParseQuantityError::Format);
        }
        if !is_suffix(suffix) {
            return Err(ParseQuantityError::Format);
        }
        let (base_binary, exponent, format) = read_suffix(suffix)?;
        let nano = amount(whole, fraction, base_binary, exponent);
        Ok(Self { nano: if negative { -nano } else { nano }, format })
    }
}

/// Letters, then perhaps a sign, then digits.
fn is_suffix(suffix: &str) -> bool {
    let rest = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    digits(rest) == rest.len()
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Whether the suffix is binary, its exponent (of 1024 or of 10), and the notation.
fn read_suffix(suffix: &str) -> Result<(bool, i32, Format), ParseQuantityError> {
    if let Some(at) = BINARY.iter().position(|known| *known == suffix).filter(|at| *at > 0) {
        return Ok((true, at as i32, Format::BinarySi));
    }
    let decimal = match suffix {
        "n" => Some(-9),
        "u" => Some(-6),
        "m" => Some(-3),
        "" => Some(0),
        "k" => Some(3),
        "M" => Some(6),
        "G" => Some(9),
        "T" => Some(12),
        "P" => Some(15),
        "E" => Some(18),
        _ => None,
    };
    if let Some(exponent) = decimal {
        return Ok((false, exponent, Format::DecimalSi));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(ParseQuantityError::Suffix)?;
    let exponent: i32 = exponent.parse().map_err(|_| ParseQuantityError::Suffix)?;
    Ok((false, exponent, Format::DecimalExponent))
}

/// The amount in nano units, rounded up and capped.
fn amount(whole: &str, fraction: &str, binary: bool, exponent: i32) -> i128 {
    let whole = whole.trim_start_matches('0');
    // More digits than this are beyond the cap or below the resolution, whatever the suffix.
    if whole.len() > 30 || (exponent > 40 && !(whole.is_empty() && fraction.trim_matches('0').is_empty())) {
        return MAX;
    }
    let kept = &fraction[..fraction.len().min(27)];
    let dropped = fraction[kept.len()..].bytes().any(|b| b != b'0');
    let mut mantissa: i128 = 0;
    for digit in whole.bytes().chain(kept.bytes()) {
        mantissa = match mantissa.checked_mul(10).and_then(|m| m.checked_add(i128::from(digit - b'0'))) {
            Some(value) => value,
            None => return MAX,
        };
    }
    let mut power = 9 - kept.len() as i32 + if binary { 0 } else { exponent };
    if binary {
        for _ in 0..exponent {
            mantissa = match mantissa.checked_mul(1024) {
                Some(value) => value,
                None => return MAX,
            };
        }
    }
    if dropped {
        mantissa += 1;
    }
    while power > 0 && mantissa != 0 {
        mantissa = match mantissa.checked_mul(10) {
            Some(value) if value <= MAX * 10 => value,
            _ => return MAX,
        };
        power -= 1;
    }
    match power {
        0.. => mantissa.min(MAX),
        -38..=-1 => div_away(mantissa, 10_i128.pow(power.unsigned_abs())).min(MAX),
        _ => i128::from(mantissa != 0),
    }
}

impl fmt::Display for Quantity {
    /// The canonical form: the largest suffix that keeps a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nano == 0 {
            return f.write_str("0");
        }
        let binary = self.format == Format::BinarySi && self.nano.abs() >= 1024 * NANO && self.is_whole();
        if binary {
            return self.fmt_binary(f);
        }
        let (mut mantissa, mut exponent) = (self.nano, -9);
        while mantissa % 1000 == 0 && exponent < 18 {
            mantissa /= 1000;
            exponent += 3;
        }
        let suffix = match exponent {
            -9 => "n",
            -6 => "u",
            -3 => "m",
            0 => "",
            3 => "k",
            6 => "M",
            9 => "G",
            12 => "T",
            15 => "P",
            _ => "E",
        };
        match self.format {
            Format::DecimalExponent if exponent == 0 => write!(f, "{mantissa}"),
            Format::DecimalExponent => write!(f, "{mantissa}e{exponent}"),
            Format::DecimalSi | Format::BinarySi => write!(f, "{mantissa}{suffix}"),
        }
    }
}

impl Quantity {
    fn fmt_binary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut mantissa, mut step) = (self.nano / NANO, 0);
        while mantissa % 1024 == 0 && step + 1 < BINARY.len() {
            mantissa /= 1024;
            step += 1;
        }
        write!(f, "{mantissa}{}", BINARY[step])
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        text.parse::<Quantity>().map_or_else(|error| error.to_string(), |q| q.to_string())
    }

    #[test]
    fn prints_the_canonical_form() {
        for (text, expected) in [
            ("100m", "100m"),
            ("0.1", "100m"),
            ("1000m", "1"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("0.5Mi", "512Ki"),
            ("1000Ki", "1000Ki"),
            ("1e3", "1e3"),
            ("1E6", "1e6"),
            ("12e2", "1200"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("0", "0"),
            ("0Gi", "0"),
            ("-1.5", "-1500m"),
            ("+2", "2"),
            ("1.", "1"),
            (".5", "500m"),
            ("1.1n", "2n"),
            ("100Ei", "9223372036854775807"),
            ("512", "512"),
            ("0.5Ki", "512"),
            ("1.0001Ki", "1024102400u"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_quantity() {
        for text in ["", "abc", "1 Gi", "1Gx", "--1", ".", "1e", "1Zi", "Gi"] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }

    #[test]
    fn compares_by_amount() {
        let q = |text: &str| text.parse::<Quantity>().expect("quantity");
        assert_eq!(q("1"), q("1000m"));
        assert!(q("1Gi") > q("1G"));
        assert_eq!(q("1500m").units(), 2);
        assert_eq!(q("1Gi").plus(&q("1Mi")).to_string(), "1025Mi");
    }
}
