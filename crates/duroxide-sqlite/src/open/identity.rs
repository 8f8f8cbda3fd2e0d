//! Finds out which program a database file belongs to. Everything here only reads.

use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use super::{Location, busy, migrate::SCHEMA_VERSION};
use crate::SqliteError;

/// "dur5" in the file's header: this file is a duroxide store.
pub(super) const APPLICATION_ID: i32 = 0x6475_7235;

/// One statement, so that no process can make the tables during the read.
const IDENTITY: &str = "SELECT (SELECT application_id FROM pragma_application_id) AS application_id,
    (SELECT user_version FROM pragma_user_version) AS user_version,
    (SELECT count(*) FROM sqlite_schema) AS objects";

/// The header fields and tables that identify a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    application_id: i32,
    user_version: i32,
    objects: i64,
}

/// How a database may be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The database is empty; the tables are created.
    New,
    /// The database is a store, with the tables of this schema version.
    Ours(i32),
}

impl Identity {
    pub(super) fn read(conn: &Connection) -> rusqlite::Result<Self> {
        conn.query_row(IDENTITY, [], |row| {
            Ok(Self {
                application_id: row.get("application_id")?,
                user_version: row.get("user_version")?,
                objects: row.get("objects")?,
            })
        })
    }

    pub(super) fn verdict(self, location: &Location) -> Result<Verdict, SqliteError> {
        match self {
            Self { application_id: 0, user_version: 0, objects: 0 } => Ok(Verdict::New),
            Self { application_id: APPLICATION_ID, user_version, .. } if user_version > SCHEMA_VERSION => {
                Err(location.refused(&format!(
                    "it was written by a newer duroxide (schema {user_version}, this one knows up to \
                     {SCHEMA_VERSION}); upgrade this program"
                )))
            }
            Self { application_id: APPLICATION_ID, user_version, .. } => Ok(Verdict::Ours(user_version)),
            Self { application_id, .. } => Err(location.refused(&format!(
                "it is a database of another program (application_id {application_id:#x}); give another path"
            ))),
        }
    }
}

/// Checks an existing file through a read-only connection, so that a file of another application stays exactly as it
/// is: a writing connection would checkpoint a foreign write-ahead log when it is closed.
pub(super) fn check_untouched(location: &Location) -> Result<(), SqliteError> {
    let mut conn = match location.open_file(OpenFlags::SQLITE_OPEN_READ_ONLY) {
        None => return Ok(()),
        Some(Ok(conn)) => conn,
        // The file does not exist, or the writing connection will report why it cannot be opened.
        Some(Err(error)) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => return Ok(()),
        Some(Err(error)) => return Err(location.open_error(&error)),
    };
    busy::wait_when_busy(&mut conn).map_err(|error| location.open_error(&error))?;
    match check(&conn, location) {
        // Its owner died in the middle of a write. A read-only connection cannot roll that back, and so cannot read
        // either.
        Err(LookError::Sqlite(error)) if is_half_written(&error) => Ok(()),
        result => result.map_err(|error| error.into_sqlite_error(location)),
    }
}

/// Checks a writable file before changing it. Opening it rolls back an incomplete transaction, as in any program.
pub(super) fn check_unchanged(conn: &Connection, location: &Location) -> Result<(), SqliteError> {
    check(conn, location).map_err(|error| error.into_sqlite_error(location))
}

enum LookError {
    Sqlite(rusqlite::Error),
    Refused(SqliteError),
}

impl LookError {
    fn into_sqlite_error(self, location: &Location) -> SqliteError {
        match self {
            Self::Sqlite(error) => location.open_error(&error),
            Self::Refused(error) => error,
        }
    }
}

fn check(conn: &Connection, location: &Location) -> Result<(), LookError> {
    let identity = Identity::read(conn).map_err(LookError::Sqlite)?;
    identity.verdict(location).map(|_| ()).map_err(LookError::Refused)
}

fn is_half_written(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_READONLY_ROLLBACK)
}

/// SQLite silently opens a file that it cannot write as read-only.
pub(super) fn check_writable(conn: &Connection, location: &Location) -> Result<(), SqliteError> {
    match conn.is_readonly(rusqlite::MAIN_DB) {
        Ok(false) => Ok(()),
        Ok(true) => Err(location.refused("it is read-only; make the file and its directory writable")),
        Err(error) => Err(location.open_error(&error)),
    }
}
