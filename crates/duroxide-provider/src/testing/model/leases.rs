//! Locks, and the effect of a set clock on them.

use std::time::Duration;

use duroxide_core::Timestamp;

use super::ModelEngine;
use crate::{
    NodeId,
    store::{LockSnapshot, lock_token},
};

/// A lock. It stays after its lease ended, until another claim takes the row.
#[derive(Debug, Clone)]
pub(super) struct Lock {
    pub(super) token: String,
    pub(super) until: Timestamp,
    length: Duration,
    pub(super) node: Option<NodeId>,
}

impl Lock {
    pub(super) fn new(row: u64, nonce: u128, now: Timestamp, length: Duration, node: Option<NodeId>) -> Self {
        Self { token: lock_token(row, nonce), until: now.saturating_add(length), length, node }
    }

    pub(super) fn is_live(&self, at: Timestamp) -> bool {
        at < self.until
    }

    pub(super) fn extend(&mut self, now: Timestamp, length: Duration) {
        self.until = now.saturating_add(length);
        self.length = length;
    }

    /// The clock was set back: an ended lease ends now, and each other one at most one length from now.
    fn shorten(&mut self, now: Timestamp, has_ended: bool) {
        let latest = if has_ended { now } else { now.saturating_add(self.length) };
        self.until = self.until.min(latest);
    }

    /// The clock was set forward: if it was live before, it ends that much later, at most one length from now.
    fn move_by(&mut self, now: Timestamp, by: Duration) {
        if self.until.saturating_add(by) > now {
            self.until = self.until.saturating_add(by).min(now.saturating_add(self.length));
        }
    }

    pub(super) fn snapshot(&self) -> LockSnapshot {
        LockSnapshot { token: self.token.clone(), until: self.until }
    }
}

impl ModelEngine {
    pub(super) fn shorten_all(&mut self) {
        let now = self.now;
        let locked = self.instances.iter().filter(|(_, instance)| instance.lock.is_some());
        for key in locked.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.change(key, |instance| {
                let has_ended = instance.ready.is_some();
                instance.lock.iter_mut().for_each(|lock| lock.shorten(now, has_ended));
            });
        }
        for activity in self.activities.values_mut() {
            let has_ended = activity.waits_until.is_none();
            activity.lock.iter_mut().for_each(|lock| lock.shorten(now, has_ended));
            activity.settle(now);
        }
        for session in self.sessions.values_mut() {
            session.until = session.until.min(now.saturating_add(session.length));
            session.last_activity_at = session.last_activity_at.min(now);
        }
    }

    /// Items that can already be claimed stay ready.
    pub(super) fn move_all(&mut self, by: Duration) {
        let now = self.now;
        for key in self.instances.keys().copied().collect::<Vec<_>>() {
            if self.instances[&key].ready.is_none() && self.instances[&key].lock.is_some() {
                self.change(key, |instance| instance.lock.iter_mut().for_each(|lock| lock.move_by(now, by)));
            }
        }
        for activity in self.activities.values_mut().filter(|activity| activity.waits_until.is_some()) {
            activity.lock.iter_mut().for_each(|lock| lock.move_by(now, by));
            activity.settle(now);
        }
        for session in self.sessions.values_mut() {
            if session.until.saturating_add(by) > now {
                session.until = session.until.saturating_add(by).min(now.saturating_add(session.length));
                session.last_activity_at = session.last_activity_at.saturating_add(by).min(now);
            }
        }
        for node in self.nodes.values_mut() {
            node.seen_at = node.seen_at.saturating_add(by).min(now);
        }
    }
}
