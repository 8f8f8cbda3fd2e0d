//! Errors of a database, classified by whether a retry helps.

use duroxide_provider::store::{FailureClass, Fault, StoreFailure};
use tokio_postgres::error::SqlState;

use crate::connection::ConnectFault;

/// An error of a statement or a connection, with its class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabaseError {
    pub(crate) class: FailureClass,
    message: String,
    code: Option<SqlState>,
    /// What this is as an error of connecting.
    pub(crate) connect_fault: ConnectFault,
}

impl DatabaseError {
    fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), code: None, connect_fault: ConnectFault::Unreachable }
    }

    /// The database, or its answer, does not allow this.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(FailureClass::Permanent, message)
    }

    /// A role lacks a right.
    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Self { code: Some(SqlState::INSUFFICIENT_PRIVILEGE), ..Self::refused(message) }
    }

    /// The database does not answer now.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(FailureClass::Retryable, message)
    }

    /// The error of a statement that is not part of a commit.
    pub(crate) fn of(error: &tokio_postgres::Error) -> Self {
        let class = match error.code() {
            Some(code) => class_of(code),
            None if error.is_closed() || std::error::Error::source(error).is_some_and(is_io) => {
                FailureClass::Retryable
            }
            None => FailureClass::Permanent,
        };
        let (code, connect_fault) = (error.code().cloned(), ConnectFault::of(error));
        Self { class, message: describe(error), code, connect_fault }
    }

    /// Why no connection could be made with this configuration.
    pub(crate) fn of_connecting(error: &tokio_postgres::Error, config: &tokio_postgres::Config) -> Self {
        Self { connect_fault: ConnectFault::of_connecting(error, config), ..Self::of(error) }
    }

    /// This error, as one of the session connection.
    pub(crate) fn of_session_connection(self) -> Self {
        Self { message: format!("the session connection: {}", self.message), ..self }
    }

    /// No connection could be made for this reason, which no server has reported.
    pub(crate) fn of_connect_fault(connect_fault: ConnectFault, message: impl Into<String>) -> Self {
        Self { connect_fault, ..Self::unavailable(message) }
    }

    /// The error of a round trip that ends with a commit. An error that the database reports for a statement in front of
    /// the commit makes the commit a rollback. Everything else leaves the outcome open.
    pub(crate) fn of_commit(error: &tokio_postgres::Error, is_of_commit: bool) -> Self {
        let found = Self::of(error);
        let outcome_is_open = match error.code() {
            Some(_) => is_of_commit && found.class == FailureClass::Retryable,
            None => true,
        };
        if outcome_is_open { found.with_open_outcome() } else { found }
    }

    /// This error, with an unknown outcome of the commit.
    pub(crate) fn with_open_outcome(self) -> Self {
        Self { class: FailureClass::OutcomeUnknown, ..self }
    }

    /// Whether the database reported this code.
    pub(crate) fn has_code(&self, code: &SqlState) -> bool {
        self.code.as_ref() == Some(code)
    }

    /// Whether the connection ended, or the server did not answer.
    pub(crate) fn is_lost_connection(&self) -> bool {
        self.code.is_none() && matches!(self.class, FailureClass::Retryable | FailureClass::OutcomeUnknown)
    }

    /// The fault behind this error of a transaction, which concerns no part of the batch.
    pub(crate) fn into_fault(self) -> Fault {
        Fault::of_transaction(self.into_failure())
    }

    /// This error as the rules pass it on.
    pub(crate) fn into_failure(self) -> StoreFailure {
        StoreFailure::new(self.class, self.message)
    }
}

fn class_of(code: &SqlState) -> FailureClass {
    // 24.4: a row that the working set did not find was inserted by another node in the meantime, or a row of the row cache was
    // changed (reported as a division by zero, see `record.rs`). A retry reads the row again.
    let races = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::UNIQUE_VIOLATION,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::DIVISION_BY_ZERO,
    ];
    if races.contains(code) {
        return FailureClass::LostRace;
    }
    // Connection exceptions, insufficient resources, operator intervention, system errors, a standby that only reads, and a
    // transaction that the server ended because we were silent for too long.
    let is_unavailable = ["08", "53", "57", "58"].iter().any(|class| code.code().starts_with(class))
        || [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT]
            .contains(code);
    if is_unavailable { FailureClass::Retryable } else { FailureClass::Permanent }
}

fn is_io(source: &(dyn std::error::Error + 'static)) -> bool {
    source.is::<std::io::Error>()
}

fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} ({}){}", db.message(), db.code().code(), advice(db.code())),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

/// The advice for an error whose text does not show the cause.
fn advice(code: &SqlState) -> &'static str {
    let of_pooler = [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DUPLICATE_PSTATEMENT];
    if of_pooler.contains(code) {
        "; behind a transaction pooler open the store with PostgresOptions::behind_pooler"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_code_decides_the_class() {
        let races = ["40001", "40P01", "23505", "55P03"];
        let unavailable = ["08006", "53100", "53300", "57P01", "57P03", "58030", "25006", "25P03"];
        let refused = ["22021", "23514", "54000", "42P01"];
        for (codes, class) in [
            (&races[..], FailureClass::LostRace),
            (&unavailable[..], FailureClass::Retryable),
            (&refused[..], FailureClass::Permanent),
        ] {
            for code in codes {
                assert_eq!(class_of(&SqlState::from_code(code)), class, "{code}");
            }
        }
    }
}
