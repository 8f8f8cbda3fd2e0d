//! The worker queue: enqueueing, and what the holder of an activity may do with it.

mod claim;
mod kept;

use std::{sync::Arc, time::Duration};

use duroxide_core::{Timestamp, WorkItem};
use duroxide_provider::{
    DeadLetterQueue, Losses, ScheduledActivityIdentifier,
    store::{
        ActivityRow, Answer, ApplyError, DeadLetterNote, DeadLetterReason, MessageKind, MessageRow,
        PreparedStop, Refusal, StoreFailure, Visibility, token_row,
    },
};
use rusqlite::Row;

use crate::{
    SqliteEngine,
    db::{count, lossy_text, micros, number},
    instances::{InstanceRow, Lock, lease, read_losses},
    payloads::{kept_in_row, whole_data},
};

pub(crate) use kept::KeptActivities;

const INSERT: &str =
    "INSERT INTO activity (id, instance, execution_id, activity_id, lane, session_id, ready, data)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7)
    ON CONFLICT (instance, execution_id, activity_id) DO NOTHING";
const SELECT: &str =
    "SELECT id, instance, execution_id, activity_id, lane, session_id, lock_token, lock_until,
        attempt_count, claimed, stop_requested, lost, blamed
    FROM activity WHERE id = ?1";
const SELECT_WITH_DATA: &str = concat!(
    "SELECT id, instance, execution_id, activity_id, lane, session_id, lock_token, lock_until,
        attempt_count, claimed, stop_requested, lost, blamed, ",
    whole_data!("activity.id"),
    " FROM activity WHERE id = ?1"
);
const FIND: &str = "SELECT id FROM activity WHERE instance = ?1 AND execution_id = ?2 AND activity_id = ?3";
const CANCEL: &str = "DELETE FROM activity WHERE instance = ?1 AND execution_id = ?2 AND activity_id = ?3
    RETURNING id";
const DELETE: &str = "DELETE FROM activity WHERE id = ?1";
const RENEW: &str =
    "UPDATE activity SET lock_until = ?2, wake_at = ?2, lease = ?3, ready = NULL WHERE id = ?1";
const REQUEST_STOP: &str = "UPDATE activity SET stop_requested = 1 WHERE id = ?1";
const ABANDON: &str = "UPDATE activity SET lock_token = NULL, lock_until = NULL, lease = NULL,
        hidden_until = coalesce(?2, 0), wake_at = ?2, ready = CASE WHEN ?2 IS NULL THEN 1 END,
        attempt_count = max(0, attempt_count - ?3)
    WHERE id = ?1";
const DUE: &str = "UPDATE activity SET ready = 1, wake_at = NULL WHERE wake_at <= ?1";
const INSTANCE_ID: &str = "SELECT instance_id FROM instance WHERE id = ?1";

/// A queued activity, without what it is asked to do.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    pub(crate) id: i64,
    pub(crate) instance: i64,
    pub(crate) execution_id: i64,
    pub(crate) activity_id: i64,
    pub(crate) lane: i64,
    pub(crate) session_id: Option<String>,
    pub(crate) lock: Option<Lock>,
    pub(crate) attempt_count: u32,
    /// Whether it was ever claimed, also by a claim whose attempt was taken back.
    pub(crate) claimed: bool,
    pub(crate) stop_requested: bool,
    pub(crate) losses: Losses,
}

impl Activity {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            instance: row.get(1)?,
            execution_id: row.get(2)?,
            activity_id: row.get(3)?,
            lane: row.get(4)?,
            session_id: row.get(5)?,
            lock: Lock::read(row, 6)?,
            attempt_count: count(row.get(8)?),
            claimed: row.get(9)?,
            stop_requested: row.get(10)?,
            losses: read_losses(row, 11)?,
        })
    }
}

impl SqliteEngine {
    /// Queues an activity, unless it is queued. Nobody asks whether the instance was ever started.
    pub(crate) fn enqueue_activity(&mut self, row: &ActivityRow) -> Result<(), StoreFailure> {
        let instance = self.open_instance(&row.instance)?.id;
        self.enqueue_activity_of(instance, row)
    }

    /// Queues an activity of this instance, unless it is queued.
    pub(crate) fn enqueue_activity_of(
        &mut self,
        instance: i64,
        row: &ActivityRow,
    ) -> Result<(), StoreFailure> {
        let lane = self.lanes.id(&self.db, row.tag.as_deref(), &row.name)?;
        let activity = Activity {
            id: self.sequence.take(),
            instance,
            execution_id: number(row.execution_id),
            activity_id: number(row.activity_id),
            lane,
            session_id: row.session_id.clone(),
            lock: None,
            attempt_count: 0,
            claimed: false,
            stop_requested: false,
            losses: Losses::default(),
        };
        self.insert_activity(activity, &row.data, row.item.clone())
    }

