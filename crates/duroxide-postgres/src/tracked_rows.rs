//! [`TrackedRows`]: the rows of one table in the working set of a transaction, and which of them are unsent.

use std::{collections::BTreeMap, ops::RangeBounds};

/// Rows that were read, and rows that were written, with a mark on the unsent ones.
#[derive(Debug)]
pub(crate) struct TrackedRows<K, R> {
    slots: BTreeMap<K, Slot<R>>,
}

#[derive(Debug)]
struct Slot<R> {
    /// `None`: no row has this key.
    row: Option<R>,
    /// Whether the database has the row, in this version or another.
    is_stored: bool,
    is_dirty: bool,
}

/// Rows that were written and not sent.
#[derive(Debug)]
pub(crate) struct Changes<'a, K, R> {
    pub(crate) inserted: Vec<&'a R>,
    pub(crate) updated: Vec<&'a R>,
    pub(crate) deleted: Vec<&'a K>,
}

impl<K, R> Changes<'_, K, R> {
    pub(crate) fn len(&self) -> usize {
        self.inserted.len() + self.updated.len() + self.deleted.len()
    }

    /// Whether rows are deleted and others inserted.
    pub(crate) fn replaces(&self) -> bool {
        !self.deleted.is_empty() && !self.inserted.is_empty()
    }
}

impl<K, R> Default for TrackedRows<K, R> {
    fn default() -> Self {
        Self { slots: BTreeMap::new() }
    }
}

impl<K: Ord + Clone, R> TrackedRows<K, R> {
    /// Whether the row was read or written.
    pub(crate) fn knows(&self, key: &K) -> bool {
        self.slots.contains_key(key)
    }

    /// Whether the row is known not to exist.
    pub(crate) fn is_absent(&self, key: &K) -> bool {
        self.slots.get(key).is_some_and(|slot| slot.row.is_none())
    }

    /// The row, if it is known and exists.
    pub(crate) fn get(&self, key: &K) -> Option<&R> {
        self.slots.get(key)?.row.as_ref()
    }

