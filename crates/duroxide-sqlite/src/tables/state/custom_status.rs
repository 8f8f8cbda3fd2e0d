//! The custom status of an instance, in a table of its own: it may be large and changes seldom.

use duroxide_provider::rules::Rows;

use crate::{
    columns::columns,
    db::{Db, unsigned},
};

columns!(custom_status as custom_status_columns: status, version);

const SELECT: &str = concat!("SELECT ", custom_status_columns!(), " FROM custom_status WHERE instance = ?1");

/// The custom status and its version; `None` if it was never set.
pub(crate) fn read(db: &Db, id: i64) -> Rows<Option<(Option<String>, u64)>> {
    db.first(SELECT, [id], |row| {
        Ok((row.get(custom_status::status)?, unsigned(row.get(custom_status::version)?)))
    })
}
