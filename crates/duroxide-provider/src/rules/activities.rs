//! The worker queue: enqueueing, and what the holder of an activity may do with it.

use std::time::Duration;

use duroxide_core::Timestamp;

use super::{ActivityItem, InstanceRow, Lane, QueuedActivity, Rows, Rules, Tables, locks::extend};
use crate::{
    ScheduledActivityIdentifier,
    store::{
        ActivityRow, Answer, ApplyError, MessageKind, MessageRow, PreparedStop, Refusal, Visibility,
        token_row,
    },
};

impl<T: Tables> Rules<T> {
    /// Queues an activity, unless it is queued. Nobody asks whether the instance was ever started.
    pub(super) fn enqueue_activity(&mut self, activity: &ActivityRow) -> Rows<()> {
        let instance = self.open_instance(&activity.instance)?.number;
        self.enqueue_activity_of(instance, activity)
    }

    /// Queues an activity of this instance, unless it is queued.
    pub(super) fn enqueue_activity_of(&mut self, instance: u64, prepared: &ActivityRow) -> Rows<()> {
        let lane = Lane { tag: prepared.tag.clone(), name: prepared.name.clone() };
        let (number, lane) = (self.tables.next_number()?, self.tables.lane_id(&lane)?);
        let activity = QueuedActivity::new(number, instance, lane, prepared);
        self.tables.insert_activity(&activity, prepared).map(|_| ())
    }

    /// Writes an activity, and decides when it can be claimed: its lease has ended, and no abandon hides it.
    pub(super) fn settle_activity(&mut self, mut activity: QueuedActivity) -> Rows<()> {
        let leased_until = activity.lock.as_ref().map_or(Timestamp::ZERO, |lease| lease.until);
        let until = leased_until.max(activity.hidden_until);
        activity.waits_until = (self.now < until).then_some(until);
        self.tables.update_activity(&activity)
    }

    /// The activity that a token locks, whether its lease is live or not.
    pub(super) fn activity_locked_by(&mut self, token: &str) -> Result<QueuedActivity, ApplyError> {
        let activity = match token_row(token) {
            Some(number) => self.tables.activity(number)?,
            None => None,
        };
        let held = activity.filter(|row| row.lock.as_ref().is_some_and(|lease| lease.token == token));
        held.ok_or_else(|| Refusal::WorkItemLockLost.into())
    }

    fn held_activity(&mut self, token: &str, handed_in: Timestamp) -> Result<QueuedActivity, ApplyError> {
        let activity = self.activity_locked_by(token)?;
        if activity.is_locked(handed_in) { Ok(activity) } else { Err(Refusal::WorkItemLockLost.into()) }
    }

    /// Deletes an activity and queues its completion, in this one transaction.
    pub(super) fn ack_activity(
        &mut self,
        token: &str,
        completion: Option<&MessageRow>,
        handed_in: Timestamp,
    ) -> Result<Answer, ApplyError> {
        let activity = self.held_activity(token, handed_in)?;
        self.touch_session_of(&activity)?;
        match completion {
            Some(message) => self.complete(&activity, message)?,
            None => self.remove_activity(&activity).map(|_| ())?,
        }
        Ok(Answer::Done)
    }

    fn complete(&mut self, activity: &QueuedActivity, message: &MessageRow) -> Rows<()> {
        let is_plain = message.kind == MessageKind::Other && message.visible == Visibility::Now;
        if is_plain {
            let ready = self.tables.next_number()?;
            if self.tables.wake_if_waiting(activity.instance, &message.instance, ready)? {
                self.tables.delete_activity(activity.number)?;
                return self.insert_message(activity.instance, message).map(|_| ());
            }
        }
        match self.remove_activity(activity)? {
            Some(owner) if owner.id == message.instance => self.enqueue_to(owner, message),
            _ => self.enqueue(message).map(|_| ()),
        }
    }

