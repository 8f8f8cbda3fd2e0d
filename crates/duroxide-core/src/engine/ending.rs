use super::{Seed, Turn};
use crate::{ErrorDetails, Event, Timestamp};

/// What is known of an execution that is ended without running its code.
#[derive(Debug, Clone)]
pub enum Record {
    /// It has no history yet and would have begun with this seed.
    Unstarted(Seed),
    /// It has this history, which is not terminal.
    Stored(Vec<Event>),
    /// It has history that cannot be decoded. Its parent and open work are unknown here.
    Unreadable {
        /// The instance.
        instance: String,
        /// The execution.
        execution_id: u64,
        /// The last stored event.
        last_event_id: u64,
    },
}

/// How an execution ends without running its code.
#[derive(Debug, Clone)]
pub enum Ending {
    /// It fails with these details.
    Failed(ErrorDetails),
    /// It is cancelled: the request is recorded and open children are cancelled too.
    Cancelled {
        /// Why.
        reason: String,
    },
}

/// Ends an execution without running its code: poison, unsupported version, failed commit, or cancellation where
/// the handler is not registered. The turn holds the start if there was none, the breadcrumbs of what is still
/// open, and the terminal event; open activities and timers are removed.
pub fn end_without_code(record: Record, ending: Ending, now: Timestamp) -> Turn {
    let _ = (record, ending, now);
    todo!()
}
