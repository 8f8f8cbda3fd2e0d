//! `StoreEngine`: transactions, and the calls between them.

use std::sync::Arc;

use duroxide_core::Timestamp;

use super::{Batch, Done, Fault, HeldBack, Readies, StoreFailure, StoreReader};
use crate::DeadLetterQueue;

/// Called on any thread when a process has begun to write a store.
pub type TellOfWrite = Arc<dyn Fn() + Send + Sync>;

/// A synchronous, transactional store of instances, histories and queues.
///
/// All rules of visibility, locking, order and attempts are the engine's; waiting, batching and threads are its caller's.
/// The engine is also a [`StoreReader`]; reads between transactions see committed rows. It is used on the thread that
/// opened it, and need not be able to move to another.
///
/// Tokens are `{row}-{nonce}`: found by row, fenced by the nonce, which the caller draws afresh for every batch.
pub trait StoreEngine: StoreReader + 'static {
    /// Carries out a batch as one transaction: all of it becomes durable and visible, or nothing.
    ///
    /// # Errors
    /// The fault tells whether the batch had an effect, and whether to retry.
    fn transact(&mut self, batch: &Batch<'_>) -> Result<Done, Fault>;

    /// The earliest time at which a promotion will have something to do, on the caller's clock, which shows `now`. Called
    /// when it is unknown: after a transaction that left it [unknown](super::NextWake::Unknown), and after the store was
    /// opened, or changed by another process.
    fn next_wake(&mut self, now: Timestamp) -> Result<Option<Timestamp>, StoreFailure>;

    /// Whether another process changed the store since the last call.
    fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure>;

    /// Requests one call of `tell`, on any thread, when a process, this one included, begins to write the store after
    /// this call. The rows may become visible a moment later. Returns whether the call will come. If not, as by
    /// default, changes are found by polling more often.
    fn tell_of_writes(&mut self, tell: &TellOfWrite) -> bool {
        let _ = tell;
        false
    }

    /// Which queues may have ready items, by a read outside a transaction. Called after a change by another process, to
    /// decide whether a claim is worth a transaction. A queue with a ready item is never left out.
    fn may_be_ready(&mut self) -> Result<Readies, StoreFailure> {
        Ok(Readies { instances: true, activities: true })
    }

    /// Opens the store anew after an unknown commit outcome and proves by a probe commit that it works.
    fn reopen(&mut self) -> Result<(), StoreFailure>;

    /// Upkeep between two transactions, such as a checkpoint that is due.
    fn maintain(&mut self) -> Result<(), StoreFailure> {
        Ok(())
    }
}

/// The result of a claim: locked items, and rows that became dead letters.
#[derive(Debug, Clone)]
pub struct Claimed<T> {
    /// The locked items.
    pub items: Vec<T>,
    /// Rows that became dead letters on the way.
    pub dead_letters: Vec<DeadLetterNote>,
    /// How many ready items did not pass the filter.
    pub held_back: HeldBack,
    /// Whether no ready item is left for the fetch. An engine that does not know leaves it unset, and is asked again for the
    /// next fetch, unless this one got less than it asked for.
    pub took_all: bool,
    /// The indexes of items whose turn may run before the claim is committed, in order: see [`EarlyTurns`](super::EarlyTurns).
    pub early: Vec<usize>,
}

impl<T> Claimed<T> {
    /// Adds the items that a later claim took for the same fetch.
    pub(crate) fn add(&mut self, later: Self) {
        self.early.extend(later.early.into_iter().map(|index| self.items.len() + index));
        self.items.extend(later.items);
        self.dead_letters.extend(later.dead_letters);
        self.held_back = later.held_back;
        self.took_all = later.took_all;
    }
}

impl<T> Default for Claimed<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            dead_letters: Vec::new(),
            held_back: HeldBack::default(),
            took_all: false,
            early: Vec::new(),
        }
    }
}

/// Reports that a row became a dead letter, for its log and its counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterNote {
    /// The number of the dead letter.
    pub id: u64,
    /// The queue it came from.
    pub queue: DeadLetterQueue,
    /// The instance it was sent to, if that could be read.
    pub instance: Option<String>,
    /// Why.
    pub reason: DeadLetterReason,
}

/// Why a row became a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeadLetterReason {
    /// The row could not be decoded, and was tried too often.
    Undeserializable {
        /// The decode error.
        error: String,
    },
    /// Its instance was never started.
    NoInstance,
    /// The row is in the wrong queue.
    UnexpectedKind {
        /// Its kind.
        kind: String,
    },
    /// A caller wrote it into the intake, and it makes no sense.
    RefusedIntake {
        /// The decoding error.
        error: String,
    },
}

impl DeadLetterReason {
    /// The value of the `reason` label of `duroxide_dead_letters_total`.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Undeserializable { .. } => "undeserializable",
            Self::NoInstance => "no_instance",
            Self::UnexpectedKind { .. } => "unexpected_kind",
            Self::RefusedIntake { .. } => "refused_intake",
        }
    }
}

impl std::fmt::Display for DeadLetterReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Undeserializable { error } => write!(f, "undeserializable work item: {error}"),
            Self::NoInstance => f.write_str("no such instance"),
            Self::UnexpectedKind { kind } => write!(f, "unexpected work item kind {kind}"),
            Self::RefusedIntake { error } => write!(f, "refused row of the intake: {error}"),
        }
    }
}
