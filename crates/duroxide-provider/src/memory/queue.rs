//! Enqueueing, and ack, abandon and renewal of locked activities and sessions.

use std::time::Duration;

use duroxide_core::Timestamp;

use super::{
    MemoryEngine,
    activities::{Activity, ActivityKey},
    dead_letters::Undelivered,
    instance::Instance,
};
use crate::store::{ActivityRow, Answer, EventRow, MessageRow, Refusal, StateChange, Visibility};

impl MemoryEngine {
    pub(super) fn enqueue_message(&mut self, row: &MessageRow) -> Result<Answer, Refusal> {
        let begins = row.start.is_some()
            && row.visible == Visibility::Now
            && self.instances.find(&row.instance).is_none();
        self.instances.enqueue(row, self.now);
        Ok(if begins { Answer::Begun } else { Answer::Done })
    }

    pub(super) fn start_if_new(&mut self, row: &MessageRow) -> Result<Answer, Refusal> {
        let found = self.instances.find(&row.instance).and_then(|key| self.instances.get(key));
        match found.and_then(Instance::stored_start) {
            Some(start) => Ok(Answer::Found(start)),
            None => self.enqueue_message(row),
        }
    }

    pub(super) fn enqueue_activity(&mut self, row: &ActivityRow) -> Result<Answer, Refusal> {
        self.insert_activity(row);
        Ok(Answer::Done)
    }

    /// Queues an activity, unless it is queued. Nobody asks whether the instance exists.
    pub(super) fn insert_activity(&mut self, row: &ActivityRow) {
        let key = self.instances.open(&row.instance, self.now);
        let id = (row.execution_id, row.activity_id);
        if self.instances.get(key).is_some_and(|instance| instance.activities.contains_key(&id)) {
            return;
        }
        let activity = self.activities.insert(key, row, self.now);
        self.instances.change(key, self.now, |instance| instance.activities.insert(id, activity));
    }

    pub(super) fn remove_activity(&mut self, key: ActivityKey) -> Option<Activity> {
        let activity = self.activities.remove(key)?;
        let id = (activity.row.execution_id, activity.row.activity_id);
        self.instances.change(activity.instance, self.now, |instance| instance.activities.remove(&id));
        Some(activity)
    }

    pub(super) fn ack_activity(
        &mut self,
        token: &str,
        completion: Option<&MessageRow>,
        handed_in: Timestamp,
    ) -> Result<Answer, Refusal> {
        let key = self.locked_activity(token, handed_in)?;
        self.touch_session(key);
        self.remove_activity(key);
        if let Some(row) = completion {
            self.instances.enqueue(row, self.now);
        }
        Ok(Answer::Done)
    }

    pub(super) fn abandon_activity(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<Answer, Refusal> {
        let (key, _) = self.activities.holder_of(token).ok_or(Refusal::WorkItemLockLost)?;
        let hidden_until = self.hidden_until(delay).unwrap_or_default();
        self.activities.change(key, self.now, |activity| {
            activity.lock = None;
            activity.hidden_until = hidden_until;
            if ignore_attempt {
                activity.attempt_count = activity.attempt_count.saturating_sub(1);
            }
        });
        Ok(Answer::Done)
    }

    pub(super) fn renew_activity(
        &mut self,
        token: &str,
        extend_for: Duration,
        handed_in: Timestamp,
    ) -> Result<Answer, Refusal> {
        let key = self.locked_activity(token, handed_in)?;
        let now = self.now;
        self.activities.change(key, now, |activity| {
            if let Some(lock) = &mut activity.lock {
                lock.extend(now, extend_for);
            }
        });
        self.touch_session(key);
        let stop_requested = self.activities.get(key).is_some_and(|activity| activity.stop_requested);
        Ok(Answer::Renewed { stop_requested })
    }

    pub(super) fn dead_letter_activity(
        &mut self,
        token: &str,
        reason: &str,
        handed_in: Timestamp,
    ) -> Result<Answer, Refusal> {
        let key = self.locked_activity(token, handed_in)?;
        if let Some(activity) = self.remove_activity(key) {
            let undelivered = Undelivered::Activity(activity.row);
            self.dead_letters.insert(undelivered, reason.to_owned(), activity.attempt_count, self.now);
        }
        Ok(Answer::Done)
    }

    fn locked_activity(&self, token: &str, handed_in: Timestamp) -> Result<ActivityKey, Refusal> {
        let held = self.activities.holder_of(token).filter(|(_, activity)| activity.is_locked(handed_in));
        held.map(|(key, _)| key).ok_or(Refusal::WorkItemLockLost)
    }

    fn touch_session(&mut self, key: ActivityKey) {
        let session = self.activities.get(key).and_then(|activity| activity.row.session_id.clone());
        if let Some(session) = session {
            self.activities.sessions().touch(&session, self.now);
        }
    }

    pub(super) fn renew_sessions(
        &mut self,
        owners: &[String],
        extend_for: Duration,
        idle_timeout: Duration,
        handed_in: Timestamp,
    ) -> Result<Answer, Refusal> {
        let sessions = self.activities.sessions();
        let renewed = sessions.renew(owners, handed_in, extend_for, idle_timeout, self.now);
        for session in &renewed {
            self.activities.file_session(session, self.now);
        }
        Ok(Answer::Count(renewed.len()))
    }

    pub(super) fn append(
        &mut self,
        instance: &str,
        execution_id: u64,
        events: &[EventRow],
        changes: &[StateChange],
    ) -> Result<Answer, Refusal> {
        if events.is_empty() {
            return Ok(Answer::Done);
        }
        if let Some(stored) = self.instances.find(instance).and_then(|key| self.instances.get(key)) {
            stored.check_new_events(execution_id, events)?;
        }
        let key = self.instances.open(instance, self.now);
        let now = self.now;
        self.instances.change(key, now, |row| row.append(execution_id, events, changes, now));
        Ok(Answer::Done)
    }

    pub(super) fn retry_dead_letter(&mut self, id: &str) -> Result<Answer, Refusal> {
        match self.dead_letters.take(id) {
            Some(Undelivered::Message(row)) => self.enqueue_message(&row),
            Some(Undelivered::Activity(row)) => self.enqueue_activity(&row),
            None => Err(Refusal::DeadLetterNotFound { id: id.to_owned() }),
        }
    }

    pub(super) fn discard_dead_letter(&mut self, id: &str) -> Result<Answer, Refusal> {
        match self.dead_letters.take(id) {
            Some(_) => Ok(Answer::Done),
            None => Err(Refusal::DeadLetterNotFound { id: id.to_owned() }),
        }
    }
}
