//! Caches live executions between turns. The cache is only an optimisation.

mod pending_return;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex},
};

use duroxide_core::{Event, TraceContext, engine::Execution};
use duroxide_provider::OrchestrationClaim;

pub(crate) use self::pending_return::PendingReturn;
use self::pending_return::PendingReturns;
use crate::{
    dispatch::{RunningSteps, event_bytes},
    env::lock,
};

/// The memory of a waiting execution that [`Execution::held_bytes`] does not count: the suspended code, the cache entry
/// and the maps of the engine. Measured with an orchestration that waits for one event.
const BYTES_EACH: usize = 6 << 10;
/// Allocators retain freed memory, such as copies of texts on their way to an execution: one byte for each
/// `ALLOCATOR_SHARE` bytes in use.
const ALLOCATOR_SHARE: usize = 4;

/// A live execution and the stored history that it corresponds to.
pub(crate) struct CachedExecution {
    pub execution: Execution,
    pub execution_id: u64,
    pub name: Arc<str>,
    pub version: Arc<str>,
    /// Committed turns.
    pub turns: u64,
    /// The version stamp of the first event, if it is not a valid version (17.4).
    pub unreadable_pin: Option<String>,
    /// Whether this node could also replay the execution. If not, it is not cached.
    pub replayable: bool,
    /// The context in which the instance was started.
    pub trace: Option<TraceContext>,
    pub position: HistoryPosition,
    /// Steps that run in place.
    pub steps: RunningSteps,
}

/// The position of a stored history, to compare a cached execution with a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HistoryPosition {
    /// In a store that reports positions.
    Position {
        /// The number of the instance's row, which is never reused.
        incarnation: u64,
        /// The last stored event.
        last_event_id: u64,
    },
    /// In a store that only returns histories: the first and the last event.
    Ends(Box<(Event, Event)>),
    /// In a store that only returns histories, before the first event.
    Empty,
}

impl HistoryPosition {
    /// The position of a claim and the history that came with it.
    pub(crate) fn of(claim: &OrchestrationClaim, history: &[Event]) -> Self {
        match (claim.position, history) {
            (Some(position), _) => {
                Self::Position { incarnation: position.incarnation, last_event_id: position.last_event_id }
            }
            (None, [first, .., last]) => Self::Ends(Box::new((first.clone(), last.clone()))),
            (None, [only]) => Self::Ends(Box::new((only.clone(), only.clone()))),
            (None, []) => Self::Empty,
        }
    }

    /// The position after a round that started the instance's next execution with these events.
    pub(crate) fn of_successor(&self, seed: &[Event]) -> Self {
        let mut position = match self {
            Self::Position { incarnation, .. } => {
                Self::Position { incarnation: *incarnation, last_event_id: 0 }
            }
            Self::Ends(_) | Self::Empty => Self::Empty,
        };
        position.advance(seed);
        position
    }

    /// Advances by the events of a round.
    fn advance(&mut self, delta: &[Event]) {
        let (Some(first), Some(last)) = (delta.first(), delta.last()) else { return };
        match self {
            Self::Position { last_event_id, .. } => *last_event_id = last.event_id,
            Self::Ends(ends) => ends.1 = last.clone(),
            Self::Empty => *self = Self::Ends(Box::new((first.clone(), last.clone()))),
        }
    }
}

impl CachedExecution {
    /// Whether the claimed history is exactly the one of this execution.
    fn matches(&self, claim: &OrchestrationClaim) -> bool {
        if self.execution_id != claim.execution_id {
            return false;
        }
        match (&self.position, claim.position, &claim.loaded) {
            (HistoryPosition::Position { incarnation, last_event_id }, Some(position), _) => {
                *incarnation == position.incarnation && *last_event_id == position.last_event_id
            }
            (HistoryPosition::Ends(ends), None, Some(loaded)) => {
                loaded.history_error.is_none()
                    && loaded.history.first() == Some(&ends.0)
                    && loaded.history.last() == Some(&ends.1)
            }
            _ => false,
        }
    }

    /// Advances by a round that is being committed.
    pub(crate) fn advance(&mut self, delta: &[Event]) {
        self.turns += 1;
        self.position.advance(delta);
    }

    /// Estimates the memory of the cached execution.
    fn bytes(&self) -> usize {
        let position = match &self.position {
            HistoryPosition::Position { .. } | HistoryPosition::Empty => 0,
            HistoryPosition::Ends(ends) => event_bytes(&ends.0) + event_bytes(&ends.1),
        };
        let payloads = self.execution.held_bytes().saturating_add(position);
        payloads.saturating_add(payloads / ALLOCATOR_SHARE).saturating_add(BYTES_EACH)
    }
}

