//! Instances in management reads: one by its id, or many by criteria.

mod criteria;
mod index_choice;
mod pending;

use duroxide_provider::{
    InstanceInfo, InstanceQuery,
    store::{SelectedInstance, StoreFailure},
};
use rusqlite::Row;

use crate::{
    db::{Db, ONLY, lossy_text, lossy_text_or_null, time, unsigned},
    reads,
    tables::executions::{OUTPUT, output},
};
use criteria::Criteria;
pub(super) use index_choice::stored_time;
pub(crate) use pending::count as count_pending;

/// The columns that [`Found::read`] reads.
macro_rules! info_columns {
    () => {
        "id, instance_id, execution_id, name, version, status, created_at, updated_at, parent,
        (SELECT output FROM execution
            WHERE execution.instance = instance.id AND execution.execution_id = instance.execution_id) AS output,
        (SELECT payload.data FROM execution JOIN history ON history.instance = execution.instance
            AND history.execution_id = execution.execution_id AND history.event_id = execution.output_event
            JOIN payload ON payload.id = history.payload
            WHERE execution.instance = instance.id AND execution.execution_id = instance.execution_id) AS event_output"
    };
}

const COLUMNS: &str = info_columns!();
const BY_ID: &str =
    concat!("SELECT ", info_columns!(), " FROM instance WHERE instance_id = ?1 AND known = 1");

/// The ids of all instances, or of those with a status, newest first.
pub(crate) fn ids(db: &Db, status: Option<&str>) -> Result<Vec<String>, StoreFailure> {
    let mut query = InstanceQuery::default();
    query.status = status.map(str::to_owned);
    Criteria::new(db, &query)?.rows(db, "instance_id", |row| lossy_text(row, ONLY))
}

/// Describes one instance.
pub(crate) fn info(db: &Db, instance: &str) -> Result<Option<InstanceInfo>, StoreFailure> {
    let found = db.first(BY_ID, [instance], Found::read)?;
    found.map(|found| found.named(db)).transpose().map(|info| info.map(|selected| selected.info))
}

/// At most `max` of the known and pending instances below a row that a query selects, newest first.
pub(crate) fn select(
    db: &Db,
    query: &InstanceQuery,
    below: Option<u64>,
    max: usize,
) -> Result<Vec<SelectedInstance>, StoreFailure> {
    let wants_pending = query.status.as_deref().is_none_or(|status| status == InstanceQuery::PENDING);
    let wants_known = query.status.as_deref() != Some(InstanceQuery::PENDING);
    let mut selected = if wants_known { select_known(db, query, below, max)? } else { Vec::new() };
    if wants_pending {
        selected.extend(pending::select(db, query, below, max)?);
        selected.sort_by_key(|instance| std::cmp::Reverse(instance.row));
        selected.truncate(max);
    }
    Ok(selected)
}

/// The known instances of a page. The statement cannot decide about instances whose name is only in their history; for
/// these the query decides.
fn select_known(
    db: &Db,
    query: &InstanceQuery,
    below: Option<u64>,
    max: usize,
) -> Result<Vec<SelectedInstance>, StoreFailure> {
    let mut selected = Vec::new();
    let mut below = below;
    while selected.len() < max {
        let wanted = max - selected.len();
        let found = Criteria::new(db, query)?.below(below).at_most(wanted).rows(db, COLUMNS, Found::read)?;
        let exhausted = found.len() < wanted;
        below = found.last().map(|last| unsigned(last.id));
        for found in found {
            let instance = found.named(db)?;
            if query.matches(&instance.info) {
                selected.push(instance);
            }
        }
        if exhausted {
            break;
        }
    }
    Ok(selected)
}

/// A row of [`COLUMNS`].
struct Found {
    id: i64,
    is_named: bool,
    info: InstanceInfo,
}

impl Found {
    /// One damaged text must not hide a whole page.
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let name = lossy_text_or_null(row, "name")?;
        Ok(Self {
            id: row.get("id")?,
            is_named: name.is_some(),
            info: InstanceInfo {
                instance_id: lossy_text(row, "instance_id")?,
                orchestration_name: name.unwrap_or_default(),
                orchestration_version: lossy_text_or_null(row, "version")?.unwrap_or_default(),
                current_execution_id: unsigned(row.get("execution_id")?),
                status: lossy_text_or_null(row, "status")?.unwrap_or_default(),
                output: output(row, OUTPUT)?,
                created_at: time(row.get("created_at")?).as_millis(),
                updated_at: time(row.get("updated_at")?).as_millis(),
                parent_instance_id: lossy_text_or_null(row, "parent")?,
            },
        })
    }

    /// With name and version; those of an instance that was never named are in its first event.
    fn named(self, db: &Db) -> Result<SelectedInstance, StoreFailure> {
        let Self { id, is_named, mut info } = self;
        if !is_named {
            let (name, version) = reads::identity_in_history(db, id, info.current_execution_id)?;
            info.orchestration_name = name;
            info.orchestration_version = version.unwrap_or_default();
        }
        Ok(SelectedInstance { row: unsigned(id), info })
    }
}
