//! Instances and executions.

use duroxide_provider::{
    Losses, NodeId, VersionTriple,
    rules::{ExecutionRow, Extent, InstanceLock, InstanceRow, Lease, Readiness, RouteId},
};
use tokio_postgres::Row;

use super::{Computed, record};
use crate::{
    database_error::DatabaseError,
    value::{Columns, duration, time, unsigned},
};

const VISIBLE: &str = "visible";
const MARKED: &str = "marked";

/// `look_at` of a locked instance is at most this many microseconds ahead, and moves on while the lease lasts. So the locks of
/// a dead node are found among the instances of the next minute, however long their leases are.
macro_rules! lock_look_micros {
    () => {
        60_000_000
    };
}
pub(crate) use lock_look_micros;

/// The expression of `look_at`. A lease began its length before its end. (`least` ignores NULL.)
macro_rules! look_at {
    ($row:literal) => {
        concat!(
            "CASE WHEN ",
            $row,
            "wait_until IS NOT NULL THEN least(",
            $row,
            "wait_until, ",
            $row,
            "lock_until - ",
            $row,
            "lock_length + ",
            lock_look_micros!(),
            ") END"
        )
    };
}

/// When a promotion reads an instance: at `wait_until`, or earlier. An index has this column, so it is not changed with
/// every turn: a lease that ends later, and a wait without an end. A timer is written exactly, and so is the end of an
/// instance (`is_end_of_instance` of the rules).
const LOOK_AT: Computed = Computed {
    name: "look_at",
    inserted: look_at!(""),
    updated: concat!(
        "CASE WHEN instance.look_at > (extract(epoch FROM now()) * 1000000)::bigint
            AND coalesce(given.status, 'Running') IN ('Running', 'ContinuedAsNew')
            AND (given.wait_until IS NULL OR given.lock_token IS NOT NULL AND ",
        look_at!("given."),
        " >= instance.look_at) THEN instance.look_at ELSE ",
        look_at!("given."),
        " END"
    ),
};

record!(InstanceRow, "instance", computed LOOK_AT, |row| {
    Key number: Int = row.number;
    Fixed id: Text = &row.id;
    Mutable known: Bool = row.known;
    Mutable name: Text = &row.name;
    Mutable version: Text = &row.version;
    Mutable parent: Text = &row.parent;
    Mutable status: Text = &row.status;
    Mutable execution_id: Int = row.execution_id;
    Mutable created_at: Int = row.created_at;
    Mutable updated_at: Int = row.updated_at;
    Mutable lock_token: Text = row.lock.as_ref().map(|lock| lock.lease.token.as_str());
    Mutable lock_until: Int = row.lock.as_ref().map(|lock| lock.lease.until);
    Mutable lock_length: Int = row.lock.as_ref().map(|lock| lock.lease.length);
    Mutable lock_node: Int = row.lock.as_ref().and_then(|lock| lock.lease.node).map(|node| node.0);
    Mutable extent_kind: Text = row.lock.as_ref().map(|lock| kind_of(&lock.extent));
    Mutable extent_at: Int = row.lock.as_ref().and_then(|lock| visible(&lock.extent)).map(|(at, _)| at);
    Mutable extent_up_to: Int = row.lock.as_ref().and_then(|lock| visible(&lock.extent)).map(|(_, up_to)| up_to);
    Mutable extent_mark: Int = row.lock.as_ref().and_then(|lock| mark(&lock.extent));
    Mutable suspect: Bool = row.may_be_poison;
    Mutable lost: Int = row.losses.lost;
    Mutable blamed: Int = row.losses.blamed;
    Mutable route: Int = row.route.map(|route| route.0);
    Mutable ready_number: Int = row.ready_number();
    Mutable is_stray: Bool = matches!(row.readiness, Readiness::Stray { .. });
    Mutable wait_until: Int = row.waits_until();
    Revision revision: Int = None::<u64>;
}, |row| {
    Ok(InstanceRow {
        number: row.number("number")?,
        id: row.column("id")?,
        known: row.column("known")?,
        name: row.column("name")?,
        version: row.column("version")?,
        parent: row.column("parent")?,
        status: row.column("status")?,
        execution_id: row.number("execution_id")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        lock: read_lock(row)?,
        may_be_poison: row.column("suspect")?,
        losses: Losses { lost: row.count("lost")?, blamed: row.count("blamed")? },
        route: row.column::<Option<i64>>("route")?.map(|id| RouteId(unsigned(id))),
        readiness: read_readiness(row)?,
    })
});

fn kind_of(extent: &Extent) -> &'static str {
    match extent {
        Extent::Visible { .. } => VISIBLE,
        Extent::Marked { .. } => MARKED,
    }
}

