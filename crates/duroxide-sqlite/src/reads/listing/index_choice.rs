//! [`IndexChoice`]: the index by which a listing finds its instances.

use duroxide_core::Timestamp;
use duroxide_provider::{InstanceQuery, store::StoreFailure};

use crate::db::{Db, micros};

/// An index in another order than that of pages is used for at most this many instances, because they have to be sorted.
const NARROW_MAX: i64 = 1_000;
const BEYOND_NARROW_PREFIX: &str = "SELECT 1 FROM instance WHERE instance_id >= ?1 AND instance_id < ?2
    LIMIT 1 OFFSET ?3";
const BEYOND_NARROW_TIME: &str = "SELECT 1 FROM instance
    WHERE known = 1 AND created_at >= ?1 AND created_at < ?2 LIMIT 1 OFFSET ?3";
const BEYOND_NARROW_STATUS: &str = "SELECT 1 FROM instance WHERE known = 1 AND status = ?1 LIMIT 1 OFFSET ?2";

/// The index by which a query finds its instances. The other criteria of the query are compared row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexChoice {
    /// The table. Like the three indexes that follow, it has the newest instances at its end, and is read backwards.
    Table,
    Status,
    Name,
    Parent,
    /// The ids with the prefix of the query. The instances are then sorted.
    Prefix,
    /// The times of creation in the range of the query. The instances are then sorted.
    Created,
}

impl IndexChoice {
    pub(super) fn to(db: &Db, query: &InstanceQuery) -> Result<Self, StoreFailure> {
        if has_narrow_prefix(db, query)? {
            return Ok(Self::Prefix);
        }
        if query.parent.is_some() {
            return Ok(Self::Parent);
        }
        if is_of_narrow_time(db, query)? {
            return Ok(Self::Created);
        }
        Ok(match (&query.status, &query.orchestration_name) {
            (None, None) => Self::Table,
            (None, Some(_)) => Self::Name,
            (Some(_), None) => Self::Status,
            // Few fail and few are running; nearly all have completed.
            (Some(status), Some(_)) => {
                let broad = db.exists(BEYOND_NARROW_STATUS, (status, NARROW_MAX))?;
                if broad { Self::Name } else { Self::Status }
            }
        })
    }

    /// The table with its index, for FROM. SQLite has no statistics by which it could choose.
    pub(super) fn source(self) -> &'static str {
        match self {
            Self::Table => "instance NOT INDEXED",
            Self::Status => "instance INDEXED BY instance_status",
            Self::Name => "instance INDEXED BY instance_name",
            Self::Parent => "instance INDEXED BY instance_parent",
            Self::Prefix => "instance INDEXED BY instance_id_once",
            Self::Created => "instance INDEXED BY instance_created",
        }
    }
}

fn has_narrow_prefix(db: &Db, query: &InstanceQuery) -> Result<bool, StoreFailure> {
    let Some(prefix) = query.id_prefix.as_deref().filter(|prefix| !prefix.is_empty()) else {
        return Ok(false);
    };
    match end_of_prefix(prefix) {
        Some(end) => Ok(!db.exists(BEYOND_NARROW_PREFIX, (prefix, end, NARROW_MAX))?),
        None => Ok(false),
    }
}

fn is_of_narrow_time(db: &Db, query: &InstanceQuery) -> Result<bool, StoreFailure> {
    if query.created_from.is_none() && query.created_before.is_none() {
        return Ok(false);
    }
    let (from, before) = (from_time(query.created_from), before_time(query.created_before));
    Ok(!db.exists(BEYOND_NARROW_TIME, (from, before, NARROW_MAX))?)
}

/// The first stored time that a listing shows. All times are later than the one that stands for no bound here.
pub(super) fn from_time(millis: Option<u64>) -> i64 {
    millis.map_or(0, stored_time)
}

/// The first stored time that a listing does not show, beyond all times without a bound: SQLite seeks a time in an index, but
/// not a NULL.
pub(super) fn before_time(millis: Option<u64>) -> i64 {
    millis.map_or(i64::MAX, stored_time)
}

/// The number of the first row that a page does not show, beyond all rows for the first page.
pub(super) fn below_row(row: Option<u64>) -> i64 {
    row.and_then(|row| i64::try_from(row).ok()).unwrap_or(i64::MAX)
}

/// Times are stored in microseconds, but compared in milliseconds, as they are shown.
pub(in crate::reads) fn stored_time(millis: u64) -> i64 {
    micros(Timestamp::from_millis(millis))
}

/// The first text after all texts with this prefix. `None` if the prefix has only the last character.
pub(super) fn end_of_prefix(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_character() {
        assert_eq!(end_of_prefix("order-").as_deref(), Some("order."));
        assert_eq!(end_of_prefix("a\u{d7ff}").as_deref(), Some("a\u{e000}"), "surrogates are no characters");
        assert_eq!(end_of_prefix("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(end_of_prefix("\u{10ffff}"), None);
    }
}
