use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use duroxide_core::{Timestamp, WorkItem};

use super::{
    instances::InstanceKey,
    lock::Lock,
    record::{ActivityRecord, RowChanges},
    sessions::{Holder, Sessions},
    touched::{Touch, Touched},
};
use crate::{
    Losses,
    store::{ActivityOrder, ActivityRow, ActivitySnapshot, HeldBack, HeldBackBy, token_row},
};

/// The number of an activity's row; lower ones are taken first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ActivityKey(pub(super) u64);

/// One queued activity.
#[derive(Debug, Clone)]
pub(super) struct Activity {
    pub(super) instance: InstanceKey,
    pub(super) row: ActivityRow,
    pub(super) attempt_count: u32,
    pub(super) claimed: bool,
    pub(super) stop_requested: bool,
    pub(super) losses: Losses,
    pub(super) hidden_until: Timestamp,
    pub(super) lock: Option<Lock>,
    lane: Option<Lane>,
    wake_at: Option<Timestamp>,
}

/// What filters look at. Ready activities are kept by lane, so that one a worker cannot take costs it nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Lane {
    tag: Option<String>,
    name: String,
    holder: Holder,
}

impl Lane {
    fn is_accepted_by(&self, order: &ActivityOrder) -> bool {
        order.accepts(&self.name, self.tag.as_deref()) && self.holder.admits(order.session.as_ref())
    }
}

/// The worker queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Activities {
    rows: BTreeMap<ActivityKey, Activity>,
    ready: BTreeMap<Lane, BTreeSet<ActivityKey>>,
    wake: BTreeSet<(Timestamp, ActivityKey)>,
    /// Queued activities by session.
    by_session: BTreeMap<String, BTreeSet<ActivityKey>>,
    sessions: Sessions,
    last_row: u64,
    touched: Touched<(ActivityKey, String)>,
}

impl Activities {
    pub(super) fn insert(&mut self, instance: InstanceKey, row: &ActivityRow, now: Timestamp) -> ActivityKey {
        self.last_row += 1;
        let key = ActivityKey(self.last_row);
        let activity = Activity {
            instance,
            row: row.clone(),
            attempt_count: 0,
            claimed: false,
            stop_requested: false,
            losses: Losses::default(),
            hidden_until: Timestamp::ZERO,
            lock: None,
            lane: None,
            wake_at: None,
        };
        self.touched.add((key, activity.row.instance.clone()));
        self.put(key, activity, now);
        key
    }

    fn put(&mut self, key: ActivityKey, activity: Activity, now: Timestamp) {
        if let Some(session) = &activity.row.session_id {
            self.by_session.entry(session.clone()).or_default().insert(key);
        }
        self.rows.insert(key, activity);
        self.file(key, now);
    }

    /// Brings back an activity that was kept elsewhere.
    pub(super) fn restore(
        &mut self,
        instance: InstanceKey,
        record: ActivityRecord,
        now: Timestamp,
    ) -> ActivityKey {
        let key = ActivityKey(record.number);
        self.last_row = self.last_row.max(record.number);
        let activity = Activity {
            instance,
            row: record.row,
            attempt_count: record.attempt_count,
            claimed: record.claimed,
            stop_requested: record.stop_requested,
            losses: record.losses,
            hidden_until: record.hidden_until,
            lock: record.lock.map(Lock::restore),
            lane: None,
            wake_at: None,
        };
        self.put(key, activity, now);
        key
    }

    /// Sessions and numbers go on where they were before a restore.
    pub(super) fn continue_from(&mut self, before: Self) {
        self.last_row = self.last_row.max(before.last_row);
        self.sessions = before.sessions;
    }

    pub(super) fn forget_changes(&mut self) {
        self.touched.forget();
    }

    /// Adds what changed since this was last called.
    pub(super) fn take_changes(&mut self, changes: &mut RowChanges<ActivityRecord>) {
        for ((key, instance), touch) in self.touched.take() {
            match (touch, self.rows.get(&key).map(|activity| activity.record(key))) {
                (Touch::Added, Some(record)) => changes.added.push(record),
                (_, Some(record)) => changes.changed.push(record),
                (_, None) => changes.removed.push((instance, key.0)),
            }
        }
    }

