//! Table sizes, dead rows and queue ages for operators.

use std::time::Duration;

use duroxide_core::Timestamp;
use duroxide_provider::{ProviderError, store::recorded_at_ms};
use tokio::time::timeout;
use tokio_postgres::{Row, types::Type};

use crate::{
    PostgresOptions, SchemaName,
    connection::connect,
    database_error::DatabaseError,
    record::rules_in_sql::waits_since,
    value::{Columns, unsigned},
};

/// How a store does, by its tables and queues. See [`PostgresProvider::health`](crate::PostgresProvider::health).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostgresHealth {
    /// All tables of the schema, the largest first.
    pub tables: Vec<TableHealth>,
    /// How long the oldest message of the instance waits that would be claimed next, a timer since it was due; `None` if no
    /// instance is ready.
    pub oldest_ready_instance: Option<Duration>,
    /// How long ago the activity was scheduled that would be claimed next, earlier attempts included; `None` if no activity is
    /// ready.
    pub oldest_ready_activity: Option<Duration>,
    /// By how much the earliest timer, lease or delay is overdue; `None` if none is.
    pub overdue: Option<Duration>,
    /// How many rows wait in the intake for a process that takes them over. At most 100,000 are counted.
    pub intake_rows: u64,
    /// How long ago the oldest of these rows was inserted, its caller's transaction included; `None` if no row waits.
    pub oldest_intake: Option<Duration>,
    /// The age of the oldest transaction on the server that keeps dead rows from being removed, as far as the role may see
    /// it. More than some seconds, and the tables grow.
    pub oldest_transaction: Option<Duration>,
}

/// Size and bloat of a table, as PostgreSQL's statistics have them: a moment old, and estimates.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableHealth {
    /// The table's name, without the schema.
    pub name: String,
    /// Live rows.
    pub live_rows: u64,
    /// Rows that were deleted or replaced and that no vacuum has removed.
    pub dead_rows: u64,
    /// Bytes of the table, with values that are stored out of line.
    pub table_bytes: u64,
    /// Bytes of its indexes.
    pub index_bytes: u64,
    /// Updates so far.
    pub updates: u64,
    /// Updates that wrote no index (heap-only tuples).
    pub hot_updates: u64,
    /// How long ago the table was vacuumed last; `None` if it never was.
    pub vacuumed: Option<Duration>,
}

impl TableHealth {
    /// Dead rows as a share of all.
    pub fn dead_share(&self) -> f64 {
        self.dead_rows as f64 / (self.live_rows + self.dead_rows).max(1) as f64
    }
}

const TABLES: &str = "SELECT relname::text AS name, n_live_tup AS live, n_dead_tup AS dead,
        pg_catalog.pg_table_size(relid) AS table_bytes, pg_catalog.pg_indexes_size(relid) AS index_bytes,
        n_tup_upd AS updates, n_tup_hot_upd AS hot_updates,
        (extract(epoch FROM now() - greatest(last_vacuum, last_autovacuum)) * 1000000)::bigint AS vacuumed
    FROM pg_catalog.pg_stat_user_tables WHERE schemaname = $1
    ORDER BY pg_catalog.pg_total_relation_size(relid) DESC, relname";

/// Rows of the intake that are counted. Counting reads them.
const INTAKE_COUNTED_MAX: u32 = 100_000;

