//! The statement behind a query.

use duroxide_provider::{InstanceQuery, store::StoreFailure};
use rusqlite::{Row, params_from_iter, types::Value};

use super::index_choice::{IndexChoice, end_of_prefix, stored_time};
use crate::db::{Db, number};

/// The conditions that listed instances meet, with their values.
pub(super) struct Criteria {
    index: IndexChoice,
    conditions: String,
    /// Conditions on the handler, of which one must hold.
    handlers: Vec<String>,
    values: Vec<Value>,
    at_most: Option<usize>,
}

impl Criteria {
    pub(super) fn new(db: &Db, query: &InstanceQuery) -> Result<Self, StoreFailure> {
        let mut criteria = Self {
            index: IndexChoice::to(db, query)?,
            conditions: "known = 1".to_owned(),
            handlers: vec![String::new()],
            values: Vec::new(),
            at_most: None,
        };
        criteria.and_handler(query);
        criteria.and_text("status =", query.status.as_deref());
        criteria.and_text("parent =", query.parent.as_deref());
        if query.roots_only {
            criteria.conditions += " AND parent IS NULL";
        }
        criteria.and_time("created_at >=", query.created_from);
        criteria.and_time("created_at <", query.created_before);
        criteria.and_time("updated_at >=", query.updated_from);
        criteria.and_time("updated_at <", query.updated_before);
        if let Some(prefix) = query.id_prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
            criteria.and_text("instance_id >=", Some(prefix));
            criteria.and_text("instance_id <", end_of_prefix(prefix).as_deref());
        }
        Ok(criteria)
    }

    /// Only rows before this one.
    pub(super) fn below(mut self, row: Option<u64>) -> Self {
        if let Some(row) = row {
            // Rows are numbered from 1 to 2^63 - 1; a cursor beyond them all leaves them all.
            self.and("id <", Value::Integer(i64::try_from(row).unwrap_or(i64::MAX)));
        }
        self
    }

    pub(super) fn at_most(mut self, rows: usize) -> Self {
        self.at_most = Some(rows);
        self
    }

    /// The rows, newest first. Where the handler has alternatives, `id` must be among the columns.
    pub(super) fn rows<T>(
        mut self,
        db: &Db,
        columns: &str,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreFailure> {
        let Self { index, conditions, handlers, .. } = &self;
        let source = index.source();
        let select = |handler: &String| format!("SELECT {columns} FROM {source} WHERE {conditions}{handler}");
        // Each alternative comes in this order, so that SQLite merges them and sorts nothing.
        let selects: Vec<_> = handlers.iter().map(select).collect();
        let mut statement = selects.join(" UNION ALL ") + " ORDER BY id DESC";
        if let Some(rows) = self.at_most {
            statement += " LIMIT ";
            statement += &self.place(Value::Integer(number(rows as u64)));
        }
        db.all_once(&statement, params_from_iter(self.values), read)
    }

    /// Adds a value; returns its parameter.
    fn place(&mut self, value: Value) -> String {
        self.values.push(value);
        format!("?{}", self.values.len())
    }

    fn and(&mut self, condition: &str, value: Value) {
        let place = self.place(value);
        self.conditions += &format!(" AND {condition} {place}");
    }

    fn and_text(&mut self, condition: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.and(condition, Value::Text(text.to_owned()));
        }
    }

    fn and_time(&mut self, condition: &str, millis: Option<u64>) {
        if let Some(millis) = millis {
            self.and(condition, Value::Integer(stored_time(millis)));
        }
    }

    /// An instance without a stored name has it only in its history, which no condition reads: it stays undecided.
    fn and_handler(&mut self, query: &InstanceQuery) {
        let mut wanted = Vec::new();
        for (column, text) in [("name", &query.orchestration_name), ("version", &query.orchestration_version)]
        {
            if let Some(text) = text {
                wanted.push(format!("{column} = {}", self.place(Value::Text(text.clone()))));
            }
        }
        let wanted = wanted.join(" AND ");
        if wanted.is_empty() {
            return;
        }
        self.handlers = if self.index == IndexChoice::Name {
            vec![format!(" AND {wanted}"), " AND name IS NULL".to_owned()]
        } else {
            vec![format!(" AND (name IS NULL OR {wanted})")]
        };
    }
}
