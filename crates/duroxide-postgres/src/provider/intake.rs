//! Starts, events and queue messages in the caller's own transaction.

use duroxide_provider::store::{IntakeRow, InvalidIntake};
use tokio_postgres::GenericClient;

use crate::SchemaName;

/// The notification after a write into the intake.
pub(crate) const INTAKE_NOTIFICATION: &str = "intake";

/// Starts instances and sends to them in a transaction of the caller, in the store's own database: the caller's rows and
/// these calls commit together, or neither does.
///
/// A call inserts a row into the table `intake` and notifies the nodes when the transaction commits. They apply committed
/// rows within milliseconds, those of one transaction or of one caller's transactions in the order in which they were
/// inserted. Until then clients do not see an instance that was started like this. A start of an id that exists does
/// nothing.
///
/// ```no_run
/// use duroxide_postgres::{Intake, SchemaName};
///
/// async fn place_order(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
///     let transaction = client.transaction().await?;
///     transaction.execute("INSERT INTO orders VALUES ('order-1', 'teapot')", &[]).await?;
///     let intake = Intake::new(&SchemaName::default());
///     intake.start_orchestration(&transaction, "order-1", "Order", "teapot").await?;
///     transaction.commit().await?;
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Intake {
    insert: String,
    channel: String,
}

/// Why a call in the caller's transaction failed. Nothing was written by it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IntakeError {
    /// The row is invalid, and was not written. The transaction can go on.
    #[error(transparent)]
    Invalid(#[from] InvalidIntake),
    /// PostgreSQL refused the row, and the transaction has failed.
    #[error(
        "cannot write into the intake: {0} (open the store once, so that its schema has the table, and grant the role \
         usage of the schema and insert on the table)"
    )]
    Database(#[from] tokio_postgres::Error),
}

impl Intake {
    /// The intake of the store in this schema.
    pub fn new(schema: &SchemaName) -> Self {
        let insert = format!(
            "WITH written AS (INSERT INTO {schema}.intake (kind, instance_id, name, version, data)
                VALUES ($1, $2, $3, $4, $5))
            SELECT pg_notify($6, $7)"
        );
        Self { insert, channel: schema.to_string() }
    }

    /// Starts an instance, unless one with this id exists. The version policy of the processing node chooses the handler
    /// version.
    ///
    /// # Errors
    /// See [`IntakeError`].
    pub async fn start_orchestration(
        &self,
        transaction: &impl GenericClient,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), IntakeError> {
        let row = IntakeRow::start(instance.into(), orchestration.into(), None, input.into())?;
        self.write(transaction, row).await
    }

    /// Starts an instance with exactly this handler version, unless one with this id exists.
    ///
    /// # Errors
    /// See [`IntakeError`].
    pub async fn start_orchestration_versioned(
        &self,
        transaction: &impl GenericClient,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        version: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), IntakeError> {
        let version = Some(version.into());
        let row = IntakeRow::start(instance.into(), orchestration.into(), version, input.into())?;
        self.write(transaction, row).await
    }

    /// Raises an external event.
    ///
    /// # Errors
    /// See [`IntakeError`].
    pub async fn raise_event(
        &self,
        transaction: &impl GenericClient,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), IntakeError> {
        let row = IntakeRow::raise(instance.into(), event_name.into(), data.into())?;
        self.write(transaction, row).await
    }

    /// Adds a message to a queue of an instance.
    ///
    /// # Errors
    /// See [`IntakeError`].
    pub async fn enqueue_event(
        &self,
        transaction: &impl GenericClient,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), IntakeError> {
        let row = IntakeRow::enqueue(instance.into(), queue.into(), data.into())?;
        self.write(transaction, row).await
    }

    async fn write(&self, transaction: &impl GenericClient, row: IntakeRow) -> Result<(), IntakeError> {
        let IntakeRow { kind, instance_id, name, version, data } = &row;
        let notification = (&self.channel, INTAKE_NOTIFICATION);
        transaction
            .execute(&self.insert, &[kind, instance_id, name, version, data, notification.0, &notification.1])
            .await?;
        Ok(())
    }
}
