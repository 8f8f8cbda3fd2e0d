//! Reads the status of an instance and waits for its end.

use std::time::Duration;

use duroxide_core::codec;
use duroxide_provider::ProviderError;
use serde::de::DeserializeOwned;

use super::{
    Client, ClientError,
    wait::{Notification, PollInterval},
};
use crate::OrchestrationStatus;

impl Client {
    /// The status of an instance. Reads one row and at most one event, whatever the length of the history.
    ///
    /// An instance is `Running` as soon as its start was accepted, even before a node has begun it, if the store can
    /// tell (ours can). An instance that was never started, or was deleted, is `NotFound`.
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
}
