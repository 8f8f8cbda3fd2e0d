use std::{collections::BTreeMap, sync::Mutex};

use crate::env::lock;

/// Which lock a token belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockKind {
    Instance,
    Activity,
}

/// The locks this node holds. What is still here when the tasks have ended is released at shutdown.
#[derive(Debug, Default)]
pub(crate) struct HeldLocks {
    tokens: Mutex<BTreeMap<String, LockKind>>,
}

impl HeldLocks {
    pub(crate) fn hold(&self, token: &str, kind: LockKind) {
        lock(&self.tokens).insert(token.to_owned(), kind);
    }

    /// The store has the result, or the lock is left to its lease.
    pub(crate) fn let_go(&self, token: &str) {
        lock(&self.tokens).remove(token);
    }

    pub(crate) fn take_all(&self) -> BTreeMap<String, LockKind> {
        std::mem::take(&mut *lock(&self.tokens))
    }
}
