//! The intake: rows that callers have written in transactions of their own.

use duroxide_provider::{
    rules::Rows,
    store::{INTAKE_BYTES_MAX, IntakeRow},
};

use rusqlite::Row;

use crate::{
    columns::columns,
    db::{Db, limit, lossy_text, lossy_text_or_null},
};

columns!(intake as intake_columns: number, kind, instance_id, name, version, data);

const HAS_ROWS: &str = "SELECT 1 FROM intake WHERE number > 0 LIMIT 1";
const OLDEST: &str = concat!("SELECT ", intake_columns!(), " FROM intake ORDER BY number LIMIT ?1");
const DELETE_UP_TO: &str = "DELETE FROM intake WHERE number <= ?1";

pub(crate) fn has_rows(db: &Db) -> Rows<bool> {
    Ok(db.first(HAS_ROWS, [], |_| Ok(()))?.is_some())
}

/// The oldest rows, up to [`INTAKE_BYTES_MAX`] bytes, and the number of the last of them, if there are any.
pub(crate) fn oldest(db: &Db, max: usize) -> Rows<(Option<i64>, Vec<IntakeRow>)> {
    let (mut last, mut bytes) = (None, 0_usize);
    let rows = db.all_while(OLDEST, [limit(max)], |row| {
        if bytes >= INTAKE_BYTES_MAX {
            return Ok(None);
        }
        last = Some(row.get(intake::number)?);
        let row = read(row)?;
        bytes = bytes.saturating_add(row.data.len());
        Ok(Some(row))
    })?;
    Ok((last, rows))
}

/// All rows, oldest first.
pub(crate) fn all(db: &Db) -> Rows<Vec<IntakeRow>> {
    db.all(OLDEST, [limit(usize::MAX)], read)
}

/// The texts may have been written by hand and may not be UTF-8.
fn read(row: &Row<'_>) -> rusqlite::Result<IntakeRow> {
    Ok(IntakeRow {
        kind: lossy_text(row, intake::kind)?,
        instance_id: lossy_text(row, intake::instance_id)?,
        name: lossy_text(row, intake::name)?,
        version: lossy_text_or_null(row, intake::version)?,
        data: lossy_text(row, intake::data)?,
    })
}

/// Deletes rows that were applied. No other process writes meanwhile.
pub(crate) fn delete_up_to(db: &Db, number: i64) -> Rows<()> {
    db.execute(DELETE_UP_TO, [number]).map(|_| ())
}
