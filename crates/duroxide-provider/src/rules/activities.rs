//! The worker queue: enqueueing, claiming the lowest that lane and session admit, and the operations of the holder of an
//! activity.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use duroxide_core::{Timestamp, WorkItem};

use super::{
    ActivityItem, InstanceRow, Lane, LaneId, Lease, QueuedActivity, Rows, Rules, Tables, locks::extend,
};
use crate::{
    DeadLetterQueue, ScheduledActivityIdentifier, SessionFetchConfig, WorkClaim,
    store::{
        ActivityFetch, ActivityRow, Answer, ApplyError, Claimed, DeadLetterNote, DeadLetterReason, HeldBack,
        HeldBackBy, MessageRow, PreparedStop, Refusal, bounds::UNDECODABLE_HIDDEN_FOR, lock_token, token_row,
    },
};

/// An activity that cannot be decoded and has no attempts left.
struct Unreadable {
    activity: QueuedActivity,
    data: String,
    error: String,
}

impl<T: Tables> Rules<T> {
    /// Queues an activity, unless it is queued. The instance need not exist.
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

    // ---- claims ---------------------------------------------------------------------------------------------

    /// Locks ready activities, lowest first.
    pub(super) fn claim_ready_activities(
        &mut self,
        fetch: &ActivityFetch,
        nonce: u128,
    ) -> Rows<Claimed<WorkClaim>> {
        let mut claimed = Claimed::default();
        while claimed.items.len() < fetch.max {
            let wanted = fetch.max - claimed.items.len();
            let mut candidates = match &fetch.only {
                None => self.ready_activities(fetch, wanted, &mut claimed.held_back)?,
                Some(only) => self.ready_activity(only)?,
            };
            let were_all = candidates.len() <= wanted;
            candidates.truncate(wanted);
            let mut unreadable = Vec::new();
            for number in candidates {
                let Some((activity, item)) = self.readable_activity(number, &mut unreadable)? else {
                    continue;
                };
                if activity.attempts > 0 && claimed.items.len() >= fetch.free_slots {
                    // The activity may be poison: it needs a free slot, and nothing overtakes it.
                    claimed.dead_letters.extend(self.dead_letter_unreadable(unreadable)?);
                    return Ok(claimed);
                }
                claimed.items.push(self.lock_activity(activity, item, fetch, nonce)?);
            }
            claimed.dead_letters.extend(self.dead_letter_unreadable(unreadable)?);
            claimed.took_all = were_all;
            if were_all {
                break;
            }
        }
        Ok(claimed)
    }

    /// Ready activities that the fetch accepts, lowest first, and one more than are wanted if there are more.
    fn ready_activities(
        &mut self,
        fetch: &ActivityFetch,
        wanted: usize,
        held_back: &mut HeldBack,
    ) -> Rows<Vec<u64>> {
        // Each pass skips the same items again, so only the last pass counts.
        *held_back = HeldBack::default();
        let limit = wanted.saturating_add(1);
        let mut found = Vec::new();
        for id in self.tables.ready_lanes()? {
            if self.lane_passes(id, ActivityFetch::accepts, fetch)? {
                found.extend(self.tables.ready_in_lane(id, limit)?);
            } else if self.lane_passes(id, ActivityFetch::holds_back, fetch)? {
                let passed_over = self.tables.count_ready_in_lane(id, fetch.max)?;
                held_back.count(HeldBackBy::Activity, passed_over);
            }
        }
        if let Some(by) = &fetch.session {
            self.add_ready_in_sessions(fetch, by, limit, &mut found)?;
        }
        found.sort_unstable();
        found.truncate(limit);
        Ok(found)
    }

    fn lane_passes(
        &mut self,
        id: LaneId,
        test: fn(&ActivityFetch, &str, Option<&str>) -> bool,
        fetch: &ActivityFetch,
    ) -> Rows<bool> {
        Ok(self.tables.lane(id)?.is_some_and(|lane| test(fetch, &lane.name, lane.tag.as_deref())))
    }

    /// Activities of sessions that this owner holds or may take.
    fn add_ready_in_sessions(
        &mut self,
        fetch: &ActivityFetch,
        by: &SessionFetchConfig,
        limit: usize,
        found: &mut Vec<u64>,
    ) -> Rows<()> {
        for (session, lane) in self.tables.ready_session_lanes()? {
            if self.lane_passes(lane, ActivityFetch::accepts, fetch)? && self.session_admits(&session, by)? {
                found.extend(self.tables.ready_in_session_lane(&session, lane, limit)?);
            }
        }
        Ok(())
    }

    /// An activity, if it is ready.
    fn ready_activity(&mut self, only: &ScheduledActivityIdentifier) -> Rows<Vec<u64>> {
        let Some(instance) = self.tables.instance_named(&only.instance)? else { return Ok(Vec::new()) };
        let activity = self.activity_of(instance.number, only.execution_id, only.activity_id)?;
        let ready = activity.filter(QueuedActivity::is_ready);
        Ok(ready.map(|activity| activity.number).into_iter().collect())
    }

    fn activity_of(
        &mut self,
        instance: u64,
        execution_id: u64,
        activity_id: u64,
    ) -> Rows<Option<QueuedActivity>> {
        let found = self.tables.find_activity(instance, execution_id, activity_id)?;
        Ok(found.map(|number| self.tables.activity(number)).transpose()?.flatten())
    }

