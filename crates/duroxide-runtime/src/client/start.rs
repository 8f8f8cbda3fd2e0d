//! Starts orchestrations.

use duroxide_core::{INITIAL_EXECUTION_ID, TracedInput, WorkItem};
use duroxide_provider::StartOutcome;
use serde::Serialize;

use super::{Client, ClientError, validate};

pub(crate) const INPUT: &str = "orchestration input";

impl Client {
    /// Starts an instance. The version policy of the processing node chooses the handler version.
    ///
    /// A start of an id that exists is accepted and then ignored; use [`Self::start_orchestration_if_new`] to find out.
    /// When the call has returned, clients see the instance as running.
    ///
    /// # Errors
    /// `InvalidInput` for a reserved, empty or overlong id or name and for an oversized input; otherwise the store's error.
    pub async fn start_orchestration(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        let start = self.new_start(instance.into(), orchestration.into(), None, input.into())?;
        Ok(self.store.enqueue_for_orchestrator(start, None).await?)
    }

    /// Starts an instance with exactly this handler version.
    ///
    /// # Errors
    /// As [`Self::start_orchestration`], and `InvalidInput` for a version that is not a semantic version.
    pub async fn start_orchestration_versioned(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        version: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        let version = version.into();
        validate::check_version(&version)?;
        let start = self.new_start(instance.into(), orchestration.into(), Some(version), input.into())?;
        Ok(self.store.enqueue_for_orchestrator(start, None).await?)
    }

    /// Starts an instance with a typed input.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](duroxide_core::codec) for what that loses.
    ///
    /// # Errors
    /// As [`Self::start_orchestration`], and `InvalidInput` for an input that does not encode.
    pub async fn start_orchestration_typed<In: Serialize>(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: In,
    ) -> Result<(), ClientError> {
        let input = self.encode(INPUT, &input)?;
        self.start_orchestration(instance, orchestration, input).await
    }

    /// Starts an instance with exactly this handler version and a typed input.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](duroxide_core::codec) for what that loses.
    ///
    /// # Errors
    /// As [`Self::start_orchestration_versioned`], and `InvalidInput` for an input that does not encode.
    pub async fn start_orchestration_versioned_typed<In: Serialize>(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        version: impl Into<String>,
        input: In,
    ) -> Result<(), ClientError> {
        let input = self.encode(INPUT, &input)?;
        self.start_orchestration_versioned(instance, orchestration, version, input).await
    }

    /// Starts an instance unless it exists, and returns whether this call created it, or found it with the same or with
    /// another orchestration name or input. Of several concurrent calls exactly one returns `Created`. An existing
    /// instance is not changed.
    ///
    /// A caller whose answer was lost can call again, and treat `Found` as success.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use duroxide_runtime::{Client, ClientError, StartOutcome};
    /// # use duroxide_store::MemoryProvider;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// # let client = Client::new(Arc::new(MemoryProvider::new()));
    /// let first = client.start_orchestration_if_new("order-7", "Order", "teapot").await?;
    /// assert_eq!(first, StartOutcome::Created);
    /// let again = client.start_orchestration_if_new("order-7", "Order", "teapot").await?;
    /// assert_eq!(again, StartOutcome::Found);
    /// let other = client.start_orchestration_if_new("order-7", "Order", "cup").await?;
    /// assert_eq!(other, StartOutcome::FoundDifferent);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Self::start_orchestration`]; with a store that does not support it, the permanent error of
    /// [`Provider::start_if_new`](duroxide_provider::Provider::start_if_new), and nothing is started.
    pub async fn start_orchestration_if_new(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<StartOutcome, ClientError> {
        let start = self.new_start(instance.into(), orchestration.into(), None, input.into())?;
        Ok(self.store.start_if_new(start).await?)
    }

    /// Like [`Self::start_orchestration_if_new`], with a typed input. Inputs are compared in their encoded form.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](duroxide_core::codec) for what that loses.
    ///
    /// # Errors
    /// As [`Self::start_orchestration_if_new`], and `InvalidInput` for an input that does not encode.
    pub async fn start_orchestration_if_new_typed<In: Serialize>(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: In,
    ) -> Result<StartOutcome, ClientError> {
        let input = self.encode(INPUT, &input)?;
        self.start_orchestration_if_new(instance, orchestration, input).await
    }

    /// Like [`Self::start_orchestration_if_new`], with exactly this handler version if the instance is new. Versions
    /// are not compared.
    ///
    /// # Errors
    /// As [`Self::start_orchestration_if_new`], and `InvalidInput` for a version that is not a semantic version.
    pub async fn start_orchestration_versioned_if_new(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        version: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<StartOutcome, ClientError> {
        let version = version.into();
        validate::check_version(&version)?;
        let start = self.new_start(instance.into(), orchestration.into(), Some(version), input.into())?;
        Ok(self.store.start_if_new(start).await?)
    }

    /// Validates the arguments of a start and builds its message.
    fn new_start(
        &self,
        instance: String,
        orchestration: String,
        version: Option<String>,
        input: String,
    ) -> Result<WorkItem, ClientError> {
        self.check_name(validate::INSTANCE_ID, &instance)?;
        validate::check_not_reserved(&instance)?;
        self.check_name("orchestration name", &orchestration)?;
        self.check_size(INPUT, input.len())?;
        Ok(WorkItem::StartOrchestration {
            instance,
            orchestration,
            input: TracedInput { input, context: self.trace_context() }.into_text(),
            version,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: INITIAL_EXECUTION_ID,
        })
    }
}
