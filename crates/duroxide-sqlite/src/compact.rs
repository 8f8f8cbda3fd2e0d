//! Giving free pages back to the file system.
//!
//! SQLite keeps the pages of deleted rows for later rows. It can give them back in small steps only if the file keeps
//! track of where each page belongs, which has to be so from the beginning or be brought about by `VACUUM`, which
//! writes the whole file anew.

use std::{thread, time::Duration};

use rusqlite::Connection;

use crate::{SqliteError, db::ONLY, error::sqlite_error};

/// Pages that one step moves to the end of the file and cuts off: 1 MiB.
const STEP: &str = "PRAGMA incremental_vacuum(256)";
/// Between two steps other connections can lock the file.
const PAUSE: Duration = Duration::from_millis(1);
/// `PRAGMA auto_vacuum` of a file that can be compacted in steps.
const INCREMENTAL: i64 = 2;
/// The copy that `VACUUM` makes goes to a file: the store may be larger than the memory.
const REWRITE: &str = "PRAGMA temp_store = FILE; PRAGMA auto_vacuum = INCREMENTAL; VACUUM";
const CHECKPOINT: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// Gives free pages back; returns how many bytes.
pub(crate) fn run(conn: &Connection) -> Result<u64, SqliteError> {
    let compact = || {
        let before = pragma(conn, "page_count")?;
        if pragma(conn, "auto_vacuum")? != INCREMENTAL {
            conn.execute_batch(REWRITE)?;
        }
        while free_some(conn)? {
            thread::sleep(PAUSE);
        }
        // The file gets shorter when the log is moved into it.
        run_through(conn, CHECKPOINT)?;
        let pages = before.saturating_sub(pragma(conn, "page_count")?);
        Ok(pages.saturating_mul(pragma(conn, "page_size")?))
    };
    let bytes: i64 = compact().map_err(|error| sqlite_error("compact", &error))?;
    Ok(u64::try_from(bytes).unwrap_or_default())
}

/// Makes one step, in a transaction of its own. Returns whether there was one to make.
fn free_some(conn: &Connection) -> rusqlite::Result<bool> {
    let free = pragma(conn, "freelist_count")?;
    if free > 0 {
        run_through(conn, STEP)?;
    }
    Ok(pragma(conn, "freelist_count")? < free)
}

fn run_through(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

fn pragma(conn: &Connection, name: &str) -> rusqlite::Result<i64> {
    conn.pragma_query_value(None, name, |row| row.get(ONLY))
}
