use std::time::SystemTime;

use duroxide_core::{Clock, Timestamp};

/// The system's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }
}

/// Fresh random bits for a lock token, from the system's random source.
pub fn random_nonce() -> u128 {
    uuid::Uuid::new_v4().as_u128()
}
