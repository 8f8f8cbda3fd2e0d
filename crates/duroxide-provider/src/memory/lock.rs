use duroxide_core::Timestamp;

use crate::{
    NodeId,
    store::{LockSnapshot, lock_token},
};

/// A lease with its token. It stays after the lease ended, until someone else takes the row: a holder that handed
/// its commit in before the end may still be served.
#[derive(Debug, Clone)]
pub(super) struct Lock {
    token: String,
    until: Timestamp,
    node: Option<NodeId>,
}

impl Lock {
    pub(super) fn new(row: u64, nonce: u128, until: Timestamp, node: Option<NodeId>) -> Self {
        Self { token: lock_token(row, nonce), until, node }
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn until(&self) -> Timestamp {
        self.until
    }

    pub(super) fn is_live(&self, at: Timestamp) -> bool {
        at < self.until
    }

    pub(super) fn is_held_by(&self, node: NodeId, at: Timestamp) -> bool {
        self.node == Some(node) && self.is_live(at)
    }

    pub(super) fn extend(&mut self, until: Timestamp) {
        self.until = until;
    }

    pub(super) fn snapshot(&self) -> LockSnapshot {
        LockSnapshot { token: self.token.clone(), until: self.until }
    }
}