    /// The row, to fill in columns that were read later. Changes made here are not written.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut R> {
        self.slots.get_mut(key)?.row.as_mut()
    }

    /// Known rows in the order of their keys.
    pub(crate) fn range(&self, keys: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = &R> {
        self.slots.range(keys).filter_map(|(_, slot)| slot.row.as_ref())
    }

    /// All known rows.
    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = &R> {
        self.slots.values().filter_map(|slot| slot.row.as_ref())
    }

    /// Takes a known row out.
    pub(crate) fn take(&mut self, key: &K) -> Option<R> {
        self.slots.remove(key)?.row
    }

    /// Takes all known rows out, in the order of their keys.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = R> {
        self.slots.into_values().filter_map(|slot| slot.row)
    }

    /// Known rows that the database does not have in this version.
    pub(crate) fn unsent(&self) -> impl Iterator<Item = &R> {
        self.slots.values().filter(|slot| slot.is_dirty).filter_map(|slot| slot.row.as_ref())
    }

    /// Writes a known row again, unchanged.
    pub(crate) fn touch(&mut self, key: &K) {
        if let Some(slot) = self.slots.get_mut(key).filter(|slot| slot.row.is_some()) {
            slot.is_dirty = true;
        }
    }

    /// The keys that are known to have no row.
    pub(crate) fn absent_keys(&self) -> impl Iterator<Item = &K> {
        self.slots.iter().filter(|(_, slot)| slot.row.is_none()).map(|(key, _)| key)
    }

    /// The keys of rows that were written or deleted and not sent.
    pub(crate) fn unsent_keys(&self) -> impl Iterator<Item = &K> {
        self.slots.iter().filter(|(_, slot)| slot.is_dirty).map(|(key, _)| key)
    }

    /// Whether the row was written or deleted and not sent.
    pub(crate) fn is_unsent(&self, key: &K) -> bool {
        self.slots.get(key).is_some_and(|slot| slot.is_dirty)
    }

    /// Whether something was written or deleted and not sent.
    pub(crate) fn is_dirty(&self) -> bool {
        self.slots.values().any(|slot| slot.is_dirty)
    }

    /// Whether the row was inserted by this transaction and has not been sent.
    pub(crate) fn is_new(&self, key: &K) -> bool {
        self.slots.get(key).is_some_and(|slot| slot.row.is_some() && !slot.is_stored)
    }

    /// Stores a row as it was read, or its absence, unless the row is known.
    pub(crate) fn learn(&mut self, key: K, row: Option<R>) {
        let is_stored = row.is_some();
        self.slots.entry(key).or_insert(Slot { row, is_stored, is_dirty: false });
    }

    /// Writes a row. An unknown row counts as new.
    pub(crate) fn put(&mut self, key: K, row: R) {
        let slot = self.slots.entry(key).or_insert(Slot { row: None, is_stored: false, is_dirty: true });
        slot.row = Some(row);
        slot.is_dirty = true;
    }

    /// Writes a row without reading whether it exists: a later delete must reach the database.
    pub(crate) fn overwrite(&mut self, key: K, row: R) {
        let unknown = Slot { row: None, is_stored: true, is_dirty: true };
        let slot = self.slots.entry(key).or_insert(unknown);
        slot.row = Some(row);
        slot.is_dirty = true;
    }

    /// Deletes a row. An unknown row counts as existing.
    pub(crate) fn delete(&mut self, key: &K) {
        let unknown = Slot { row: None, is_stored: true, is_dirty: true };
        let slot = self.slots.entry(key.clone()).or_insert(unknown);
        slot.row = None;
        slot.is_dirty = slot.is_stored;
    }

    /// Forgets rows that a statement deleted.
    pub(crate) fn forget(&mut self, mut is_gone: impl FnMut(&R) -> bool) {
        self.slots.retain(|_, slot| !slot.row.as_ref().is_some_and(&mut is_gone));
    }

    /// The unsent changes: inserts, updates and deletes.
    pub(crate) fn changes(&self) -> Changes<'_, K, R> {
        let mut changes = Changes { inserted: Vec::new(), updated: Vec::new(), deleted: Vec::new() };
        for (key, slot) in self.slots.iter().filter(|(_, slot)| slot.is_dirty) {
            match &slot.row {
                Some(row) if slot.is_stored => changes.updated.push(row),
                Some(row) => changes.inserted.push(row),
                None => changes.deleted.push(key),
            }
        }
        changes
    }

    /// Everything was sent.
    pub(crate) fn sent(&mut self) {
        for slot in self.slots.values_mut().filter(|slot| slot.is_dirty) {
            slot.is_stored = slot.row.is_some();
            slot.is_dirty = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(rows: &mut TrackedRows<u8, &'static str>) -> (Vec<&'static str>, Vec<&'static str>, Vec<u8>) {
        let changes = rows.changes();
        let all = (
            changes.inserted.into_iter().copied().collect(),
            changes.updated.into_iter().copied().collect(),
            changes.deleted.into_iter().copied().collect(),
        );
        rows.sent();
        all
    }

    #[test]
    fn a_row_is_sent_once_in_its_last_state() {
        let mut rows = TrackedRows::default();
        rows.learn(1, Some("read"));
        rows.learn(2, Some("changed later"));
        rows.learn(3, Some("deleted later"));
        rows.learn(4, None);
        rows.put(2, "changed");
        rows.delete(&3);
        rows.put(4, "new");
        rows.put(5, "new and deleted");
        rows.delete(&5);
        rows.delete(&6);
        rows.overwrite(7, "not looked at and deleted");
        rows.delete(&7);
        assert_eq!(sent(&mut rows), (vec!["new"], vec!["changed"], vec![3, 6, 7]));
        rows.put(4, "changed since");
        rows.put(3, "there again");
        assert_eq!(sent(&mut rows), (vec!["there again"], vec!["changed since"], vec![]));
        assert_eq!(sent(&mut rows), (vec![], vec![], vec![]));
        rows.learn(1, Some("read again"));
        assert_eq!(rows.get(&1), Some(&"read"), "what is known stays");
    }
}
