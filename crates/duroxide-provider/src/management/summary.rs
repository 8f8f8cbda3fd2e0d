//! Summaries of a whole store: instances by name, version and status, and the queues by needs.

pub(crate) mod scan;

use serde::Serialize;

/// Which period [`InstanceSummary`] divides into buckets. Times are in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SummaryRequest {
    /// When the first bucket begins.
    pub from_ms: u64,
    /// The length of a bucket.
    pub bucket_ms: u64,
    /// The number of buckets, at most [`Self::BUCKETS_MAX`]. More count as that many; without any, the summary has only
    /// counts.
    pub buckets: u32,
}

impl SummaryRequest {
    /// The number of buckets that a summary has at most.
    pub const BUCKETS_MAX: u32 = 1_000;

    /// The number of buckets of the summary.
    pub fn bucket_count(&self) -> usize {
        self.buckets.min(Self::BUCKETS_MAX) as usize
    }

    /// When the last bucket ends.
    pub fn end_ms(&self) -> u64 {
        self.from_ms.saturating_add(self.bucket_ms.saturating_mul(self.bucket_count() as u64))
    }

    /// The bucket of a time; `None` if it is in none.
    pub fn bucket_of(&self, at_ms: u64) -> Option<usize> {
        let offset = at_ms.checked_sub(self.from_ms)?.checked_div(self.bucket_ms)?;
        usize::try_from(offset).ok().filter(|bucket| *bucket < self.bucket_count())
    }
}

/// Counts of all instances that a node has begun, and what began and ended over time. An instance counts with its current
/// execution.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct InstanceSummary {
    /// How many instances there are of each name, version and status, in this order.
    pub counts: Vec<InstanceCount>,
    /// Instances that were created, by bucket.
    pub started: Vec<u64>,
    /// Instances that completed, by bucket.
    pub completed: Vec<u64>,
    /// Instances that failed, by bucket.
    pub failed: Vec<u64>,
    /// The running instance that was created first, and when. Of several of one millisecond it is any.
    pub oldest_running: Option<(String, u64)>,
}

impl InstanceSummary {
    /// A summary of no instances.
    pub fn empty(request: &SummaryRequest) -> Self {
        let zeros = vec![0; request.bucket_count()];
        Self { started: zeros.clone(), completed: zeros.clone(), failed: zeros, ..Self::default() }
    }

    /// Keeps the older of this running instance and the oldest known one.
    pub(crate) fn note_running(&mut self, instance: &str, created_at: u64) {
        if self.oldest_running.as_ref().is_none_or(|(_, oldest)| created_at < *oldest) {
            self.oldest_running = Some((instance.to_owned(), created_at));
        }
    }
}

/// Instances of one orchestration, version and status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct InstanceCount {
    /// The orchestration.
    pub name: String,
    /// The handler version.
    pub version: String,
    /// The status of the current execution.
    pub status: String,
    /// How many there are.
    pub count: u64,
}

/// Counts of the queues. Times are in milliseconds since the epoch, on the store's clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct QueueSummary {
    /// When the store was read.
    pub now_ms: u64,
    /// Instances that are ready or whose turn runs, by their needs, in this order.
    pub orchestrations: Vec<RouteSummary>,
    /// Activities, by name and tag, in this order.
    pub activities: Vec<LaneSummary>,
    /// When the next instance that waits for a time is due.
    pub next_timer_ms: Option<u64>,
    /// Instances that wait for a time: a timer, or messages that are hidden until then.
    pub waiting_timers: u64,
}

/// Instances that need the same of the node that takes them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct RouteSummary {
    /// The orchestration, if known.
    pub name: Option<String>,
    /// Its version, if one was asked for or recorded.
    pub version: Option<String>,
    /// The duroxide version that it is pinned to.
    pub pinned: Option<String>,
    /// Instances that a node could take.
    pub ready: u64,
    /// Instances whose turn runs.
    pub locked: u64,
    /// Since when a message of the instance waits that has been ready longest.
    pub oldest_ready_ms: Option<u64>,
}

/// Activities of one name and tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct LaneSummary {
    /// The activity.
    pub name: String,
    /// Its routing tag.
    pub tag: Option<String>,
    /// Activities that a node could take, or the owner of their session.
    pub ready: u64,
    /// Activities that run.
    pub running: u64,
    /// Activities that are hidden for a time.
    pub delayed: u64,
    /// When the activity was scheduled that comes first, by the event that records it.
    pub oldest_ready_ms: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_its_beginning_and_not_its_end() {
        let request = SummaryRequest { from_ms: 100, bucket_ms: 10, buckets: 2 };
        let buckets = [99, 100, 109, 110, 119, 120].map(|at| request.bucket_of(at));
        assert_eq!(buckets, [None, Some(0), Some(0), Some(1), Some(1), None]);
        assert_eq!(request.end_ms(), 120);
    }

    #[test]
    fn buckets_are_bounded_and_may_be_none() {
        let many = SummaryRequest { from_ms: 0, bucket_ms: 1, buckets: u32::MAX };
        assert_eq!(InstanceSummary::empty(&many).started.len(), 1_000);
        assert_eq!(many.bucket_of(1_000), None);
        let none = SummaryRequest { bucket_ms: 0, ..many };
        assert_eq!(none.bucket_of(5), None);
        assert_eq!(SummaryRequest::default().bucket_of(0), None);
    }
}
