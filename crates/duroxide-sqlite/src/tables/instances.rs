//! Instance rows.

use duroxide_core::Timestamp;
use duroxide_provider::{
    InstanceFilter, Losses, NodeId,
    rules::{
        ExecutionRow, Extent, Family, InstanceChange, InstanceLock, InstanceRow, InstanceTable, Loaded,
        Readiness, RouteId, Rows,
    },
};
use rusqlite::Row;

use super::{
    SqliteTables,
    executions::{ExecutionColumns, columns_of_execution, execution},
};
use crate::{
    columns::{columns, insert, update_up_to},
    db::{Db, count, lease, length, limit, micros, number, time, unsigned},
};

columns!(instance as instance_columns: id, instance_id, known, name, version, parent, status, execution_id, created_at,
    updated_at, route, ready, wake_at, lock_token, lock_until, lease, node, extent_mark, extent_at, extent_up_to,
    suspect, lost, blamed);

/// Stored as the route of a stray mailbox, which no claim accepts by its route. Routes proper have higher numbers, so strays are
/// the first entries of the index of ready instances: one seek shows whether there are any.
macro_rules! stray_route {
    () => {
        0
    };
}
pub(crate) use stray_route;

pub(crate) const STRAYS: i64 = stray_route!();

/// `is_end_of_instance` of the rules in SQL, for a status that may be NULL: then this is NULL, too.
macro_rules! is_end_of_instance {
    ($status:literal) => {
        concat!($status, " NOT IN ('Running', 'ContinuedAsNew')")
    };
}
pub(crate) use is_end_of_instance;

const BY_NUMBER: &str = concat!("SELECT ", instance_columns!(), " FROM instance WHERE id = ?1");
const AFTER: &str =
    concat!("SELECT ", instance_columns!(), " FROM instance WHERE id > ?1 ORDER BY id LIMIT ?2");
const BY_ID: &str = concat!("SELECT ", instance_columns!(), " FROM instance WHERE instance_id = ?1");
const WITH_EXECUTION: &str = concat!(
    "SELECT ",
    instance_columns!(),
    ", ",
    columns_of_execution!(),
    ", NOT EXISTS (SELECT 1 FROM custom_status WHERE custom_status.instance = instance.id)
    FROM instance
    LEFT JOIN execution ON execution.instance = instance.id AND execution.execution_id = instance.execution_id
    WHERE instance.id = ?1"
);
const EXECUTION: ExecutionColumns = ExecutionColumns { first: instance::COUNT };
const CUSTOM_STATUS_UNSET: usize = instance::COUNT + execution::COUNT;
const DELETE: &str = "DELETE FROM instance WHERE id = ?1";
const WAKE: &str = "UPDATE instance SET ready = ?2, wake_at = NULL WHERE id = ?1";
/// Repeats `after_arrival` of the rules (`rules/readiness.rs`) for an instance that waits on its route for a message; all
/// other cases are left to that function.
const WAKE_IF_WAITING: &str = concat!(
    "UPDATE instance SET ready = ?3, wake_at = NULL
    WHERE id = ?1 AND instance_id = ?2 AND known = 1 AND status = 'Running' AND ready IS NULL
      AND lock_token IS NULL AND route > ",
    stray_route!()
);
const CHILDREN: &str = "SELECT id FROM instance WHERE parent = ?1 ORDER BY id";
/// A row with a live lease is in the index of waiting rows; rows that can be claimed are in the other.
const LEASED_WAITING: &str = concat!(
    "SELECT ",
    instance_columns!(),
    " FROM instance INDEXED BY instance_wake WHERE wake_at IS NOT NULL AND lock_until > ?1"
);
const LEASED_READY: &str = concat!(
    "SELECT ",
    instance_columns!(),
    " FROM instance INDEXED BY instance_ready WHERE ready IS NOT NULL AND lock_until > ?1"
);
const TOKENS_OF_NODE: &str = "SELECT lock_token FROM instance INDEXED BY instance_wake
    WHERE wake_at IS NOT NULL AND lock_until > ?2 AND node = ?1 ORDER BY id";

/// Instances with a higher number, in the order of their numbers.
pub(crate) fn after(db: &Db, id: u64, max: usize) -> Rows<Vec<InstanceRow>> {
    db.all(AFTER, (number(id), limit(max)), read)
}

pub(crate) fn by_id(db: &Db, id: &str) -> Rows<Option<InstanceRow>> {
    db.first(BY_ID, [id], read)
}

