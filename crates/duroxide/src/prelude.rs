//! The items that most programs need: `use duroxide::prelude::*;`.

pub use crate::{
    ActivityContext, ActivityOutcome, BackoffStrategy, CallError, Client, ClientError, DecodeError,
    DurableFuture, Either2, Either3, ErrorDetails, Event, EventKind, OrchestrationContext,
    OrchestrationRegistry, OrchestrationStatus, RetryPolicy, RuntimeOptions, StartOutcome, not_retryable,
    providers::Provider,
    runtime::{Runtime, registry::ActivityRegistry},
};

#[cfg(feature = "sqlite")]
pub use crate::providers::sqlite::SqliteProvider;
