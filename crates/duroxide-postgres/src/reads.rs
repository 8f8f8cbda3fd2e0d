//! Reads. Each call sees one state. Mailboxes are invisible to all but the queue depths and the snapshot; an instance whose
//! start is queued is shown by the reads that mention it.

pub(crate) mod health;
mod history;
mod listing;
mod overview;
mod queued_work;
mod reader;
mod snapshot;
mod summary;

use duroxide_provider::store::StoreFailure;
use tokio_postgres::Row;

pub use self::health::{PostgresHealth, TableHealth};
use crate::{
    PostgresEngine,
    connection::{Frame, Query},
    database_error::DatabaseError,
};

impl PostgresEngine {
    /// Runs statements that read one state, in one round trip.
    fn read_all(&mut self, queries: &[Query]) -> Result<Vec<Vec<Row>>, StoreFailure> {
        self.ensure_open()?;
        // A single statement sees one state by itself.
        let frame = if queries.len() == 1 { Frame::Plain } else { Frame::Read };
        let answers = self.rules.tables_mut().connection().trip(queries, frame);
        answers.map_err(|error| {
            if frame == Frame::Read {
                self.end_failed_read();
            }
            error.into_failure()
        })
    }

    fn end_failed_read(&mut self) {
        if let Err(error) = self.rules.tables_mut().connection().script("ROLLBACK") {
            tracing::debug!(target: "duroxide::providers::postgres", ?error, "a rollback was not answered");
        }
    }

    /// Runs a statement that reads.
    fn read(&mut self, query: Query) -> Result<Vec<Row>, StoreFailure> {
        Ok(self.read_all(&[query])?.into_iter().flatten().collect())
    }

    /// Runs a statement that reads, and converts each row.
    fn read_each<T>(
        &mut self,
        query: Query,
        make: impl Fn(&Row) -> Result<T, DatabaseError>,
    ) -> Result<Vec<T>, StoreFailure> {
        each(&self.read(query)?, make)
    }

    /// Runs a statement that reads, and converts its first row.
    fn read_first<T>(
        &mut self,
        query: Query,
        make: impl Fn(&Row) -> Result<T, DatabaseError>,
    ) -> Result<Option<T>, StoreFailure> {
        self.read(query)?.first().map(make).transpose().map_err(DatabaseError::into_failure)
    }
}

fn each<T>(rows: &[Row], make: impl Fn(&Row) -> Result<T, DatabaseError>) -> Result<Vec<T>, StoreFailure> {
    rows.iter().map(make).collect::<Result<_, DatabaseError>>().map_err(DatabaseError::into_failure)
}
