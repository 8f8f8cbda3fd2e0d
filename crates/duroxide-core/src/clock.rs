//! Time as a value ([`Timestamp`]) and where an execution reads it ([`Clock`]).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A point in time: microseconds since the Unix epoch.
///
/// Microseconds rather than milliseconds, because a time that was already truncated to milliseconds cannot be
/// rounded up any more, and a timer computed from it would fire early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const ZERO: Self = Self(0);
    /// The latest representable time; stands for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// A time from microseconds since the epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// A time from milliseconds since the epoch, saturating.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Milliseconds since the epoch, rounded down: for stamps.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// Milliseconds since the epoch, rounded up: for deadlines, which must never be early.
    pub const fn as_millis_ceil(self) -> u64 {
        self.0.div_ceil(1_000)
    }

    /// This time plus `delay`, saturating.
    #[must_use]
    pub fn saturating_add(self, delay: Duration) -> Self {
        let micros = u64::try_from(delay.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// The time `ago` before this one, in whole microseconds, rounded down; at least [`Timestamp::ZERO`].
    #[must_use]
    pub fn saturating_sub(self, ago: Duration) -> Self {
        let micros = u64::try_from(ago.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(micros))
    }

    /// How long after `earlier` this time is; zero if it is not.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX))
    }
}

/// The clock of an execution. The runtime supplies it, and the engine has no other source of time.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_round_up_and_stamps_round_down() {
        let time = Timestamp::from_micros(1_500);
        assert_eq!(time.as_millis(), 1);
        assert_eq!(time.as_millis_ceil(), 2);
    }

    #[test]
    fn adding_saturates_and_rounds_nanoseconds_up() {
        assert_eq!(Timestamp::from_micros(1).saturating_add(Duration::from_nanos(1)).as_micros(), 2);
        assert_eq!(Timestamp::MAX.saturating_add(Duration::MAX), Timestamp::MAX);
    }
}
