//! Finds ready rows and the next due time by index seeks over instances, activities, sessions and removals.

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{DueInstance, ReadyIndex, Route, RouteId, Rows},
    store::Readies,
};

use super::{
    SqliteTables,
    instances::{STRAYS, stray_route},
    mailboxes::is_visible,
};
use crate::{
    columns::columns,
    db::{Db, limit, micros, number, time, unsigned},
};

/// The next route on which something is ready: routes without ready instances are never visited.
const NEXT_READY_ROUTE: &str =
    "SELECT route FROM instance WHERE ready IS NOT NULL AND route > ?1 ORDER BY route LIMIT 1";
columns!(instance as ready_columns: ready, id);
const READY_ON_ROUTE: &str = concat!(
    "SELECT ",
    ready_columns!(),
    " FROM instance WHERE route = ?1 AND ready IS NOT NULL ORDER BY ready LIMIT ?2"
);
const ANY_READY: &str = "SELECT 1 FROM instance WHERE ready IS NOT NULL LIMIT 1";
const READY_STRAYS: &str = "SELECT id FROM instance WHERE route = ?1 AND ready IS NOT NULL";
/// Whether a due instance is certainly ready, which repeats `decide` of the rules (`rules/readiness.rs`): it is not locked,
/// waited on its route for a message, and that message is visible now. A queue message may be held back by an older one, so
/// that case is left to that function.
macro_rules! is_plainly_ready {
    () => {
        concat!(
            "known AND lock_token IS NULL AND coalesce(route, ",
            stray_route!(),
            ") <> ",
            stray_route!(),
            " AND status IS NOT 'ContinuedAsNew'
        AND EXISTS (SELECT 1 FROM message WHERE message.instance = instance.id
            AND ",
            is_visible!("?1"),
            " AND kind <> 2)"
        )
    };
}
columns!(due as due_columns: id = "id", is_plainly_ready = is_plainly_ready!());
const DUE: &str =
    concat!("SELECT ", due_columns!(), " FROM instance WHERE wake_at <= ?1 ORDER BY wake_at, id");
// A session counts if a queued activity may wait for the end of its lease.
columns!(next as next_columns:
    of_instance = "(SELECT wake_at FROM instance WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1)",
    of_activity = "(SELECT wake_at FROM activity WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1)",
    of_session = "(SELECT lock_until FROM session WHERE lock_until > ?1
        AND EXISTS (SELECT 1 FROM activity WHERE activity.session_id = session.session_id)
     ORDER BY lock_until LIMIT 1)",
    of_removal = "(SELECT remove_at FROM removal_task ORDER BY remove_at LIMIT 1)",
);
/// Four seeks in one statement, since it runs after every transaction.
const NEXT_DUE: &str = concat!("SELECT ", next_columns!());

/// The first route on which something is ready. Every claim asks for stray mailboxes before it asks for routes, and one
/// seek answers both, as long as nothing was written in between.
#[derive(Debug, Default)]
pub(super) struct FirstRoute {
    /// Rows that the connection had changed by then.
    changes: u64,
    found: Option<i64>,
}

impl FirstRoute {
    /// Reads the first route; returns whether it is that of stray mailboxes.
    pub(super) fn look(&mut self, db: &Db) -> Rows<bool> {
        self.found = next_ready_route(db, STRAYS - 1)?;
        self.changes = db.conn().total_changes();
        Ok(self.found == Some(STRAYS))
    }

    /// The first route, if it is still known: `Some(None)` if no route has ready instances.
    pub(super) fn known(&self, db: &Db) -> Option<Option<i64>> {
        (self.changes == db.conn().total_changes() && self.found != Some(STRAYS)).then_some(self.found)
    }
}

fn next_ready_route(db: &Db, after: i64) -> Rows<Option<i64>> {
    db.value(NEXT_READY_ROUTE, [after])
}

impl ReadyIndex for SqliteTables {
    fn route_id(&mut self, route: &Route) -> Rows<RouteId> {
        Ok(RouteId(self.routes.key(&self.db, route)?))
    }

    fn route(&mut self, id: RouteId) -> Rows<Option<Route>> {
        Ok(self.routes.value(&self.db, id.0)?.cloned())
    }

    fn ready_routes(&mut self) -> Rows<Vec<RouteId>> {
        let mut next = match self.first_route.known(&self.db) {
            Some(first) => first,
            None => next_ready_route(&self.db, STRAYS)?,
        };
        let mut routes = Vec::new();
        while let Some(route) = next {
            routes.push(RouteId(unsigned(route)));
            next = next_ready_route(&self.db, route)?;
        }
        Ok(routes)
    }

    fn ready_on_route(&mut self, route: RouteId, max: usize) -> Rows<Vec<(u64, u64)>> {
        let columns = (number(route.0), limit(max));
        self.db.all(READY_ON_ROUTE, columns, |row| {
            Ok((unsigned(row.get(instance::ready)?), unsigned(row.get(instance::id)?)))
        })
    }

    fn stray_instances(&mut self) -> Rows<Vec<u64>> {
        if !self.first_route.look(&self.db)? {
            return Ok(Vec::new());
        }
        let mut strays: Vec<_> = self.db.values(READY_STRAYS, [STRAYS])?.into_iter().map(unsigned).collect();
        strays.sort_unstable();
        Ok(strays)
    }

    fn due_instances(&mut self, now: Timestamp) -> Rows<Vec<DueInstance>> {
        self.db.all(DUE, [micros(now)], |row| {
            Ok(DueInstance {
                number: unsigned(row.get(due::id)?),
                is_plainly_ready: row.get(due::is_plainly_ready)?,
            })
        })
    }

    fn next_due(&mut self, sessions_after: Timestamp) -> Rows<Option<Timestamp>> {
        let columns = [micros(sessions_after)];
        let times: Option<[Option<i64>; next::COUNT]> = self.db.first(NEXT_DUE, columns, |row| {
            let (instance, activity) = (row.get(next::of_instance)?, row.get(next::of_activity)?);
            Ok([instance, activity, row.get(next::of_session)?, row.get(next::of_removal)?])
        })?;
        Ok(times.into_iter().flatten().flatten().min().map(time))
    }

    fn may_be_ready(&mut self) -> Rows<Readies> {
        Ok(Readies {
            instances: self.db.exists(ANY_READY, [])?,
            activities: super::activities::any_ready(&self.db)?,
        })
    }
}
