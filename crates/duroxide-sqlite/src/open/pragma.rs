//! Settings of a connection, each read back: SQLite ignores a word it does not know (B19, 23.1).

use std::{
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode};

use super::{Location, Role};
use crate::{
    SqliteError, SqliteOptions, SqliteSynchronous,
    db::{ONLY, lossy_text},
    error::sqlite_error,
};

/// A setting: its PRAGMA, the word it is set to, and the value that must be read back.
type Setting = (&'static str, &'static str, &'static str);

/// The cache of the connection that writes: 64 MiB.
macro_rules! writer_cache_size {
    () => {
        "-65536"
    };
}
/// Gives the connection that writes its cache back.
pub(crate) const WRITER_CACHE: &str = concat!("PRAGMA cache_size = ", writer_cache_size!());

/// How long a new store waits for other processes that open it at the same time.
const WAL_SWITCH_WAIT_MAX: Duration = Duration::from_secs(5);

/// Sets a connection up.
pub(super) fn set_up(
    conn: &Connection,
    location: &Location,
    options: &SqliteOptions,
    role: Role,
) -> Result<(), SqliteError> {
    for setting in settings(location, options, role) {
        set_when_free(conn, setting)?;
    }
    Ok(())
}

fn settings(location: &Location, options: &SqliteOptions, role: Role) -> Vec<Setting> {
    let mut settings = vec![
        match location {
            Location::Memory => ("journal_mode", "MEMORY", "memory"),
            Location::File { .. } => ("journal_mode", "WAL", "wal"),
        },
        match options.synchronous {
            SqliteSynchronous::Full => ("synchronous", "FULL", "2"),
            SqliteSynchronous::Normal => ("synchronous", "NORMAL", "1"),
        },
        ("temp_store", "MEMORY", "2"),
        match location {
            // Only the layer itself can read the log.
            Location::File { vfs: Some(_), .. } => ("wal_autocheckpoint", "1000", "1000"),
            // Checkpoints are made between two transactions, not within a commit.
            Location::Memory | Location::File { vfs: None, .. } => ("wal_autocheckpoint", "0", "0"),
        },
        match role {
            Role::Writer => ("cache_size", writer_cache_size!(), writer_cache_size!()),
            Role::Reader => ("cache_size", "-8192", "-8192"),
        },
    ];
    if cfg!(target_os = "macos") {
        // There, a plain fsync does not reach the disk.
        settings.extend([("fullfsync", "1", "1"), ("checkpoint_fullfsync", "1", "1")]);
    }
    if role == Role::Reader {
        settings.push(("query_only", "1", "1"));
    }
    settings
}

/// Sets one PRAGMA. The switch of a new file to WAL needs the file alone, and SQLite does not wait for that itself.
fn set_when_free(conn: &Connection, setting: Setting) -> Result<(), SqliteError> {
    let deadline = Instant::now() + WAL_SWITCH_WAIT_MAX;
    loop {
        match set(conn, setting) {
            Err(PragmaError::Sqlite(error))
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < deadline =>
            {
                thread::sleep(Duration::from_millis(1));
            }
            result => return result.map_err(|error| error.into_sqlite_error(setting)),
        }
    }
}

#[derive(Debug)]
enum PragmaError {
    Sqlite(rusqlite::Error),
    NotTaken { read_back: String },
}

impl PragmaError {
    fn into_sqlite_error(self, (pragma, word, _): Setting) -> SqliteError {
        match self {
            Self::Sqlite(error) => SqliteError {
                message: format!("PRAGMA {pragma} = {word}: {error}"),
                ..sqlite_error("set up connection", &error)
            },
            Self::NotTaken { read_back } => SqliteError::permanent(
                "set up connection",
                format!("PRAGMA {pragma} = {word} was not taken: it reads back as {read_back}"),
            ),
        }
    }
}

fn set(conn: &Connection, (pragma, word, expected): Setting) -> Result<(), PragmaError> {
    // Some PRAGMAs answer with a row and some do not; a batch takes both.
    conn.execute_batch(&format!("PRAGMA {pragma} = {word}")).map_err(PragmaError::Sqlite)?;
    let read_back =
        conn.pragma_query_value(None, pragma, |row| lossy_text(row, ONLY)).map_err(PragmaError::Sqlite)?;
    if read_back.eq_ignore_ascii_case(expected) { Ok(()) } else { Err(PragmaError::NotTaken { read_back }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B19: SQLite ignores an unknown word; here it is an error.
    #[test]
    fn an_unknown_word_is_an_error_that_names_pragma_word_and_value() {
        let conn = Connection::open_in_memory().unwrap();
        let setting = ("synchronous", "TOTAL", "2");
        let error = set_when_free(&conn, setting).unwrap_err();
        assert_eq!(error.message, "PRAGMA synchronous = TOTAL was not taken: it reads back as 1");
        assert!(!error.retryable);
    }

    /// B19: a value that SQLite refuses silently is an error too.
    #[test]
    fn a_value_that_is_not_taken_is_an_error() {
        let conn = Connection::open_in_memory().unwrap();
        let error = set_when_free(&conn, ("journal_mode", "WAL", "wal")).unwrap_err();
        assert_eq!(error.message, "PRAGMA journal_mode = WAL was not taken: it reads back as memory");
    }
}
