//! Sessions.

use duroxide_core::Timestamp;
use duroxide_provider::rules::SessionRow;

use super::{
    PostgresTables,
    load::{Meaning, Request, given_time},
};
use crate::{
    connection::{Query, parameters},
    database_error::DatabaseError,
    record::{Record, Session, read_all},
    value::{Columns, micros},
};

const SESSION: &str = "SELECT {columns session} FROM {s}.session WHERE session.id = $1 FOR UPDATE";
const LEASED: &str = "SELECT {columns session} FROM {s}.session
    WHERE session.lock_until > $1 AND ($2::text IS NULL OR session.owner = $2) ORDER BY session.id FOR UPDATE";
const OF_OWNERS: &str = concat!(
    "SELECT {columns session} FROM {s}.session WHERE session.lock_until > ",
    given_time!("$2"),
    " AND session.owner = ANY ($1::text[]) ORDER BY session.id FOR UPDATE"
);
const DELETE_ENDED: &str = "DELETE FROM {s}.session WHERE lock_until <= $1
      AND NOT EXISTS (SELECT 1 FROM {s}.activity WHERE activity.session_id = session.id)
    RETURNING id";

impl Request {
    /// Locks the sessions that these owners hold at a time, or now.
    pub(super) fn sessions_of_owners(owners: Vec<String>, at: Option<Timestamp>) -> Self {
        let parameters = parameters![owners.clone(), at.map(micros)];
        Self::new(Meaning::SessionsOfOwners(owners), OF_OWNERS, parameters)
    }
}

impl PostgresTables {
    pub(super) fn session(&mut self, id: &str) -> Result<Option<SessionRow>, DatabaseError> {
        let key = id.to_owned();
        if !self.set.sessions.knows(&key) {
            let answers = self.send(&[Query::new(SESSION, parameters![key.clone()])])?;
            let found = answers.iter().flatten().next().map(Session::read).transpose()?;
            self.set.sessions.learn(key.clone(), found);
        }
        Ok(self.set.sessions.get(&key).map(|session| session.0.clone()))
    }

    /// Whether a new session is inserted or an old one changed depends on the rows read: of two nodes that take a free
    /// session only one may get it.
    pub(super) fn write_session(&mut self, row: &SessionRow) -> Result<(), DatabaseError> {
        self.session(&row.id)?;
        self.set.sessions.put(row.id.clone(), Session(row.clone()));
        Ok(())
    }

    pub(super) fn touch_session(&mut self, id: &str, now: Timestamp) -> Result<(), DatabaseError> {
        if let Some(session) = self.session(id)? {
            self.write_session(&SessionRow { last_activity_at: now, ..session })?;
        }
        Ok(())
    }

    pub(super) fn leased_sessions(
        &mut self,
        owner: Option<&str>,
        after: Timestamp,
    ) -> Result<Vec<SessionRow>, DatabaseError> {
        if let Some(owner) = owner.filter(|owner| self.set.session_owners.contains(*owner)) {
            let sessions = self.set.sessions.rows().map(|session| &session.0);
            let leased = sessions.filter(|session| session.owner == owner && session.until > after);
            let mut leased: Vec<SessionRow> = leased.cloned().collect();
            leased.sort_unstable_by(|one, other| one.id.cmp(&other.id));
            return Ok(leased);
        }
        let rows = self.ask(Query::new(LEASED, parameters![micros(after), owner.map(str::to_owned)]))?;
        let sessions: Vec<Session> = read_all(&rows)?;
        for session in &sessions {
            self.set.sessions.learn(session.0.id.clone(), Some(session.clone()));
        }
        Ok(sessions.into_iter().map(|session| session.0).collect())
    }

    pub(super) fn delete_ended_sessions(&mut self, now: Timestamp) -> Result<usize, DatabaseError> {
        let rows = self.ask(Query::new(DELETE_ENDED, parameters![micros(now)]))?;
        for row in &rows {
            let id: String = row.column("id")?;
            self.set.sessions.forget(|session| session.0.id == id);
        }
        Ok(rows.len())
    }
}