    pub(super) fn renew_activity(
        &mut self,
        token: &str,
        extend_for: Duration,
        handed_in: Timestamp,
    ) -> Result<Answer, ApplyError> {
        let mut activity = self.held_activity(token, handed_in)?;
        self.touch_session_of(&activity)?;
        let stop_requested = activity.stop_requested;
        if let Some(lease) = &mut activity.lock {
            extend(lease, self.now, extend_for);
        }
        self.settle_activity(activity)?;
        Ok(Answer::Renewed { stop_requested })
    }

    /// Gives an activity back. Only the token counts, not the lease: nobody else holds it.
    pub(super) fn abandon_activity(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<Answer, ApplyError> {
        let mut activity = self.activity_locked_by(token)?;
        activity.lock = None;
        activity.hidden_until = self.hidden_until(delay).unwrap_or_default();
        activity.attempts = activity.attempts.saturating_sub(u32::from(ignore_attempt));
        self.settle_activity(activity)?;
        Ok(Answer::Done)
    }

    pub(super) fn dead_letter_activity(
        &mut self,
        token: &str,
        reason: &str,
        handed_in: Timestamp,
    ) -> Result<Answer, ApplyError> {
        let held = self.held_activity(token, handed_in)?;
        if let Some((activity, item)) = self.tables.activity_with_item(held.number)? {
            self.bury_activity(&activity, item.into_data(), reason.to_owned())?;
        }
        Ok(Answer::Done)
    }

    /// Deletes an activity that a round of another instance cancelled; an unknown one is no error.
    pub(super) fn cancel_activity(&mut self, cancelled: &ScheduledActivityIdentifier) -> Rows<()> {
        let Some(instance) = self.tables.instance_named(&cancelled.instance)? else { return Ok(()) };
        let ScheduledActivityIdentifier { execution_id, activity_id, .. } = cancelled;
        let found = self.tables.find_activity(instance.number, *execution_id, *activity_id)?;
        match found.map(|number| self.tables.activity(number)).transpose()?.flatten() {
            Some(activity) => self.remove_activity(&activity).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Deletes an activity that a round of its own instance cancelled; an unknown one is no error. The round decides the
    /// readiness of the instance.
    pub(super) fn cancel_activity_of(
        &mut self,
        instance: u64,
        cancelled: &ScheduledActivityIdentifier,
    ) -> Rows<()> {
        let ScheduledActivityIdentifier { execution_id, activity_id, .. } = cancelled;
        match self.tables.find_activity(instance, *execution_id, *activity_id)? {
            Some(number) => self.tables.delete_activity(number),
            None => Ok(()),
        }
    }

    /// Asks an activity of this instance to stop. If nobody holds it, its row is deleted, and the message that is returned
    /// has to be sent to the instance instead.
    pub(super) fn stop_activity<'a>(
        &mut self,
        instance: u64,
        execution_id: u64,
        stop: &'a PreparedStop,
    ) -> Rows<Option<&'a MessageRow>> {
        let found = self.tables.find_activity(instance, execution_id, stop.activity_id)?;
        let activity = found.map(|number| self.tables.activity(number)).transpose()?.flatten();
        let Some(mut activity) = activity else { return Ok(None) };
        if activity.is_locked(self.now) {
            activity.stop_requested = true;
            self.tables.update_activity(&activity)?;
            return Ok(None);
        }
        self.tables.delete_activity(activity.number)?;
        Ok(Some(stop.message(activity.claimed)))
    }

    /// Deletes an activity, and with the last one a mailbox that holds nothing else. Returns the instance, unless it is a
    /// mailbox.
    pub(super) fn remove_activity(&mut self, activity: &QueuedActivity) -> Rows<Option<InstanceRow>> {
        self.tables.delete_activity(activity.number)?;
        match self.tables.instance(activity.instance)? {
            Some(mailbox) if !mailbox.known => {
                self.settle(mailbox)?;
                Ok(None)
            }
            instance => Ok(instance),
        }
    }
}

impl ActivityItem {
    /// Its JSON.
    pub(super) fn into_data(self) -> String {
        match self {
            // Plain data with text keys, for which `serde_json` cannot fail.
            Self::Item(item) => serde_json::to_string(&*item).unwrap_or_default(),
            Self::Data(data) => data,
        }
    }
}
