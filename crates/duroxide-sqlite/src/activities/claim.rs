//! Claiming activities: the lowest that lane and session admit, each lane one index seek.

use std::sync::Arc;

use duroxide_core::WorkItem;
use duroxide_provider::{
    ScheduledActivityIdentifier, SessionFetchConfig, WorkClaim,
    store::{
        ActivityOrder, Claimed, DeadLetterNote, HeldBack, HeldBackBy, StoreFailure,
        bounds::UNDECODABLE_HIDDEN_FOR, lock_token,
    },
};

use super::{Activity, kept::KeptActivity};
use crate::{
    SqliteEngine,
    db::{micros, number, unsigned},
    instances::{Lock, lease},
    nodes,
};

const ANY_READY: &str = "SELECT 1 FROM activity WHERE ready IS NOT NULL AND session_id IS NULL LIMIT 1";
const NEXT_READY_LANE: &str = "SELECT lane FROM activity
    WHERE ready IS NOT NULL AND session_id IS NULL AND lane > ?1 ORDER BY lane LIMIT 1";
const READY_IN_LANE: &str = "SELECT id FROM activity
    WHERE ready IS NOT NULL AND session_id IS NULL AND lane = ?1 ORDER BY id LIMIT ?2";
const FIRST_READY_SESSION: &str = "SELECT session_id FROM activity
    WHERE ready IS NOT NULL AND session_id IS NOT NULL ORDER BY session_id LIMIT 1";
const NEXT_READY_SESSION: &str = "SELECT session_id FROM activity
    WHERE ready IS NOT NULL AND session_id IS NOT NULL AND session_id > ?1 ORDER BY session_id LIMIT 1";
const NEXT_READY_SESSION_LANE: &str = "SELECT lane FROM activity
    WHERE ready IS NOT NULL AND session_id IS NOT NULL AND session_id = ?1 AND lane > ?2 ORDER BY lane LIMIT 1";
const READY_IN_SESSION_LANE: &str = "SELECT id FROM activity
    WHERE ready IS NOT NULL AND session_id IS NOT NULL AND session_id = ?1 AND lane = ?2 ORDER BY id LIMIT ?3";
const READY_NAMED: &str = "SELECT activity.id FROM activity JOIN instance ON instance.id = activity.instance
    WHERE instance_id = ?1 AND activity.execution_id = ?2 AND activity_id = ?3 AND activity.ready IS NOT NULL";
const LOCK: &str = "UPDATE activity SET ready = NULL, wake_at = ?3, hidden_until = 0, lock_token = ?2,
        lock_until = ?3, lease = ?4, attempt_count = attempt_count + 1, claimed = 1, node = ?5,
        lost = ?6
    WHERE id = ?1";
const HIDE_UNDECODABLE: &str = "UPDATE activity SET ready = NULL, wake_at = ?2, hidden_until = ?2,
        attempt_count = attempt_count + 1
    WHERE id = ?1";

impl SqliteEngine {
    pub(crate) fn claim_ready_activities(
        &mut self,
        order: &ActivityOrder,
        nonce: u128,
    ) -> Result<Claimed<WorkClaim>, StoreFailure> {
        let mut claimed = Claimed::default();
        while claimed.items.len() < order.max {
            let wanted = order.max - claimed.items.len();
            let mut candidates = match &order.only {
                None => self.ready_activities(order, wanted, &mut claimed.held_back)?,
                Some(only) => self.ready_activity(only)?,
            };
            let were_all = candidates.len() <= wanted;
            candidates.truncate(wanted);
            for id in candidates {
                let Some((activity, item)) = self.decodable_activity(id, &mut claimed.dead_letters)? else {
                    continue;
                };
                if activity.attempt_count > 0 && claimed.items.len() >= order.free_slots {
                    // It may be poison: never ahead of a free slot, and nothing overtakes it.
                    return Ok(claimed);
                }
                claimed.items.push(self.lock_activity(activity, item, order, nonce)?);
            }
            claimed.took_all = were_all;
            if were_all {
                break;
            }
        }
        Ok(claimed)
    }

    /// An activity with what it is asked to do. One that cannot be decoded is put aside.
    fn decodable_activity(
        &mut self,
        id: i64,
        notes: &mut Vec<DeadLetterNote>,
    ) -> Result<Option<(Activity, WorkItem)>, StoreFailure> {
        if let Some(KeptActivity { activity, item: Some(item) }) = self.kept_activities.take(id) {
            return Ok(Some((activity, Arc::unwrap_or_clone(item))));
        }
        let Some((activity, data)) = self.activity_with_data(id)? else { return Ok(None) };
        match serde_json::from_str(&data) {
            Ok(item) => Ok(Some((activity, item))),
            Err(error) => {
                notes.extend(self.put_activity_aside(&activity, &data, &error)?);
                Ok(None)
            }
        }
    }

