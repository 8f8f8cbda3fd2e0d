//! Executions kept alive between turns. The cache is only ever an optimisation.

mod pending_return;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Mutex,
};

use duroxide_core::{Event, engine::Execution};
use duroxide_provider::OrchestrationClaim;

pub(crate) use self::pending_return::PendingReturn;
use self::pending_return::PendingReturns;
use crate::{dispatch::event_bytes, env::lock};

/// The memory of a waiting execution beside what [`Execution::held_bytes`] counts: the parked code, its entry here and the
/// maps of the engine. Measured with an orchestration that waits for one event.
const BYTES_EACH: usize = 6 << 10;
/// An allocator keeps a part of what was freed, such as the copies of a text on its way to an execution: one byte for so
/// many that are held.
const ALLOCATOR_SHARE: usize = 4;

/// A live execution and where it stands.
pub(crate) struct CachedExecution {
    pub execution: Execution,
    pub execution_id: u64,
    pub name: String,
    pub version: String,
    /// Rounds committed to it.
    pub turns: u64,
    /// The stamp of its first event if it cannot be read as a version (semantics 17.4).
    pub unreadable_pin: Option<String>,
    /// Whether this node could also replay it; if not, it is not kept.
    pub replayable: bool,
    pub position: HistoryPosition,
}

/// The stored history that a cached execution belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HistoryPosition {
    /// Of a store that says where it stands.
    Position {
        /// The instance row's number, which no other instance ever has.
        incarnation: u64,
        /// The last stored event.
        last_event_id: u64,
    },
    /// Of a store that only hands out histories: the first and the last event.
    Ends(Box<(Event, Event)>),
    /// Of such a store, before its first event.
    Empty,
}

impl HistoryPosition {
    /// Where the store stands by a claim and the history that came with it.
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

    /// Where the same store stands after a round that began the instance's next execution with these events.
    pub(crate) fn begun(&self, seed: &[Event]) -> Self {
        let mut position = match self {
            Self::Position { incarnation, .. } => {
                Self::Position { incarnation: *incarnation, last_event_id: 0 }
            }
            Self::Ends(_) | Self::Empty => Self::Empty,
        };
        position.advance(seed);
        position
    }

    /// Moves on by the events of a round.
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
    /// Whether the store stands exactly where this execution does.
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

    /// One more round is on its way: if it is committed, the execution stands behind `delta`.
    pub(crate) fn advance(&mut self, delta: &[Event]) {
        self.turns += 1;
        self.position.advance(delta);
    }

    /// Estimates the memory that this takes while it is cached.
    fn bytes(&self) -> usize {
        let position = match &self.position {
            HistoryPosition::Position { .. } | HistoryPosition::Empty => 0,
            HistoryPosition::Ends(ends) => event_bytes(&ends.0) + event_bytes(&ends.1),
        };
        let payloads = self.execution.held_bytes().saturating_add(position);
        payloads.saturating_add(payloads / ALLOCATOR_SHARE).saturating_add(BYTES_EACH)
    }
}

/// What the cache knows for a claim.
pub(crate) enum Lookup {
    /// A live execution that stands where the store does.
    Live(Box<CachedExecution>),
    /// One that does not. It is user code: drop it on a turn thread.
    Stale(Box<CachedExecution>),
    Absent,
}

/// Live executions by instance, bounded in number and bytes; the least recently used goes first.
pub(crate) struct ExecutionCache {
    executions_max: usize,
    bytes_max: usize,
    entries: Mutex<Entries>,
    pending_returns: PendingReturns,
}

#[derive(Default)]
struct Entries {
    by_instance: HashMap<String, Entry>,
    by_use: BTreeMap<u64, String>,
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

    /// Says that an execution comes back once its round is confirmed. Ends when what is returned is dropped.
    pub(crate) fn expect_return(&self, instance: &str) -> Option<PendingReturn<'_>> {
        (self.executions_max > 0).then(|| self.pending_returns.expect(instance))
    }

    /// Resolves when no execution of the instance is pending_return back. The next claim may be quicker than the answer to
    /// the commit before it.
    pub(crate) async fn wait_for_return(&self, instance: &str) {
        self.pending_returns.met(instance).await;
    }

    /// Takes the claimed instance's execution out. It comes back only after a confirmed commit.
    pub(crate) fn take(&self, claim: &OrchestrationClaim) -> Lookup {
        match lock(&self.entries).remove(&claim.instance) {
            Some(execution) if execution.matches(claim) => Lookup::Live(execution),
            Some(execution) => Lookup::Stale(execution),
            None => Lookup::Absent,
        }
    }

    /// Puts an execution in and returns what had to go.
    #[must_use]
    pub(crate) fn put(&self, instance: &str, execution: Box<CachedExecution>) -> Vec<CachedExecution> {
        let bytes = execution.bytes();
        // What this node could not replay it must not go on with either: the next fetch has to see that. An execution
        // that is too large by itself must not push out all the others.
        if self.executions_max == 0 || !execution.replayable || bytes > self.bytes_max {
            return vec![*execution];
        }
        let mut entries = lock(&self.entries);
        let mut gone: Vec<_> = entries.remove(instance).into_iter().map(|gone| *gone).collect();
        entries.insert(instance, execution, bytes);
        while entries.by_instance.len() > self.executions_max || entries.bytes > self.bytes_max {
            gone.extend(entries.pop_oldest().map(|gone| *gone));
        }
        gone
    }

    /// Takes everything out.
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
        self.by_use.insert(entry.used, instance.to_owned());
        self.by_instance.insert(instance.to_owned(), entry);
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
