//! Instances in management reads: one by its id, or many by criteria.

use duroxide_core::Timestamp;
use duroxide_provider::{
    InstanceFilter, InstanceInfo, InstanceQuery,
    rules::identity_in_event,
    store::{SelectedInstance, StoreFailure, pending_info},
};
use tokio_postgres::Row;

use crate::{
    PostgresEngine,
    connection::{Query, parameters},
    database_error::DatabaseError,
    tables::bulk_query,
    value::{Columns, limit, micros},
};

/// The first event is read if only it has the name.
macro_rules! info {
    () => {
        "SELECT instance.number, instance.id, instance.execution_id, instance.name, instance.version,
            instance.status, instance.created_at, instance.updated_at, instance.parent,
            (SELECT output FROM {s}.execution WHERE execution.instance = instance.number
                AND execution.execution_id = instance.execution_id) AS output,
            CASE WHEN instance.name IS NULL THEN (SELECT data FROM {s}.history
                WHERE history.instance = instance.number AND history.execution_id = instance.execution_id
                ORDER BY event_id LIMIT 1) END AS first_event
        FROM {s}.instance "
    };
}
const BY_ID: &str = concat!(info!(), "WHERE instance.id = $1 AND instance.known");
const IDS: &str = "SELECT id FROM {s}.instance WHERE known AND ($1::text IS NULL OR status = $1)
    ORDER BY number DESC";
/// The name of an instance that was never named is in its history, where the query decides. Instances that have ended, or
/// not, are found by the index of ended ones.
const KNOWN: &str = concat!(
    info!(),
    "WHERE instance.known AND instance.number < $1
        AND ($2::text IS NULL OR instance.status = $2 AND
            CASE WHEN $2 IN ('Running', 'ContinuedAsNew') THEN instance.ended IS NULL ELSE instance.ended = $2 END)
        AND ($3::text IS NULL OR instance.name IS NULL OR instance.name = $3)
        AND ($4::text IS NULL OR instance.name IS NULL OR instance.version = $4)
        AND ($5::text IS NULL OR instance.parent = $5) AND NOT ($6 AND instance.parent IS NOT NULL)
        AND ($7::text IS NULL OR starts_with(instance.id, $7))
        AND instance.created_at >= $8 AND instance.created_at < $9
        AND instance.updated_at >= $10 AND instance.updated_at < $11
    ORDER BY instance.number DESC LIMIT $12"
);
const PENDING: &str =
    "SELECT instance.number, instance.id, instance.created_at, instance.updated_at, start.data
    FROM {s}.instance CROSS JOIN LATERAL (SELECT data FROM {s}.message
        WHERE message.instance = instance.number AND message.kind <= 1
        ORDER BY message.kind, message.due_at, message.number LIMIT 1) AS start
    WHERE NOT instance.known AND instance.ended IS NULL AND instance.number < $1
        AND ($2::text IS NULL OR starts_with(instance.id, $2))
        AND instance.created_at >= $3 AND instance.created_at < $4
        AND instance.updated_at >= $5 AND instance.updated_at < $6
    ORDER BY instance.number DESC LIMIT $7";

impl PostgresEngine {
    pub(super) fn read_ids(&mut self, status: Option<&str>) -> Result<Vec<String>, StoreFailure> {
        self.read_each(Query::of_whole_tables(IDS, parameters![status.map(str::to_owned)]), |row| {
            row.column("id")
        })
    }

    pub(super) fn read_info(&mut self, instance: &str) -> Result<Option<InstanceInfo>, StoreFailure> {
        let query = Query::new(BY_ID, parameters![instance.to_owned()]);
        Ok(self.read_first(query, read_known)?.map(|selected| selected.info))
    }

    /// Each page of rows is one statement, and thus one state. A row that changes between two of them can be missed or
    /// shown as it became, as between two pages of a user.
    pub(super) fn read_selection(
        &mut self,
        query: &InstanceQuery,
        below: Option<u64>,
        max: usize,
    ) -> Result<Vec<SelectedInstance>, StoreFailure> {
        let wants_pending = query.status.as_deref().is_none_or(|status| status == InstanceQuery::PENDING);
        let wants_known = query.status.as_deref() != Some(InstanceQuery::PENDING);
        let mut selected = Vec::new();
        if wants_known {
            selected = self.select(query, below, max, known_query, read_known)?;
        }
        if wants_pending {
            selected.extend(self.select(query, below, max, pending_query, read_pending)?);
            selected.sort_by_key(|instance| std::cmp::Reverse(instance.row));
            selected.truncate(max);
        }
        Ok(selected)
    }

