//! Which instances a bulk delete or a bulk prune visits (19.2, 19.3).

use std::collections::BTreeSet;

use duroxide_core::Timestamp;
use duroxide_provider::{
    InstanceFilter,
    store::{StoreFailure, bounds::BULK_LIMIT_DEFAULT},
};
use rusqlite::Row;

use crate::{
    db::{Db, micros, unsigned},
    tables::instances::is_end_of_instance,
};

/// Ended roots, or with `?1` all known instances.
macro_rules! selected {
    () => {
        concat!(
            "SELECT instance.id, instance.instance_id FROM instance
    LEFT JOIN execution
        ON execution.instance = instance.id AND execution.execution_id = instance.execution_id
    WHERE known = 1
      AND (?1 OR (instance.parent IS NULL AND ",
            is_end_of_instance!("execution.status"),
            "))
      AND (?2 IS NULL OR (",
            is_end_of_instance!("execution.status"),
            " AND execution.completed_at < ?2))"
        )
    };
}
const ALL: &str = concat!(selected!(), " ORDER BY instance.id LIMIT ?3");
const NAMED: &str = concat!(selected!(), " AND instance.instance_id = ?3");

/// An instance by its row and its id.
pub(crate) type Selected = (u64, String);

/// Known instances that match the filter, in the order of their rows. The limit comes last.
pub(crate) fn select(
    db: &Db,
    filter: &InstanceFilter,
    running_too: bool,
) -> Result<Vec<Selected>, StoreFailure> {
    let before = filter.completed_before.map(|millis| micros(Timestamp::from_millis(millis)));
    let limit = filter.limit.unwrap_or(BULK_LIMIT_DEFAULT);
    let read = |row: &Row<'_>| Ok((unsigned(row.get("id")?), row.get("instance_id")?));
    let Some(ids) = &filter.instance_ids else {
        return db.all(ALL, (running_too, before, limit), read);
    };
    let mut selected: Vec<Selected> = Vec::new();
    for id in ids.iter().collect::<BTreeSet<_>>() {
        selected.extend(db.first(NAMED, (running_too, before, id), read)?);
    }
    selected.sort_unstable();
    selected.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(selected)
}
