//! Random numbers that are the same for the same seed.

use std::time::Duration;

/// Numbers out of one number.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64: every bit of the result depends on every bit of the state.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let sides = (of.len() as u64).max(1);
        of.get(usize::try_from(self.roll(sides)).unwrap())
    }

    pub(super) fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    pub(super) fn delay(&mut self) -> Option<Duration> {
        [None, Some(Duration::ZERO), Some(Duration::from_millis(150)), Some(Duration::from_secs(3))]
            [usize::try_from(self.roll(4)).unwrap()]
    }

    pub(super) fn instance(&mut self) -> String {
        format!("i{}", self.roll(4))
    }
}
