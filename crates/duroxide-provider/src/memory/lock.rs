use std::time::Duration;

use duroxide_core::Timestamp;

use super::record::LockRecord;
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
    /// Its length when it was given or last renewed.
    lease: Duration,
    node: Option<NodeId>,
}

impl Lock {
    pub(super) fn new(row: u64, nonce: u128, now: Timestamp, lease: Duration, node: Option<NodeId>) -> Self {
        Self { token: lock_token(row, nonce), until: now.saturating_add(lease), lease, node }
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

    pub(super) fn extend(&mut self, now: Timestamp, lease: Duration) {
        self.until = now.saturating_add(lease);
        self.lease = lease;
    }

    /// Whether it ends later than any lease given by now can.
    pub(super) fn is_too_long(&self, now: Timestamp) -> bool {
        self.until > now.saturating_add(self.lease)
    }

    /// Makes it end one lease from now.
    pub(super) fn clamp(&mut self, now: Timestamp) {
        self.until = now.saturating_add(self.lease);
    }

    /// Whether it was live before the clock was set forward by this much.
    pub(super) fn was_live_before(&self, now: Timestamp, by: Duration) -> bool {
        self.until.saturating_add(by) > now
    }

    /// Makes it end that much later, at most one lease from now.
    pub(super) fn move_by(&mut self, now: Timestamp, by: Duration) {
        self.until = self.until.saturating_add(by).min(now.saturating_add(self.lease));
    }

    /// Makes it end now at the latest.
    pub(super) fn end(&mut self, now: Timestamp) {
        self.until = self.until.min(now);
    }

    pub(super) fn record(&self) -> LockRecord {
        LockRecord { token: self.token.clone(), until: self.until, lease: self.lease, node: self.node }
    }

    pub(super) fn restore(record: LockRecord) -> Self {
        Self { token: record.token, until: record.until, lease: record.lease, node: record.node }
    }

    pub(super) fn snapshot(&self) -> LockSnapshot {
        LockSnapshot { token: self.token.clone(), until: self.until }
    }
}
