//! Activity rows: the worker queue.

use duroxide_core::Timestamp;
use duroxide_provider::{
    Losses, NodeId,
    rules::{ActivityItem, ActivityTable, Lane, LaneId, QueuedActivity, Rows},
    store::ActivityRow,
};
use rusqlite::Row;

use super::{SqliteTables, payloads::whole_data};
use crate::{
    columns::{columns, insert, update},
    db::{Db, ONLY, count, lease, length, limit, lossy_text, micros, number, time, unsigned},
};

columns!(activity as activity_columns: id, instance, execution_id, activity_id, lane, session_id, hidden_until,
    lock_token, lock_until, lease, node, attempt_count, claimed, stop_requested, lost, blamed, wake_at);

/// `ready` of an activity that is; it is NULL in the others.
const READY: i64 = 1;

/// The columns of a row, and behind them its JSON at [`DATA`].
macro_rules! columns_and_data {
    () => {
        concat!(activity_columns!(), ", ", whole_data!("activity"))
    };
}
const DATA: usize = activity::COUNT;

const SELECT: &str = concat!("SELECT ", activity_columns!(), " FROM activity WHERE id = ?1");
const SELECT_WITH_DATA: &str = concat!("SELECT ", columns_and_data!(), " FROM activity WHERE id = ?1");
const ALL_WITH_DATA: &str =
    concat!("SELECT ", columns_and_data!(), " FROM activity WHERE instance = ?1 ORDER BY id");
const FIRST: &str = concat!(
    "SELECT ",
    activity_columns!(),
    " FROM activity WHERE instance = ?1 ORDER BY execution_id, activity_id LIMIT ?2"
);
const FIND: &str = "SELECT id FROM activity WHERE instance = ?1 AND execution_id = ?2 AND activity_id = ?3";
const DELETE: &str = "DELETE FROM activity WHERE id = ?1";
const DELETE_OF_INSTANCE: &str = "DELETE FROM activity WHERE instance = ?1";
const OF_INSTANCE: &str = "SELECT 1 FROM activity WHERE instance = ?1 LIMIT 1";
/// Repeats `settle_activity` of the rules (`rules/readiness.rs`), which decided `wake_at`.
const WAKE_DUE: &str = "UPDATE activity SET ready = 1, wake_at = NULL WHERE wake_at <= ?1 RETURNING id";
const ANY_READY: &str = "SELECT 1 FROM activity WHERE ready IS NOT NULL AND session_id IS NULL LIMIT 1";
/// The next lane in which something is ready: lanes without ready activities are never visited.
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
/// A row with a live lease is in the index of waiting rows; rows that can be claimed are in one of two.
const LEASED: [&str; 3] = [
    concat!(
        "SELECT ",
        activity_columns!(),
        " FROM activity INDEXED BY activity_wake WHERE wake_at IS NOT NULL AND lock_until > ?1"
    ),
    concat!(
        "SELECT ",
        activity_columns!(),
        " FROM activity INDEXED BY activity_ready
        WHERE ready IS NOT NULL AND session_id IS NULL AND lock_until > ?1"
    ),
    concat!(
        "SELECT ",
        activity_columns!(),
        " FROM activity INDEXED BY activity_session_ready
        WHERE ready IS NOT NULL AND session_id IS NOT NULL AND lock_until > ?1"
    ),
];
const TOKENS_OF_NODE: &str = "SELECT lock_token FROM activity INDEXED BY activity_wake
    WHERE wake_at IS NOT NULL AND lock_until > ?2 AND node = ?1 ORDER BY id";

fn read(row: &Row<'_>) -> rusqlite::Result<QueuedActivity> {
    Ok(QueuedActivity {
        number: unsigned(row.get(activity::id)?),
        instance: unsigned(row.get(activity::instance)?),
        execution_id: unsigned(row.get(activity::execution_id)?),
        activity_id: unsigned(row.get(activity::activity_id)?),
        lane: LaneId(unsigned(row.get(activity::lane)?)),
        session_id: row.get(activity::session_id)?,
        hidden_until: time(row.get(activity::hidden_until)?),
        lock: lease(row, LEASE)?,
        attempts: count(row.get(activity::attempt_count)?),
        claimed: row.get(activity::claimed)?,
        stop_requested: row.get(activity::stop_requested)?,
        losses: Losses { lost: count(row.get(activity::lost)?), blamed: count(row.get(activity::blamed)?) },
        waits_until: row.get::<_, Option<i64>>(activity::wake_at)?.map(time),
    })
}

const LEASE: [usize; 4] = [activity::lock_token, activity::lock_until, activity::lease, activity::node];

/// All activities of an instance, with their JSON.
pub(crate) fn all(db: &Db, instance: u64) -> Rows<Vec<(QueuedActivity, String)>> {
    db.all(ALL_WITH_DATA, [number(instance)], |row| Ok((read(row)?, lossy_text(row, DATA)?)))
}

/// The first activities of an instance, by execution and id.
pub(crate) fn first(db: &Db, instance: u64, max: usize) -> Rows<Vec<QueuedActivity>> {
    db.all(FIRST, (number(instance), limit(max)), read)
}

pub(super) fn any_ready(db: &Db) -> Rows<bool> {
    Ok(db.exists(ANY_READY, [])? || db.exists(FIRST_READY_SESSION, [])?)
}

pub(super) fn tokens_of(db: &Db, node: NodeId, after: Timestamp) -> Rows<Vec<String>> {
    db.values(TOKENS_OF_NODE, (number(node.0), micros(after)))
}

impl ActivityTable for SqliteTables {
    fn lane_id(&mut self, lane: &Lane) -> Rows<LaneId> {
        Ok(LaneId(self.lanes.key(&self.db, lane)?))
    }