fn visible(extent: &Extent) -> Option<(duroxide_core::Timestamp, u64)> {
    match *extent {
        Extent::Visible { at, up_to } => Some((at, up_to)),
        Extent::Marked { .. } => None,
    }
}

fn mark(extent: &Extent) -> Option<u64> {
    match *extent {
        Extent::Visible { .. } => None,
        Extent::Marked { mark } => Some(mark),
    }
}

fn read_lock(row: &Row) -> Result<Option<InstanceLock>, DatabaseError> {
    let Some(lease) = read_lease(row)? else { return Ok(None) };
    let extent = match row.column::<Option<String>>("extent_kind")?.as_deref() {
        Some(VISIBLE) => Extent::Visible { at: row.time("extent_at")?, up_to: row.number("extent_up_to")? },
        Some(MARKED) => Extent::Marked { mark: row.number("extent_mark")? },
        other => {
            return Err(DatabaseError::refused(format!("a lock holds messages by {other:?}")));
        }
    };
    Ok(Some(InstanceLock { lease, extent }))
}

/// The lease of an instance or an activity.
pub(crate) fn read_lease(row: &Row) -> Result<Option<Lease>, DatabaseError> {
    let Some(token) = row.column::<Option<String>>("lock_token")? else { return Ok(None) };
    Ok(Some(Lease {
        token,
        until: time(row.column("lock_until")?),
        length: duration(row.column("lock_length")?),
        node: row.column::<Option<i64>>("lock_node")?.map(|node| NodeId(unsigned(node))),
    }))
}

fn read_readiness(row: &Row) -> Result<Readiness, DatabaseError> {
    let until = row.column::<Option<i64>>("wait_until")?.map(time);
    Ok(match row.column::<Option<i64>>("ready_number")?.map(unsigned) {
        None => Readiness::Waiting { until },
        Some(number) if row.column("is_stray")? => Readiness::Stray { number, until },
        Some(number) => Readiness::Ready { number },
    })
}

/// The place of an instance among those that can be claimed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadyInstance {
    pub(crate) route: RouteId,
    pub(crate) place: u64,
    pub(crate) instance: u64,
}

record!(ReadyInstance, "ready_instance", |it| {
    Key route: Int = it.route.0;
    Key place: Int = it.place;
    Fixed instance: Int = it.instance;
}, |row| {
    Ok(ReadyInstance {
        route: RouteId(row.number("route")?),
        place: row.number("place")?,
        instance: row.number("instance")?,
    })
});

/// An execution with its key.
#[derive(Debug, Clone)]
pub(crate) struct Execution {
    pub(crate) instance: u64,
    pub(crate) execution_id: u64,
    pub(crate) row: ExecutionRow,
}

record!(Execution, "execution", |it| {
    Key instance: Int = it.instance;
    Key execution_id: Int = it.execution_id;
    Mutable status: Text = &it.row.status;
    Mutable output: Text = &it.row.output;
    Mutable pinned_major: Int = it.row.pinned.map(|version| version.major);
    Mutable pinned_minor: Int = it.row.pinned.map(|version| version.minor);
    Mutable pinned_patch: Int = it.row.pinned.map(|version| version.patch);
    Mutable last_event_id: Int = it.row.last_event_id;
    Mutable turns: Int = it.row.turns;
    Mutable started_at: Int = it.row.started_at;
    Mutable completed_at: Int = it.row.completed_at;
}, |row| {
    Ok(Execution {
        instance: row.number("instance")?,
        execution_id: row.number("execution_id")?,
        row: ExecutionRow {
            status: row.column("status")?,
            output: row.column("output")?,
            pinned: read_pinned(row)?,
            last_event_id: row.number("last_event_id")?,
            turns: row.number("turns")?,
            started_at: row.time("started_at")?,
            completed_at: row.column::<Option<i64>>("completed_at")?.map(time),
        },
    })
});

pub(crate) fn read_pinned(row: &Row) -> Result<Option<VersionTriple>, DatabaseError> {
    let Some(major) = row.column::<Option<i64>>("pinned_major")? else { return Ok(None) };
    Ok(Some(VersionTriple {
        major: unsigned(major),
        minor: row.number("pinned_minor")?,
        patch: row.number("pinned_patch")?,
    }))
}
