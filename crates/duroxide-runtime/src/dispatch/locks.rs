//! The locks that a node holds, and their renewal.

mod lease;

pub(super) use lease::{Lease, LeaseEnd};

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use crate::env::lock;

/// The kind of item that a lock token locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockKind {
    Instance,
    Activity,
}

/// The locks this node holds. A shutdown releases those that remain after all tasks have ended.
#[derive(Debug, Default)]
pub(crate) struct HeldLocks {
    tokens: Mutex<BTreeMap<String, LockKind>>,
}

impl HeldLocks {
    pub(crate) fn insert(&self, token: &str, kind: LockKind) {
        lock(&self.tokens).insert(token.to_owned(), kind);
    }

    /// Forgets a lock: the store has the result, or the lock is left to its lease.
    pub(crate) fn remove(&self, token: &str) {
        lock(&self.tokens).remove(token);
    }

    /// Removes and returns all locks except those in `keep`.
    pub(crate) fn take_except(&self, keep: &BTreeSet<String>) -> BTreeMap<String, LockKind> {
        let mut tokens = lock(&self.tokens);
        let (kept, taken) =
            std::mem::take(&mut *tokens).into_iter().partition(|(token, _)| keep.contains(token));
        *tokens = kept;
        taken
    }
}
