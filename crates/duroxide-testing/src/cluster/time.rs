//! [`VirtualTime`]: the paused clock of tokio, for all clocks and timers of a cluster.

use std::time::Duration;

use duroxide_core::{Clock, Timestamp};
use duroxide_runtime::env::{BoxFuture, Moment, Timer, TokioTimer};

/// 2030-01-01 00:00:00 UTC, in milliseconds since the epoch.
const BEGIN_MS: u64 = 1_893_456_000_000;

/// An interval that no test reaches more than a few times. Periodic work of a node would make every jump in time
/// expensive.
pub(super) const RARELY: Duration = Duration::from_secs(365 * 86_400);

/// The time of one cluster: wall clock, monotonic clock and sleeps.
#[derive(Debug, Clone, Default)]
pub(super) struct VirtualTime {
    timer: TokioTimer,
}

impl VirtualTime {
    pub(super) fn elapsed(&self) -> Duration {
        self.timer.moment().since_begin()
    }
}

impl Clock for VirtualTime {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(BEGIN_MS).saturating_add(self.elapsed())
    }
}

impl Timer for VirtualTime {
    fn moment(&self) -> Moment {
        self.timer.moment()
    }

    fn sleep_until(&self, deadline: Moment) -> BoxFuture {
        self.timer.sleep_until(deadline)
    }

    fn watched_poll_max(&self) -> Duration {
        RARELY
    }
}