fn update(db: &Db, row: &InstanceRow, change: InstanceChange) -> Rows<()> {
    let (route, ready, wake_at) = stored_readiness(row);
    let lease = row.lock.as_ref().map(|lock| &lock.lease);
    let (mark, at, up_to) = stored_extent(row.lock.as_ref().map(|lock| &lock.extent));
    // Columns that lists are indexed by are left alone unless they changed.
    let written = update_up_to!(db, instance [id: number(row.number)], change, InstanceChange {
        Readiness { route: route, ready: ready, wake_at: wake_at }
        Lock {
            lock_token: lease.map(|lease| &lease.token),
            lock_until: lease.map(|lease| micros(lease.until)),
            lease: lease.map(|lease| length(lease.length)),
            node: lease.and_then(|lease| lease.node).map(|node| number(node.0)),
            extent_mark: mark,
            extent_at: at,
            extent_up_to: up_to,
            suspect: row.may_be_poison,
            lost: row.losses.lost,
            blamed: row.losses.blamed,
        }
        Round { execution_id: number(row.execution_id), updated_at: micros(row.updated_at) }
        Status { status: row.status }
        Description {
            known: row.known,
            name: row.name,
            version: row.version,
            parent: row.parent,
            created_at: micros(row.created_at),
        }
    });
    written.map(|_| ())
}

pub(super) fn tokens_of(db: &Db, node: NodeId, after: Timestamp) -> Rows<Vec<String>> {
    db.values(TOKENS_OF_NODE, (number(node.0), micros(after)))
}

fn read(row: &Row<'_>) -> rusqlite::Result<InstanceRow> {
    let (route, readiness) = read_readiness(row)?;
    Ok(InstanceRow {
        number: unsigned(row.get(instance::id)?),
        id: row.get(instance::instance_id)?,
        known: row.get(instance::known)?,
        name: row.get(instance::name)?,
        version: row.get(instance::version)?,
        parent: row.get(instance::parent)?,
        status: row.get(instance::status)?,
        execution_id: unsigned(row.get(instance::execution_id)?),
        created_at: time(row.get(instance::created_at)?),
        updated_at: time(row.get(instance::updated_at)?),
        lock: read_lock(row)?,
        may_be_poison: row.get(instance::suspect)?,
        losses: Losses { lost: count(row.get(instance::lost)?), blamed: count(row.get(instance::blamed)?) },
        route,
        readiness,
    })
}

fn read_readiness(row: &Row<'_>) -> rusqlite::Result<(Option<RouteId>, Readiness)> {
    let route: Option<i64> = row.get(instance::route)?;
    let ready: Option<i64> = row.get(instance::ready)?;
    let until = row.get::<_, Option<i64>>(instance::wake_at)?.map(time);
    let readiness = match ready.map(unsigned) {
        Some(number) if route == Some(STRAYS) => Readiness::Stray { number, until },
        Some(number) => Readiness::Ready { number },
        None => Readiness::Waiting { until },
    };
    Ok((route.filter(|route| *route != STRAYS).map(|route| RouteId(unsigned(route))), readiness))
}

/// Route, ready number and time to wake up, as they are stored.
fn stored_readiness(row: &InstanceRow) -> (Option<i64>, Option<i64>, Option<i64>) {
    let route = row.route.map(|route| number(route.0));
    match row.readiness {
        Readiness::Ready { number: ready } => (route, Some(number(ready)), None),
        Readiness::Waiting { until } => (route, None, until.map(micros)),
        Readiness::Stray { number: ready, until } => (Some(STRAYS), Some(number(ready)), until.map(micros)),
    }
}

const LEASE: [usize; 4] = [instance::lock_token, instance::lock_until, instance::lease, instance::node];

fn read_lock(row: &Row<'_>) -> rusqlite::Result<Option<InstanceLock>> {
    let Some(lease) = lease(row, LEASE)? else { return Ok(None) };
    let (mark, at, up_to): (Option<i64>, Option<i64>, Option<i64>) =
        (row.get(instance::extent_mark)?, row.get(instance::extent_at)?, row.get(instance::extent_up_to)?);
    let extent = match (mark, at, up_to) {
        (Some(mark), _, _) => Extent::Marked { mark: unsigned(mark) },
        (None, Some(at), Some(up_to)) => Extent::Visible { at: time(at), up_to: unsigned(up_to) },
        // A damaged row: its lock holds no message, and ends like any other.
        (None, _, _) => Extent::Visible { at: Timestamp::ZERO, up_to: 0 },
    };
    Ok(Some(InstanceLock { lease, extent }))
}

/// Mark, time and highest number of an extent, as they are stored.
fn stored_extent(extent: Option<&Extent>) -> (Option<i64>, Option<i64>, Option<i64>) {
    match extent {
        Some(Extent::Visible { at, up_to }) => (None, Some(micros(*at)), Some(number(*up_to))),
        Some(Extent::Marked { mark }) => (Some(number(*mark)), None, None),
        None => (None, None, None),
    }
}

/// Whether a row differs from an empty mailbox in its route and readiness only.
fn is_new_mailbox(row: &InstanceRow) -> bool {
    let mailbox = InstanceRow::mailbox(row.number, &row.id, row.created_at);
    *row == InstanceRow { route: row.route, readiness: row.readiness, ..mailbox }
}

