//! Decimal numbers as shopspring/decimal computes with them: exact, and 16 places for quotients.

use crate::strconv::{self, FloatFormat};
use num_bigint::{BigInt, Sign};

/// Places after the point of a quotient.
const DIVISION_PLACES: i64 = 16;

/// `digits × 10^exponent`
#[derive(Clone, Debug)]
pub struct Decimal {
    digits: BigInt,
    exponent: i64,
}

fn ten_to(power: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(power).unwrap_or(0))
}

impl Decimal {
    /// The shortest decimal that reads back as the float; nothing for infinities and not-a-number.
    pub fn from_f64(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        let text = strconv::format_float(value, FloatFormat::Exponent, None);
        let (digits, exponent) = text.split_once('e')?;
        let exponent: i64 = exponent.parse().ok()?;
        let places = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i64);
        Some(Self { digits: digits.replace('.', "").parse().ok()?, exponent: exponent - places })
    }

    /// Both numbers' digits at the smaller exponent.
    fn aligned(&self, other: &Self) -> (BigInt, BigInt, i64) {
        let exponent = self.exponent.min(other.exponent);
        let scaled = |number: &Self| &number.digits * ten_to(number.exponent - exponent);
        (scaled(self), scaled(other), exponent)
    }

    /// The sum.
    pub fn add(&self, other: &Self) -> Self {
        let (a, b, exponent) = self.aligned(other);
        Self { digits: a + b, exponent }
    }

    /// The difference.
    pub fn sub(&self, other: &Self) -> Self {
        let (a, b, exponent) = self.aligned(other);
        Self { digits: a - b, exponent }
    }

    /// The product.
    pub fn mul(&self, other: &Self) -> Self {
        Self { digits: &self.digits * &other.digits, exponent: self.exponent + other.exponent }
    }

    /// The quotient, rounded half away from zero at 16 places; nothing for a zero divisor.
    pub fn div(&self, other: &Self) -> Option<Self> {
        if other.digits.sign() == Sign::NoSign {
            return None;
        }
        let shift = self.exponent - other.exponent + DIVISION_PLACES;
        let (mut dividend, mut divisor) = (self.digits.clone(), other.digits.clone());
        if shift < 0 {
            divisor *= ten_to(-shift);
        } else {
            dividend *= ten_to(shift);
        }
        let quotient = &dividend / &divisor;
        let rest = &dividend - &quotient * &divisor;
        let round_up = rest.magnitude() * 2u8 >= *divisor.magnitude();
        let away = if dividend.sign() == divisor.sign() { 1 } else { -1 };
        let digits = if round_up { quotient + away } else { quotient };
        Some(Self { digits, exponent: -DIVISION_PLACES })
    }

    /// The nearest float.
    pub fn to_f64(&self) -> f64 {
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(value: f64) -> Decimal {
        Decimal::from_f64(value).unwrap()
    }

    #[test]
    fn exact_sums_and_rounded_quotients() {
        assert_eq!(decimal(0.1).add(&decimal(0.2)).to_f64(), 0.3);
        assert_eq!(decimal(1.1).mul(&decimal(3.0)).to_f64(), 3.3);
        assert_eq!(decimal(10.0).div(&decimal(3.0)).unwrap().to_f64(), 3.3333333333333333);
        assert_eq!(decimal(-2.0).div(&decimal(3.0)).unwrap().to_f64(), -0.6666666666666667);
        assert!(decimal(1.0).div(&decimal(0.0)).is_none());
    }
}
