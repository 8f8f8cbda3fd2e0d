use std::{collections::BTreeMap, fmt, sync::Arc};

use super::{Seed, Turn};
use crate::{Clock, Event, KvEntry, OrchestrationHandlerRef, ParentLink, RuntimeLimits, WorkItem};

/// What an execution is given by the shell.
pub struct Setup {
    /// The code.
    pub handler: OrchestrationHandlerRef,
    /// Where timers, key-value changes and events get their time.
    pub clock: Arc<dyn Clock>,
    /// Limits checked before a turn is handed out.
    pub limits: RuntimeLimits,
    /// The worker that runs it, for traces.
    pub worker_id: Option<String>,
    /// The key-value state that earlier executions left.
    pub kv: BTreeMap<String, KvEntry>,
}

/// One live run of an orchestration: the parked future and what it waits for.
pub struct Execution {}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").finish_non_exhaustive()
    }
}

impl Execution {
    /// An execution whose start is not stored yet. Its first turn's delta begins with the seed's events.
    pub fn start(seed: Seed, setup: Setup) -> Self {
        let _ = (seed, setup);
        todo!()
    }

    /// An execution from its stored history, which must not be terminal. A history that is only a seed (the start
    /// of a continue-as-new) has not run yet.
    ///
    /// Code that does not fit the history is reported by the next turn, as a failure.
    pub fn replay(history: Vec<Event>, setup: Setup) -> Self {
        let _ = (history, setup);
        todo!()
    }

    /// Delivers messages and runs the code until nothing moves. Starts and continue-as-new items are ignored:
    /// the shell has dealt with them.
    ///
    /// If the turn's round is not committed, this execution is ahead of the store and must be dropped.
    pub fn turn(&mut self, messages: Vec<WorkItem>) -> Turn {
        let _ = messages;
        todo!()
    }

    /// The last event, stored or decided in a turn.
    pub fn last_event_id(&self) -> u64 {
        todo!()
    }

    /// When the execution began, by the stamp of its first event.
    pub fn started_at_ms(&self) -> u64 {
        todo!()
    }

    /// The parent's call, if this is a child.
    pub fn parent(&self) -> Option<&ParentLink> {
        todo!()
    }

    /// A lower bound of what the execution holds in memory: the payload bytes that were delivered to the code.
    pub fn payload_bytes(&self) -> usize {
        todo!()
    }
}
