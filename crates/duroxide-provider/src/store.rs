//! The synchronous store engine behind our own providers.
//!
//! A [`StoreEngine`] is a transactional table store without threads, clock or waiting: a [`Batch`] of [`Op`]s and waiting fetches
//! goes in, and [`Done`] comes back. `duroxide-store` serves one as a [`Provider`](crate::Provider); a simulator drives one in
//! virtual time. All values that an engine needs of a message or an event are extracted when the operation is *prepared*, on the
//! caller's thread, so that the store thread encodes no JSON.
//!
//! The promises of every engine are listed at the top of [`rules`](crate::rules).

pub mod bounds;
mod delivery;
mod engine;
mod failure;
mod fetch;
mod node;
mod op;
mod pending;
mod reader;
mod round;
mod row;
mod snapshot;
mod state_change;
mod token;
mod transaction;

pub use crate::management::summary::scan::InstanceTally;
pub use delivery::{Arrival, sort_for_delivery};
pub use engine::{Claimed, DeadLetterNote, DeadLetterReason, StoreEngine, TellOfWrite};
pub use failure::{ApplyError, FailureClass, Refusal, StoreFailure};
pub use fetch::{ActivityFetch, FetchRequest, HeldBack, HeldBackBy, InstanceFetch};
pub use node::{NodeRow, StoredNode};
pub use op::{
    Answer, Op, OpClass, OpProfile, Payload, Readies, RemovalTask, StoredStart, Unfinished, Watched,
};
pub use pending::pending_info;
#[doc(hidden)]
pub use reader::methods as reader_methods;
pub use reader::{
    InstanceNeeds, ReadyActivity, ReadyInstance, RunningVersion, SelectedInstance, StoreReader,
    StoredDescriptor, StoredExecution, StoredStatus,
};
pub use round::{Ended, PreparedExecution, PreparedRound, PreparedStop};
pub use row::{
    ActivityRow, CANCELLATION, EventRow, LARGE_ITEM_BYTES, MessageKind, MessageRow, StartTarget, Visibility,
    calling_parent,
    intake::{INTAKE_BYTES_MAX, IntakeRow, InvalidIntake},
    recorded_at_ms, timer_key,
};
pub use snapshot::{
    ActivitySnapshot, CopySource, ExecutionSnapshot, InstanceSnapshot, LockSnapshot, MessageSnapshot,
    StoreSnapshot,
};
pub use state_change::StateChange;
pub use token::{lock_token, token_row};
pub use transaction::{
    Batch, BatchPart, CommitEarly, Done, EarlyClaims, EarlyTurns, Fault, INTAKE_ROWS_MAX, NextWake,
    Submitted, TakenOver, TransactionSteps, WaitingFetch, caught, take_over,
};
