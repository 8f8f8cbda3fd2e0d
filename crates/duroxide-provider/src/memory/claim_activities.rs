//! Claims of activities.

use duroxide_core::WorkItem;

use super::{
    MemoryEngine,
    activities::{Activity, ActivityKey},
    dead_letters::Undelivered,
    lock::Lock,
};
use crate::{
    DeadLetterQueue, ScheduledActivityIdentifier, WorkClaim,
    store::{ActivityOrder, Claimed, DeadLetterNote, DeadLetterReason, bounds::UNDECODABLE_HIDDEN_FOR},
};

impl MemoryEngine {
    pub(super) fn take_activities(&mut self, order: &ActivityOrder, nonce: u128) -> Claimed<WorkClaim> {
        let mut claimed = Claimed::default();
        if order.only.is_none() {
            self.activities.count_held_back(order, &mut claimed.held_back);
        }
        while claimed.items.len() < order.max {
            let next = match &order.only {
                None => self.activities.first_ready(order),
                Some(only) => self.ready_activity(only),
            };
            let Some(key) = next else { break };
            let Some(activity) = self.activities.get(key) else { break };
            match activity.decode() {
                Ok(_) if activity.attempt_count > 0 && claimed.items.len() >= order.free_slots => break,
                Ok(item) => claimed.items.extend(self.lock_activity(key, item, order, nonce)),
                Err(error) => claimed.dead_letters.extend(self.put_activity_aside(key, error.to_string())),
            }
        }
        claimed
    }

    /// An activity, if it is ready.
    fn ready_activity(&self, only: &ScheduledActivityIdentifier) -> Option<ActivityKey> {
        let instance = self.instances.find(&only.instance).and_then(|key| self.instances.get(key))?;
        let key = *instance.activities.get(&(only.execution_id, only.activity_id))?;
        self.activities.is_ready(key).then_some(key)
    }

    fn lock_activity(
        &mut self,
        key: ActivityKey,
        item: WorkItem,
        order: &ActivityOrder,
        nonce: u128,
    ) -> Option<WorkClaim> {
        let lock = Lock::new(key.0, nonce, self.now, order.lock_timeout, order.node);
        let lock_token = lock.token().to_owned();
        let claimed_before = self.activities.get(key)?.claimed;
        self.count_activity(key, |activity| {
            activity.losses = activity.losses.claimed_again(activity.lock.is_some());
            activity.lock = Some(lock);
            activity.claimed = true;
        });
        let activity = self.activities.get(key)?;
        let claim = WorkClaim {
            item,
            lock_token,
            attempt_count: activity.attempt_count,
            losses: Some(activity.losses),
            claimed_before,
            stop_requested: activity.stop_requested,
            incarnation: Some(activity.instance.0),
        };
        if let (Some(session), Some(by)) = (activity.row.session_id.clone(), &order.session) {
            self.activities.sessions().claim(&session, by, self.now);
            self.activities.file_session(&session, self.now);
        }
        Some(claim)
    }

    /// Counts and hides an activity that cannot be decoded; after too many attempts it becomes a dead letter.
    fn put_activity_aside(&mut self, key: ActivityKey, error: String) -> Option<DeadLetterNote> {
        let until = self.now.saturating_add(UNDECODABLE_HIDDEN_FOR);
        self.count_activity(key, |activity| activity.hidden_until = until);
        if self.activities.get(key)?.attempt_count <= self.max_attempts {
            return None;
        }
        let activity = self.remove_activity(key)?;
        let reason = DeadLetterReason::Undeserializable { error };
        let instance = activity.row.instance.clone();
        let undelivered = Undelivered::Activity(activity.row);
        let id = self.dead_letters.insert(undelivered, reason.to_string(), activity.attempt_count, self.now);
        Some(DeadLetterNote { id, queue: DeadLetterQueue::Worker, instance: Some(instance), reason })
    }

    fn count_activity(&mut self, key: ActivityKey, change: impl FnOnce(&mut Activity)) {
        self.activities.change(key, self.now, |activity| {
            activity.attempt_count = activity.attempt_count.saturating_add(1);
            change(activity);
        });
    }
}
