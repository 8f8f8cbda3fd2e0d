//! Pseudo-random numbers that are the same in every run.

/// A small generator; its seed says all.
pub struct Luck(u64);

impl Luck {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 to `end`, `end` not included.
    pub fn below(&mut self, end: u64) -> u64 {
        // Knuth's MMIX constants; the upper bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
