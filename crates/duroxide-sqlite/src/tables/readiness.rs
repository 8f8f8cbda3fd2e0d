//! Finds ready rows and the next due time by index seeks over instances, activities, sessions and removals.

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{DueInstance, ReadyIndex, Route, RouteId, Rows},
    store::Readies,
};

use super::{SqliteTables, instances::STRAYS};
use crate::db::{Db, limit, micros, number, time, unsigned};

/// The next route on which something is ready: routes without ready instances are never visited.
const NEXT_READY_ROUTE: &str =
    "SELECT route FROM instance WHERE ready IS NOT NULL AND route > ?1 ORDER BY route LIMIT 1";
const READY_ON_ROUTE: &str =
    "SELECT ready, id FROM instance WHERE route = ?1 AND ready IS NOT NULL ORDER BY ready LIMIT ?2";
const ANY_READY: &str = "SELECT 1 FROM instance WHERE ready IS NOT NULL LIMIT 1";
const READY_STRAYS: &str = "SELECT id FROM instance WHERE route = ?1 AND ready IS NOT NULL";
/// Due instances, and whether each is ready without a closer look, which repeats `decide` of the rules (`rules/readiness.rs`): it is
/// not locked, waited on its route for a message, and that message is visible now. A queue message may be held back by an older
/// one, so those are left to that function.
const DUE: &str = "SELECT id, known AND lock_token IS NULL AND coalesce(route, 0) <> 0
        AND status IS NOT 'ContinuedAsNew'
        AND EXISTS (SELECT 1 FROM message WHERE message.instance = instance.id
            AND due_at <= ?1 AND hidden_until <= ?1 AND kind <> 2)
    FROM instance WHERE wake_at <= ?1 ORDER BY wake_at, id";
/// Four seeks in one statement, since it runs after every transaction. A session counts if a queued activity may wait for
/// the end of its lease.
const NEXT_DUE: &str = "SELECT
    (SELECT wake_at FROM instance WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
    (SELECT wake_at FROM activity WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
    (SELECT lock_until FROM session WHERE lock_until > ?1
        AND EXISTS (SELECT 1 FROM activity WHERE activity.session_id = session.session_id)
     ORDER BY lock_until LIMIT 1),
    (SELECT remove_at FROM removal_task ORDER BY remove_at LIMIT 1)";

/// The first route on which something is ready. Every claim asks for stray mailboxes before it asks for routes, and one
/// seek answers both, as long as nothing was written in between.
#[derive(Debug, Default)]
pub(super) struct FirstRoute {
    /// Rows that the connection had changed by then.
    changes: u64,
    found: Option<i64>,
}

impl FirstRoute {
    /// Looks the route up; returns whether it is that of stray mailboxes.
    pub(super) fn look(&mut self, db: &Db) -> Rows<bool> {
        self.found = next_ready_route(db, STRAYS - 1)?;
        self.changes = db.conn().total_changes();
        Ok(self.found == Some(STRAYS))
    }

    /// The first route, if that is still known: `Some(None)` if there is none.
    pub(super) fn known(&self, db: &Db) -> Option<Option<i64>> {
        (self.changes == db.conn().total_changes() && self.found != Some(STRAYS)).then_some(self.found)
    }
}

fn next_ready_route(db: &Db, after: i64) -> Rows<Option<i64>> {
    db.first(NEXT_READY_ROUTE, [after], |row| row.get(0))
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
        self.db.all(READY_ON_ROUTE, columns, |row| Ok((unsigned(row.get(0)?), unsigned(row.get(1)?))))
    }

    fn stray_instances(&mut self) -> Rows<Vec<u64>> {
        if !self.first_route.look(&self.db)? {
            return Ok(Vec::new());
        }
        let mut strays: Vec<u64> = self.db.all(READY_STRAYS, [STRAYS], |row| row.get(0).map(unsigned))?;
        strays.sort_unstable();
        Ok(strays)
    }

    fn due_instances(&mut self, now: Timestamp) -> Rows<Vec<DueInstance>> {
        self.db.all(DUE, [micros(now)], |row| {
            Ok(DueInstance { number: unsigned(row.get(0)?), is_plainly_ready: row.get(1)? })
        })
    }

    fn next_due(&mut self, sessions_after: Timestamp) -> Rows<Option<Timestamp>> {
        let columns = [micros(sessions_after)];
        let times: Option<[Option<i64>; 4]> = self
            .db
            .first(NEXT_DUE, columns, |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))?;
        Ok(times.into_iter().flatten().flatten().min().map(time))
    }

    fn may_be_ready(&mut self) -> Rows<Readies> {
        Ok(Readies {
            instances: self.db.exists(ANY_READY, [])?,
            activities: super::activities::any_ready(&self.db)?,
        })
    }
}
