//! The queued work of one instance, out of its rows.

use std::collections::BTreeSet;

use duroxide_core::Timestamp;

use crate::{
    DeadLetter, InstanceNeeds, QueuedActivityInfo, QueuedMessageInfo, QueuedWork, SessionLease,
    VersionTriple, WorkLock,
    rules::{
        InstanceRow, Lane, Lease, NOT_HIDDEN, QueuedActivity, QueuedMessage, Route, SessionRow,
        VISIBLE_AT_ONCE, readiness::route_with, still_hidden,
    },
    store::StoredNode,
};

/// The rows of one instance or mailbox that [`QueuedWork`] is made of.
#[derive(Debug, Clone)]
pub struct WorkRows {
    /// The instance.
    pub row: InstanceRow,
    /// Its stored route.
    pub route: Option<Route>,
    /// The version that its current execution is pinned to.
    pub pinned: Option<VersionTriple>,
    /// Its first messages by position, with their JSON: no more than are shown.
    pub messages: Vec<QueuedMessage>,
    /// How many messages it has.
    pub messages_total: u64,
    /// Its first activities by execution and id: no more than are shown.
    pub activities: Vec<(QueuedActivity, Lane)>,
    /// How many activities it has.
    pub activities_total: u64,
    /// The sessions of these activities, if any; others are ignored.
    pub sessions: Vec<SessionRow>,
    /// Its dead letters, oldest first: no more than are shown.
    pub dead_letters: Vec<DeadLetter>,
    /// The nodes that have joined.
    pub nodes: Vec<StoredNode>,
}

impl WorkRows {
    /// The answer that these rows give at this time.
    pub fn show(self, now: Timestamp) -> QueuedWork {
        let mut work =
            QueuedWork { now_ms: now.as_millis(), needs: self.needs(now), ..QueuedWork::default() };
        let live = self.row.lock.as_ref().filter(|lock| lock.lease.is_live(now));
        work.lock = live.map(|lock| self.lock(&lock.lease));
        work.ready_since_ms = self.ready_since(now).map(Timestamp::as_millis);
        work.attempts = self.visible(now).map(|message| self.attempts(message)).max().unwrap_or_default();
        work.activities = self.activities.iter().map(|(row, lane)| self.activity(row, lane, now)).collect();
        work.sessions = self.session_leases(now);
        for message in &self.messages {
            work.push_message(self.message(message, now));
        }
        work.messages_total = self.messages_total;
        work.activities_total = self.activities_total;
        work.dead_letters = self.dead_letters;
        work
    }

    /// The needs of the next claim: the route of an instance that is ready, else the one it would have now, or as soon as its
    /// messages let it be claimed.
    fn needs(&self, now: Timestamp) -> InstanceNeeds {
        let stored = self.route.clone().filter(|_| self.row.is_ready());
        let Route { name, version, pinned } = stored.unwrap_or_else(|| {
            let at = self.can_run_at(now);
            route_with(&self.row, self.pinned.filter(|_| self.row.known), self.visible(at))
        });
        InstanceNeeds { name, version, pinned }
    }

    /// When the messages let the instance be claimed: now, or at the earliest later time; now if they never do.
    fn can_run_at(&self, now: Timestamp) -> Timestamp {
        if self.row.can_run_with(self.visible(now)) {
            return now;
        }
        let can_run = self.messages.iter().filter(|message| self.row.can_run_with([*message]));
        let later = can_run.map(QueuedMessage::visible_from).filter(|at| *at > now);
        later.min().unwrap_or(now)
    }

    fn ready_since(&self, now: Timestamp) -> Option<Timestamp> {
        let can_be_claimed = !self.row.is_locked(now) && self.row.can_run_with(self.visible(now));
        self.visible(now).map(QueuedMessage::waits_since).min().filter(|_| can_be_claimed)
    }

    /// Messages that a claim may take, or has taken. A queue message waits behind an older hidden one.
    fn visible(&self, now: Timestamp) -> impl Iterator<Item = &QueuedMessage> + Clone {
        let hidden = self.messages.iter().filter(|message| message.holds_back(now));
        let hidden = hidden.map(|message| message.number).min();
        self.messages.iter().filter(move |message| message.is_visible(now) && !message.waits_behind(hidden))
    }

    /// The attempt of a present lock is counted in the rows only when the lock ends.
    fn attempts(&self, message: &QueuedMessage) -> u32 {
        let is_held = self.row.lock.as_ref().is_some_and(|lock| lock.extent.holds(message));
        message.attempts.saturating_add(u32::from(is_held))
    }

    fn message(&self, message: &QueuedMessage, now: Timestamp) -> QueuedMessageInfo {
        let visible_at = message.due_at.max(still_hidden(message.hidden_until, now));
        QueuedMessageInfo {
            data: message.data.clone(),
            enqueued_at_ms: message.enqueued_at.as_millis(),
            visible_at_ms: (visible_at > VISIBLE_AT_ONCE).then(|| visible_at.as_millis_ceil()),
            attempts: self.attempts(message),
        }
    }

    fn activity(&self, row: &QueuedActivity, lane: &Lane, now: Timestamp) -> QueuedActivityInfo {
        let hidden_until = still_hidden(row.hidden_until, now);
        let live = row.lock.as_ref().filter(|lease| lease.is_live(now));
        QueuedActivityInfo {
            execution_id: row.execution_id,
            activity_id: row.activity_id,
            name: lane.name.clone(),
            tag: lane.tag.clone(),
            session_id: row.session_id.clone(),
            attempts: row.attempts,
            hidden_until_ms: (hidden_until > NOT_HIDDEN).then(|| hidden_until.as_millis_ceil()),
            lock: live.map(|lease| self.lock(lease)),
            stop_requested: row.stop_requested,
        }
    }

    fn session_leases(&self, now: Timestamp) -> Vec<SessionLease> {
        let named: BTreeSet<&str> =
            self.activities.iter().filter_map(|(activity, _)| activity.session_id.as_deref()).collect();
        let held = |session: &&str| self.sessions.iter().find(|row| row.id == **session && row.until > now);
        let lease = |row: &SessionRow| SessionLease {
            session_id: row.id.clone(),
            owner: row.owner.clone(),
            until_ms: row.until.as_millis(),
        };
        named.iter().filter_map(held).map(lease).collect()
    }

    fn lock(&self, lease: &Lease) -> WorkLock {
        let node = self.nodes.iter().find(|node| Some(node.id) == lease.node);
        WorkLock { node: node.map(|node| node.name.clone()), until_ms: lease.until.as_millis() }
    }
}
