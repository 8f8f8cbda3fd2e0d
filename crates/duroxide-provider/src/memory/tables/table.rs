//! Rows by key with their indexes. A rollback restores the rows that a transaction replaced.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeBounds,
};

/// Replaced rows that a table has room for between two transactions.
const REPLACED_KEPT: usize = 64;

/// The indexes of a table.
pub(in crate::memory) trait Index<K, R> {
    /// A row was inserted, replaced or deleted.
    fn file(&mut self, key: &K, before: Option<&R>, after: Option<&R>);
}

impl<K, R> Index<K, R> for () {
    fn file(&mut self, _: &K, _: Option<&R>, _: Option<&R>) {}
}

/// Moves the entry of a row in an index to where it belongs.
pub(in crate::memory) fn refile<T: Ord>(entries: &mut BTreeSet<T>, before: Option<T>, after: Option<T>) {
    if before != after {
        if let Some(before) = before {
            entries.remove(&before);
        }
        entries.extend(after);
    }
}

/// Rows by key.
#[derive(Debug, Clone)]
pub(in crate::memory) struct Table<K, R, I = ()> {
    rows: BTreeMap<K, R>,
    index: I,
    /// The rows that the writes of the transaction replaced, in the order of the writes.
    replaced: Vec<(K, Option<R>)>,
    /// How many of these writes [`Self::take_changes`] has returned.
    told: usize,
}

impl<K, R, I: Default> Default for Table<K, R, I> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), index: I::default(), replaced: Vec::new(), told: 0 }
    }
}

impl<K: Ord + Clone, R, I: Index<K, R>> Table<K, R, I> {
    pub(in crate::memory) fn get(&self, key: &K) -> Option<&R> {
        self.rows.get(key)
    }

    pub(in crate::memory) fn contains(&self, key: &K) -> bool {
        self.rows.contains_key(key)
    }

    pub(in crate::memory) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &R)> {
        self.rows.iter()
    }

    pub(in crate::memory) fn range(
        &self,
        keys: impl RangeBounds<K>,
    ) -> impl DoubleEndedIterator<Item = (&K, &R)> {
        self.rows.range(keys)
    }

    pub(in crate::memory) fn index(&self) -> &I {
        &self.index
    }

    /// Inserts or replaces a row.
    pub(in crate::memory) fn put(&mut self, key: K, row: R) {
        let before = self.replace(&key, Some(row));
        self.replaced.push((key, before));
    }

    /// Changes a row. Returns `false` if it does not exist.
    pub(in crate::memory) fn update(&mut self, key: &K, change: impl FnOnce(&mut R)) -> bool
    where
        R: Clone,
    {
        let Some(mut row) = self.get(key).cloned() else { return false };
        change(&mut row);
        self.put(key.clone(), row);
        true
    }

    /// Deletes a row. Returns whether it was there.
    pub(in crate::memory) fn remove(&mut self, key: &K) -> bool {
        let before = self.replace(key, None);
        let was_there = before.is_some();
        if was_there {
            self.replaced.push((key.clone(), before));
        }
        was_there
    }

    /// Deletes rows; returns how many there were.
    pub(in crate::memory) fn remove_all(&mut self, keys: &[K]) -> usize {
        keys.iter().filter(|key| self.remove(key)).count()
    }

    /// Deletes the rows in a range of keys; returns how many there were.
    pub(in crate::memory) fn remove_range(&mut self, keys: impl RangeBounds<K>) -> u64 {
        let keys: Vec<K> = self.range(keys).map(|(key, _)| key.clone()).collect();
        self.remove_all(&keys) as u64
    }

    /// Puts in a row that is stored elsewhere: this is no change of a transaction.
    pub(in crate::memory) fn load(&mut self, key: K, row: R) {
        self.replace(&key, Some(row));
    }

    fn replace(&mut self, key: &K, row: Option<R>) -> Option<R> {
        self.index.file(key, self.rows.get(key), row.as_ref());
        match row {
            Some(row) => self.rows.insert(key.clone(), row),
            None => self.rows.remove(key),
        }
    }

    /// The keys of rows that have changed since this was last called, in the order in which they did, each with the row
    /// as it was then.
    pub(in crate::memory) fn take_changes(&mut self) -> Vec<(K, Option<R>)>
    where
        R: Clone + PartialEq,
    {
        let mut seen = BTreeSet::new();
        let writes = self.replaced.iter().skip(self.told);
        let first = writes.filter(|(key, _)| seen.insert(key));
        let changed = first.filter(|(key, before)| self.rows.get(key) != before.as_ref()).cloned().collect();
        self.told = self.replaced.len();
        changed
    }
}

/// A table in a transaction.
pub(in crate::memory) trait Transact {
    /// Drops the undo log.
    fn commit(&mut self);
    /// Restores the rows before the transaction.
    fn rollback(&mut self);
}

impl<K: Ord + Clone, R, I: Index<K, R>> Transact for Table<K, R, I> {
    fn commit(&mut self) {
        self.replaced.clear();
        self.replaced.shrink_to(REPLACED_KEPT);
        self.told = 0;
    }

    fn rollback(&mut self) {
        while let Some((key, before)) = self.replaced.pop() {
            self.replace(&key, before);
        }
        self.told = 0;
    }
}
