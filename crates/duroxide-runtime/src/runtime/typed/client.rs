//! Typed starts.

use duroxide_core::typed::{CallError, Orchestration};
use duroxide_provider::StartOutcome;

use super::Handle;
use crate::{Client, ClientError, client::INPUT};

/// # Typed starts
impl Client {
    /// Starts an instance and returns its handle. Like [`start_orchestration`](Self::start_orchestration), a start of an
    /// id that exists is accepted and then ignored; [`start_or_get`](Self::start_or_get) finds out.
    ///
    /// # Errors
    /// As [`start_orchestration`](Self::start_orchestration), and `InvalidInput` for an input that has no JSON form.
    pub async fn start<O: Orchestration>(
        &self,
        instance: impl Into<String>,
        input: O::Input,
    ) -> Result<Handle<O>, ClientError> {
        let (instance, input) = (instance.into(), self.encode_json(INPUT, &input)?);
        match O::VERSION {
            Some(version) => {
                self.start_orchestration_versioned(instance.as_str(), O::NAME, version, input).await?;
            }
            None => self.start_orchestration(instance.as_str(), O::NAME, input).await?,
        }
        Ok(self.handle(instance))
    }

    /// Starts an instance unless it exists, and returns its handle. A caller whose answer was lost can call again.
    ///
    /// # Errors
    /// As [`start`](Self::start), and `InvalidInput` if the id exists with another orchestration name or input. With a
    /// store that does not support it, as [`start_orchestration_if_new`](Self::start_orchestration_if_new).
    pub async fn start_or_get<O: Orchestration>(
        &self,
        instance: impl Into<String>,
        input: O::Input,
    ) -> Result<Handle<O>, ClientError> {
        let (instance, input) = (instance.into(), self.encode_json(INPUT, &input)?);
        let outcome = match O::VERSION {
            Some(version) => {
                self.start_orchestration_versioned_if_new(instance.as_str(), O::NAME, version, input).await?
            }
            None => self.start_orchestration_if_new(instance.as_str(), O::NAME, input).await?,
        };
        match outcome {
            StartOutcome::Created | StartOutcome::Found | StartOutcome::FoundUnknown => {
                Ok(self.handle(instance))
            }
            StartOutcome::FoundDifferent => Err(ClientError::InvalidInput {
                message: format!("instance '{instance}' exists with another orchestration or input"),
            }),
        }
    }

    /// Starts an instance and waits for its result. The inner error is the failure of the orchestration.
    ///
    /// # Errors
    /// As [`start`](Self::start) and [`Handle::result`].
    pub async fn start_and_wait<O: Orchestration>(
        &self,
        instance: impl Into<String>,
        input: O::Input,
    ) -> Result<Result<O::Output, CallError<O::Error>>, ClientError> {
        self.start::<O>(instance, input).await?.result().await
    }

    /// The handle of an instance that was started before, here or elsewhere. Nothing is checked and nothing is read.
    pub fn handle<O: Orchestration>(&self, instance: impl Into<String>) -> Handle<O> {
        Handle::new(self.clone(), instance.into())
    }
}