    pub(crate) fn insert_activity(
        &mut self,
        activity: Activity,
        data: &str,
        item: Option<Arc<WorkItem>>,
    ) -> Result<(), StoreFailure> {
        let Activity { id, instance, execution_id, activity_id, lane, session_id, .. } = &activity;
        let columns = (id, instance, execution_id, activity_id, lane, session_id, kept_in_row(data));
        if self.db.execute(INSERT, columns)? > 0 {
            self.insert_payload(activity.id, data)?;
            self.kept_activities.keep(activity, item);
        }
        Ok(())
    }

    /// A queued activity. It is kept no longer.
    fn activity(&mut self, id: i64) -> Result<Option<Activity>, StoreFailure> {
        match self.kept_activities.take(id) {
            Some(kept) => Ok(Some(kept.activity)),
            None => self.db.first(SELECT, [id], Activity::read),
        }
    }

    /// An activity with what it is asked to do.
    fn activity_with_data(&self, id: i64) -> Result<Option<(Activity, String)>, StoreFailure> {
        self.db.first(SELECT_WITH_DATA, [id], |row| Ok((Activity::read(row)?, lossy_text(row, 13)?)))
    }

    /// The activity a token locks, whether its lease is live or not.
    fn activity_locked_by(&mut self, token: &str) -> Result<Activity, ApplyError> {
        let activity = match token_row(token) {
            Some(id) => self.activity(number(id))?,
            None => None,
        };
        let held = activity.filter(|row| row.lock.as_ref().is_some_and(|lock| lock.token == token));
        held.ok_or_else(|| Refusal::WorkItemLockLost.into())
    }

    fn held_activity(&mut self, token: &str, handed_in: Timestamp) -> Result<Activity, ApplyError> {
        let activity = self.activity_locked_by(token)?;
        let live = activity.lock.as_ref().is_some_and(|lock| lock.is_live(handed_in));
        if live { Ok(activity) } else { Err(Refusal::WorkItemLockLost.into()) }
    }

    /// Deletes an activity and queues its completion, in this one transaction.
    pub(crate) fn ack_activity(
        &mut self,
        token: &str,
        completion: Option<&MessageRow>,
        handed_in: Timestamp,
    ) -> Result<Answer, ApplyError> {
        let activity = self.held_activity(token, handed_in)?;
        self.touch_session(activity.session_id.as_deref())?;
        match completion {
            Some(message) => self.complete(&activity, message)?,
            None => self.delete_activity(&activity)?,
        }
        Ok(Answer::Done)
    }

    fn complete(&mut self, activity: &Activity, message: &MessageRow) -> Result<(), StoreFailure> {
        let is_plain = message.kind == MessageKind::Other && message.visible == Visibility::Now;
        if is_plain && self.stand_up_if_waiting(activity.instance, &message.instance)? {
            self.db.execute(DELETE, [activity.id])?;
            return self.insert_message(activity.instance, message).map(|_| ());
        }
        match self.remove_activity(activity)? {
            Some(owner) if owner.instance_id == message.instance => self.enqueue_to(&owner, message),
            _ => self.enqueue(message),
        }
    }

    pub(crate) fn renew_activity(
        &mut self,
        token: &str,
        extend_for: Duration,
        handed_in: Timestamp,
    ) -> Result<Answer, ApplyError> {
        let activity = self.held_activity(token, handed_in)?;
        let until = self.now.saturating_add(extend_for);
        self.db.execute(RENEW, (activity.id, micros(until), lease(extend_for)))?;
        self.touch_session(activity.session_id.as_deref())?;
        Ok(Answer::Renewed { stop_requested: activity.stop_requested })
    }

