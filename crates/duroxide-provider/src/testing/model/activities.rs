//! The worker queue.

use std::time::Duration;

use duroxide_core::Timestamp;

use super::{ModelEngine, dead_letters::Undelivered, leases::Lock};
use crate::{
    Losses, ScheduledActivityIdentifier,
    store::{ActivityRow, ActivitySnapshot, Answer, MessageRow, Refusal, token_row},
};

#[derive(Debug, Clone)]
pub(super) struct Activity {
    pub(super) instance: u64,
    pub(super) row: ActivityRow,
    pub(super) attempts: u32,
    /// Whether anybody may have begun it.
    pub(super) claimed: bool,
    pub(super) stop_requested: bool,
    pub(super) losses: Losses,
    pub(super) hidden_until: Timestamp,
    pub(super) lock: Option<Lock>,
    /// When it can be claimed; `None` if it can be claimed now.
    pub(super) waits_until: Option<Timestamp>,
}

impl Activity {
    pub(super) fn is_locked(&self, at: Timestamp) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.is_live(at))
    }

    /// Decides when it can be claimed.
    pub(super) fn settle(&mut self, now: Timestamp) {
        let leased_until = self.lock.as_ref().map_or(Timestamp::ZERO, |lock| lock.until);
        self.waits_until = Some(leased_until.max(self.hidden_until)).filter(|until| *until > now);
    }

    pub(super) fn snapshot(&self, now: Timestamp) -> ActivitySnapshot {
        ActivitySnapshot {
            execution_id: self.row.execution_id,
            activity_id: self.row.activity_id,
            hidden_until: if self.hidden_until > now { self.hidden_until } else { Timestamp::ZERO },
            attempt_count: self.attempts,
            claimed: self.claimed,
            stop_requested: self.stop_requested,
            lock: self.lock.as_ref().map(Lock::snapshot),
            data: self.row.data.clone(),
        }
    }
}

impl ModelEngine {
    pub(super) fn find_activity(&self, id: &ScheduledActivityIdentifier) -> Option<u64> {
        let is_it = |row: &ActivityRow| {
            row.instance == id.instance
                && row.execution_id == id.execution_id
                && row.activity_id == id.activity_id
        };
        self.activities.iter().find(|(_, activity)| is_it(&activity.row)).map(|(key, _)| *key)
    }

    /// Queues an activity, unless it is queued. The instance need not exist.
    pub(super) fn enqueue_activity(&mut self, row: &ActivityRow) -> Answer {
        let ActivityRow { execution_id, activity_id, .. } = *row;
        let id = ScheduledActivityIdentifier { instance: row.instance.clone(), execution_id, activity_id };
        if self.find_activity(&id).is_none() {
            let (instance, key) = (self.open(&row.instance), self.next_number());
            let activity = Activity {
                instance,
                row: row.clone(),
                attempts: 0,
                claimed: false,
                stop_requested: false,
                losses: Losses::default(),
                hidden_until: Timestamp::ZERO,
                lock: None,
                waits_until: None,
            };
            self.activities.insert(key, activity);
        }
        Answer::Done
    }

    /// Takes an activity out of the queue. A mailbox that holds nothing else goes away.
    pub(super) fn remove_activity(&mut self, key: u64) -> Activity {
        let activity = self.activities.remove(&key).unwrap();
        self.settle(activity.instance);
        activity
    }

    /// The activity that this token locks, live or not.
    pub(super) fn locked_activity(&self, token: &str) -> Result<u64, Refusal> {
        let key = token_row(token).filter(|key| {
            let lock = self.activities.get(key).and_then(|activity| activity.lock.as_ref());
            lock.is_some_and(|lock| lock.token == token)
        });
        key.ok_or(Refusal::WorkItemLockLost)
    }

    fn held_activity(&mut self, token: &str, handed_in: Timestamp) -> Result<u64, Refusal> {
        let key = self.locked_activity(token)?;
        if !self.activities[&key].is_locked(handed_in) {
            return Err(Refusal::WorkItemLockLost);
        }
        Ok(key)
    }

    pub(super) fn ack_activity(
        &mut self,
        token: &str,
        completion: Option<&MessageRow>,
        handed_in: Timestamp,
    ) -> Result<Answer, Refusal> {
        let key = self.held_activity(token, handed_in)?;
        self.is_first_attempt = self.activities[&key].attempts == 1;
        self.touch_session_of(key);
        self.remove_activity(key);
        completion.into_iter().for_each(|row| drop(self.enqueue(row)));
        Ok(Answer::Done)
    }

    pub(super) fn abandon_activity(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<Answer, Refusal> {
        let key = self.locked_activity(token)?;
        let (hidden_until, now) = (self.hidden_until(delay), self.now);
        let activity = self.activities.get_mut(&key).unwrap();
        activity.lock = None;
        activity.hidden_until = hidden_until;
        activity.attempts = activity.attempts.saturating_sub(u32::from(ignore_attempt));
        activity.settle(now);
        Ok(Answer::Done)
    }

    pub(super) fn renew_activity(
        &mut self,
        token: &str,
        extend_for: Duration,
        handed_in: Timestamp,
    ) -> Result<Answer, Refusal> {
        let (key, now) = (self.held_activity(token, handed_in)?, self.now);
        self.touch_session_of(key);
        let activity = self.activities.get_mut(&key).unwrap();
        activity.lock.iter_mut().for_each(|lock| lock.extend(now, extend_for));
        activity.settle(now);
        Ok(Answer::Renewed { stop_requested: activity.stop_requested })
    }

    pub(super) fn dead_letter_activity(
        &mut self,
        token: &str,
        reason: &str,
        handed_in: Timestamp,
    ) -> Result<Answer, Refusal> {
        let key = self.held_activity(token, handed_in)?;
        let activity = self.remove_activity(key);
        self.bury(Undelivered::Activity(activity.row), reason, activity.attempts);
        Ok(Answer::Done)
    }
}
