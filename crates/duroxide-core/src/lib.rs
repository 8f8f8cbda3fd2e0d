//! The pure engine of duroxide.
//!
//! This crate contains only events, actions and the execution of user code: no clock, no randomness, no I/O, no async
//! runtime. It reads time from a [`Clock`], takes stored events and queued messages as values, and returns the decisions of a
//! turn as a value.
//!
//! Start reading at [`engine::Execution`]: one live run of an orchestration. [`OrchestrationContext`] and
//! [`DurableFuture`] are its interface to orchestration code.

// No wildcard arm hides a new event kind, action or work item: see docs/adding-an-event-kind.md.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod action;
mod clock;
pub mod codec;
mod context;
pub mod engine;
mod error;
mod event;
mod future;
mod ids;
mod kv;
pub mod limits;
mod stats;
mod version;
mod work_item;

pub use action::Action;
pub use clock::{Clock, Timestamp};
pub(crate) use context::without_not_retryable;
pub use context::{
    ActivityOutcome, BackoffStrategy, Either2, Either3, FnOrchestration, LogLevel, OrchestrationContext,
    OrchestrationDescriptor, OrchestrationHandler, OrchestrationHandlerRef, RetryOptions, RetryPolicy,
    is_not_retryable, not_retryable, typed,
};
pub use error::{
    AppErrorKind, ConfigErrorKind, ErrorDetails, PoisonMessageType, shortened_reason, with_poison_reason,
};
pub use event::{
    CallKind, CallTarget, Event, EventKind, EventRole, ExecutionEnd, KeyValueChange, OpenCall, OpenCalls,
};
pub use future::{DurableFuture, ScheduleKind};
pub use ids::{
    INITIAL_EVENT_ID, INITIAL_EXECUTION_ID, SUB_ORCH_AUTO_PREFIX, SYSCALL_ACTIVITY_PREFIX,
    SYSCALL_GET_KV_VALUE, SYSCALL_NEW_GUID, SYSCALL_UTC_NOW_MS, build_child_instance_id,
    is_auto_generated_sub_orch_id, is_reserved_root_id, reserved_root_id_message,
};
pub use kv::KvEntry;
pub use limits::RuntimeLimits;
pub use stats::SystemStats;
pub use version::current_build_version;
pub use work_item::{
    ActivityInput, InvalidTraceparent, ParentLink, RunOptions, TraceContext, TracedInput, WorkItem,
};
