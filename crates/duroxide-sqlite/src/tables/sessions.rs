//! Session rows.

use std::time::Duration;

use duroxide_core::Timestamp;
use duroxide_provider::rules::{Rows, SessionRow, SessionTable};
use rusqlite::Row;

use super::SqliteTables;
use crate::{
    columns::columns,
    db::{Db, length, micros, time, unsigned},
};

columns!(session as session_columns: session_id, owner, lock_until, lease, last_activity_at);

const SELECT: &str = concat!("SELECT ", session_columns!(), " FROM session WHERE session_id = ?1");
const UPSERT: &str =
    "INSERT INTO session (session_id, owner, lock_until, lease, last_activity_at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (session_id) DO UPDATE SET owner = ?2, lock_until = ?3, lease = ?4, last_activity_at = ?5";
const TOUCH: &str = "UPDATE session SET last_activity_at = ?2 WHERE session_id = ?1";
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

pub(super) fn write(db: &Db, session: &SessionRow) -> Rows<()> {
    let columns = (
        &session.id,
        &session.owner,
        micros(session.until),
        length(session.length),
        micros(session.last_activity_at),
    );
    db.execute(UPSERT, columns).map(|_| ())
}

pub(super) fn touch(db: &Db, id: &str, now: Timestamp) -> Rows<()> {
    db.execute(TOUCH, (id, micros(now))).map(|_| ())
}

pub(super) fn leased(db: &Db, owner: Option<&str>, after: Timestamp) -> Rows<Vec<SessionRow>> {
    let mut leased = match owner {
        Some(owner) => db.all(LEASED_TO, (micros(after), owner), read)?,
        None => db.all(LEASED, [micros(after)], read)?,
    };
    leased.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    Ok(leased)
}

pub(super) fn delete_ended(db: &Db, now: Timestamp) -> Rows<usize> {
    db.execute(DELETE_ENDED, [micros(now)])
}

impl SessionTable for SqliteTables {
    fn session(&mut self, id: &str) -> Rows<Option<SessionRow>> {
        get(&self.db, id)
    }

    fn write_session(&mut self, session: &SessionRow) -> Rows<()> {
        write(&self.db, session)
    }

    fn touch_session(&mut self, id: &str, now: Timestamp) -> Rows<()> {
        touch(&self.db, id, now)
    }

    fn leased_sessions(&mut self, owner: Option<&str>, after: Timestamp) -> Rows<Vec<SessionRow>> {
        leased(&self.db, owner, after)
    }

    fn delete_ended_sessions(&mut self, now: Timestamp) -> Rows<usize> {
        delete_ended(&self.db, now)
    }
}
