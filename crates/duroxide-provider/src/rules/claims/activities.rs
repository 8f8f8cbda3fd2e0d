//! Claiming activities: the lowest that lane and session admit.

use std::sync::Arc;

use duroxide_core::WorkItem;

use crate::rules::{ActivityItem, LaneId, Lease, QueuedActivity, Rows, Rules, Tables};
use crate::{
    ScheduledActivityIdentifier, SessionFetchConfig, WorkClaim,
    store::{
        ActivityFetch, Claimed, DeadLetterNote, DeadLetterReason, HeldBack, HeldBackBy,
        bounds::UNDECODABLE_HIDDEN_FOR, lock_token,
    },
};

impl<T: Tables> Rules<T> {
    /// Locks ready activities, lowest first.
    pub(in crate::rules) fn lock_ready_activities(
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
            for number in candidates {
                let Some((activity, item)) = self.readable_activity(number, &mut claimed.dead_letters)?
                else {
                    continue;
                };
                if activity.attempts > 0 && claimed.items.len() >= fetch.free_slots {
                    // The activity may be poison: it needs a free slot, and nothing overtakes it.
                    return Ok(claimed);
                }
                claimed.items.push(self.lock_activity(activity, item, fetch, nonce)?);
            }
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
        // Each look skips the same items again, so only the last look counts.
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
        let found = self.tables.find_activity(instance.number, only.execution_id, only.activity_id)?;
        let activity = found.map(|number| self.tables.activity(number)).transpose()?.flatten();
        let ready = activity.filter(|activity| activity.waits_until.is_none());
        Ok(ready.map(|activity| activity.number).into_iter().collect())
    }

    /// An activity with what it is asked to do. One that cannot be decoded is counted and hidden; after too many attempts
    /// it becomes a dead letter (16.10).
    fn readable_activity(
        &mut self,
        number: u64,
        notes: &mut Vec<DeadLetterNote>,
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
            let reason = DeadLetterReason::Undeserializable { error };
            let (id, instance) = self.bury_activity(&activity, data, reason.to_string())?;
            notes.push(DeadLetterNote { id, queue: crate::DeadLetterQueue::Worker, instance, reason });
        } else {
            activity.hidden_until = self.now.saturating_add(UNDECODABLE_HIDDEN_FOR);
            self.settle_activity(activity)?;
        }
        Ok(None)
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
        let claim = WorkClaim {
            item,
            lock_token: lock_token.clone(),
            attempt_count: activity.attempts.saturating_add(1),
            losses: Some(activity.losses.claimed_again(activity.lock.is_some())),
            claimed_before: activity.claimed,
            stop_requested: activity.stop_requested,
            incarnation: Some(activity.instance),
        };
        if let (Some(session), Some(by)) = (&activity.session_id, &fetch.session) {
            self.claim_session(session, by)?;
        }
        activity.losses = activity.losses.claimed_again(activity.lock.is_some());
        activity.lock =
            Some(Lease { token: lock_token, until, length: fetch.lock_timeout, node: fetch.node });
        activity.attempts = activity.attempts.saturating_add(1);
        activity.claimed = true;
        activity.hidden_until = duroxide_core::Timestamp::ZERO;
        activity.waits_until = Some(until);
        self.tables.update_activity(&activity)?;
        Ok(claim)
    }
}