    fn lane(&mut self, id: LaneId) -> Rows<Option<Lane>> {
        Ok(self.lanes.value(&self.db, id.0)?.cloned())
    }

    fn insert_activity(&mut self, activity: &QueuedActivity, prepared: &ActivityRow) -> Rows<bool> {
        let split = self.payloads.split_queued(&mut self.sequence, activity.instance, &prepared.data);
        let inserted = insert!(self.db, activity {
            id: number(activity.number),
            instance: number(activity.instance),
            execution_id: number(activity.execution_id),
            activity_id: number(activity.activity_id),
            lane: number(activity.lane.0),
            session_id: &activity.session_id,
            wake_at: activity.waits_until.map(micros),
            ready: activity.is_ready().then_some(READY),
            data: &*split.data,
            payload: split.payload,
        } "ON CONFLICT (instance, execution_id, activity_id) DO NOTHING");
        let is_new = inserted? > 0;
        if is_new {
            self.payloads.insert(&self.db, activity.instance, &split)?;
            self.cache.put_activity(activity.clone(), Some(prepared));
        }
        Ok(is_new)
    }

    fn activity(&mut self, id: u64) -> Rows<Option<QueuedActivity>> {
        match self.cache.take_activity(id) {
            Some(activity) => Ok(Some(activity)),
            None => self.db.first(SELECT, [number(id)], read),
        }
    }

    fn activity_with_item(&mut self, id: u64) -> Rows<Option<(QueuedActivity, ActivityItem)>> {
        if let Some((activity, item)) = self.cache.take_activity_with_item(id) {
            return Ok(Some((activity, ActivityItem::Item(item))));
        }
        self.db.first(SELECT_WITH_DATA, [number(id)], |row| {
            Ok((read(row)?, ActivityItem::Data(lossy_text(row, DATA)?)))
        })
    }

    fn find_activity(&mut self, instance: u64, execution_id: u64, activity_id: u64) -> Rows<Option<u64>> {
        let key = (number(instance), number(execution_id), number(activity_id));
        Ok(self.db.value(FIND, key)?.map(unsigned))
    }

    fn update_activity(&mut self, activity: &QueuedActivity) -> Rows<()> {
        self.cache.activity_written(activity);
        let lease = activity.lock.as_ref();
        let written = update!(self.db, activity [id: number(activity.number)] {
            hidden_until: micros(activity.hidden_until),
            lock_token: lease.map(|lease| &lease.token),
            lock_until: lease.map(|lease| micros(lease.until)),
            lease: lease.map(|lease| length(lease.length)),
            node: lease.and_then(|lease| lease.node).map(|node| number(node.0)),
            attempt_count: activity.attempts,
            claimed: activity.claimed,
            stop_requested: activity.stop_requested,
            lost: activity.losses.lost,
            blamed: activity.losses.blamed,
            wake_at: activity.waits_until.map(micros),
            ready: activity.is_ready().then_some(READY),
        });
        written.map(|_| ())
    }

    fn delete_activity(&mut self, id: u64) -> Rows<()> {
        self.cache.forget_activity(id);
        self.db.execute(DELETE, [number(id)]).map(|_| ())
    }

    fn delete_activities(&mut self, instances: &[u64]) -> Rows<u64> {
        self.cache.forget_activities();
        let deleted = |instance: &u64| Ok(self.db.execute(DELETE_OF_INSTANCE, [number(*instance)])? as u64);
        instances.iter().map(deleted).sum()
    }

    fn has_activities(&mut self, instance: u64) -> Rows<bool> {
        self.db.exists(OF_INSTANCE, [number(instance)])
    }

    fn wake_due_activities(&mut self, now: Timestamp) -> Rows<()> {
        let woken = self.db.values(WAKE_DUE, [micros(now)])?;
        woken.into_iter().map(unsigned).for_each(|id| self.cache.activity_woken(id));
        Ok(())
    }

    fn ready_lanes(&mut self) -> Rows<Vec<LaneId>> {
        let mut lanes = Vec::new();
        let mut last = i64::MIN;
        while let Some(next) = self.db.value(NEXT_READY_LANE, [last])? {
            lanes.push(LaneId(unsigned(next)));
            last = next;
        }
        Ok(lanes)
    }

    fn ready_in_lane(&mut self, lane: LaneId, max: usize) -> Rows<Vec<u64>> {
        self.db.all(READY_IN_LANE, (number(lane.0), limit(max)), |row| row.get(ONLY).map(unsigned))
    }

    fn ready_session_lanes(&mut self) -> Rows<Vec<(String, LaneId)>> {
        let db = &self.db;
        let mut lanes = Vec::new();
        let mut next = db.value::<String>(FIRST_READY_SESSION, [])?;
        while let Some(session) = next {
            let mut last = i64::MIN;
            while let Some(lane) = db.value(NEXT_READY_SESSION_LANE, (&session, last))? {
                lanes.push((session.clone(), LaneId(unsigned(lane))));
                last = lane;
            }
            next = db.value(NEXT_READY_SESSION, [&session])?;
        }
        Ok(lanes)
    }

    fn ready_in_session_lane(&mut self, session: &str, lane: LaneId, max: usize) -> Rows<Vec<u64>> {
        let columns = (session, number(lane.0), limit(max));
        self.db.all(READY_IN_SESSION_LANE, columns, |row| row.get(ONLY).map(unsigned))
    }

    fn leased_activities(&mut self, after: Timestamp) -> Rows<Vec<QueuedActivity>> {
        let mut leased = Vec::new();
        for statement in LEASED {
            leased.extend(self.db.all(statement, [micros(after)], read)?);
        }
        leased.sort_unstable_by_key(|activity| activity.number);
        Ok(leased)
    }
}
