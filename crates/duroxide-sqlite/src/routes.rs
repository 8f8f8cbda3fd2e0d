//! Routes: what an orchestration fetch can filter by. Filters are evaluated here, on full versions; each accepted
//! route is then one index seek, so that filtered instances cost nothing.

use std::collections::HashMap;

use duroxide_provider::{
    VersionTriple,
    store::{HeldBackBy, InstanceOrder, StoreFailure},
};

use crate::db::{Db, triple, triple_columns};

/// The route of mailboxes that hold only queue messages. Every claim visits it, to make dead letters of them.
pub(crate) const ORPHANS: i64 = 0;

const LOAD: &str = "SELECT name, version, major, minor, patch FROM route WHERE id = ?1";
const FIND: &str = "SELECT id FROM route
    WHERE coalesce(name, 0) = coalesce(?1, 0) AND coalesce(version, 0) = coalesce(?2, 0)
      AND coalesce(major, '') = coalesce(?3, '') AND coalesce(minor, '') = coalesce(?4, '')
      AND coalesce(patch, '') = coalesce(?5, '')";
const INSERT: &str = "INSERT INTO route (name, version, major, minor, patch) VALUES (?1, ?2, ?3, ?4, ?5)";

/// Handler name and version, and the pinned version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Route {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) pinned: Option<VersionTriple>,
}

/// The routes met so far.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    by_id: HashMap<i64, Route>,
    ids: HashMap<Route, i64>,
}

impl Routes {
    /// Forgets everything: a rollback may have undone an insert.
    pub(crate) fn clear(&mut self) {
        self.by_id.clear();
        self.ids.clear();
    }

    /// The number of a route, which is made if it is new.
    pub(crate) fn id(&mut self, db: &Db, route: Route) -> Result<i64, StoreFailure> {
        if let Some(id) = self.ids.get(&route) {
            return Ok(*id);
        }
        let [major, minor, patch] = triple_columns(route.pinned);
        let columns = (&route.name, &route.version, major, minor, patch);
        let id = match db.first(FIND, columns, |row| row.get(0))? {
            Some(id) => id,
            None => db.insert(INSERT, columns)?,
        };
        self.remember(id, route);
        Ok(id)
    }

    /// Why an order does not take what runs on this route; `None` if it does.
    pub(crate) fn held_back_by(
        &mut self,
        db: &Db,
        id: i64,
        order: &InstanceOrder,
    ) -> Result<Option<HeldBackBy>, StoreFailure> {
        if !self.by_id.contains_key(&id) {
            let load = |row: &rusqlite::Row<'_>| {
                Ok(Route { name: row.get(0)?, version: row.get(1)?, pinned: triple(row, 2)? })
            };
            let Some(route) = db.first(LOAD, [id], load)? else { return Ok(Some(HeldBackBy::Orchestration)) };
            self.remember(id, route);
        }
        Ok(self.by_id.get(&id).and_then(|route| {
            order.holds_back(route.name.as_deref(), route.version.as_deref(), route.pinned)
        }))
    }

    fn remember(&mut self, id: i64, route: Route) {
        self.by_id.insert(id, route.clone());
        self.ids.insert(route, id);
    }
}
