//! [`OrchestrationContext`]: the calls of orchestration code, a file per kind of call.

mod activities;
mod cancel_and_wait;
mod cancellation;
mod children;
mod combinators;
mod continue_as_new;
mod events;
mod handler;
mod kv;
mod retries;
mod status;
mod system;
mod timers;
mod trace;
pub mod typed;

use std::{fmt, panic::Location, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Action, CallKind, Clock, DurableFuture, Event, ScheduleKind, Timestamp, codec,
    engine::{Caller, Generation, Identity, Shared, State, Undecodable, Value},
    version::BUILD_VERSION,
};

pub(crate) use activities::ActivityRequest;
pub use cancel_and_wait::ActivityOutcome;
pub use combinators::{Either2, Either3};
pub use handler::{FnOrchestration, OrchestrationDescriptor, OrchestrationHandler, OrchestrationHandlerRef};
pub use retries::{BackoffStrategy, RetryOptions, RetryPolicy, is_not_retryable, not_retryable};
pub(crate) use retries::{RetryEnd, without_not_retryable};
pub use trace::LogLevel;

/// The access of orchestration code to its execution.
///
/// Every call that starts with `schedule_` is recorded in the history; after a restart the same call returns the
/// recorded result. Code between the calls must be deterministic: no clocks, random numbers or I/O of its own.
/// Use [`utc_now`](Self::utc_now), [`new_guid`](Self::new_guid) and activities instead.
#[derive(Clone)]
pub struct OrchestrationContext {
    shared: Arc<Shared>,
}

impl OrchestrationContext {
    /// A context that belongs to no execution, for tests of handlers: calls are accepted and never resolve. Its
    /// clock always shows the time of the last event of `history`.
    pub fn new(
        history: Vec<Event>,
        execution_id: u64,
        instance_id: String,
        orchestration_name: String,
        orchestration_version: String,
        worker_id: Option<String>,
    ) -> Self {
        let identity = Identity {
            instance: instance_id,
            execution_id,
            name: orchestration_name,
            version: orchestration_version,
            generation: Generation::of(BUILD_VERSION),
            worker_id,
        };
        let stands_at = history.last().map_or(0, |event| event.timestamp_ms);
        let clock = Arc::new(StandingClock(Timestamp::from_millis(stands_at)));
        Self::of(Arc::new(Shared::new(identity, clock, State::default())))
    }

    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The id of the instance.
    pub fn instance_id(&self) -> String {
        self.shared.identity.instance.clone()
    }

    /// The number of the execution, from 1; continue-as-new starts the next.
    pub fn execution_id(&self) -> u64 {
        self.shared.identity.execution_id
    }

    /// The name under which the orchestration is registered.
    pub fn orchestration_name(&self) -> String {
        self.shared.identity.name.clone()
    }

    /// The handler version that this execution was started with.
    pub fn orchestration_version(&self) -> String {
        self.shared.identity.version.clone()
    }

    /// Makes a call that resolves to a value of the history. `location` is the call in the user's code, which an error
    /// names.
    fn call_at<T>(
        &self,
        location: Caller,
        kind: CallKind,
        name: &str,
        action: Action,
        convert: impl FnOnce(Value) -> T + Send + 'static,
    ) -> DurableFuture<T> {
        let Some(mut state) = self.shared.lock_in_turn() else { return DurableFuture::refused() };
        let token = state.call(kind, name, action, location);
        drop(state);
        let schedule = match kind {
            CallKind::Activity => ScheduleKind::Activity { name: name.to_owned() },
            CallKind::Timer => ScheduleKind::Timer,
            CallKind::Wait => ScheduleKind::ExternalWait { event_name: name.to_owned() },
            CallKind::Queue => ScheduleKind::QueueDequeue { event_name: name.to_owned() },
            CallKind::Child => ScheduleKind::SubOrchestration { token },
        };
        DurableFuture::call(Arc::clone(&self.shared), token, schedule, convert)
    }

    /// [`Self::call_at`] with the location of the caller.
    #[track_caller]
    fn call<T>(
        &self,
        kind: CallKind,
        name: &str,
        action: Action,
        convert: impl FnOnce(Value) -> T + Send + 'static,
    ) -> DurableFuture<T> {
        self.call_at(Location::caller(), kind, name, action, convert)
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// The origin of a text, for its decode error.
    pub(crate) fn origin(&self, what: &'static str, name: &str) -> TextOrigin {
        TextOrigin { what, name: name.to_owned(), shared: Arc::clone(&self.shared) }
    }

    /// Emits an action that is complete once it is recorded.
    #[track_caller]
    pub(crate) fn emit(&self, action: Action) {
        if let Some(mut state) = self.shared.lock_in_turn() {
            state.emit(action);
        }
    }
}

impl fmt::Debug for OrchestrationContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrchestrationContext").field("identity", &self.shared.identity).finish()
    }
}

/// A clock that does not move.
struct StandingClock(Timestamp);

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// The result of an activity or a child, with the text of a failure.
fn into_result(value: Value) -> Result<String, String> {
    value.into_outcome().map_err(|details| details.display_message())
}

/// Decodes the output of an activity or a child.
fn into_typed_result<Out: DeserializeOwned>(
    origin: TextOrigin,
) -> impl FnOnce(Value) -> Result<Out, String> + Send + 'static {
    move |value| into_result(value).and_then(|text| codec::decode_at(&text, || origin.to_string()))
}

/// The origin of a text, for its decode error.
pub(crate) struct TextOrigin {
    what: &'static str,
    name: String,
    shared: Arc<Shared>,
}

impl fmt::Display for TextOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { instance, name, version, .. } = &self.shared.identity;
        write!(f, "{} '{}' (instance '{instance}', orchestration '{name}' {version})", self.what, self.name)
    }
}

/// The data of an event or a queue message.
fn into_data(value: Value) -> String {
    match value {
        Value::Data(data) => data,
        outcome @ (Value::Result(_) | Value::Stopped { .. } | Value::Fired) => {
            into_result(outcome).unwrap_or_else(|text| text)
        }
    }
}

/// An input that has no JSON form is a mistake in the code.
#[expect(clippy::panic, reason = "the published contract of typed calls")]
fn encode_or_panic<In: Serialize>(input: &In) -> String {
    codec::encode(input).unwrap_or_else(|error| panic!("encode: {error}"))
}

/// Decodes data, or aborts the code. Data that does not decode is a mistake of its sender, which the code cannot handle,
/// because the future has no error type. So the code is unwound without a panic hook, and its execution fails with the
/// decode error.
fn decode_or_fail<T: DeserializeOwned>(data: &str, origin: &TextOrigin) -> T {
    codec::decode_at(data, || origin.to_string())
        .unwrap_or_else(|error| std::panic::resume_unwind(Box::new(Undecodable(error))))
}