    /// Counts and hides an activity that cannot be decoded; after too many attempts it becomes a dead letter (16.10).
    fn put_activity_aside(
        &mut self,
        activity: &Activity,
        data: &str,
        error: &serde_json::Error,
    ) -> Result<Option<DeadLetterNote>, StoreFailure> {
        let attempt_count = activity.attempt_count.saturating_add(1);
        if attempt_count > self.max_attempts {
            return self.bury_undecodable(activity, data, error, attempt_count).map(Some);
        }
        let until = self.now.saturating_add(UNDECODABLE_HIDDEN_FOR);
        self.db.execute(HIDE_UNDECODABLE, (activity.id, micros(until)))?;
        Ok(None)
    }

    pub(crate) fn any_activity_ready(&self) -> Result<bool, StoreFailure> {
        Ok(self.db.exists(ANY_READY, [])? || self.db.exists(FIRST_READY_SESSION, [])?)
    }

    fn lock_activity(
        &mut self,
        mut activity: Activity,
        item: WorkItem,
        order: &ActivityOrder,
        nonce: u128,
    ) -> Result<WorkClaim, StoreFailure> {
        let lock_token = lock_token(unsigned(activity.id), nonce);
        let until = self.now.saturating_add(order.lock_timeout);
        let node = nodes::column(order.node);
        let losses = activity.losses.claimed_again(activity.lock.is_some());
        let columns = (activity.id, &lock_token, micros(until), lease(order.lock_timeout), node, losses.lost);
        self.db.execute(LOCK, columns)?;
        if let (Some(session), Some(by)) = (&activity.session_id, &order.session) {
            self.claim_session(session, by)?;
        }
        let attempt_count = activity.attempt_count.saturating_add(1);
        activity.attempt_count = attempt_count;
        let claimed_before = std::mem::replace(&mut activity.claimed, true);
        let stop_requested = activity.stop_requested;
        activity.losses = losses;
        activity.lock = Some(Lock { token: lock_token.clone(), until });
        let incarnation = Some(unsigned(activity.instance));
        self.kept_activities.keep(activity, None);
        Ok(WorkClaim {
            item,
            lock_token,
            attempt_count,
            losses: Some(losses),
            claimed_before,
            stop_requested,
            incarnation,
        })
    }

    /// Ready activities that the order accepts, lowest first, and one more than are wanted if there are more.
    fn ready_activities(
        &mut self,
        order: &ActivityOrder,
        wanted: usize,
        held_back: &mut HeldBack,
    ) -> Result<Vec<i64>, StoreFailure> {
        let limit = i64::try_from(wanted.saturating_add(1)).unwrap_or(i64::MAX);
        let mut found = Vec::new();
        let passed_over_max = i64::try_from(order.max).unwrap_or(i64::MAX);
        // What a claim passes over it passes over each time it looks.
        *held_back = HeldBack::default();
        let mut lane = i64::MIN;
        while let Some(next) = self.db.first(NEXT_READY_LANE, [lane], |row| row.get(0))? {
            lane = next;
            if self.lanes.accepts(&self.db, lane, order)? {
                found.extend(self.db.all(READY_IN_LANE, (lane, limit), |row| row.get::<_, i64>(0))?);
            } else if self.lanes.holds_back(&self.db, lane, order)? {
                let passed_over = self.db.all(READY_IN_LANE, (lane, passed_over_max), |_| Ok(()))?;
                held_back.count(HeldBackBy::Activity, passed_over.len());
            }
        }
        if let Some(by) = &order.session {
            self.add_ready_in_sessions(order, by, limit, &mut found)?;
        }
        found.sort_unstable();
        found.truncate(wanted.saturating_add(1));
        Ok(found)
    }

    /// An activity, if it is ready.
    fn ready_activity(&self, only: &ScheduledActivityIdentifier) -> Result<Vec<i64>, StoreFailure> {
        let ids = (&only.instance, number(only.execution_id), number(only.activity_id));
        self.db.all(READY_NAMED, ids, |row| row.get(0))
    }

    /// Activities of sessions that this owner holds or may take: one seek for each session with something ready.
    fn add_ready_in_sessions(
        &mut self,
        order: &ActivityOrder,
        by: &SessionFetchConfig,
        limit: i64,
        found: &mut Vec<i64>,
    ) -> Result<(), StoreFailure> {
        let mut next = self.db.first(FIRST_READY_SESSION, [], |row| row.get::<_, String>(0))?;
        while let Some(session) = next {
            if self.session_admits(&session, by)? {
                self.add_ready_in_session(order, &session, limit, found)?;
            }
            next = self.db.first(NEXT_READY_SESSION, [&session], |row| row.get(0))?;
        }
        Ok(())
    }

    fn add_ready_in_session(
        &mut self,
        order: &ActivityOrder,
        session: &str,
        limit: i64,
        found: &mut Vec<i64>,
    ) -> Result<(), StoreFailure> {
        let mut lane = i64::MIN;
        while let Some(next) = self.db.first(NEXT_READY_SESSION_LANE, (session, lane), |row| row.get(0))? {
            lane = next;
            if self.lanes.accepts(&self.db, lane, order)? {
                let columns = (session, lane, limit);
                found.extend(self.db.all(READY_IN_SESSION_LANE, columns, |row| row.get::<_, i64>(0))?);
            }
        }
        Ok(())
    }
}
