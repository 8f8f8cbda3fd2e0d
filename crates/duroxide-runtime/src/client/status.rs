use std::time::Duration;

use duroxide_core::codec;
use duroxide_provider::StatusSnapshot;
use serde::de::DeserializeOwned;

use super::{Client, ClientError, wait::Pace};
use crate::OrchestrationStatus;

impl Client {
    /// How an instance stands. Costs one row and at most one event, whatever the history's length.
    ///
    /// # Errors
    /// The store's error.
    pub async fn get_orchestration_status(&self, instance: &str) -> Result<OrchestrationStatus, ClientError> {
        Ok(self.store.read_status(instance).await?.into())
    }

    /// Waits until an instance has ended. One that does not exist yet is waited for.
    ///
    /// # Errors
    /// `Timeout` if it has not ended in time; otherwise the store's error.
    pub async fn wait_for_orchestration(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        self.wait_for_status(instance, timeout, Pace::GROWING, OrchestrationStatus::is_terminal).await
    }

    /// Waits until an instance has ended and decodes its output. The inner error is the text of its failure.
    ///
    /// # Errors
    /// As [`Self::wait_for_orchestration`], and `InvalidInput` for an output that is not an `Out`.
    pub async fn wait_for_orchestration_typed<Out: DeserializeOwned>(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<Result<Out, String>, ClientError> {
        match self.wait_for_orchestration(instance, timeout).await? {
            OrchestrationStatus::Completed { output, .. } => codec::decode(&output)
                .map(Ok)
                .map_err(|error| ClientError::invalid_input(format!("decode failed: {error}"))),
            OrchestrationStatus::Failed { details, .. } => Ok(Err(details.display_message())),
            // The wait above returns ended instances only.
            OrchestrationStatus::NotFound | OrchestrationStatus::Running { .. } => Err(ClientError::Timeout),
        }
    }

    /// Waits until the custom status has a version above `last_seen_version`, or the instance has ended.
    ///
    /// `poll_interval` counts only where the store cannot tell of changes.
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
        self.wait_for_status(instance, timeout, Pace::every(poll_interval), changed).await
    }

    async fn wait_for_status(
        &self,
        instance: &str,
        timeout: Duration,
        pace: Pace,
        wanted: impl Fn(&OrchestrationStatus) -> bool,
    ) -> Result<OrchestrationStatus, ClientError> {
        let look = |told: Option<StatusSnapshot>| async {
            let standing = match told {
                Some(told) => Some(told),
                None => self.store.read_status(instance).await?,
            };
            let status = OrchestrationStatus::from(standing);
            Ok(wanted(&status).then_some(status))
        };
        self.wait_until(instance, timeout, pace, look).await
    }
}
