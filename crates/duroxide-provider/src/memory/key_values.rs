use std::collections::BTreeMap;

use duroxide_core::KvEntry;

use crate::store::StateChange;

/// The key-value store of one instance: what earlier executions left, and the current one's changes beside it, so
/// that a replay of the current execution starts from the state it started from the first time (semantics 11.2).
#[derive(Debug, Clone, Default)]
pub(super) struct KeyValues {
    left: BTreeMap<String, KvEntry>,
    /// `None` marks a key of `left` that was removed.
    changes: BTreeMap<String, Option<KvEntry>>,
}

impl KeyValues {
    pub(super) fn restore(
        left: BTreeMap<String, KvEntry>,
        changes: BTreeMap<String, Option<KvEntry>>,
    ) -> Self {
        Self { left, changes }
    }

    pub(super) fn apply(&mut self, change: &StateChange) {
        match change {
            StateChange::CustomStatus(_) => {}
            StateChange::KvSet { key, value, last_updated_at_ms } => {
                let entry = KvEntry { value: value.clone(), last_updated_at_ms: *last_updated_at_ms };
                self.changes.insert(key.clone(), Some(entry));
            }
            StateChange::KvClear { key } => self.clear(key),
            StateChange::KvClearAll => {
                self.changes = self.left.keys().map(|key| (key.clone(), None)).collect();
            }
        }
    }

    fn clear(&mut self, key: &str) {
        if self.left.contains_key(key) {
            self.changes.insert(key.to_owned(), None);
        } else {
            self.changes.remove(key);
        }
    }

    /// The current execution ended: its changes become part of what it leaves.
    pub(super) fn merge(&mut self) {
        for (key, change) in std::mem::take(&mut self.changes) {
            match change {
                Some(entry) => self.left.insert(key, entry),
                None => self.left.remove(&key),
            };
        }
    }

    pub(super) fn left(&self) -> &BTreeMap<String, KvEntry> {
        &self.left
    }

    pub(super) fn changes(&self) -> &BTreeMap<String, Option<KvEntry>> {
        &self.changes
    }

    pub(super) fn value(&self, key: &str) -> Option<&str> {
        let entry = match self.changes.get(key) {
            Some(change) => change.as_ref(),
            None => self.left.get(key),
        };
        entry.map(|entry| entry.value.as_str())
    }

    pub(super) fn values(&self) -> BTreeMap<String, String> {
        let keys = self.left.keys().chain(self.changes.keys());
        keys.filter_map(|key| Some((key.clone(), self.value(key)?.to_owned()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(key: &str, value: &str) -> StateChange {
        StateChange::KvSet { key: key.to_owned(), value: value.to_owned(), last_updated_at_ms: 1 }
    }

    fn clear(key: &str) -> StateChange {
        StateChange::KvClear { key: key.to_owned() }
    }

    fn after(rounds: &[&[StateChange]]) -> KeyValues {
        let mut kv = KeyValues::default();
        for (n, round) in rounds.iter().enumerate() {
            if n > 0 {
                kv.merge();
            }
            round.iter().for_each(|change| kv.apply(change));
        }
        kv
    }

    /// 11.2
    #[test]
    fn changes_stand_apart_until_the_execution_ends() {
        let mut kv = after(&[&[set("a", "1")], &[set("a", "2"), set("b", "3")]]);
        assert_eq!(kv.left().get("a").map(|entry| entry.value.as_str()), Some("1"));
        assert_eq!((kv.value("a"), kv.value("b")), (Some("2"), Some("3")));
        kv.merge();
        assert_eq!(kv.left().len(), 2);
        assert!(kv.changes().is_empty());
    }

    #[test]
    fn a_cleared_key_hides_what_earlier_executions_left() {
        let mut kv = after(&[&[set("a", "1"), set("b", "1")], &[clear("a")]]);
        assert_eq!(kv.values().into_keys().collect::<Vec<_>>(), ["b"]);
        kv.merge();
        assert_eq!(kv.left().keys().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn clear_all_removes_old_and_new_keys_and_a_later_set_stays() {
        let kv = after(&[&[set("a", "1")], &[set("b", "2"), StateChange::KvClearAll, set("c", "3")]]);
        assert_eq!(kv.values(), BTreeMap::from([("c".to_owned(), "3".to_owned())]));
    }
}
