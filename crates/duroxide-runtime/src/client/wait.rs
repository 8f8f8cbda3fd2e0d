//! Waits for changes of an instance: by notification, with a slow poll in case one is lost.

use std::{future::Future, time::Duration};

use duroxide_provider::{InstanceWatch, ProviderError, StatusSnapshot};

use super::{Client, ClientError};
use crate::env::Moment;

/// The shortest pause between two polls, whatever the caller asks for.
const POLL_MIN: Duration = Duration::from_millis(1);

/// What the store's watch reported about an instance since the last check.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each check, and it is taken apart at once")]
pub(super) enum Notification {
    /// Nothing: the instance has to be read.
    None,
    /// The instance exists and has not ended.
    NotEnded,
    /// The current status, so that it need not be read.
    Status(StatusSnapshot),
}

/// The pause between two polls, which doubles up to a maximum.
#[derive(Debug, Clone, Copy)]
pub(super) struct PollInterval {
    next: Duration,
    max: Duration,
}

impl PollInterval {
    /// For a store that cannot notify: short at first, for instances that end soon, and then rare enough to be cheap.
    pub(super) const GROWING: Self = Self { next: Duration::from_millis(5), max: Duration::from_millis(100) };

    /// For a store that notifies, in case a notification is lost. It starts late and becomes rare, because thousands of
    /// clients may wait in one process for instances that take seconds, and none of them should read meanwhile.
    fn with_watch(max: Duration) -> Self {
        Self { next: Duration::from_secs(5), max }
    }

    /// With a watch, after a failed read.
    fn after_failure(max: Duration) -> Self {
        Self { next: Duration::from_secs(1), max }
    }

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
    /// Calls `check` until it returns a value or the time is over. The first check is immediate, the last one comes
    /// after the deadline. Each check receives the notification that arrived since the previous one.
    pub(super) async fn wait_until<T, Check, Checking>(
        &self,
        instance: &str,
        timeout: Duration,
        mut interval: PollInterval,
        check: Check,
    ) -> Result<T, ClientError>
    where
        Check: Fn(Notification) -> Checking,
        Checking: Future<Output = Result<Option<T>, ProviderError>>,
    {
        let deadline = self.timer.moment().after(timeout);
        // Watch before reading: in the other order a change in between would be missed.
        let mut watch = self.store.watch(instance);
        let poll_max = self.timer.watched_poll_max();
        let mut watch_interval = PollInterval::with_watch(poll_max);
        // The last check always reads.
        let mut notification = match &watch {
            Some(watch) if watch.has_not_ended() && !timeout.is_zero() => Notification::NotEnded,
            _ => Notification::None,
        };
        loop {
            let failure = match check(notification).await {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => ClientError::Timeout,
                // A store that is unavailable for a moment does not end a long wait. The next read comes soon.
                Err(error) if error.is_retryable() => {
                    watch_interval = PollInterval::after_failure(poll_max);
                    error.into()
                }
                Err(error) => return Err(error.into()),
            };
            let now = self.timer.moment();
            if now >= deadline {
                return Err(failure);
            }
            let pause = if watch.is_some() { watch_interval.pause() } else { interval.pause() };
            self.wait_for_change(&mut watch, deadline.min(now.after(pause))).await;
            let status = watch.as_mut().and_then(|watch| watch.told());
            notification = status.map_or(Notification::None, Notification::Status);
        }
    }

    /// Waits for a notification or the next poll.
    async fn wait_for_change(&self, watch: &mut Option<Box<dyn InstanceWatch>>, until: Moment) {
        let pause = self.timer.sleep_until(until);
        match watch {
            Some(watch) => tokio::select! {
                biased;
                () = watch.changed() => {}
                () = pause => {}
            },
            None => pause.await,
        }
    }
}
