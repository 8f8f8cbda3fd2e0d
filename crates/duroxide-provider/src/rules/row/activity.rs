//! Activities and sessions.

use std::time::Duration;

use duroxide_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Lease, NOT_HIDDEN};
use crate::{Losses, store::ActivityRow};

/// An activity in the worker queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedActivity {
    /// Its key. Lower numbers are claimed first.
    pub number: u64,
    /// The instance that scheduled it.
    pub instance: u64,
    /// The number of the execution, from 1.
    pub execution_id: u64,
    /// The event id of the schedule.
    pub activity_id: u64,
    /// The lane, which a claim must accept to take the activity. Keys of lanes mean nothing outside their tables.
    #[serde(skip)]
    pub lane: LaneId,
    /// The session it belongs to.
    pub session_id: Option<String>,
    /// Until when an abandon hides it; zero if none did.
    pub hidden_until: Timestamp,
    /// The lock of the last claim, live or not.
    pub lock: Option<Lease>,
    /// How often it was claimed.
    pub attempts: u32,
    /// Whether a claim may have begun to run it. An attempt that was taken back does not change this.
    pub claimed: bool,
    /// Whether the activity was asked to stop.
    pub stop_requested: bool,
    /// Its lost claims.
    pub losses: Losses,
    /// When it can be claimed; `None` if it can be claimed now. Decided in `rules/readiness.rs` alone.
    pub waits_until: Option<Timestamp>,
}

impl QueuedActivity {
    /// An activity that was never claimed.
    pub fn new(number: u64, instance: u64, lane: LaneId, prepared: &ActivityRow) -> Self {
        Self {
            number,
            instance,
            execution_id: prepared.execution_id,
            activity_id: prepared.activity_id,
            lane,
            session_id: prepared.session_id.clone(),
            hidden_until: NOT_HIDDEN,
            lock: None,
            attempts: 0,
            claimed: false,
            stop_requested: false,
            losses: Losses::default(),
            waits_until: None,
        }
    }

    /// Whether a live lease holds it.
    pub fn is_locked(&self, at: Timestamp) -> bool {
        self.lock.as_ref().is_some_and(|lease| lease.is_live(at))
    }
}

/// The properties of an activity that a claim filters by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Lane {
    /// The routing tag.
    pub tag: Option<String>,
    /// The activity's name.
    pub name: String,
}

/// The key of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LaneId(pub u64);

/// A session: its activities go to one owner at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The id of the session.
    pub id: String,
    /// The worker that holds the session.
    pub owner: String,
    /// When its lease ends.
    pub until: Timestamp,
    /// The length of its lease when it was given or last renewed.
    pub length: Duration,
    /// When one of its activities was last claimed, renewed or acknowledged.
    pub last_activity_at: Timestamp,
}
