//! The same numbers in every run.

/// A generator of pseudo-random numbers (a linear congruence: nothing depends on its quality).
pub(super) struct Random(u64);

impl Random {
    /// A generator whose whole output follows from a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below another.
    pub(super) fn number_below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }

    /// One of several.
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.number_below(from.len() as u64) as usize]
    }

    /// Whether something happens that has so many chances in a hundred.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.number_below(100) < percent
    }
}
