//! Intervals of lock renewals, retries and waits.

use std::time::Duration;

/// A prefetched item, or one in an extra slot, that has not started by then is abandoned.
pub(crate) const UNSTARTED_MAX: Duration = Duration::from_millis(100);
/// An item in a regular slot may wait longer for a thread: on a machine that busy, abandoning it costs more.
pub(crate) const UNSTARTED_IN_SLOT_MAX: Duration = Duration::from_secs(2);

/// The shortest time between two renewals.
const RENEWAL_MIN: Duration = Duration::from_millis(50);
/// The longest time between two renewals of an activity's lock, and so how late it learns that another node cancelled
/// it.
pub(crate) const WORK_RENEWAL_MAX: Duration = Duration::from_secs(5);

/// How often a lock is renewed (16.3). A buffer that is not below the timeout is ignored.
pub(crate) fn renewal_interval(timeout: Duration, buffer: Duration, at_most: Option<Duration>) -> Duration {
    let half = timeout / 2;
    let before_buffer = if buffer < timeout { timeout - buffer } else { half };
    let interval = before_buffer.min(half);
    at_most.map_or(interval, |at_most| interval.min(at_most)).max(RENEWAL_MIN)
}

/// How long a fetched item may wait for a slot. It is abandoned before its lock would have to be renewed.
pub(crate) fn unstarted_max(renewal_interval: Duration) -> Duration {
    renewal_interval.min(UNSTARTED_MAX)
}

/// The pause after `failures` consecutive failed fetches (16.13).
pub(crate) fn fetch_backoff(failures: u32, retryable: bool) -> Duration {
    const BASE: Duration = Duration::from_millis(100);
    if retryable { doubled(BASE, failures.saturating_sub(1), Duration::from_secs(3)) } else { BASE }
}

/// The pause before retry number `retry` of a commit or ack, counted from 0 (16.5).
pub(crate) fn commit_backoff(retry: u32) -> Duration {
    doubled(Duration::from_millis(10), retry, Duration::from_secs(1))
}

/// The pause before a failed renewal is repeated. It is short, because the lease is about to end.
pub(crate) fn renewal_backoff(retry: u32, interval: Duration) -> Duration {
    doubled(Duration::from_millis(20), retry, (interval / 4).max(Duration::from_millis(20)))
}

fn doubled(base: Duration, times: u32, at_most: Duration) -> Duration {
    base.saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX)).min(at_most)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// B16, 16.3: short leases are renewed in time, long ones not too seldom, none more often than every 50 ms.
    #[test]
    fn a_lock_is_renewed_well_before_its_lease_ends() {
        let two_seconds = ms(2_000);
        for (timeout, buffer, orchestrator, worker) in [
            (ms(60), two_seconds, ms(50), ms(50)),
            (ms(100), two_seconds, ms(50), ms(50)),
            (ms(400), two_seconds, ms(200), ms(200)),
            (ms(1_000), two_seconds, ms(500), ms(500)),
            (ms(5_000), two_seconds, ms(2_500), ms(2_500)),
            (ms(5_000), ms(4_000), ms(1_000), ms(1_000)),
            (ms(30_000), ms(5_000), ms(15_000), ms(5_000)),
        ] {
            assert_eq!(renewal_interval(timeout, buffer, None), orchestrator, "{timeout:?}");
            assert_eq!(renewal_interval(timeout, buffer, Some(WORK_RENEWAL_MAX)), worker, "{timeout:?}");
        }
    }

    /// 16.13
    #[test]
    fn failed_fetches_wait_longer_and_longer() {
        let waits: Vec<Duration> = (1..=7).map(|failures| fetch_backoff(failures, true)).collect();
        assert_eq!(waits, [ms(100), ms(200), ms(400), ms(800), ms(1_600), ms(3_000), ms(3_000)]);
        assert_eq!(fetch_backoff(9, false), ms(100));
    }

    /// 16.5
    #[test]
    fn commits_are_retried_from_10_ms_to_1_s() {
        assert_eq!(commit_backoff(0), ms(10));
        assert_eq!(commit_backoff(1), ms(20));
        assert_eq!(commit_backoff(7), ms(1_000));
        assert_eq!(commit_backoff(500), ms(1_000));
    }
}
