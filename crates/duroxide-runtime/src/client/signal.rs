//! Sends events, queue messages and cancellations to instances.

use std::time::Duration;

use duroxide_core::{WorkItem, limits::MAX_NAME_BYTES};
use serde::Serialize;

use super::{Client, ClientError};

impl Client {
    /// Raises an external event. The oldest open wait for this name receives it. If there is none, the event is
    /// recorded and nothing receives it.
    ///
    /// # Errors
    /// `InvalidInput` for an empty or overlong id or name, for oversized data and if `max_mailbox_messages` already wait;
    /// otherwise the store's error.
    pub async fn raise_event(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        let (instance, name, data) = (instance.into(), event_name.into(), data.into());
        self.check_message("event", &instance, &name, &data)?;
        self.send(WorkItem::ExternalRaised { instance, name, data }).await
    }

    /// Raises an external event with typed data.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](duroxide_core::codec) for what that loses.
    ///
    /// # Errors
    /// As [`Self::raise_event`], and `InvalidInput` for data that does not encode.
    pub async fn raise_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        let data = self.encode("event data", data)?;
        self.raise_event(instance, event_name, data).await
    }

    /// Adds a message to a queue of an instance. The message waits there, across continue-as-new too, until it is read.
    ///
    /// # Errors
    /// `InvalidInput` for an empty or overlong id or name, for oversized data and if `max_mailbox_messages` already wait;
    /// otherwise the store's error.
    pub async fn enqueue_event(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        let (instance, name, data) = (instance.into(), queue.into(), data.into());
        self.check_message("queue message", &instance, &name, &data)?;
        self.send(WorkItem::QueueMessage { instance, name, data }).await
    }

    /// Puts a typed message into a queue of an instance.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](duroxide_core::codec) for what that loses.
    ///
    /// # Errors
    /// As [`Self::enqueue_event`], and `InvalidInput` for data that does not encode.
    pub async fn enqueue_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        let data = self.encode("queue message data", data)?;
        self.enqueue_event(instance, queue, data).await
    }

    /// The older name of [`Self::enqueue_event`].
    ///
    /// # Errors
    /// As [`Self::enqueue_event`].
    #[deprecated(note = "use `enqueue_event`")]
    pub async fn raise_event_persistent(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.enqueue_event(instance, event_name, data).await
    }

    /// Cancels an instance and its open children. Waiting activities are removed from their queue. Running activities
    /// are only asked to stop, and may still complete their work. Does nothing to an instance that has ended.
    ///
    /// An orchestration that asked for it ([`cancel_requested`](duroxide_core::OrchestrationContext::cancel_requested)) gets
    /// the first request and cleans up; a second request ends it.
    ///
    /// # Errors
    /// `InvalidInput` for an empty or overlong id and for an oversized reason; otherwise the store's error.
    pub async fn cancel_instance(
        &self,
        instance: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<(), ClientError> {
        let message = self.cancellation(instance.into(), reason.into())?;
        Ok(self.store.enqueue_for_orchestrator(message, None).await?)
    }

    /// Cancels an instance like [`Self::cancel_instance`], and once more after `deadline`. An orchestration that asked for the
    /// request has this long to clean up; others end at once. An instance that has ended by then is not changed.
    ///
    /// # Errors
    /// As [`Self::cancel_instance`].
    pub async fn cancel_instance_with_deadline(
        &self,
        instance: impl Into<String>,
        reason: impl Into<String>,
        deadline: Duration,
    ) -> Result<(), ClientError> {
        let message = self.cancellation(instance.into(), reason.into())?;
        // The deadline first: if the second call fails, the instance is still cancelled, only later.
        self.store.enqueue_for_orchestrator(message.clone(), Some(deadline)).await?;
        Ok(self.store.enqueue_for_orchestrator(message, None).await?)
    }

    fn cancellation(&self, instance: String, reason: String) -> Result<WorkItem, ClientError> {
        self.check_address(&instance)?;
        self.check_size("cancellation reason", reason.len())?;
        Ok(WorkItem::CancelInstance { instance, reason })
    }

    /// Queues a message, unless the mailbox of its instance is full.
    async fn send(&self, message: WorkItem) -> Result<(), ClientError> {
        let Some(limit) = self.limits.max_mailbox_messages else {
            return Ok(self.store.enqueue_for_orchestrator(message, None).await?);
        };
        let instance = message.target_instance().to_owned();
        if self.store.enqueue_within(message, limit).await? {
            return Ok(());
        }
        Err(ClientError::invalid_input(format!(
            "instance '{instance}' has reached the limit of waiting messages ({limit} messages)"
        )))
    }

    fn check_message(&self, what: &str, instance: &str, name: &str, data: &str) -> Result<(), ClientError> {
        self.check_address(instance)?;
        self.check_length(&format!("{what} name"), name, MAX_NAME_BYTES)?;
        self.check_size(&format!("{what} data"), data.len())
    }
}