/// Each age is found through an index, and the count has a limit, so the query is cheap for any number of rows. The events of the first
/// activities have the times at which they were scheduled.
fn ages(schema: &SchemaName) -> String {
    let waits_since = waits_since!();
    format!(
        "WITH clock AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now),
        first_instance AS (SELECT ready.instance FROM {schema}.route CROSS JOIN LATERAL (
            SELECT ready_instance.instance FROM {schema}.ready_instance WHERE ready_instance.route = route.id
            ORDER BY ready_instance.place LIMIT 1) AS ready),
        first_activity AS (SELECT ready.* FROM {schema}.lane CROSS JOIN LATERAL (
            SELECT activity.instance, activity.execution_id, activity.activity_id FROM {schema}.activity WHERE activity.lane = lane.id
                AND activity.wait_until IS NULL AND activity.session_id IS NULL
            ORDER BY activity.number LIMIT 1) AS ready)
        SELECT clock.now, clock.now - (SELECT min({waits_since}) FROM first_instance
                JOIN {schema}.message ON message.instance = first_instance.instance) AS ready_instance,
            ARRAY(SELECT history.data FROM first_activity JOIN {schema}.history
                ON history.instance = first_activity.instance AND history.execution_id = first_activity.execution_id
                    AND history.event_id = first_activity.activity_id) AS scheduled,
            clock.now - least(
                (SELECT wait_until FROM {schema}.instance
                    WHERE look_at <= clock.now AND wait_until <= clock.now ORDER BY look_at LIMIT 1),
                (SELECT wait_until FROM {schema}.activity WHERE wait_until IS NOT NULL ORDER BY wait_until LIMIT 1)
            ) AS overdue,
            (SELECT count(*) FROM (SELECT number FROM {schema}.intake ORDER BY number LIMIT {INTAKE_COUNTED_MAX}) AS waiting)
                AS intake_rows,
            clock.now - (SELECT inserted_at FROM {schema}.intake ORDER BY number LIMIT 1) AS oldest_intake,
            (SELECT (extract(epoch FROM max(clock_timestamp() - xact_start)) * 1000000)::bigint
                FROM pg_catalog.pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()) AS oldest
        FROM clock"
    )
}

/// Asks on a connection of its own, which ends with the answer.
pub(crate) async fn read(options: &PostgresOptions) -> Result<PostgresHealth, ProviderError> {
    let failed = |message: String| ProviderError::retryable("health", message);
    let limit = options.answer_timeout;
    let silent = |_| failed(format!("no answer within {limit:?}"));
    timeout(limit, ask(options)).await.map_err(silent)?.map_err(|error| failed(error.into_failure().message))
}

async fn ask(options: &PostgresOptions) -> Result<PostgresHealth, DatabaseError> {
    let client = connect(options, &options.config, None).await?;
    let failed = |error: tokio_postgres::Error| DatabaseError::of(&error);
    let schema = options.schema.as_str();
    // In one exchange each: a pooler may send the next one to another connection, which does not know a prepared statement.
    let tables = client.query_typed(TABLES, &[(&schema, Type::TEXT)]).await.map_err(failed)?;
    let ages = client.query_typed(&ages(&options.schema), &[]).await.map_err(failed)?;
    let row = ages.first().ok_or_else(|| DatabaseError::refused("no answer to a question"))?;
    Ok(PostgresHealth {
        tables: tables.iter().map(table).collect::<Result<_, DatabaseError>>()?,
        oldest_ready_instance: age(row, "ready_instance")?,
        oldest_ready_activity: since_scheduled(row)?,
        // Items that are due later are not overdue.
        overdue: row
            .column::<Option<i64>>("overdue")?
            .and_then(|micros| u64::try_from(micros).ok())
            .map(Duration::from_micros),
        intake_rows: row.number("intake_rows")?,
        oldest_intake: age(row, "oldest_intake")?,
        oldest_transaction: age(row, "oldest")?,
    })
}

fn table(row: &Row) -> Result<TableHealth, DatabaseError> {
    let count = |name| row.column(name).map(unsigned);
    Ok(TableHealth {
        name: row.column("name")?,
        live_rows: count("live")?,
        dead_rows: count("dead")?,
        table_bytes: count("table_bytes")?,
        index_bytes: count("index_bytes")?,
        updates: count("updates")?,
        hot_updates: count("hot_updates")?,
        vacuumed: age(row, "vacuumed")?,
    })
}

/// How long ago the earliest of the first activities was scheduled.
fn since_scheduled(row: &Row) -> Result<Option<Duration>, DatabaseError> {
    let (now, events) = (row.time("now")?, row.column::<Vec<String>>("scheduled")?);
    let earliest = events.iter().filter_map(|event| recorded_at_ms(event)).min();
    Ok(earliest.map(|at| now.saturating_since(Timestamp::from_millis(at))))
}

/// An age; a clock that was set back makes none negative.
fn age(row: &Row, name: &str) -> Result<Option<Duration>, DatabaseError> {
    let micros: Option<i64> = row.column(name)?;
    Ok(micros.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or_default())))
}
