//! [`OrchestrationHandler`]: orchestration code as a trait object.

use std::{fmt, future::Future, sync::Arc};

use async_trait::async_trait;

use crate::{OrchestrationContext, typed::HandlerShapes};

/// Deterministic coordination code. The registry makes handlers of closures; implement this trait for other types.
#[async_trait]
pub trait OrchestrationHandler: Send + Sync {
    /// Runs the orchestration from its beginning. Called again for every replay.
    async fn invoke(&self, ctx: OrchestrationContext, input: String) -> Result<String, String>;

    /// The shapes of input, output and error, if this is a typed handler.
    #[doc(hidden)]
    fn shapes(&self) -> Option<HandlerShapes> {
        None
    }
}

/// A shared handler.
pub type OrchestrationHandlerRef = Arc<dyn OrchestrationHandler>;

/// Makes a function or closure an [`OrchestrationHandler`].
pub struct FnOrchestration<F>(pub F);

impl<F> fmt::Debug for FnOrchestration<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FnOrchestration")
    }
}

#[async_trait]
impl<F, Fut> OrchestrationHandler for FnOrchestration<F>
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    async fn invoke(&self, ctx: OrchestrationContext, input: String) -> Result<String, String> {
        (self.0)(ctx, input).await
    }
}

/// Describes an instance: its handler and its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrchestrationDescriptor {
    /// The name under which the orchestration is registered.
    pub name: String,
    /// The handler version of the current execution.
    pub version: String,
    /// The instance id of the parent; `None` unless this is a child.
    pub parent_instance: Option<String>,
    /// The event id of the parent's call.
    pub parent_id: Option<u64>,
}
