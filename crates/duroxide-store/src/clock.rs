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

/// How long the system's steady clock, which nobody sets, has run since it was first asked.
pub(crate) fn steady_time() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGAN.elapsed()
}

/// Fresh random bits for a lock token, from the system's random source.
pub fn random_nonce() -> u128 {
    uuid::Uuid::new_v4().as_u128()
}
