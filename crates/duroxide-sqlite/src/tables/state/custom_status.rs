//! The custom status of an instance, in a table of its own: it may be large and changes seldom.

use duroxide_provider::rules::Rows;

use crate::db::{Db, number, unsigned};

const UPSERT: &str = "INSERT INTO custom_status (instance, status, version) VALUES (?1, ?2, ?3)
    ON CONFLICT (instance) DO UPDATE SET status = ?2, version = ?3";
const SELECT: &str = "SELECT status, version FROM custom_status WHERE instance = ?1";
const VERSION: &str = "SELECT version FROM custom_status WHERE instance = ?1";

pub(super) fn set(db: &Db, instance: u64, status: Option<&str>, version: u64) -> Rows<()> {
    db.execute(UPSERT, (number(instance), status, number(version))).map(|_| ())
}

pub(super) fn version(db: &Db, instance: u64) -> Rows<u64> {
    Ok(db.first(VERSION, [number(instance)], |row| row.get(0))?.map(unsigned).unwrap_or_default())
}

/// The custom status and its version; `None` if it was never set.
pub(crate) fn read(db: &Db, id: i64) -> Rows<Option<(Option<String>, u64)>> {
    db.first(SELECT, [id], |row| Ok((row.get(0)?, unsigned(row.get(1)?))))
}
