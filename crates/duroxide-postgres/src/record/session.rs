//! Sessions.

use duroxide_provider::rules::SessionRow;

use super::record;
use crate::value::{Columns, duration};

/// A session.
#[derive(Debug, Clone)]
pub(crate) struct Session(pub(crate) SessionRow);

record!(Session, "session", |it| {
    Key id: Text = &it.0.id;
    Mutable owner: Text = &it.0.owner;
    Mutable lock_until: Int = it.0.until;
    Mutable lock_length: Int = it.0.length;
    Mutable last_activity_at: Int = it.0.last_activity_at;
}, |row| {
    Ok(Session(SessionRow {
        id: row.column("id")?,
        owner: row.column("owner")?,
        until: row.time("lock_until")?,
        length: duration(row.column("lock_length")?),
        last_activity_at: row.time("last_activity_at")?,
    }))
});