    pub(super) fn remove(&mut self, key: ActivityKey) -> Option<Activity> {
        self.unfile(key);
        let activity = self.rows.remove(&key)?;
        self.touched.remove((key, activity.row.instance.clone()));
        if let Some(session) = &activity.row.session_id
            && let Some(keys) = self.by_session.get_mut(session)
        {
            keys.remove(&key);
            if keys.is_empty() {
                self.by_session.remove(session);
            }
        }
        Some(activity)
    }

    pub(super) fn get(&self, key: ActivityKey) -> Option<&Activity> {
        self.rows.get(&key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Activity> {
        self.rows.values()
    }

    /// The rows for which this holds, lowest first.
    pub(super) fn keys_where(&self, holds: impl Fn(&Activity) -> bool) -> Vec<ActivityKey> {
        self.rows.iter().filter(|(_, activity)| holds(activity)).map(|(key, _)| *key).collect()
    }

    /// The row a token belongs to, if it is the token of that row's lock.
    pub(super) fn holder_of(&self, token: &str) -> Option<(ActivityKey, &Activity)> {
        let key = ActivityKey(token_row(token)?);
        let activity = self.get(key)?;
        (activity.lock.as_ref()?.token() == token).then_some((key, activity))
    }

    /// Changes a row and files it where it then belongs.
    pub(super) fn change(&mut self, key: ActivityKey, now: Timestamp, change: impl FnOnce(&mut Activity)) {
        if let Some(activity) = self.rows.get_mut(&key) {
            change(activity);
            self.touched.change((key, activity.row.instance.clone()));
            self.file(key, now);
        }
    }

    pub(super) fn sessions(&mut self) -> &mut Sessions {
        &mut self.sessions
    }

    /// Files a session's activities anew, after its lease began, moved or ended.
    pub(super) fn file_session(&mut self, session: &str, now: Timestamp) {
        let keys: Vec<_> = self.by_session.get(session).into_iter().flatten().copied().collect();
        keys.into_iter().for_each(|key| self.file(key, now));
    }

    pub(super) fn clean_up_sessions(&mut self, now: Timestamp) -> usize {
        let needed = &self.by_session;
        self.sessions.clean_up(now, |session| needed.contains_key(session))
    }

    /// The lowest ready activity that the order accepts.
    pub(super) fn first_ready(&self, order: &ActivityOrder) -> Option<ActivityKey> {
        let accepted = self.ready.iter().filter(|(lane, _)| lane.is_accepted_by(order));
        accepted.filter_map(|(_, keys)| keys.first()).min().copied()
    }

    pub(super) fn is_ready(&self, key: ActivityKey) -> bool {
        self.get(key).is_some_and(|activity| activity.lane.is_some())
    }

    /// Counts the ready activities without session that this order passes over because it has no handler for them.
    pub(super) fn count_held_back(&self, order: &ActivityOrder, held_back: &mut HeldBack) {
        let anyones = self.ready.iter().filter(|(lane, _)| lane.holder == Holder::Anyone);
        for (_, ready) in anyones.filter(|(lane, _)| order.holds_back(&lane.name, lane.tag.as_deref())) {
            held_back.count(HeldBackBy::Activity, ready.len().min(order.max));
        }
    }

    /// Ready activities in the lanes for which this holds, lowest first.
    pub(super) fn ready_where(
        &self,
        wanted: &dyn Fn(&str, Option<&str>) -> bool,
    ) -> impl Iterator<Item = &Activity> {
        let lanes = self.ready.iter().filter(|(lane, _)| wanted(&lane.name, lane.tag.as_deref()));
        let keys: BTreeSet<ActivityKey> = lanes.flat_map(|(_, keys)| keys.iter().copied()).collect();
        keys.into_iter().filter_map(|key| self.get(key))
    }

    pub(super) fn promote(&mut self, now: Timestamp) {
        while let Some(session) = self.sessions.pop_ended(now) {
            self.file_session(&session, now);
        }
        while let Some((_, key)) = self.wake.first().copied().filter(|(at, _)| *at <= now) {
            self.file(key, now);
        }
    }

    /// Shortens leases that a clock that was set back made too long.
    pub(super) fn clamp_leases(&mut self, now: Timestamp) {
        let mut too_long = Vec::new();
        for (key, activity) in &mut self.rows {
            match &mut activity.lock {
                // It has ended, and must not live again under the clock as it is now.
                Some(lock) if activity.lane.is_some() => {
                    lock.end(now);
                    self.touched.change((*key, activity.row.instance.clone()));
                }
                Some(lock) if lock.is_too_long(now) => {
                    self.touched.change((*key, activity.row.instance.clone()));
                    lock.clamp(now);
                    too_long.push(*key);
                }
                _ => {}
            }
        }
        too_long.into_iter().for_each(|key| self.file(key, now));
        for session in self.sessions.clamp(now) {
            self.file_session(&session, now);
        }
    }

    /// Moves the leases that were live before the clock was set forward.
    pub(super) fn move_leases(&mut self, now: Timestamp, by: Duration) {
        let is_live = |lock: &Lock| lock.was_live_before(now, by);
        let live = self
            .keys_where(|activity| activity.lane.is_none() && activity.lock.as_ref().is_some_and(is_live));
        let sessions = self.sessions.move_by(now, by);
        for key in live {
            self.change(key, now, |activity| {
                activity.lock.iter_mut().for_each(|lock| lock.move_by(now, by));
            });
        }
        sessions.iter().for_each(|session| self.file_session(session, now));
    }

    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        let activity = self.wake.first().map(|(at, _)| *at);
        activity.into_iter().chain(self.sessions.next_end()).min()
    }

    /// Brings the indexes in line with a row.
    fn file(&mut self, key: ActivityKey, now: Timestamp) {
        self.unfile(key);
        let Some(activity) = self.rows.get_mut(&key) else { return };
        let locked_until = activity.lock.as_ref().map_or(Timestamp::ZERO, Lock::until);
        let blocked_until = locked_until.max(activity.hidden_until);
        if blocked_until > now {
            activity.wake_at = Some(blocked_until);
            self.wake.insert((blocked_until, key));
            return;
        }
        let row = &activity.row;
        let holder = self.sessions.holder(row.session_id.as_deref(), now);
        let lane = Lane { tag: row.tag.clone(), name: row.name.clone(), holder };
        activity.lane = Some(lane.clone());
        self.ready.entry(lane).or_default().insert(key);
    }

    fn unfile(&mut self, key: ActivityKey) {
        let Some(activity) = self.rows.get_mut(&key) else { return };
        if let Some(at) = activity.wake_at.take() {
            self.wake.remove(&(at, key));
        }
        if let Some(lane) = activity.lane.take()
            && let Some(keys) = self.ready.get_mut(&lane)
        {
            keys.remove(&key);
            if keys.is_empty() {
                self.ready.remove(&lane);
            }
        }
    }
}

impl Activity {
    pub(super) fn decode(&self) -> Result<WorkItem, serde_json::Error> {
        serde_json::from_str(&self.row.data)
    }

    pub(super) fn is_locked(&self, at: Timestamp) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.is_live(at))
    }

    fn record(&self, key: ActivityKey) -> ActivityRecord {
        ActivityRecord {
            number: key.0,
            row: self.row.clone(),
            hidden_until: self.hidden_until,
            attempt_count: self.attempt_count,
            claimed: self.claimed,
            stop_requested: self.stop_requested,
            losses: self.losses,
            lock: self.lock.as_ref().map(Lock::record),
        }
    }

    pub(super) fn snapshot(&self, now: Timestamp) -> ActivitySnapshot {
        ActivitySnapshot {
            execution_id: self.row.execution_id,
            activity_id: self.row.activity_id,
            hidden_until: Some(self.hidden_until).filter(|until| *until > now).unwrap_or_default(),
            attempt_count: self.attempt_count,
            claimed: self.claimed,
            stop_requested: self.stop_requested,
            lock: self.lock.as_ref().map(Lock::snapshot),
            data: self.row.data.clone(),
        }
    }
}
