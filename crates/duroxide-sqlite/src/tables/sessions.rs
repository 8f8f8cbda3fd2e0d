//! Session rows.

use std::time::Duration;

use duroxide_core::Timestamp;
use duroxide_provider::rules::{Rows, SessionRow, SessionTable};
use rusqlite::Row;

use super::SqliteTables;
use crate::{
    columns::{columns, update, upsert},
    db::{Db, length, micros, time, unsigned},
};

columns!(session as session_columns: session_id, owner, lock_until, lease, last_activity_at);

const SELECT: &str = concat!("SELECT ", session_columns!(), " FROM session WHERE session_id = ?1");
const LEASED: &str = concat!("SELECT ", session_columns!(), " FROM session WHERE lock_until > ?1");
const LEASED_TO: &str =
    concat!("SELECT ", session_columns!(), " FROM session WHERE owner = ?2 AND lock_until > ?1");
const DELETE_ENDED: &str = "DELETE FROM session WHERE lock_until <= ?1
    AND NOT EXISTS (SELECT 1 FROM activity WHERE activity.session_id = session.session_id)";

fn read(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        id: row.get(session::session_id)?,
        owner: row.get(session::owner)?,
        until: time(row.get(session::lock_until)?),
        length: Duration::from_micros(unsigned(row.get(session::lease)?)),
        last_activity_at: time(row.get(session::last_activity_at)?),
    })
}

pub(crate) fn get(db: &Db, id: &str) -> Rows<Option<SessionRow>> {
    db.first(SELECT, [id], read)
}

impl SessionTable for SqliteTables {
    fn session(&mut self, id: &str) -> Rows<Option<SessionRow>> {
        get(&self.db, id)
    }

    fn write_session(&mut self, session: &SessionRow) -> Rows<()> {
        let written = upsert!(self.db, session [session_id: &session.id] {
            owner: &session.owner,
            lock_until: micros(session.until),
            lease: length(session.length),
            last_activity_at: micros(session.last_activity_at),
        });
        written.map(|_| ())
    }

    fn touch_session(&mut self, id: &str, now: Timestamp) -> Rows<()> {
        update!(self.db, session [session_id: id] { last_activity_at: micros(now) }).map(|_| ())
    }

    fn leased_sessions(&mut self, owner: Option<&str>, after: Timestamp) -> Rows<Vec<SessionRow>> {
        let mut leased = match owner {
            Some(owner) => self.db.all(LEASED_TO, (micros(after), owner), read)?,
            None => self.db.all(LEASED, [micros(after)], read)?,
        };
        leased.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok(leased)
    }

    fn delete_ended_sessions(&mut self, now: Timestamp) -> Rows<usize> {
        self.db.execute(DELETE_ENDED, [micros(now)])
    }
}
