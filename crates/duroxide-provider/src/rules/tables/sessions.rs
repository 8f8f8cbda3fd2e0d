//! Sessions.

use duroxide_core::Timestamp;

use crate::rules::{Rows, SessionRow};

/// The table of activity sessions.
pub trait SessionTable {
    /// Reads a session.
    fn session(&mut self, id: &str) -> Rows<Option<SessionRow>>;

    /// Inserts or replaces a session.
    fn write_session(&mut self, session: &SessionRow) -> Rows<()>;

    /// Notes that an activity of a session was renewed or acknowledged; an unknown session is no error.
    fn touch_session(&mut self, id: &str, now: Timestamp) -> Rows<()>;

    /// The sessions whose lease ends after this time, by id; of this owner, if one is given.
    fn leased_sessions(&mut self, owner: Option<&str>, after: Timestamp) -> Rows<Vec<SessionRow>>;

    /// Deletes the sessions whose lease has ended and that have no queued activity; returns how many.
    fn delete_ended_sessions(&mut self, now: Timestamp) -> Rows<usize>;
}
