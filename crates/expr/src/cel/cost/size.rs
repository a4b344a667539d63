//! How large a value can be, and what is worked out from that. Nothing overflows: what is too much is the
//! most.

/// Characters, items or entries: how few and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub least: u64,
    pub most: u64,
}

impl Size {
    /// Nothing is known.
    pub(super) const UNKNOWN: Self = Self { least: 0, most: u64::MAX };

    pub(super) fn exactly(size: u64) -> Self {
        Self { least: size, most: size }
    }

    pub(super) fn up_to(most: u64) -> Self {
        Self { least: 0, most }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { least: self.least.saturating_add(other.least), most: self.most.saturating_add(other.most) }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self { least: self.least.saturating_mul(other.least), most: self.most.saturating_mul(other.most) }
    }

    /// One or the other.
    pub(super) fn or(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// What it costs to go through it once, at so much for each part.
    pub(super) fn traversal_cost(self, factor: f64) -> u64 {
        scale(self.most, factor)
    }
}

/// What going through a text costs for each character.
pub(super) const TEXT: f64 = 0.1;
/// What a regular expression costs for each of its characters.
pub(super) const REGEX: f64 = 0.25;

/// A product, rounded up.
pub(super) fn scale(number: u64, factor: f64) -> u64 {
    // The conversion stops at the largest number.
    (number as f64 * factor).ceil() as u64
}
