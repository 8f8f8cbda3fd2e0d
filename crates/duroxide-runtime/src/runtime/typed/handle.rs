//! [`Handle`]: one instance of a typed orchestration, for clients.

use std::{fmt, marker::PhantomData, time::Duration};

use duroxide_core::typed::{CallError, Key, Orchestration, decode};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Client, ClientError, OrchestrationStatus};

/// How often a store that cannot notify is asked for a new status.
const STATUS_POLL: Duration = Duration::from_millis(100);

/// One instance of a typed orchestration: its result, its status, and calls to send to it.
///
/// [`Client::start`] returns it, and [`Client::handle`] makes it of an id. Clones are cheap.
pub struct Handle<O> {
    client: Client,
    instance: String,
    orchestration: PhantomData<fn() -> O>,
}

/// The status of an instance of a typed orchestration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypedStatus<T, E> {
    /// The instance does not exist.
    NotFound,
    /// The instance has not ended.
    Running,
    /// The orchestration returned this.
    Completed(T),
    /// The orchestration failed or was cancelled.
    Failed(CallError<E>),
}

impl<O: Orchestration> Handle<O> {
    pub(super) fn new(client: Client, instance: String) -> Self {
        Self { client, instance, orchestration: PhantomData }
    }

    /// The id of the instance.
    pub fn id(&self) -> &str {
        &self.instance
    }

    /// Waits until the instance has ended, however long that takes. The inner error is the failure of the orchestration.
    /// Also waits for an instance that does not exist yet.
    ///
    /// # Errors
    /// The store's error.
    pub async fn result(&self) -> Result<Result<O::Output, CallError<O::Error>>, ClientError> {
        self.result_within(Duration::MAX).await
    }

    /// Like [`result`](Self::result), for at most this long.
    ///
    /// # Errors
    /// `Timeout` if the instance has not ended in time; otherwise the store's error.
    pub async fn result_within(
        &self,
        timeout: Duration,
    ) -> Result<Result<O::Output, CallError<O::Error>>, ClientError> {
        let status = self.client.wait_for_orchestration(&self.instance, timeout).await?;
        match self.typed(status) {
            TypedStatus::Completed(output) => Ok(Ok(output)),
            TypedStatus::Failed(error) => Ok(Err(error)),
            // The wait above returns only ended instances.
            TypedStatus::NotFound | TypedStatus::Running => Err(ClientError::Timeout),
        }
    }

    /// The status of the instance now.
    ///
    /// # Errors
    /// The store's error.
    pub async fn status(&self) -> Result<TypedStatus<O::Output, O::Error>, ClientError> {
        Ok(self.typed(self.client.get_orchestration_status(&self.instance).await?))
    }

    /// The custom status, as `OrchestrationContext::set_status` set it.
    ///
    /// # Errors
    /// `InvalidInput` if it is not the JSON of a `T`; otherwise the store's error.
    pub async fn custom_status<T: DeserializeOwned>(&self) -> Result<Option<T>, ClientError> {
        let status = self.client.get_orchestration_status(&self.instance).await?;
        self.decode_status(&status)
    }

    /// Waits until the custom status is one that `wanted` accepts, and returns it. Returns `None` if the instance has
    /// ended with another one.
    ///
    /// # Errors
    /// `Timeout` if neither happened in time, `InvalidInput` for a custom status that is not the JSON of a `T`; otherwise
    /// the store's error.
    pub async fn wait_until<T: DeserializeOwned>(
        &self,
        wanted: impl Fn(&T) -> bool,
        timeout: Duration,
    ) -> Result<Option<T>, ClientError> {
        let deadline = self.client.timer().moment().after(timeout);
        let mut seen_version = 0;
        loop {
            let left = deadline.since(self.client.timer().moment());
            let changed =
                self.client.wait_for_status_change(&self.instance, seen_version, STATUS_POLL, left).await?;
            let status = self.decode_status(&changed)?.filter(&wanted);
            if status.is_some() || changed.is_terminal() {
                return Ok(status);
            }
            seen_version = changed.custom_status_version();
        }
    }

    /// Raises an external event with the JSON of `data`: `ctx.event::<T>(name)` receives it.
    ///
    /// # Errors
    /// As [`Client::raise_event`], and `InvalidInput` for data that has no JSON form.
    pub async fn raise<T: Serialize + ?Sized>(
        &self,
        event: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        let data = self.client.encode_json("event data", data)?;
        self.client.raise_event(self.instance.as_str(), event, data).await
    }

    /// Adds the JSON of `data` to a queue of the instance: `ctx.queue::<T>(queue)` receives it.
    ///
    /// # Errors
    /// As [`Client::enqueue_event`], and `InvalidInput` for data that has no JSON form.
    pub async fn enqueue<T: Serialize + ?Sized>(
        &self,
        queue: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        let data = self.client.encode_json("queue message data", data)?;
        self.client.enqueue_event(self.instance.as_str(), queue, data).await
    }

    /// Cancels the instance and its open children: see [`Client::cancel_instance`].
    ///
    /// # Errors
    /// As [`Client::cancel_instance`].
    pub async fn cancel(&self, reason: impl Into<String>) -> Result<(), ClientError> {
        self.client.cancel_instance(self.instance.as_str(), reason).await
    }

    /// Cancels the instance, and ends it after `deadline` if it still cleans up then: see
    /// [`Client::cancel_instance_with_deadline`].
    ///
    /// # Errors
    /// As [`Client::cancel_instance_with_deadline`].
    pub async fn cancel_with_deadline(
        &self,
        reason: impl Into<String>,
        deadline: Duration,
    ) -> Result<(), ClientError> {
        self.client.cancel_instance_with_deadline(self.instance.as_str(), reason, deadline).await
    }

    /// A value of the instance's key-value store.
    ///
    /// # Errors
    /// `InvalidInput` if it is not the JSON of a `T`; otherwise the store's error.
    pub async fn value<T: DeserializeOwned>(&self, key: Key<T>) -> Result<Option<T>, ClientError> {
        self.client.get_kv_value_typed(&self.instance, key.name()).await
    }

    fn typed(&self, status: OrchestrationStatus) -> TypedStatus<O::Output, O::Error> {
        match status {
            OrchestrationStatus::NotFound => TypedStatus::NotFound,
            OrchestrationStatus::Running { .. } => TypedStatus::Running,
            OrchestrationStatus::Completed { output, .. } => {
                match decode(&output, || format!("output of instance '{}'", self.instance)) {
                    Ok(output) => TypedStatus::Completed(output),
                    Err(error) => TypedStatus::Failed(CallError::Decode(error)),
                }
            }
            OrchestrationStatus::Failed { details, .. } => {
                TypedStatus::Failed(CallError::from_details(details))
            }
        }
    }

    fn decode_status<T: DeserializeOwned>(
        &self,
        status: &OrchestrationStatus,
    ) -> Result<Option<T>, ClientError> {
        let Some(text) = status.custom_status() else { return Ok(None) };
        decode(text, || format!("custom status of instance '{}'", self.instance))
            .map(Some)
            .map_err(|error| ClientError::InvalidInput { message: error.to_string() })
    }
}

impl<O> Clone for Handle<O> {
    fn clone(&self) -> Self {
        let (client, instance) = (self.client.clone(), self.instance.clone());
        Self { client, instance, orchestration: PhantomData }
    }
}

impl<O: Orchestration> fmt::Debug for Handle<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("orchestration", &O::NAME).field("instance", &self.instance).finish()
    }
}
