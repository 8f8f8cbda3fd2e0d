//! [`Client`]: starts, signals, watches and manages instances.

mod error;
mod explain;
mod export;
mod find;
mod kv;
mod management;
mod signal;
mod start;
mod status;
#[cfg(test)]
mod tests;
mod validate;

use std::{fmt, sync::Arc};

use duroxide_core::{RuntimeLimits, TraceContext};
use duroxide_provider::Provider;

pub use error::ClientError;
pub use explain::{ActivityState, Explanation, Finding};
pub use export::RecordedHistory;
pub(crate) use start::INPUT;

use tracing::Span;

use crate::{
    env::{Timer, TokioTimer},
    observability::trace_context_of,
};

/// Starts, signals, watches and manages instances of a store.
///
/// A client needs no runtime: it writes to the queues and reads the store. Clones are cheap.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use duroxide_runtime::{ActivityRegistry, Client, OrchestrationRegistry, Runtime};
/// # use duroxide_store::MemoryProvider;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryProvider::new());
/// let orchestrations = OrchestrationRegistry::builder()
///     .register("Greet", |_ctx, name| async move { Ok(format!("hello {name}")) })
///     .build();
/// let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await;
///
/// let client = Client::new(store);
/// client.start_orchestration("greeting-1", "Greet", "world").await?;
/// let output: Result<String, String> =
///     client.wait_for_orchestration_typed("greeting-1", Duration::from_secs(10)).await?;
/// assert_eq!(output, Ok("hello world".to_owned()));
/// # runtime.shutdown(None).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    store: Arc<dyn Provider>,
    limits: RuntimeLimits,
    timer: Arc<dyn Timer>,
    trace: Option<TraceContext>,
}

impl Client {
    /// A client on `store` with the default limits.
    pub fn new(store: Arc<dyn Provider>) -> Self {
        Self::with_limits(store, RuntimeLimits::default())
    }

    /// A client on `store` that refuses arguments over these limits before anything is stored.
    pub fn with_limits(store: Arc<dyn Provider>, limits: RuntimeLimits) -> Self {
        Self { store, limits, timer: Arc::new(TokioTimer::new()), trace: None }
    }

    /// Uses this timer for waits, such as the [`Env`](crate::env::Env) of a simulation. By default a wait uses the
    /// tokio runtime it is awaited in.
    #[must_use]
    pub fn with_timer(mut self, timer: Arc<dyn Timer>) -> Self {
        self.timer = timer;
        self
    }

    /// Starts instances in this trace, not in that of the caller's span.
    ///
    /// Use it where the caller's context is at hand as a header. With a
    /// [`TracePropagator`](crate::observability::TracePropagator) a client finds the context of the current span by itself.
    #[must_use]
    pub fn with_trace_context(mut self, context: TraceContext) -> Self {
        self.trace = Some(context);
        self
    }

    /// The context that a start records.
    fn trace_context(&self) -> Option<TraceContext> {
        self.trace.clone().or_else(|| trace_context_of(&Span::current()))
    }

    pub(crate) fn timer(&self) -> &dyn Timer {
        self.timer.as_ref()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("store", &self.store.name())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