    /// Gives an activity back. Only the token counts, not the lease: nobody else holds it.
    pub(crate) fn abandon_activity(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<Answer, ApplyError> {
        let activity = self.activity_locked_by(token)?;
        let delay = delay.filter(|delay| !delay.is_zero());
        let hidden_until = delay.map(|delay| micros(self.now.saturating_add(delay)));
        self.db.execute(ABANDON, (activity.id, hidden_until, i64::from(ignore_attempt)))?;
        Ok(Answer::Done)
    }

    pub(crate) fn dead_letter_activity(
        &mut self,
        token: &str,
        reason: &str,
        handed_in: Timestamp,
    ) -> Result<Answer, ApplyError> {
        let activity = self.held_activity(token, handed_in)?;
        if let Some((activity, data)) = self.activity_with_data(activity.id)? {
            self.bury_activity(&activity, &data, reason, activity.attempt_count)?;
        }
        Ok(Answer::Done)
    }

    /// Moves an activity that cannot be decoded to the dead letters.
    fn bury_undecodable(
        &mut self,
        activity: &Activity,
        data: &str,
        error: &serde_json::Error,
        attempt_count: u32,
    ) -> Result<DeadLetterNote, StoreFailure> {
        let reason = DeadLetterReason::Undeserializable { error: error.to_string() };
        let (id, instance) = self.bury_activity(activity, data, &reason.to_string(), attempt_count)?;
        Ok(DeadLetterNote { id, queue: DeadLetterQueue::Worker, instance, reason })
    }

    fn bury_activity(
        &mut self,
        activity: &Activity,
        data: &str,
        reason: &str,
        attempt_count: u32,
    ) -> Result<(u64, Option<String>), StoreFailure> {
        let instance: Option<String> = self.db.first(INSTANCE_ID, [activity.instance], |row| row.get(0))?;
        let id = self.insert_dead_activity(activity, data, instance.as_deref(), reason, attempt_count)?;
        self.delete_activity(activity)?;
        Ok((id, instance))
    }

    /// Deletes an activity that a round cancelled; unknown ones are no error.
    pub(crate) fn cancel_activity(
        &mut self,
        cancelled: &ScheduledActivityIdentifier,
    ) -> Result<(), StoreFailure> {
        let Some(instance) = self.instance_named(&cancelled.instance)? else { return Ok(()) };
        let ids = (instance.id, number(cancelled.execution_id), number(cancelled.activity_id));
        let id: Option<i64> = self.db.first(FIND, ids, |row| row.get(0))?;
        match id.map(|id| self.activity(id)).transpose()?.flatten() {
            Some(activity) => self.delete_activity(&activity),
            None => Ok(()),
        }
    }

    /// Deletes an activity that a round of its own instance cancelled; unknown ones are no error. The round settles
    /// the instance.
    pub(crate) fn cancel_activity_of(
        &mut self,
        instance: i64,
        cancelled: &ScheduledActivityIdentifier,
    ) -> Result<(), StoreFailure> {
        let ids = (instance, number(cancelled.execution_id), number(cancelled.activity_id));
        let cancelled: Option<i64> = self.db.first(CANCEL, ids, |row| row.get(0))?;
        if let Some(id) = cancelled {
            self.kept_activities.take(id);
        }
        Ok(())
    }

    /// Asks an activity of this instance to stop. If nobody holds it, its row is deleted, and the message that is
    /// returned has to be sent to the instance instead.
    pub(crate) fn stop_activity<'a>(
        &mut self,
        instance: i64,
        execution_id: u64,
        stop: &'a PreparedStop,
    ) -> Result<Option<&'a MessageRow>, StoreFailure> {
        let ids = (instance, number(execution_id), number(stop.activity_id));
        let id: Option<i64> = self.db.first(FIND, ids, |row| row.get(0))?;
        let Some(activity) = id.map(|id| self.activity(id)).transpose()?.flatten() else { return Ok(None) };
        if activity.lock.as_ref().is_some_and(|lock| lock.is_live(self.now)) {
            self.db.execute(REQUEST_STOP, [activity.id])?;
            return Ok(None);
        }
        self.db.execute(DELETE, [activity.id])?;
        Ok(Some(stop.message(activity.claimed)))
    }

    fn delete_activity(&mut self, activity: &Activity) -> Result<(), StoreFailure> {
        self.remove_activity(activity).map(|_| ())
    }

    /// Deletes an activity, and with the last one a mailbox that holds nothing else. Returns the instance, unless that
    /// is gone too.
    fn remove_activity(&mut self, activity: &Activity) -> Result<Option<InstanceRow>, StoreFailure> {
        self.db.execute(DELETE, [activity.id])?;
        match self.instance(activity.instance)? {
            Some(mailbox) if !mailbox.known => {
                self.settle(&mailbox)?;
                Ok(None)
            }
            instance => Ok(instance),
        }
    }

    pub(crate) fn promote_activities(&mut self) -> Result<(), StoreFailure> {
        self.db.execute(DUE, [micros(self.now)]).map(|_| ())
    }
}
