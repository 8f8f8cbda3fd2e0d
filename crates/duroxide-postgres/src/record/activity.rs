//! Activities.

use std::sync::Arc;

use duroxide_core::WorkItem;
use duroxide_provider::{
    Losses,
    rules::{LaneId, QueuedActivity},
};

use super::{read_lease, record};
use crate::value::{Columns, time};

/// An activity in the worker queue.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    pub(crate) queued: QueuedActivity,
    /// The JSON of the activity, if it was loaded.
    pub(crate) data: Option<String>,
    /// The decoded JSON, if it is at hand.
    pub(crate) item: Option<Arc<WorkItem>>,
}

/// Instance, execution and id of an activity, by which rounds find it.
pub(crate) type ActivityKey = (u64, u64, u64);

impl Activity {
    pub(crate) fn key(&self) -> ActivityKey {
        (self.queued.instance, self.queued.execution_id, self.queued.activity_id)
    }
}

// A statement that reads activities may leave `data` out.
record!(Activity, "activity", |it| {
    Key number: Int = it.queued.number;
    Fixed instance: Int = it.queued.instance;
    Fixed execution_id: Int = it.queued.execution_id;
    Fixed activity_id: Int = it.queued.activity_id;
    Fixed lane: Int = it.queued.lane.0;
    Fixed session_id: Text = &it.queued.session_id;
    Mutable hidden_until: Int = it.queued.hidden_until;
    Mutable lock_token: Text = it.queued.lock.as_ref().map(|lease| lease.token.as_str());
    Mutable lock_until: Int = it.queued.lock.as_ref().map(|lease| lease.until);
    Mutable lock_length: Int = it.queued.lock.as_ref().map(|lease| lease.length);
    Mutable lock_node: Int = it.queued.lock.as_ref().and_then(|lease| lease.node).map(|node| node.0);
    Mutable attempts: Int = it.queued.attempts;
    Mutable claimed: Bool = it.queued.claimed;
    Mutable stop_requested: Bool = it.queued.stop_requested;
    Mutable lost: Int = it.queued.losses.lost;
    Mutable blamed: Int = it.queued.losses.blamed;
    Mutable wait_until: Int = it.queued.waits_until;
    Fixed data: Text = &it.data;
    Revision revision: Int = None::<u64>;
}, |row| {
    let has_data = row.columns().iter().any(|column| column.name() == "data");
    Ok(Activity {
        data: if has_data { row.column("data")? } else { None },
        item: None,
        queued: QueuedActivity {
            number: row.number("number")?,
            instance: row.number("instance")?,
            execution_id: row.number("execution_id")?,
            activity_id: row.number("activity_id")?,
            lane: LaneId(row.number("lane")?),
            session_id: row.column("session_id")?,
            hidden_until: row.time("hidden_until")?,
            lock: read_lease(row)?,
            attempts: row.count("attempts")?,
            claimed: row.column("claimed")?,
            stop_requested: row.column("stop_requested")?,
            losses: Losses { lost: row.count("lost")?, blamed: row.count("blamed")? },
            waits_until: row.column::<Option<i64>>("wait_until")?.map(time),
        },
    })
});
