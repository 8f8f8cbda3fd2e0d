//! [`Shared`]: the state of an execution behind its lock, and its constants.

use std::{
    fmt,
    panic::Location,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{State, access};
use crate::{Clock, engine::Generation};

/// The place of a call in the user's code.
pub(crate) type Caller = &'static Location<'static>;

/// Identifies an execution. Never changes.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) instance: String,
    pub(crate) execution_id: u64,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) generation: Generation,
    pub(crate) worker_id: Option<String>,
}

/// The shared state with its lock, and its constants.
pub(crate) struct Shared {
    pub(crate) identity: Identity,
    pub(crate) clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(identity: Identity, clock: Arc<dyn Clock>, state: State) -> Self {
        Self { identity, clock, state: Mutex::new(state) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under the lock, so the state of a poisoned lock is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, for a call that code makes or polls. `None` if that is refused, in a thread that panics already.
    ///
    /// # Panics
    /// If the caller is not the code of the execution in its turn.
    pub(crate) fn lock_in_turn(&self) -> Option<MutexGuard<'_, State>> {
        let state = self.lock();
        if state.access.is_allowed() {
            return Some(state);
        }
        drop(state);
        access::refuse(&self.identity);
        None
    }

    /// When a timer that is created now fires. Clock and delay are each rounded up, so that the timer never fires early
    /// (14.1).
    pub(crate) fn fire_at_ms(&self, delay: Duration) -> u64 {
        let delay_ms = u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        self.clock.now().as_millis_ceil().saturating_add(delay_ms)
    }
}
