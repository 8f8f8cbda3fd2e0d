//! One transaction as one call: a batch goes in, everything that came of it goes out.

use std::{borrow::Cow, time::Duration};

use duroxide_core::Timestamp;

use super::EarlyTurns;
use crate::store::{
    ActivityFetch, Answer, Claimed, DeadLetterNote, FailureClass, InstanceFetch, Op, Readies, Refusal,
    StoreFailure, StoredNode,
};
use crate::{OrchestrationClaim, WorkClaim};

/// Everything that one transaction does, in this order: it changes leases, carries out operations, promotes, serves fetches of
/// instances, runs early turns, and serves fetches of activities.
#[derive(Debug, Clone, Default)]
pub struct Batch<'a> {
    /// The time of everything in the transaction. A store with a clock of its own uses that instead.
    pub now: Timestamp,
    /// The random part of the lock tokens of this transaction, drawn afresh for each.
    pub nonce: u128,
    /// If the clock was set: by how much it was set forward, which may be zero.
    pub clock_set_forward: Option<Duration>,
    /// Operations.
    pub operations: Vec<Submitted<'a>>,
    /// Whether to promote due rows first.
    pub promote: bool,
    /// Fetches of instances that wait, oldest first.
    pub instance_fetches: Vec<WaitingFetch<'a, InstanceFetch>>,
    /// Fetches of activities that wait, oldest first.
    pub activity_fetches: Vec<WaitingFetch<'a, ActivityFetch>>,
    /// Runs turns of claims before the commit; `None` if all claims are handed over after it.
    pub turns: Option<&'a dyn EarlyTurns>,
    /// The nodes that had joined when a fetch by name was decided, because none of them can take its item. If other nodes have
    /// joined by now, such fetches get nothing.
    pub nodes: Option<Vec<StoredNode>>,
}

/// An operation that a caller has submitted.
#[derive(Debug, Clone)]
pub struct Submitted<'a> {
    /// The operation.
    pub op: Cow<'a, Op>,
    /// How long ago it was submitted: its lease is checked as of then.
    pub waited: Duration,
}

impl<'a> Submitted<'a> {
    /// An operation that was submitted just now.
    pub fn now(op: &'a Op) -> Self {
        Self { op: Cow::Borrowed(op), waited: Duration::ZERO }
    }
}

/// A fetch that waits for something to become ready.
#[derive(Debug, Clone)]
pub struct WaitingFetch<'a, F: Clone> {
    /// Which items, and how many.
    pub request: Cow<'a, F>,
    /// Whether the store was asked before and nothing can have become ready since, unless this batch makes it ready.
    pub was_tried: bool,
}

impl<'a, F: Clone> WaitingFetch<'a, F> {
    /// A fetch for which the store was not asked yet.
    pub fn new(request: &'a F) -> Self {
        Self { request: Cow::Borrowed(request), was_tried: false }
    }
}

/// The result of a committed transaction.
#[derive(Debug, Clone)]
pub struct Done {
    /// The time of everything in it.
    pub now: Timestamp,
    /// The answer to each operation.
    pub answers: Vec<Result<Answer, Refusal>>,
    /// Rows that became dead letters by the promotion.
    pub dead_letters: Vec<DeadLetterNote>,
    /// The claims of each fetch of instances; `None` if the store was not asked for it.
    pub instances: Vec<Option<Claimed<OrchestrationClaim>>>,
    /// The claims of each fetch of activities; `None` if the store was not asked for it.
    pub activities: Vec<Option<Claimed<WorkClaim>>>,
    /// The queues in which operations or the promotion may have made items ready.
    pub readies: Readies,
    /// Whether clients may wait for something that was changed.
    pub is_watched: bool,
    /// On the clock of [`Batch::now`].
    pub next_wake: NextWake,
}

/// When a promotion will have something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextWake {
    /// The store has not been asked since the last commit. An engine that would have to read for it leaves it at this, so
    /// that the callers of a transaction are answered before [`StoreEngine::next_wake`](crate::store::StoreEngine::next_wake)
    /// is asked.
    Unknown,
    /// At this time at the earliest; never if `None`.
    Known(Option<Timestamp>),
}

impl NextWake {
    /// This time, or an earlier known one.
    #[must_use]
    pub fn at_latest(self, time: Timestamp) -> Self {
        match self {
            Self::Known(Some(earlier)) => Self::Known(Some(earlier.min(time))),
            Self::Known(None) | Self::Unknown => Self::Known(Some(time)),
        }
    }
}

impl Done {
    /// A transaction that did nothing yet.
    pub fn at(now: Timestamp) -> Self {
        Self {
            now,
            answers: Vec::new(),
            dead_letters: Vec::new(),
            instances: Vec::new(),
            activities: Vec::new(),
            readies: Readies::default(),
            is_watched: false,
            next_wake: NextWake::Unknown,
        }
    }
}

/// Why a batch had no effect, or an unknown one.
#[derive(Debug, Clone)]
pub enum Fault {
    /// One part of the batch broke. Nothing happened; the rest may be carried out without that part.
    Broken {
        /// The part.
        part: BatchPart,
        /// Why.
        failure: StoreFailure,
    },
    /// Another transaction was in the way. Nothing happened; the whole batch may be tried again at once.
    LostRace(StoreFailure),
    /// The store does not serve now. Nothing happened, and another batch would fare the same.
    Unavailable(StoreFailure),
    /// The batch may or may not have happened. The store must be opened anew.
    OutcomeUnknown {
        /// Why.
        failure: StoreFailure,
        /// Its result if it was committed; `None` if the commit was not reached.
        done: Option<Box<Done>>,
    },
}

impl Fault {
    /// The fault behind a failure of a part, whose class says whether that part is to blame. `done` is the result of a commit that
    /// may have succeeded.
    pub fn of(failure: StoreFailure, part: BatchPart, done: Option<Done>) -> Self {
        match failure.class {
            FailureClass::Permanent => Self::Broken { part, failure },
            FailureClass::Retryable => Self::Unavailable(failure),
            FailureClass::LostRace => Self::LostRace(failure),
            FailureClass::OutcomeUnknown => Self::OutcomeUnknown { failure, done: done.map(Box::new) },
        }
    }

    /// The fault behind a failure outside of any part: of the beginning, for example.
    pub fn of_transaction(failure: StoreFailure) -> Self {
        Self::of(failure, BatchPart::SomeOperation, None)
    }

    /// The fault behind a commit that failed.
    pub fn of_commit(failure: StoreFailure, done: Done) -> Self {
        Self::of(failure, BatchPart::SomeOperation, Some(done))
    }

    /// The failure of the store.
    pub fn failure(&self) -> &StoreFailure {
        match self {
            Self::Broken { failure, .. }
            | Self::LostRace(failure)
            | Self::Unavailable(failure)
            | Self::OutcomeUnknown { failure, .. } => failure,
        }
    }

    /// The failure of the store.
    pub fn into_failure(self) -> StoreFailure {
        match self {
            Self::Broken { failure, .. }
            | Self::LostRace(failure)
            | Self::Unavailable(failure)
            | Self::OutcomeUnknown { failure, .. } => failure,
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self.failure(), f)
    }
}

impl std::error::Error for Fault {}

/// A part of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchPart {
    /// The change of leases after the clock was set.
    Leases,
    /// An operation, by its index.
    Operation(usize),
    /// Some operation: the commit was refused, and the store does not report for which.
    SomeOperation,
    /// The promotion.
    Promotion,
    /// A fetch of instances, by its index.
    InstanceFetch(usize),
    /// A fetch of activities, by its index.
    ActivityFetch(usize),
}
