use std::collections::BTreeMap;

/// Rows that were added, changed or removed since the changes were last taken.
#[derive(Debug, Clone)]
pub(super) struct Touched<K>(BTreeMap<K, Touch>);

/// What happened to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    Added,
    Changed,
    Removed,
}

impl<K> Default for Touched<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Touched<K> {
    pub(super) fn add(&mut self, key: K) {
        self.0.insert(key, Touch::Added);
    }

    pub(super) fn change(&mut self, key: K) {
        self.0.entry(key).or_insert(Touch::Changed);
    }

    /// A row that was added and removed in between was never there.
    pub(super) fn remove(&mut self, key: K) {
        if self.0.get(&key) == Some(&Touch::Added) {
            self.0.remove(&key);
        } else {
            self.0.insert(key, Touch::Removed);
        }
    }

    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    pub(super) fn take(&mut self) -> impl Iterator<Item = (K, Touch)> + use<K> {
        std::mem::take(&mut self.0).into_iter()
    }
}
