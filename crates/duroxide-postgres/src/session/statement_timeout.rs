//! The time limit of the session connection's statements.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Error;

use crate::database_error::DatabaseError;

/// A statement that takes longer counts as a lost connection.
const STATEMENT_WITHIN: Duration = Duration::from_secs(10);

pub(super) async fn within<T>(statement: impl Future<Output = Result<T, Error>>) -> Result<T, DatabaseError> {
    match timeout(STATEMENT_WITHIN, statement).await {
        Ok(answer) => answer.map_err(|error| DatabaseError::of(&error)),
        Err(_) => Err(DatabaseError::unavailable("the server does not answer")),
    }
}