    /// Reads until enough rows have passed the query, which has criteria that the statement lacks.
    fn select(
        &mut self,
        query: &InstanceQuery,
        mut below: Option<u64>,
        max: usize,
        ask: fn(&InstanceQuery, Option<u64>, usize) -> Query,
        read: fn(&Row) -> Result<SelectedInstance, DatabaseError>,
    ) -> Result<Vec<SelectedInstance>, StoreFailure> {
        let mut selected: Vec<SelectedInstance> = Vec::new();
        while selected.len() < max {
            let wanted = max - selected.len();
            let found = self.read_each(ask(query, below, wanted), read)?;
            let is_end = found.len() < wanted;
            below = found.last().map(|last| last.row);
            selected.extend(found.into_iter().filter(|instance| query.matches(&instance.info)));
            if is_end {
                break;
            }
        }
        Ok(selected)
    }

    pub(super) fn read_bulk_selection(
        &mut self,
        filter: &InstanceFilter,
        running_too: bool,
    ) -> Result<Vec<String>, StoreFailure> {
        self.read_each(bulk_query(filter, running_too), |row| row.column("id"))
    }
}

fn known_query(query: &InstanceQuery, below: Option<u64>, max: usize) -> Query {
    Query::of_whole_tables(
        KNOWN,
        parameters![
            before_row(below),
            query.status.clone(),
            query.orchestration_name.clone(),
            query.orchestration_version.clone(),
            query.parent.clone(),
            query.roots_only,
            query.id_prefix.clone(),
            from(query.created_from),
            before(query.created_before),
            from(query.updated_from),
            before(query.updated_before),
            limit(max),
        ],
    )
}

fn pending_query(query: &InstanceQuery, below: Option<u64>, max: usize) -> Query {
    Query::of_whole_tables(
        PENDING,
        parameters![
            before_row(below),
            query.id_prefix.clone(),
            from(query.created_from),
            before(query.created_before),
            from(query.updated_from),
            before(query.updated_before),
            limit(max),
        ],
    )
}

/// The first row that a page does not show, beyond all rows for the first page: an index is searched for a number, and not
/// for NULL.
fn before_row(below: Option<u64>) -> i64 {
    below.and_then(|row| i64::try_from(row).ok()).unwrap_or(i64::MAX)
}

/// The first time that a listing shows. All stored times are later than the one that stands for no bound here.
fn from(millis: Option<u64>) -> i64 {
    millis.map_or(0, |millis| micros(Timestamp::from_millis(millis)))
}

/// The first time that a listing does not show, beyond all times without a bound.
fn before(millis: Option<u64>) -> i64 {
    millis.map_or(i64::MAX, |millis| micros(Timestamp::from_millis(millis)))
}

fn read_known(row: &Row) -> Result<SelectedInstance, DatabaseError> {
    let name: Option<String> = row.column("name")?;
    let (name, version) = match name {
        Some(name) => (name, row.column::<Option<String>>("version")?),
        None => identity_in_event(row.column::<Option<String>>("first_event")?.as_deref()),
    };
    Ok(SelectedInstance {
        row: row.number("number")?,
        info: InstanceInfo {
            instance_id: row.column("id")?,
            orchestration_name: name,
            orchestration_version: version.unwrap_or_default(),
            current_execution_id: row.number("execution_id")?,
            status: row.column::<Option<String>>("status")?.unwrap_or_default(),
            output: row.column("output")?,
            created_at: row.time("created_at")?.as_millis(),
            updated_at: row.time("updated_at")?.as_millis(),
            parent_instance_id: row.column("parent")?,
        },
    })
}

fn read_pending(row: &Row) -> Result<SelectedInstance, DatabaseError> {
    let start: String = row.column("data")?;
    let (created_at, updated_at) = (row.time("created_at")?, row.time("updated_at")?);
    let info = pending_info(row.column("id")?, &start, created_at, updated_at);
    Ok(SelectedInstance { row: row.number("number")?, info })
}
