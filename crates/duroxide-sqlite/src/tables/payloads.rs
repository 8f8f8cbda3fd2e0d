//! Large texts of queued messages and activities, kept apart from their rows.
//!
//! SQLite writes a whole row anew with each change of it, and a claim, a renewal and an abandon change the rows they
//! concern. Triggers delete a payload with its row, so no delete has to think of it.

use duroxide_provider::rules::Rows;

use crate::db::{Db, number};

/// From this many bytes on a text is kept apart: below, a second row costs more than writing one twice.
const APART_BYTES_MIN: usize = 2 << 10;

const INSERT: &str = "INSERT INTO payload (id, data) VALUES (?1, ?2)";

/// The text of a row in a statement, wherever it is kept. The argument is the number of the row.
macro_rules! whole_data {
    ($number:literal) => {
        concat!(
            "CASE data WHEN '' THEN (SELECT payload.data FROM payload WHERE payload.id = ",
            $number,
            ") ELSE data END"
        )
    };
}
pub(crate) use whole_data;

/// What the row itself holds of a text: all of it, or nothing.
pub(super) fn kept_in_row(data: &str) -> &str {
    if is_apart(data) { "" } else { data }
}

fn is_apart(data: &str) -> bool {
    data.len() >= APART_BYTES_MIN
}

/// Keeps a text whose row, just inserted, does not hold it.
pub(super) fn insert(db: &Db, id: u64, data: &str) -> Rows<()> {
    if is_apart(data) {
        db.execute(INSERT, (number(id), data))?;
    }
    Ok(())
}
