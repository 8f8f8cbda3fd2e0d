//! A provider on a store without transactions.
//!
//! A [`PeekLockStore`] writes one record at a time: it appends events, and enqueues, locks, abandons and acknowledges
//! queue items. Each call may be repeated. [`PeekLockProvider`] serves such a store as a
//! [`Provider`](duroxide_provider::Provider).
//!
//! # How a round survives a crash
//!
//! Every operation becomes a list of [`Step`]s, in an order in which a crash between any two of them does no harm:
//!
//! 1. **events** are appended, so no work is ever enqueued whose schedule is not in the history; at a continue-as-new
//!    the end of the old execution comes first, then the first events of the next one;
//! 2. **work** is enqueued;
//! 3. the records of the instance and its executions are replaced;
//! 4. consumed queue items are **acknowledged**, last.
//!
//! A round also records its steps before it carries out the first of them ([`PeekLockStore::note_unfinished`]), because
//! the history alone does not contain everything that a turn enqueued (for example the requested version of a child).
//! The next process that opens the store repeats the recorded steps. An abandon and a fetch after a lost lock record
//! their steps too, because they change messages together with the lock of the instance, and the attempt of a lock must
//! be counted once. Enqueues, other fetches and acknowledgements of activities record nothing: their order is enough,
//! and the fast path ([`already_recorded`]) acknowledges queue items whose completion is already recorded.
//!
//! # Limits
//!
//! One adapter at a time may use a store. The adapter keeps all rows in memory, in the memory provider's engine, and
//! reads the store only when it opens it, after a failed write, and on [`PeekLockProvider::reload`]. A program that
//! reads the store directly sees the steps of a round one after the other.

// No wildcard arm hides a new event kind, action or work item: see docs/adding-an-event-kind.md.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod engine;
mod fast_path;
mod plan;
mod provider;
mod recovery;
mod step;
mod store;

pub use engine::PeekLockEngine;
pub use fast_path::already_recorded;
pub use provider::PeekLockProvider;
pub use step::{QueueItem, QueueItemId, Step, WhichQueue};
pub use store::{PeekLockStore, Stored};

pub use duroxide_provider::memory::{MemoryOptions, record};
