//! Instances whose start is queued and that no turn has begun.
//!
//! They are found by the index of queued starts, so that they cost nothing where there are many instances and few starts.

use duroxide_provider::{
    InstanceQuery,
    store::{SelectedInstance, StoreFailure, pending_info},
};
use rusqlite::Row;

use super::index_choice::{before_time, below_row, end_of_prefix, from_time};
use crate::{
    db::{Db, lossy_text, number, time, unsigned},
    tables::payloads::whole_data,
};

/// Instances with a queued start. The index has them in the order of pages, backwards.
macro_rules! with_start {
    () => {
        "message AS start INDEXED BY message_start JOIN instance ON instance.id = start.instance
    WHERE start.kind <= 1 AND known = 0"
    };
}

const SELECT: &str = concat!(
    "SELECT instance.id, instance_id, created_at, updated_at, (SELECT ",
    whole_data!("message"),
    " FROM message WHERE message.instance = instance.id AND kind <= 1 ORDER BY kind, due_at, seq LIMIT 1) AS first_start
    FROM ",
    with_start!(),
    " AND start.instance < ?1 AND instance_id >= ?2 AND (?3 IS NULL OR instance_id < ?3)
        AND created_at >= ?4 AND created_at < ?5 AND updated_at >= ?6 AND updated_at < ?7
    GROUP BY start.instance ORDER BY start.instance DESC LIMIT ?8"
);
const COUNT: &str =
    concat!("SELECT count(*) FROM (SELECT 1 FROM ", with_start!(), " GROUP BY start.instance)");

/// At most `max` of the pending instances below a row that a query selects, newest first.
///
/// Only the start has name, version and parent; for these the query decides.
pub(super) fn select(
    db: &Db,
    query: &InstanceQuery,
    below: Option<u64>,
    max: usize,
) -> Result<Vec<SelectedInstance>, StoreFailure> {
    let mut selected = Vec::new();
    let mut below = below;
    while selected.len() < max {
        let wanted = max - selected.len();
        let found = rows(db, query, below, wanted)?;
        let exhausted = found.len() < wanted;
        below = found.last().map(|last| last.row);
        selected.extend(found.into_iter().filter(|instance| query.matches(&instance.info)));
        if exhausted {
            break;
        }
    }
    Ok(selected)
}

fn rows(
    db: &Db,
    query: &InstanceQuery,
    below: Option<u64>,
    max: usize,
) -> Result<Vec<SelectedInstance>, StoreFailure> {
    let prefix = query.id_prefix.as_deref().unwrap_or_default();
    let columns = (
        below_row(below),
        prefix,
        end_of_prefix(prefix),
        from_time(query.created_from),
        before_time(query.created_before),
        from_time(query.updated_from),
        before_time(query.updated_before),
        number(max as u64),
    );
    db.all(SELECT, columns, read)
}

fn read(row: &Row<'_>) -> rusqlite::Result<SelectedInstance> {
    let (created_at, updated_at) = (time(row.get("created_at")?), time(row.get("updated_at")?));
    let info = pending_info(
        lossy_text(row, "instance_id")?,
        &lossy_text(row, "first_start")?,
        created_at,
        updated_at,
    );
    Ok(SelectedInstance { row: unsigned(row.get("id")?), info })
}

/// How many instances are pending.
pub(crate) fn count(db: &Db) -> Result<u64, StoreFailure> {
    Ok(db.value(COUNT, [])?.map(unsigned).unwrap_or_default())
}
