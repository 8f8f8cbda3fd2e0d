//! [`RunningActivities`]: the cancellation tokens of claimed activities.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use duroxide_provider::ScheduledActivityIdentifier;
use tokio_util::sync::CancellationToken;

use crate::env::{Moment, lock};

type Key = (String, u64, u64);

/// The activities this node has claimed. A committed round that cancels an activity, or asks it to stop, fires the
/// activity's token at once instead of at the next renewal (7.3).
#[derive(Debug, Default)]
pub(crate) struct RunningActivities {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    next: u64,
    tokens: HashMap<Key, (u64, Tokens)>,
}

/// The tokens of a claimed activity.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokens {
    /// The result is no longer wanted.
    pub cancelled: CancellationToken,
    /// The activity is asked to stop, and its outcome is awaited.
    pub stop: CancellationToken,
}

/// A claimed activity. Dropping it removes its entry.
#[derive(Debug)]
pub(crate) struct RunningActivity {
    all: Arc<RunningActivities>,
    key: Key,
    number: u64,
    pub tokens: Tokens,
}

/// One run of an activity's code, for a shutdown that waits for it.
#[derive(Debug, Clone)]
pub(crate) struct ActivityRun {
    pub instance: String,
    pub activity_name: String,
    pub activity_id: u64,
    pub lock_token: String,
    pub began: Moment,
}

impl RunningActivities {
    pub(crate) fn enter(self: &Arc<Self>, activity: &ScheduledActivityIdentifier) -> RunningActivity {
        let (key, tokens) = (key(activity), Tokens::default());
        let mut entries = lock(&self.entries);
        entries.next += 1;
        let number = entries.next;
        entries.tokens.insert(key.clone(), (number, tokens.clone()));
        RunningActivity { all: Arc::clone(self), key, number, tokens }
    }

    /// Fires the token of an activity that a committed round has deleted.
    pub(crate) fn cancel(&self, activity: &ScheduledActivityIdentifier) {
        if let Some(tokens) = self.tokens(activity) {
            tokens.cancelled.cancel();
        }
    }

    /// Fires the token of an activity that a committed round asks to stop.
    pub(crate) fn stop(&self, activity: &ScheduledActivityIdentifier) {
        if let Some(tokens) = self.tokens(activity) {
            tokens.stop.cancel();
        }
    }

    fn tokens(&self, activity: &ScheduledActivityIdentifier) -> Option<Tokens> {
        lock(&self.entries).tokens.get(&key(activity)).map(|(_, tokens)| tokens.clone())
    }
}

impl Drop for RunningActivity {
    fn drop(&mut self) {
        let mut entries = lock(&self.all.entries);
        // A later claim of the same activity may have replaced this entry.
        if entries.tokens.get(&self.key).is_some_and(|(number, _)| *number == self.number) {
            entries.tokens.remove(&self.key);
        }
    }
}

fn key(activity: &ScheduledActivityIdentifier) -> Key {
    (activity.instance.clone(), activity.execution_id, activity.activity_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity() -> ScheduledActivityIdentifier {
        ScheduledActivityIdentifier { instance: "order".into(), execution_id: 1, activity_id: 2 }
    }

    #[test]
    fn only_the_cancelled_activity_is_notified() {
        let all = Arc::new(RunningActivities::default());
        let running = all.enter(&activity());
        let other = all.enter(&ScheduledActivityIdentifier { activity_id: 3, ..activity() });
        all.cancel(&activity());
        assert!(running.tokens.cancelled.is_cancelled() && !running.tokens.stop.is_cancelled());
        assert!(!other.tokens.cancelled.is_cancelled());
    }

    #[test]
    fn a_second_claim_of_an_activity_outlives_the_first() {
        let all = Arc::new(RunningActivities::default());
        let first = all.enter(&activity());
        let second = all.enter(&activity());
        drop(first);
        all.cancel(&activity());
        assert!(second.tokens.cancelled.is_cancelled());
    }
}
