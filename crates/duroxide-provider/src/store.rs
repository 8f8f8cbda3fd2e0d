//! The synchronous store engine behind our own providers.
//!
//! A [`StoreEngine`] is a transactional table store without threads, clock or waiting: `begin(now)`, some
//! [`Op`]s, some claims, `commit`. `duroxide-store` serves one as a [`Provider`](crate::Provider); a simulator
//! drives one in virtual time. Everything an engine needs from a message or an event is taken out of it when the
//! operation is *prepared*, on the caller's thread, so that the store thread encodes no JSON.

mod engine;
mod failure;
mod op;
mod order;
mod reader;
mod row;
mod snapshot;

pub use engine::{Claimed, DeadLetterNote, DeadLetterReason, StoreEngine};
pub use failure::{ApplyError, FailureClass, Refusal, StoreFailure};
pub use op::{Answer, Op, PreparedExecution, PreparedRound, Readies, StateChange};
pub use order::{ActivityOrder, InstanceOrder};
pub use reader::{StoreReader, StoredDescriptor, StoredExecution, StoredStatus};
pub use row::{ActivityRow, EventRow, MessageKind, MessageRow, StartTarget, Visibility};
pub use snapshot::{
    ActivitySnapshot, ExecutionSnapshot, InstanceSnapshot, LockSnapshot, MessageSnapshot, StoreSnapshot,
};
