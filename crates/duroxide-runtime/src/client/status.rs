//! Reads the status of an instance and waits for changes: by notification, with a slow poll in case one is lost.

use std::{future::Future, time::Duration};

use duroxide_core::codec;
use duroxide_provider::{InstanceWatch, ProviderError, StatusSnapshot};
use serde::de::DeserializeOwned;

use super::{Client, ClientError};
use crate::{OrchestrationStatus, env::Moment};

/// The lower bound of the pause between two polls.
const POLL_MIN: Duration = Duration::from_millis(1);

/// The reports of the store's watch about an instance since the last check.
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
    /// The status of an instance. Reads one row and at most one event, for any length of the history.
    ///
    /// An instance is `Running` as soon as its start was accepted, even before a node has begun it, if the store knows
    /// queued starts (ours do). An instance that was never started, or was deleted, is `NotFound`.
    ///
    /// # Errors
    /// The store's error.
    pub async fn get_orchestration_status(&self, instance: &str) -> Result<OrchestrationStatus, ClientError> {
        let status = match self.store.read_status(instance).await? {
            Some(status) => Some(status),
            // A single read for both cases, because the first turn may be committed between two reads.
            None => self.store.read_status_or_pending(instance).await?,
        };
        Ok(status.into())
    }

    /// Waits until an instance has ended. Also waits for an instance that does not exist yet.
    ///
    /// # Errors
    /// `Timeout` if it has not ended in time; otherwise the store's error.
    pub async fn wait_for_orchestration(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        let check = |notification| async {
            match notification {
                Notification::NotEnded => Ok(None),
                notification @ (Notification::None | Notification::Status(_)) => {
                    self.check_status(instance, notification, OrchestrationStatus::is_terminal).await
                }
            }
        };
        self.wait_until(instance, timeout, PollInterval::GROWING, check).await
    }

    /// Waits until an instance has ended and decodes its output. The inner error is the text of its failure.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`] for what that loses.
    ///
    /// # Errors
    /// As [`Self::wait_for_orchestration`], and `InvalidInput` for an output that is not an `Out`.
    pub async fn wait_for_orchestration_typed<Out: DeserializeOwned>(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<Result<Out, String>, ClientError> {
        match self.wait_for_orchestration(instance, timeout).await? {
            OrchestrationStatus::Completed { output, .. } => {
                codec::decode_at(&output, || format!("output of instance '{instance}'"))
                    .map(Ok)
                    .map_err(|error| ClientError::invalid_input(format!("decode failed: {error}")))
            }
            OrchestrationStatus::Failed { details, .. } => Ok(Err(details.display_message())),
            // The wait above returns only ended instances.
            OrchestrationStatus::NotFound | OrchestrationStatus::Running { .. } => Err(ClientError::Timeout),
        }
    }

    /// Waits until the custom status has a version above `last_seen_version`, or the instance has ended.
    ///
    /// `poll_interval` is only used if the store cannot notify of changes.
    ///
    /// # Errors
    /// `Timeout` if neither happened in time; otherwise the store's error.
    pub async fn wait_for_status_change(
        &self,
        instance: &str,
        last_seen_version: u64,
        poll_interval: Duration,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        let changed = |status: &OrchestrationStatus| {
            status.is_terminal() || status.custom_status_version() > last_seen_version
        };
        let check = |notification| self.check_status(instance, notification, changed);
        self.wait_until(instance, timeout, PollInterval::every(poll_interval), check).await
    }

    async fn check_status(
        &self,
        instance: &str,
        notification: Notification,
        wanted: impl Fn(&OrchestrationStatus) -> bool,
    ) -> Result<Option<OrchestrationStatus>, ProviderError> {
        let snapshot = match notification {
            Notification::Status(snapshot) => Some(snapshot),
            Notification::None | Notification::NotEnded => self.store.read_status(instance).await?,
        };
        let status = OrchestrationStatus::from(snapshot);
        Ok(wanted(&status).then_some(status))
    }

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
