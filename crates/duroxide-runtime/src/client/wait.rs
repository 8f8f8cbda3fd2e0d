//! Waiting to be told, with a poll behind it.

use std::{future::Future, time::Duration};

use duroxide_provider::{InstanceWatch, ProviderError};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Client, ClientError};

/// The poll behind a watch: it finds what a lost notification did not tell.
const POLL_BEHIND_WATCH: Duration = Duration::from_secs(1);
/// The shortest pause between two polls, whatever a caller asks for.
const POLL_MIN: Duration = Duration::from_millis(1);
/// Longer waits than this are the same as for ever, and some clocks cannot express them.
const WAIT_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// How often to ask a provider that cannot tell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    next: Duration,
    max: Duration,
}

impl Pace {
    /// Quick at first, for what ends soon; then slow enough to cost nothing.
    pub(super) const GROWING: Self = Self { next: Duration::from_millis(5), max: Duration::from_millis(100) };

    pub(super) fn every(interval: Duration) -> Self {
        let interval = interval.max(POLL_MIN);
        Self { next: interval, max: interval }
    }

    fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.max);
        pause
    }
}

impl Client {
    /// Reads until `read` finds something or the time is over. The first read comes at once, the last one after
    /// the time is over.
    pub(super) async fn wait_until<T, Read, Reading>(
        &self,
        instance: &str,
        timeout: Duration,
        mut pace: Pace,
        read: Read,
    ) -> Result<T, ClientError>
    where
        Read: Fn() -> Reading,
        Reading: Future<Output = Result<Option<T>, ProviderError>>,
    {
        let deadline = Instant::now() + timeout.min(WAIT_MAX);
        // Watch first, read after: in the other order a change in between would tell nobody.
        let mut watch = self.store.watch(instance);
        loop {
            let failure = match read().await {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => ClientError::Timeout,
                // A store that is busy for a moment does not end a long wait.
                Err(error) if error.is_retryable() => error.into(),
                Err(error) => return Err(error.into()),
            };
            if Instant::now() >= deadline {
                return Err(failure);
            }
            let pause = if watch.is_some() { POLL_BEHIND_WATCH } else { pace.pause() };
            pause_or_change(&mut watch, deadline.min(Instant::now() + pause)).await;
        }
    }
}

async fn pause_or_change(watch: &mut Option<Box<dyn InstanceWatch>>, until: Instant) {
    match watch {
        // Both ends of this wait lead to the same next step: read again.
        Some(watch) => drop(timeout_at(until, watch.changed()).await),
        None => sleep_until(until).await,
    }
}