/// The result of a lookup.
pub(crate) enum Lookup {
    /// A live execution that matches the claim.
    Live(Box<CachedExecution>),
    /// An execution that does not match. Drop it on a turn thread, because its destructors are user code.
    Stale(Box<CachedExecution>),
    Absent,
}

/// Live executions by instance, bounded in number and bytes. Evicts the least recently used first.
pub(crate) struct ExecutionCache {
    executions_max: usize,
    bytes_max: usize,
    entries: Mutex<Entries>,
    pending_returns: PendingReturns,
}

#[derive(Default)]
struct Entries {
    by_instance: HashMap<Arc<str>, Entry>,
    by_use: BTreeMap<u64, Arc<str>>,
    uses: u64,
    bytes: usize,
}

struct Entry {
    used: u64,
    bytes: usize,
    execution: Box<CachedExecution>,
}

impl ExecutionCache {
    pub(crate) fn new(executions_max: usize, bytes_max: usize) -> Self {
        Self {
            executions_max,
            bytes_max,
            entries: Mutex::default(),
            pending_returns: PendingReturns::default(),
        }
    }

    /// Announces that an execution returns to the cache when its commit is confirmed. Dropping the result ends the
    /// announcement.
    pub(crate) fn expect_return(&self, instance: &str) -> Option<PendingReturn<'_>> {
        (self.executions_max > 0).then(|| self.pending_returns.expect(instance))
    }

    /// Resolves when no execution of the instance is expected to return. The next claim may arrive before the answer to
    /// the previous commit.
    pub(crate) async fn wait_for_return(&self, instance: &str) {
        self.pending_returns.returned(instance).await;
    }

    /// Removes the claimed instance's execution. It returns to the cache only after a confirmed commit.
    pub(crate) fn take(&self, claim: &OrchestrationClaim) -> Lookup {
        match lock(&self.entries).remove(&claim.instance) {
            Some(execution) if execution.matches(claim) => Lookup::Live(execution),
            Some(execution) => Lookup::Stale(execution),
            None => Lookup::Absent,
        }
    }

    /// Whether the cache would take this execution.
    pub(crate) fn keeps(&self, execution: &CachedExecution) -> bool {
        self.executions_max > 0 && execution.replayable && execution.bytes() <= self.bytes_max
    }

    /// Inserts an execution and returns the evicted ones.
    #[must_use]
    pub(crate) fn put(&self, instance: &str, execution: Box<CachedExecution>) -> Vec<CachedExecution> {
        // An execution that this node cannot replay must not continue here either: the next fetch has to filter it. An
        // execution that exceeds the limit by itself must not evict all the others.
        if !self.keeps(&execution) {
            return vec![*execution];
        }
        let bytes = execution.bytes();
        let mut entries = lock(&self.entries);
        let mut gone: Vec<_> = entries.remove(instance).into_iter().map(|gone| *gone).collect();
        entries.insert(instance, execution, bytes);
        while entries.by_instance.len() > self.executions_max || entries.bytes > self.bytes_max {
            gone.extend(entries.pop_oldest().map(|gone| *gone));
        }
        gone
    }

    /// Removes and returns all executions.
    #[must_use]
    pub(crate) fn clear(&self) -> Vec<CachedExecution> {
        let entries = std::mem::take(&mut *lock(&self.entries));
        entries.by_instance.into_values().map(|entry| *entry.execution).collect()
    }
}

impl fmt::Debug for ExecutionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = lock(&self.entries);
        f.debug_struct("ExecutionCache")
            .field("executions", &entries.by_instance.len())
            .field("bytes", &entries.bytes)
            .finish_non_exhaustive()
    }
}

impl Entries {
    fn insert(&mut self, instance: &str, execution: Box<CachedExecution>, bytes: usize) {
        self.uses += 1;
        let entry = Entry { used: self.uses, bytes, execution };
        self.bytes = self.bytes.saturating_add(entry.bytes);
        let instance: Arc<str> = instance.into();
        self.by_use.insert(entry.used, Arc::clone(&instance));
        self.by_instance.insert(instance, entry);
    }

    fn remove(&mut self, instance: &str) -> Option<Box<CachedExecution>> {
        let entry = self.by_instance.remove(instance)?;
        self.by_use.remove(&entry.used);
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        Some(entry.execution)
    }

    fn pop_oldest(&mut self) -> Option<Box<CachedExecution>> {
        let (_, instance) = self.by_use.pop_first()?;
        self.remove(&instance)
    }
}

#[cfg(test)]
mod tests;
