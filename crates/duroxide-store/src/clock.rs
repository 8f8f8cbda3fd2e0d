//! The system's clocks, and random numbers for lock tokens.

use std::{
    sync::LazyLock,
    time::{Duration, Instant, SystemTime},
};

use duroxide_core::{Clock, Timestamp};

/// The system's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }
}

/// The time of the system's steady clock, which cannot be set, since its first use.
pub(crate) fn steady_time() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGAN.elapsed()
}

/// Fresh random bits for a lock token, from the system's random source.
pub fn random_nonce() -> u128 {
    uuid::Uuid::new_v4().as_u128()
}
