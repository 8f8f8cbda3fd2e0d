//! Waiting to be told, with a poll behind it.

use std::{future::Future, time::Duration};

use duroxide_provider::{InstanceWatch, ProviderError, StatusSnapshot};

use super::{Client, ClientError};
use crate::env::Moment;

/// The shortest pause between two polls, whatever a caller asks for.
const POLL_MIN: Duration = Duration::from_millis(1);

/// What the store said of an instance by itself, for one check at it.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each check, and it is taken apart at once")]
pub(super) enum Notification {
    /// Nothing: it has to be read.
    None,
    /// It exists and has not ended.
    NotEnded,
    /// How it stands. It need not be read.
    Status(StatusSnapshot),
}

/// How often to ask a provider that cannot tell.
#[derive(Debug, Clone, Copy)]
pub(super) struct PollInterval {
    next: Duration,
    max: Duration,
}

impl PollInterval {
    /// Quick at first, for what ends soon; then slow enough to cost nothing.
    pub(super) const GROWING: Self = Self { next: Duration::from_millis(5), max: Duration::from_millis(100) };

    /// The poll behind a watch: it finds what a lost notification did not tell. Thousands may wait in one process for
    /// what takes seconds, and none of them should read for that; so it begins late and becomes rare.
    const WITH_WATCH: Self = Self { next: Duration::from_secs(5), max: Duration::from_secs(40) };

    /// The same after a read that failed.
    const AFTER_FAILURE: Self = Self { next: Duration::from_secs(1), ..Self::WITH_WATCH };

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
    /// Looks until `check` finds something or the time is over. The first check comes at once, the last one after the
    /// time is over. Each is given what the store said of the instance by itself.
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
        // Watch first, read after: in the other order a change in between would tell nobody.
        let mut watch = self.store.watch(instance);
        let mut watch_interval = PollInterval::WITH_WATCH;
        // The last check is always a real one.
        let mut notification = match &watch {
            Some(watch) if watch.has_not_ended() && !timeout.is_zero() => Notification::NotEnded,
            _ => Notification::None,
        };
        loop {
            let failure = match check(notification).await {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => ClientError::Timeout,
                // A store that is busy for a moment does not end a long wait. What it would have said is asked soon.
                Err(error) if error.is_retryable() => {
                    watch_interval = PollInterval::AFTER_FAILURE;
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
            let told = watch.as_mut().and_then(|watch| watch.told());
            notification = told.map_or(Notification::None, Notification::Status);
        }
    }

    /// Both ends of this wait lead to the same next step: check again.
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
