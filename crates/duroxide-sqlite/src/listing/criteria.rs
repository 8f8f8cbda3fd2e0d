//! The statement behind a query.

use duroxide_core::Timestamp;
use duroxide_provider::{InstanceQuery, store::StoreFailure};
use rusqlite::{Row, params_from_iter, types::Value};

use crate::db::{Db, micros, number};

/// How many ids may begin with a prefix for them to be found by their ids, and then sorted.
const NARROW_PREFIX_MAX: i64 = 1_000;
const BEYOND_NARROW: &str = "SELECT 1 FROM instance WHERE instance_id >= ?1 AND instance_id < ?2
    LIMIT 1 OFFSET ?3";

/// What instances must be like, as conditions with their values.
///
/// The rows are walked from the newest down, along the table itself or along the index of a status or a parent, and the
/// walk ends with the page. Only the few instances of a narrow prefix are found by their ids instead.
pub(super) struct Criteria {
    source: &'static str,
    conditions: String,
    values: Vec<Value>,
    at_most: Option<usize>,
}

impl Criteria {
    pub(super) fn new(db: &Db, query: &InstanceQuery) -> Result<Self, StoreFailure> {
        let mut criteria = Self {
            source: "instance",
            conditions: "known = 1".to_owned(),
            values: Vec::new(),
            at_most: None,
        };
        criteria.and_text("status = ?", query.status.as_ref());
        // The name of an instance that was never named is in its history, where no condition can look.
        criteria.and_text("(name IS NULL OR name = ?)", query.orchestration_name.as_ref());
        criteria.and_text("(name IS NULL OR version = ?)", query.orchestration_version.as_ref());
        criteria.and_text("parent = ?", query.parent.as_ref());
        if query.roots_only {
            criteria.conditions += " AND parent IS NULL";
        }
        criteria.and_time("created_at >= ?", query.created_from);
        criteria.and_time("created_at < ?", query.created_before);
        criteria.and_time("updated_at >= ?", query.updated_from);
        criteria.and_time("updated_at < ?", query.updated_before);
        if let Some(prefix) = query.id_prefix.as_ref().filter(|prefix| !prefix.is_empty()) {
            criteria.and_prefix(db, prefix)?;
        }
        Ok(criteria)
    }

    /// Only rows before this one.
    pub(super) fn below(mut self, row: Option<u64>) -> Self {
        if let Some(row) = row {
            // Rows are numbered from 1 to 2^63 - 1; a cursor beyond them all leaves them all.
            self.and("id < ?", Value::Integer(i64::try_from(row).unwrap_or(i64::MAX)));
        }
        self
    }

    pub(super) fn at_most(mut self, rows: usize) -> Self {
        self.at_most = Some(rows);
        self
    }

    /// The rows, newest first.
    pub(super) fn rows<T>(
        mut self,
        db: &Db,
        columns: &str,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreFailure> {
        let Self { source, conditions, .. } = &self;
        let mut statement =
            format!("SELECT {columns} FROM {source} WHERE {conditions} ORDER BY instance.id DESC");
        if let Some(rows) = self.at_most {
            statement += " LIMIT ?";
            self.values.push(Value::Integer(number(rows as u64)));
        }
        db.all_once(&statement, params_from_iter(self.values), read)
    }

    fn and(&mut self, condition: &str, value: Value) {
        self.conditions += " AND ";
        self.conditions += condition;
        self.values.push(value);
    }

    fn and_text(&mut self, condition: &str, text: Option<&String>) {
        if let Some(text) = text {
            self.and(condition, Value::Text(text.clone()));
        }
    }

    /// Times are stored in microseconds, but compared in milliseconds, as they are shown.
    fn and_time(&mut self, condition: &str, millis: Option<u64>) {
        if let Some(millis) = millis {
            self.and(condition, Value::Integer(micros(Timestamp::from_millis(millis))));
        }
    }

    fn and_prefix(&mut self, db: &Db, prefix: &str) -> Result<(), StoreFailure> {
        let end = end_of_prefix(prefix);
        let narrow = match &end {
            Some(end) => !db.exists(BEYOND_NARROW, (prefix, end, NARROW_PREFIX_MAX))?,
            None => false,
        };
        // The plus keeps a condition out of the choice of an index.
        let column = if narrow { "instance_id" } else { "+instance_id" };
        if narrow {
            self.source = "instance INDEXED BY instance_id_once";
        }
        self.and(&format!("{column} >= ?"), Value::Text(prefix.to_owned()));
        if let Some(end) = end {
            self.and(&format!("{column} < ?"), Value::Text(end));
        }
        Ok(())
    }
}

/// The first text behind all those that begin with the prefix. There is none behind the last character.
fn end_of_prefix(prefix: &str) -> Option<String> {
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
