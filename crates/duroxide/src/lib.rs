//! Durable execution for Rust: async code that survives crashes, restarts and upgrades.
//!
//! An *orchestration* is ordinary `async` code that coordinates; an *activity* is where side effects happen. Every
//! step is recorded in a store. After a crash the record is replayed, and the code goes on from the line it had
//! reached.
//!
//! ```
//! # #[cfg(all(feature = "macros", feature = "sqlite"))] mod program {
//! use std::{sync::Arc, time::Duration};
//! use duroxide::prelude::*;
//!
//! #[duroxide::activity]
//! async fn reserve(_ctx: ActivityContext, item: String) -> Result<String, String> {
//!     Ok(format!("{item} from shelf 3"))
//! }
//!
//! #[duroxide::orchestration]
//! async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
//!     let reserved = ctx.activity::<reserve>(item).retry(RetryPolicy::new(5)).await?;
//!     ctx.schedule_timer(Duration::from_millis(10)).await;
//!     Ok(format!("shipped {reserved}"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Arc::new(SqliteProvider::new_in_memory().await?); // or "sqlite:orders.db"
//! let runtime = Runtime::builder(store.clone()).activity::<reserve>().orchestration::<order>().build().await?;
//!
//! let order = Client::new(store).start::<order>("order-1", "teapot".to_owned()).await?;
//! assert_eq!(order.result().await??, "shipped teapot from shelf 3");
//! runtime.shutdown(None).await;
//! # Ok(())
//! # }
//! # }
//! # #[cfg(all(feature = "macros", feature = "sqlite"))]
//! # program::main().unwrap();
//! ```
//!
//! Handlers and calls can also go by name, with texts: see [`runtime::registry`] and
//! [`OrchestrationContext::schedule_activity`]. Both record the same events.
//!
//! # Where to look
//!
//! * [`typed`]: handlers and calls that the compiler checks.
//! * [`OrchestrationContext`]: everything orchestration code can do; [`ActivityContext`] the same for activities.
//! * [`runtime::registry`]: handlers and their versions; [`runtime::Runtime`] runs them; [`RuntimeOptions`] tunes it.
//! * [`Client`]: starts, signals, watches and manages instances, from any process that reaches the store.
//! * [`providers`]: the storage contract, and the stores that come with it.
//!
//! # What orchestration code must not do
//!
//! It is replayed, so it must do the same whenever it sees the same record: no clock, no randomness, no I/O of its own.
//! Ask the context ([`utc_now`](OrchestrationContext::utc_now), [`new_guid`](OrchestrationContext::new_guid)) or an
//! activity. `tokio::select!` needs `biased;`, because it chooses branches at random otherwise.
//!
//! # Guarantees
//!
//! Activities run at least once; their completions are recorded exactly once; an acknowledged call is durable.
//!
//! # Features
//!
//! | Feature | Default | Effect |
//! |---|---|---|
//! | `macros` | yes | [`activity`], [`activities`] and [`orchestration`]: typed handlers, see [`typed`] |
//! | `sqlite` | yes | [`providers::sqlite`] |
//! | `postgres` | no | `providers::postgres`: one PostgreSQL database for many nodes |
//! | `postgres-rustls` | no | encrypted connections to it, with rustls and aws-lc-rs |
//! | `postgres-native-tls` | no | encrypted connections to it, with the TLS library of the system |
//! | `fs` | no | `providers::fs`: a store of plain files, for looking at, teaching and tests |
//! | `testing` | no | `testing`: clusters in virtual time, mocks, recorded histories, checks before a rollout |
//! | `provider-test` | no | `provider_validations` and `provider_stress_tests`: test kits for providers |
//! | `test` | no | the same as `provider-test` |

// No wildcard arm hides a new event kind, action or work item: see docs/adding-an-event-kind.md.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

#[cfg(doctest)]
mod guide;
pub mod prelude;
pub mod providers;
pub mod runtime;
pub mod typed;

pub use duroxide_core::{
    Action, ActivityOutcome, AppErrorKind, BackoffStrategy, ConfigErrorKind, DurableFuture, Either2, Either3,
    ErrorDetails, Event, EventKind, INITIAL_EVENT_ID, INITIAL_EXECUTION_ID, LogLevel, OrchestrationContext,
    OrchestrationDescriptor, OrchestrationHandler, OrchestrationHandlerRef, PoisonMessageType, RetryOptions,
    RetryPolicy, SUB_ORCH_AUTO_PREFIX, ScheduleKind, SystemStats, build_child_instance_id,
    current_build_version, is_auto_generated_sub_orch_id, is_not_retryable, not_retryable,
};
pub use duroxide_provider::{
    DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, InstanceFilter, InstanceInfo,
    InstancePage, InstanceQuery, InstanceSummary, InstanceTree, ProviderAdmin, PruneOptions, PruneResult,
    QueueDepths, QueueSummary, QueuedWork, ScheduledActivityIdentifier, SemverRange, SessionFetchConfig,
    StartOutcome, SummaryRequest, SystemMetrics, TagFilter,
};
pub use duroxide_runtime::{
    ActivityContext, ActivityState, Client, ClientError, Explanation, Finding, OrchestrationRegistry,
    OrchestrationRegistryBuilder, OrchestrationStatus, RuntimeOptions, client,
};

#[cfg(feature = "testing")]
pub use duroxide_testing as testing;

#[cfg(feature = "provider-test")]
pub use duroxide_conformance::{conformance_tests, provider_stress_tests, provider_validations};

pub use typed::{Activity, CallError, DecodeError, Handle, Key, Orchestration};

#[cfg(feature = "macros")]
pub use typed::attributes::{activities, activity, orchestration};

/// A shared store.
pub type ProviderRef = std::sync::Arc<dyn providers::Provider>;

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
