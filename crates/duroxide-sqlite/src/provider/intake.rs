//! Starts, events and queue messages in the caller's own transaction.

use duroxide_provider::store::{IntakeRow, InvalidIntake};
use rusqlite::Connection;

use crate::columns::insert;

/// Starts instances and sends to them in a transaction of the caller, on the store's own file: the caller's rows and these
/// calls commit together, or neither does.
///
/// A call inserts a row into the table `intake`. Nodes take committed rows over, in the order in which they were inserted,
/// within milliseconds. Until then clients do not see an instance that was started like this. A start of an id that exists
/// does nothing.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("orders.db");
/// use duroxide_sqlite::{Intake, SqliteProvider};
///
/// let store = SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await?;
/// let mut connection = rusqlite::Connection::open(&path)?;
/// connection.execute_batch("CREATE TABLE orders (id TEXT PRIMARY KEY, item TEXT NOT NULL)")?;
///
/// let transaction = connection.transaction()?;
/// transaction.execute("INSERT INTO orders VALUES ('order-1', 'teapot')", [])?;
/// Intake::new(&transaction).start_orchestration("order-1", "Order", "teapot")?;
/// transaction.commit()?;
/// # drop(store);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Intake<'c> {
    connection: &'c Connection,
}

/// Why a call in the caller's transaction failed. Nothing was written by it, and the transaction can go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IntakeError {
    /// No store takes this over.
    #[error(transparent)]
    Invalid(#[from] InvalidIntake),
    /// SQLite refused the row.
    #[error("cannot write into the intake: {0} (open the store once, so that its file has the table)")]
    Database(#[from] rusqlite::Error),
}

impl<'c> Intake<'c> {
    /// Writes through this connection, or transaction, on the file of the store.
    pub fn new(connection: &'c Connection) -> Self {
        Self { connection }
    }

    /// Starts an instance, unless one with this id exists. The version policy of the processing node chooses the handler
    /// version.
    ///
    /// # Errors
    /// See [`IntakeError`].
    pub fn start_orchestration(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), IntakeError> {
        self.insert(&IntakeRow::start(instance.into(), orchestration.into(), None, input.into())?)
    }

    /// Starts an instance with exactly this handler version, unless one with this id exists.
    ///
    /// # Errors
    /// See [`IntakeError`].
    pub fn start_orchestration_versioned(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        version: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), IntakeError> {
        let version = Some(version.into());
        self.insert(&IntakeRow::start(instance.into(), orchestration.into(), version, input.into())?)
    }

    /// Raises an external event.
    ///
    /// # Errors
    /// See [`IntakeError`].
    pub fn raise_event(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), IntakeError> {
        self.insert(&IntakeRow::raise(instance.into(), event_name.into(), data.into())?)
    }

    /// Adds a message to a queue of an instance.
    ///
    /// # Errors
    /// See [`IntakeError`].
    pub fn enqueue_event(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), IntakeError> {
        self.insert(&IntakeRow::enqueue(instance.into(), queue.into(), data.into())?)
    }

    fn insert(&self, row: &IntakeRow) -> Result<(), IntakeError> {
        insert!(
            self.connection,
            intake {
                kind: &row.kind,
                instance_id: &row.instance_id,
                name: &row.name,
                version: &row.version,
                data: &row.data,
            }
        )?;
        Ok(())
    }
}
