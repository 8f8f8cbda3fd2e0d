use duroxide_core::{INITIAL_EXECUTION_ID, WorkItem};
use serde::Serialize;

use super::{Client, ClientError, door};

const INPUT: &str = "orchestration input";

impl Client {
    /// Starts an instance. The handler version is the one that the policy of the processing node chooses.
    ///
    /// A start of an id that exists is accepted and then ignored.
    ///
    /// # Errors
    /// `InvalidInput` for a reserved or empty id and for an oversized input; otherwise the store's error.
    pub async fn start_orchestration(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.enqueue_start(instance.into(), orchestration.into(), None, input.into()).await
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
        door::check_version(&version)?;
        self.enqueue_start(instance.into(), orchestration.into(), Some(version), input.into()).await
    }

    /// Starts an instance with a typed input.
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

    async fn enqueue_start(
        &self,
        instance: String,
        orchestration: String,
        version: Option<String>,
        input: String,
    ) -> Result<(), ClientError> {
        self.check_name("instance id", &instance)?;
        door::check_not_reserved(&instance)?;
        self.check_name("orchestration name", &orchestration)?;
        self.check_size(INPUT, &input)?;
        let start = WorkItem::StartOrchestration {
            instance,
            orchestration,
            input,
            version,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: INITIAL_EXECUTION_ID,
        };
        Ok(self.store.enqueue_for_orchestrator(start, None).await?)
    }
}