impl InstanceTable for SqliteTables {
    fn instance(&mut self, id: u64) -> Rows<Option<InstanceRow>> {
        match self.cache.instance(id) {
            Some(row) => Ok(Some(row.clone())),
            None => self.db.first(BY_NUMBER, [number(id)], read),
        }
    }

    fn instance_named(&mut self, id: &str) -> Rows<Option<InstanceRow>> {
        match self.cache.instance_named(id) {
            Some(row) => Ok(Some(row.clone())),
            None => by_id(&self.db, id),
        }
    }

    fn load(&mut self, id: u64) -> Rows<Option<Loaded>> {
        if let Some(loaded) = self.cache.take(id) {
            return Ok(Some(loaded));
        }
        let found = self.db.first(WITH_EXECUTION, [number(id)], |row| {
            let loaded = Loaded { row: read(row)?, execution: EXECUTION.read_joined(row)? };
            Ok((loaded, row.get(CUSTOM_STATUS_UNSET)?))
        })?;
        let Some((loaded, custom_status_unset)) = found else { return Ok(None) };
        self.cache.read(&loaded, custom_status_unset);
        Ok(Some(loaded))
    }

    fn store(&mut self, loaded: Loaded, change: InstanceChange) -> Rows<()> {
        update(&self.db, &loaded.row, change)?;
        if loaded.execution.as_ref().is_some_and(ExecutionRow::has_ended) {
            self.payloads.forget_instance(loaded.row.number);
        }
        self.cache.put_back(loaded);
        Ok(())
    }

    /// Columns that a new mailbox has the defaults in are left out.
    fn insert_instance(&mut self, row: &InstanceRow) -> Rows<bool> {
        debug_assert!(is_new_mailbox(row), "{row:?}");
        let (route, ready, wake_at) = stored_readiness(row);
        let inserted = insert!(self.db, instance {
            id: number(row.number),
            instance_id: &row.id,
            created_at: micros(row.created_at),
            updated_at: micros(row.updated_at),
            route: route,
            ready: ready,
            wake_at: wake_at,
        } "ON CONFLICT (instance_id) DO NOTHING");
        let is_new = inserted? > 0;
        if is_new {
            self.cache.inserted(row);
        }
        Ok(is_new)
    }

    fn update_instance(&mut self, row: &InstanceRow, change: InstanceChange) -> Rows<()> {
        self.cache.written(row, change);
        update(&self.db, row, change)
    }

    fn wake_instance(&mut self, id: u64, ready: u64) -> Rows<()> {
        self.cache.woken(id, ready);
        self.db.execute(WAKE, (number(id), number(ready))).map(|_| ())
    }

    fn wake_if_waiting(&mut self, id: u64, instance_id: &str, ready: u64) -> Rows<bool> {
        let woken = self.db.execute(WAKE_IF_WAITING, (number(id), instance_id, number(ready)))? > 0;
        if woken {
            self.cache.woken(id, ready);
        }
        Ok(woken)
    }

    fn delete_instance(&mut self, id: u64) -> Rows<()> {
        self.cache.forget_number(id);
        self.db.execute(DELETE, [number(id)]).map(|_| ())
    }

    fn families(&mut self, numbers: &[u64]) -> Rows<Vec<Family>> {
        let rows = self.instances(numbers)?;
        let family = |row: InstanceRow| {
            let children = self.db.values(CHILDREN, [&row.id])?.into_iter().map(unsigned).collect();
            Ok(Family { row, children })
        };
        rows.into_iter().map(family).collect()
    }

    fn leased_instances(&mut self, after: Timestamp) -> Rows<Vec<InstanceRow>> {
        let mut leased = self.db.all(LEASED_WAITING, [micros(after)], read)?;
        leased.extend(self.db.all(LEASED_READY, [micros(after)], read)?);
        // A stray mailbox is in both indexes.
        leased.sort_unstable_by_key(|row| row.number);
        leased.dedup_by_key(|row| row.number);
        Ok(leased)
    }

    fn bulk_selection(&mut self, filter: &InstanceFilter, running_too: bool) -> Rows<Vec<(u64, String)>> {
        crate::reads::bulk::select(&self.db, filter, running_too)
    }
}

#[cfg(test)]
mod tests {
    use duroxide_provider::rules::{CONTINUED_AS_NEW, RUNNING, is_end_of_instance};

    use crate::db::{Db, ONLY};

    #[test]
    fn sql_takes_the_same_statuses_for_ended_as_the_rules() {
        let db = Db::empty().unwrap();
        for status in [RUNNING, CONTINUED_AS_NEW, "Completed", "Failed", ""] {
            let ended: Option<bool> = db
                .first(concat!("SELECT ", is_end_of_instance!("?1")), [status], |row| row.get(ONLY))
                .unwrap();
            assert_eq!(ended, Some(is_end_of_instance(status)), "{status}");
        }
    }
}
