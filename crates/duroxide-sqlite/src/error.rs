//! Errors, classified by SQLite's error code, never by its text (23.2).

use duroxide_provider::{
    ProviderError,
    store::{FailureClass, StoreFailure},
};
use rusqlite::{Error, ErrorCode};

/// Why the SQLite provider could not be opened or used.
pub type SqliteError = ProviderError;

/// A failure of SQLite itself.
pub(crate) fn sqlite_error(operation: impl Into<String>, error: &Error) -> SqliteError {
    let retryable = class_of(error) == FailureClass::Retryable;
    SqliteError { operation: operation.into(), message: error.to_string(), retryable }
}

/// A failure before the commit: nothing happened.
pub(crate) fn failure(error: &Error) -> StoreFailure {
    StoreFailure::new(class_of(error), error.to_string())
}

/// A failure of the commit itself. If the disk failed, the outcome of the commit is unknown.
pub(crate) fn commit_failure(error: &Error) -> StoreFailure {
    let class = match error.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure) => FailureClass::OutcomeUnknown,
        _ => class_of(error),
    };
    StoreFailure::new(class, error.to_string())
}

fn class_of(error: &Error) -> FailureClass {
    error.sqlite_error_code().map_or(FailureClass::Permanent, class_of_code)
}

/// Retryable errors are those that time or an operator can heal without changing the data; a retryable error never
/// fails a workflow.
#[allow(clippy::wildcard_enum_match_arm, reason = "SQLite may add codes; what is not known to pass does not")]
fn class_of_code(code: ErrorCode) -> FailureClass {
    match code {
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::DiskFull
        | ErrorCode::SystemIoFailure
        | ErrorCode::OutOfMemory
        | ErrorCode::OperationInterrupted
        | ErrorCode::OperationAborted
        | ErrorCode::SchemaChanged
        | ErrorCode::FileLockingProtocolFailed
        | ErrorCode::CannotOpen
        | ErrorCode::PermissionDenied
        | ErrorCode::ReadOnly => FailureClass::Retryable,
        _ => FailureClass::Permanent,
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, ffi};

    use super::*;

    fn error(code: i32) -> Error {
        Error::SqliteFailure(ffi::Error::new(code), None)
    }

    /// B5, 23.2: each SQLite error code maps to the right class.
    #[test]
    fn every_error_code_has_its_class() {
        use FailureClass::{Permanent, Retryable};
        for (code, class) in [
            (ffi::SQLITE_BUSY, Retryable),
            (ffi::SQLITE_BUSY_SNAPSHOT, Retryable),
            (ffi::SQLITE_BUSY_RECOVERY, Retryable),
            (ffi::SQLITE_LOCKED, Retryable),
            (ffi::SQLITE_LOCKED_SHAREDCACHE, Retryable),
            (ffi::SQLITE_FULL, Retryable),
            (ffi::SQLITE_IOERR, Retryable),
            (ffi::SQLITE_IOERR_FSYNC, Retryable),
            (ffi::SQLITE_IOERR_WRITE, Retryable),
            (ffi::SQLITE_NOMEM, Retryable),
            (ffi::SQLITE_INTERRUPT, Retryable),
            (ffi::SQLITE_PROTOCOL, Retryable),
            (ffi::SQLITE_SCHEMA, Retryable),
            (ffi::SQLITE_CANTOPEN, Retryable),
            (ffi::SQLITE_READONLY, Retryable),
            (ffi::SQLITE_CONSTRAINT, Permanent),
            (ffi::SQLITE_CONSTRAINT_PRIMARYKEY, Permanent),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, Permanent),
            (ffi::SQLITE_CORRUPT, Permanent),
            (ffi::SQLITE_NOTADB, Permanent),
            (ffi::SQLITE_MISMATCH, Permanent),
            (ffi::SQLITE_TOOBIG, Permanent),
            (ffi::SQLITE_RANGE, Permanent),
            (ffi::SQLITE_MISUSE, Permanent),
            (ffi::SQLITE_ERROR, Permanent),
        ] {
            assert_eq!(failure(&error(code)).class, class, "code {code}");
        }
        let encoding = Connection::open_in_memory()
            .unwrap()
            .query_row("SELECT CAST(x'ff' AS TEXT)", [], |row| row.get::<_, String>(0))
            .unwrap_err();
        assert_eq!(failure(&encoding).class, Permanent);
    }

    /// D8: only a commit whose disk failed has an unknown outcome.
    #[test]
    fn an_io_error_of_the_commit_leaves_the_outcome_unknown() {
        assert_eq!(commit_failure(&error(ffi::SQLITE_IOERR_FSYNC)).class, FailureClass::OutcomeUnknown);
        assert_eq!(commit_failure(&error(ffi::SQLITE_FULL)).class, FailureClass::Retryable);
        assert_eq!(commit_failure(&error(ffi::SQLITE_BUSY)).class, FailureClass::Retryable);
        assert_eq!(commit_failure(&error(ffi::SQLITE_CONSTRAINT)).class, FailureClass::Permanent);
    }
}
