//! [`Access`]: which thread may make and poll the calls of an execution.

use std::thread::{self, ThreadId};

use super::shared::Identity;

/// The threads that may make, poll and drop the calls of an execution.
///
/// Calls are recorded in the order in which the code makes them. Another task or thread makes them at another moment in
/// every run, so it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Access {
    /// Anyone. The context belongs to no execution.
    #[default]
    Anyone,
    /// The thread that polls or drops the code of the execution.
    Thread(ThreadId),
    /// No thread. The execution waits for its next turn, or was dropped.
    Nobody,
}

impl Access {
    /// The current thread polls or drops the code.
    pub(crate) fn this_thread() -> Self {
        Self::Thread(thread::current().id())
    }

    pub(crate) fn is_allowed(self) -> bool {
        match self {
            Self::Anyone => true,
            Self::Thread(owner) => owner == thread::current().id(),
            Self::Nobody => false,
        }
    }
}

/// Refuses a call that is not made in the turn of its execution. Panics, unless the thread panics already: a second
/// panic would abort the process.
#[expect(clippy::panic, reason = "calls have no error type, and the code that makes this one is at fault")]
pub(super) fn refuse(identity: &Identity) {
    let Identity { instance, execution_id, name, .. } = identity;
    tracing::error!(
        target: "duroxide::runtime",
        instance,
        execution_id,
        orchestration_name = name,
        "a call of an orchestration was made or polled outside of its turn and is refused"
    );
    if !thread::panicking() {
        panic!(
            "the context of orchestration '{name}' (instance '{instance}') was used outside of its turn: the calls \
             and futures of a context belong to the orchestration's own code and must not be moved into a spawned \
             task or thread. Await them in the orchestration, for example with join or select, or do the work in an \
             activity"
        );
    }
}
