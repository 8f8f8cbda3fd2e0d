//! Typed authoring: names, inputs, outputs and errors that the compiler checks.
//!
//! An [`Activity`] or [`Orchestration`] is a type with the name under which a handler is registered and the types of its
//! input, output and error. Calls name the type: `ctx.activity::<charge>(order)`. They record the same events as the calls
//! by name do, with the JSON of the value as the input; nothing else is ever recorded for them.

mod activity_call;
mod call_error;
mod child_call;
mod context_calls;
mod declaration;
mod json;
mod key;
mod saga;
mod shape;
mod step_call;

pub use activity_call::{ActivityCall, CallMode, Once, Retried};
pub use call_error::{ACTIVITY_ATTEMPT_TIMED_OUT, ACTIVITY_PANICKED, CallError};
pub use child_call::ChildCall;
pub use declaration::{Activity, Orchestration, OrchestrationCode, Outcome};
pub use json::{DecodeError, decode, encode, encode_error, encoded_len, undecodable_input};
pub use key::Key;
pub use saga::{NotUndone, Saga, SagaCause, SagaError, SagaStep};
pub use shape::{HandlerShapes, shape_of};
pub use step_call::{RetriedStep, StepCall};
