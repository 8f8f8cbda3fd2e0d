//! Latencies of a stress test: minimum, percentiles and maximum.

use std::time::Duration;

use super::StressTestResult;

/// The result of a stress test: the outcomes of orchestrations, and the latencies of those that completed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StressTestReport {
    /// Counts and throughput.
    pub result: StressTestResult,
    /// Latencies of completed orchestrations.
    pub latency: Latency,
}

/// Latencies of completed orchestrations as a client sees them: from the call that starts one to the return of the call that
/// waits for its end. All values are measured times. All are zero if no orchestration completed.
///
/// With more orchestrations in flight than the store can serve, most of a latency is waiting time. Compare providers at
/// the same `max_concurrent`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latency {
    /// The lowest latency.
    pub min: Duration,
    /// The median.
    pub p50: Duration,
    /// The 90th percentile.
    pub p90: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The highest latency.
    pub max: Duration,
}

impl Latency {
    /// The latencies of a set of times.
    pub fn of(times: impl IntoIterator<Item = Duration>) -> Self {
        let mut sorted: Vec<_> = times.into_iter().collect();
        sorted.sort_unstable();
        Self {
            min: sorted.first().copied().unwrap_or_default(),
            p50: at_rank(&sorted, 50),
            p90: at_rank(&sorted, 90),
            p99: at_rank(&sorted, 99),
            max: sorted.last().copied().unwrap_or_default(),
        }
    }
}

/// The smallest measured time that this percentage of the times does not exceed.
fn at_rank(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(times: impl IntoIterator<Item = u64>) -> Latency {
        Latency::of(times.into_iter().map(Duration::from_millis))
    }

    #[test]
    fn ranks_are_times_that_were_measured() {
        let hundred = millis((1..=100).rev());
        let expected = [1, 50, 90, 99, 100].map(Duration::from_millis);
        assert_eq!([hundred.min, hundred.p50, hundred.p90, hundred.p99, hundred.max], expected);

        let three = millis([7, 1, 100]);
        let expected = [1, 7, 100, 100, 100].map(Duration::from_millis);
        assert_eq!([three.min, three.p50, three.p90, three.p99, three.max], expected);
    }

    /// Percentiles show a slow tail, which the mean hides.
    #[test]
    fn a_slow_tail_shows() {
        let tail = millis((0..98).map(|_| 2).chain([900, 1_000]));
        assert_eq!((tail.p50, tail.p90), (Duration::from_millis(2), Duration::from_millis(2)));
        assert_eq!((tail.p99, tail.max), (Duration::from_millis(900), Duration::from_secs(1)));
    }

    #[test]
    fn of_nothing_there_is_no_latency() {
        assert_eq!(millis([]), Latency::default());
        let one = Duration::from_millis(3);
        assert_eq!(millis([3]), Latency { min: one, p50: one, p90: one, p99: one, max: one });
    }
}
