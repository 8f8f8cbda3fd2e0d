//! The worker queue.

use duroxide_core::Timestamp;

use crate::{
    rules::{Lane, LaneId, QueuedActivity, Rows},
    store::ActivityRow,
};

/// The worker queue.
pub trait ActivityTable {
    /// The key of a lane, which is stored if it is new.
    fn lane_id(&mut self, lane: &Lane) -> Rows<LaneId>;

    /// The lane of a key.
    fn lane(&mut self, id: LaneId) -> Rows<Option<Lane>>;

    /// Inserts an activity, unless its instance has one of the same execution and id. Returns whether it was inserted.
    fn insert_activity(&mut self, activity: &QueuedActivity, prepared: &ActivityRow) -> Rows<bool>;

    /// Reads an activity.
    fn activity(&mut self, number: u64) -> Rows<Option<QueuedActivity>>;

    /// Reads an activity with its item.
    fn activity_with_item(&mut self, number: u64) -> Rows<Option<(QueuedActivity, ActivityItem)>>;

    /// The number of an activity.
    fn find_activity(&mut self, instance: u64, execution_id: u64, activity_id: u64) -> Rows<Option<u64>>;

    /// Writes everything about an activity that can change.
    fn update_activity(&mut self, activity: &QueuedActivity) -> Rows<()>;

    /// Deletes an activity.
    fn delete_activity(&mut self, number: u64) -> Rows<()>;

    /// Deletes the activities of instances; returns how many there were.
    fn delete_activities(&mut self, instances: &[u64]) -> Rows<u64>;

    /// Whether an instance has queued activities.
    fn has_activities(&mut self, instance: u64) -> Rows<bool>;

    /// Makes every due activity ready: a shortcut of `rules/readiness.rs`.
    fn wake_due_activities(&mut self, now: Timestamp) -> Rows<()>;

    /// The lanes in which an activity without session is ready, in any fixed order.
    fn ready_lanes(&mut self) -> Rows<Vec<LaneId>>;

    /// Ready activities without session in a lane, ascending, at most `limit`.
    fn ready_in_lane(&mut self, lane: LaneId, limit: usize) -> Rows<Vec<u64>>;

    /// How many activities without session are ready in a lane whose activities the claim does not take, at most `limit`.
    /// Like [`ReadyIndex::count_ready_on_route`](super::ReadyIndex::count_ready_on_route) it must not lock them.
    fn count_ready_in_lane(&mut self, lane: LaneId, limit: usize) -> Rows<usize> {
        Ok(self.ready_in_lane(lane, limit)?.len())
    }

    /// The sessions and lanes in which an activity is ready, in any fixed order.
    fn ready_session_lanes(&mut self) -> Rows<Vec<(String, LaneId)>>;

    /// Ready activities of a session in a lane, ascending, at most `limit`.
    fn ready_in_session_lane(&mut self, session: &str, lane: LaneId, limit: usize) -> Rows<Vec<u64>>;

    /// Activities that have a lock whose lease ends after this time, by number.
    fn leased_activities(&mut self, after: Timestamp) -> Rows<Vec<QueuedActivity>>;
}

/// The work item of an activity.
#[derive(Debug, Clone)]
pub enum ActivityItem {
    /// As it was enqueued in this process.
    Item(std::sync::Arc<duroxide_core::WorkItem>),
    /// As it is stored.
    Data(String),
}
