//! The time span in which a fetch took its lock, as its caller sees it.

use std::time::{Duration, Instant};

/// The tolerance for the difference between the store's clock and ours over one lease, rounding included.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(20);

/// The moments before and after a fetch, which took its lock in between. So a lease ends neither before `asked + lease`
/// nor after `got + lease`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchTimes {
    asked: Instant,
    got: Instant,
}

impl FetchTimes {
    /// Runs a fetch and records the time before and after.
    pub(crate) async fn of<T>(fetch: impl Future<Output = T>) -> (T, Self) {
        let asked = Instant::now();
        let fetched = fetch.await;
        (fetched, Self { asked, got: Instant::now() })
    }

    /// Waits until a lock taken by this fetch has certainly ended. Only sleeping shows that, because another fetch
    /// would take the lock.
    pub(crate) async fn lease_ends(self, lease: Duration) {
        let end = self.got + lease + CLOCK_TOLERANCE;
        tokio::time::sleep(end.saturating_duration_since(Instant::now())).await;
    }

    /// Whether a lock taken by this fetch may have ended. On a busy machine a lease can end between any two calls, and
    /// a call that is refused then is not a fault of the provider.
    pub(crate) fn may_have_ended(self, lease: Duration) -> bool {
        self.asked.elapsed() + CLOCK_TOLERANCE >= lease
    }

    /// Asserts that `later` fetched no earlier than `lease` after this fetch.
    pub(crate) fn assert_kept_for(self, lease: Duration, later: Self) {
        let kept = later.got.duration_since(self.asked);
        assert!(
            kept + CLOCK_TOLERANCE >= lease,
            "a lock of {lease:?} must keep others away until it ends, but the item was fetched again after {kept:?}"
        );
    }
}