    /// An activity with its item. One that cannot be decoded is counted and hidden; after too many attempts it is `unreadable`
    /// (16.10).
    fn readable_activity(
        &mut self,
        number: u64,
        unreadable: &mut Vec<Unreadable>,
    ) -> Rows<Option<(QueuedActivity, WorkItem)>> {
        let Some((mut activity, item)) = self.tables.activity_with_item(number)? else { return Ok(None) };
        let data = match item {
            ActivityItem::Item(item) => return Ok(Some((activity, Arc::unwrap_or_clone(item)))),
            ActivityItem::Data(data) => data,
        };
        let error = match serde_json::from_str(&data) {
            Ok(item) => return Ok(Some((activity, item))),
            Err(error) => error.to_string(),
        };
        activity.attempts = activity.attempts.saturating_add(1);
        if activity.attempts > self.max_attempts {
            unreadable.push(Unreadable { activity, data, error });
        } else {
            activity.hidden_until = self.now.saturating_add(UNDECODABLE_HIDDEN_FOR);
            self.settle_activity(activity)?;
        }
        Ok(None)
    }

    /// Makes dead letters of activities, all at once: tables can read all their instances together.
    fn dead_letter_unreadable(&mut self, unreadable: Vec<Unreadable>) -> Rows<Vec<DeadLetterNote>> {
        let instances: BTreeSet<u64> = unreadable.iter().map(|letter| letter.activity.instance).collect();
        self.tables.instances(&instances.into_iter().collect::<Vec<_>>())?;
        let mut notes = Vec::with_capacity(unreadable.len());
        for Unreadable { activity, data, error } in unreadable {
            let reason = DeadLetterReason::Undeserializable { error };
            let (id, instance) = self.dead_letter_activity_row(&activity, data, reason.to_string())?;
            notes.push(DeadLetterNote { id, queue: DeadLetterQueue::Worker, instance, reason });
        }
        Ok(notes)
    }

    fn lock_activity(
        &mut self,
        mut activity: QueuedActivity,
        item: WorkItem,
        fetch: &ActivityFetch,
        nonce: u128,
    ) -> Rows<WorkClaim> {
        let lock_token = lock_token(activity.number, nonce);
        let until = self.now.saturating_add(fetch.lock_timeout);
        activity.losses = activity.losses.claimed_again(activity.lock.is_some());
        activity.attempts = activity.attempts.saturating_add(1);
        let claim = WorkClaim {
            item,
            lock_token: lock_token.clone(),
            attempt_count: activity.attempts,
            losses: Some(activity.losses),
            claimed_before: activity.claimed,
            stop_requested: activity.stop_requested,
            incarnation: Some(activity.instance),
        };
        if let (Some(session), Some(by)) = (&activity.session_id, &fetch.session) {
            self.claim_session(session, by)?;
        }
        activity.claimed = true;
        activity.hold(Lease { token: lock_token, until, length: fetch.lock_timeout, node: fetch.node });
        self.tables.update_activity(&activity)?;
        Ok(claim)
    }

    // ---- operations of the holder -------------------------------------------------------------------------------

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
        self.is_first_attempt = activity.attempts <= 1;
        self.attempts_before = u32::from(self.early_turns && activity.losses.lost > 0);
        self.touch_session_of(&activity)?;
        match completion {
            None => drop(self.remove_activity(&activity)?),
            Some(message) if self.wake_for(activity.instance, message)? => {
                self.tables.delete_activity(activity.number)?;
                self.insert_message(activity.instance, message)?;
            }
            Some(message) => match self.remove_activity(&activity)? {
                Some(owner) if owner.id == message.instance => self.enqueue_to(owner, message)?,
                _ => drop(self.enqueue(message)?),
            },
        }
        Ok(Answer::Done)
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

    /// Gives an activity back. Only the token counts, not the lease: no other claim can hold it.
    pub(super) fn abandon_activity(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<Answer, ApplyError> {
        let mut activity = self.activity_locked_by(token)?;
        activity.lock = None;
        activity.hidden_until = self.hidden_until(delay);
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
            self.dead_letter_activity_row(&activity, item.into_data(), reason.to_owned())?;
        }
        Ok(Answer::Done)
    }

    /// Deletes an activity that a round of another instance cancelled; an unknown one is no error.
    pub(super) fn cancel_activity(&mut self, cancelled: &ScheduledActivityIdentifier) -> Rows<()> {
        let Some(instance) = self.tables.instance_named(&cancelled.instance)? else { return Ok(()) };
        let ScheduledActivityIdentifier { execution_id, activity_id, .. } = cancelled;
        match self.activity_of(instance.number, *execution_id, *activity_id)? {
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

    /// Asks an activity of this instance to stop. Without a lock, its row is deleted, and the returned message has to be
    /// sent to the instance instead.
    pub(super) fn stop_activity<'a>(
        &mut self,
        instance: u64,
        execution_id: u64,
        stop: &'a PreparedStop,
    ) -> Rows<Option<&'a MessageRow>> {
        let Some(mut activity) = self.activity_of(instance, execution_id, stop.activity_id)? else {
            return Ok(None);
        };
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
