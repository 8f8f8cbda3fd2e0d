//! The statements that bring tables up to date.

use std::collections::HashMap;

use crate::{
    connection::Query,
    record::{Record, delete, delete_unchanged, insert, update, update_unchanged, upsert, verify},
    tracked_rows::Changes,
    value::Value,
};

/// A statement that writes one table.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) query: Query,
    /// Whether it may insert rows.
    pub(super) is_insert: bool,
    /// How many rows with known revisions it has to find.
    unchanged: usize,
}

/// One statement of all parts.
pub(super) fn together(parts: Vec<Part>, blocks: u64) -> Option<Query> {
    let unchanged = parts.iter().map(|part| part.unchanged).sum();
    Query::together(parts.into_iter().map(|part| part.query).collect(), unchanged, blocks)
}

/// Statements that write tables.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// The revision of the transaction, if it has one.
    pub(super) revision: Option<u64>,
    pub(super) parts: Vec<Part>,
}

impl Writes {
    /// For tables whose rows are known to exist or not.
    pub(super) fn changes<K, R: Record>(&mut self, changes: &Changes<'_, K, R>, key: fn(&K) -> Vec<Value>) {
        self.deletes(changes, key);
        if !changes.updated.is_empty() {
            self.push(update(changes.updated.iter().copied()), false, 0);
        }
        self.inserts(changes);
    }

    /// Verifies rows that are not written.
    pub(super) fn verifies<'a, R: Record>(
        &mut self,
        keys: impl Iterator<Item = &'a u64>,
        revisions: &HashMap<u64, u64>,
    ) {
        let known = |number: &u64| revisions.get(number).copied();
        let keys: Vec<_> = keys.map(|key| (vec![Value::from(*key)], known(key))).collect();
        if !keys.is_empty() {
            let unchanged = keys.len();
            self.push(verify::<R>(keys), false, unchanged);
        }
    }

    /// For tables with revisions. A row with an unknown revision was not read; it is not found, and
    /// the transaction fails.
    pub(super) fn changes_unchanged<R: Record>(
        &mut self,
        changes: &Changes<'_, u64, R>,
        revisions: &HashMap<u64, u64>,
        number: fn(&R) -> u64,
    ) {
        let known = |number: u64| revisions.get(&number).copied();
        if !changes.deleted.is_empty() {
            let keys = changes.deleted.iter().map(|key| (vec![Value::from(**key)], known(**key)));
            self.push(delete_unchanged::<R>(keys), false, changes.deleted.len());
        }
        if !changes.updated.is_empty() {
            let rows = changes.updated.iter().map(|row| (*row, known(number(row))));
            self.push(update_unchanged(rows, self.revision), false, changes.updated.len());
        }
        self.inserts(changes);
    }

    /// For tables that are written without reading whether the row exists.
    pub(super) fn upserts<K, R: Record>(&mut self, changes: &Changes<'_, K, R>, key: fn(&K) -> Vec<Value>) {
        self.deletes(changes, key);
        if !changes.updated.is_empty() || !changes.inserted.is_empty() {
            self.push(upsert(changes.updated.iter().chain(&changes.inserted).copied()), true, 0);
        }
    }

    fn deletes<K, R: Record>(&mut self, changes: &Changes<'_, K, R>, key: fn(&K) -> Vec<Value>) {
        if !changes.deleted.is_empty() {
            self.push(delete::<R>(changes.deleted.iter().map(|deleted| key(deleted))), false, 0);
        }
    }

    fn inserts<K, R: Record>(&mut self, changes: &Changes<'_, K, R>) {
        if !changes.inserted.is_empty() {
            self.push(insert(changes.inserted.iter().copied(), self.revision), true, 0);
        }
    }

    pub(super) fn push(&mut self, query: Query, is_insert: bool, unchanged: usize) {
        self.parts.push(Part { query, is_insert, unchanged });
    }
}
