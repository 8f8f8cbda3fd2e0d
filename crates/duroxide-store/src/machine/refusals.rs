//! Permanent failures of fetches, as on a damaged page, which are sent to the caller after a pause.

use std::{sync::Arc, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::store::StoreFailure;

use crate::fetch::{FetchReply, QueueFetch};

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// How long a failure counts as the state of the store. A runtime fetches more often than that.
const KNOWN_FOR: Duration = Duration::from_secs(10);
/// How many filters are counted. Fetches of one runtime all have the same.
const STREAKS_MAX: usize = 8;

/// The failures that wait to be sent. A caller fetches again right after an error, so the store makes the pause: it grows with
/// the number of fetches with one filter that failed in a row.
#[derive(Debug)]
pub(super) struct Refusals<F: QueueFetch> {
    waiting: Vec<Refusal<F>>,
    streaks: Vec<(Arc<F>, u32)>,
    /// The last failure and when it was seen, if no fetch has succeeded since.
    damage: Option<(Timestamp, StoreFailure)>,
}

#[derive(Debug)]
struct Refusal<F: QueueFetch> {
    at: Timestamp,
    reply: FetchReply<F>,
    failure: StoreFailure,
}

impl<F: QueueFetch> Default for Refusals<F> {
    fn default() -> Self {
        Self { waiting: Vec::new(), streaks: Vec::new(), damage: None }
    }
}

impl<F: QueueFetch> Refusals<F> {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When the next failure is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.waiting.iter().map(|refusal| refusal.at).min()
    }

    pub(super) fn push(
        &mut self,
        fetch: Arc<F>,
        deadline: Timestamp,
        reply: FetchReply<F>,
        failure: StoreFailure,
        now: Timestamp,
    ) {
        if !fetch.is_to_end() {
            self.damage = Some((now, failure.clone()));
        }
        let at = now.saturating_add(self.pause(fetch)).min(deadline);
        self.waiting.push(Refusal { at, reply, failure });
        self.tell(now);
    }

    /// The pause after another failure with this filter. The first failure is sent at once.
    fn pause(&mut self, fetch: Arc<F>) -> Duration {
        let found = self.streaks.iter().position(|(other, _)| other.passes_the_same_as(&fetch));
        let failures = match found.and_then(|place| self.streaks.get_mut(place)) {
            Some((_, failures)) => {
                *failures = failures.saturating_add(1);
                *failures
            }
            None => {
                self.streaks.truncate(STREAKS_MAX - 1);
                self.streaks.insert(0, (fetch, 0));
                0
            }
        };
        match failures.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => PAUSE_MIN.saturating_mul(2_u32.saturating_pow(doublings)).min(PAUSE_MAX),
        }
    }

    /// Why no item of this queue is claimed, if a fetch failed recently.
    pub(super) fn damage(&self, now: Timestamp) -> Option<&StoreFailure> {
        let (seen, failure) = self.damage.as_ref()?;
        (now.saturating_since(*seen) < KNOWN_FOR).then_some(failure)
    }

    /// A fetch with the filter of this one did not fail.
    pub(super) fn end_streak(&mut self, fetch: impl FnOnce() -> Option<Arc<F>>) {
        if !self.streaks.is_empty()
            && let Some(fetch) = fetch()
        {
            if !fetch.is_to_end() {
                self.damage = None;
            }
            self.streaks.retain(|(other, _)| !other.passes_the_same_as(&fetch));
        }
    }

    /// Sends the failures whose pause is over.
    pub(super) fn tell(&mut self, now: Timestamp) {
        for refusal in std::mem::take(&mut self.waiting) {
            if refusal.at <= now {
                let _ = refusal.reply.send(Err(refusal.failure));
            } else if !refusal.reply.is_closed() {
                self.waiting.push(refusal);
            }
        }
    }

    pub(super) fn tell_all(&mut self) {
        for refusal in self.waiting.drain(..) {
            let _ = refusal.reply.send(Err(refusal.failure));
        }
    }
}
