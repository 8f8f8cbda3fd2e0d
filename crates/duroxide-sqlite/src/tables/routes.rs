//! Routes: what an orchestration fetch can filter by. Few rows, kept in memory.

use std::collections::HashMap;

use duroxide_provider::rules::{Route, RouteId, Rows};

use crate::db::{Db, number, triple, triple_columns, unsigned};

const LOAD: &str = "SELECT name, version, major, minor, patch FROM route WHERE id = ?1";
const FIND: &str = "SELECT id FROM route
    WHERE coalesce(name, 0) = coalesce(?1, 0) AND coalesce(version, 0) = coalesce(?2, 0)
      AND coalesce(major, '') = coalesce(?3, '') AND coalesce(minor, '') = coalesce(?4, '')
      AND coalesce(patch, '') = coalesce(?5, '')";
const INSERT: &str = "INSERT INTO route (name, version, major, minor, patch) VALUES (?1, ?2, ?3, ?4, ?5)";

/// The routes met so far.
#[derive(Debug, Default)]
pub(super) struct Routes {
    by_id: HashMap<RouteId, Route>,
    ids: HashMap<Route, RouteId>,
}

impl Routes {
    /// Forgets everything: a rollback may have undone an insert.
    pub(super) fn clear(&mut self) {
        self.by_id.clear();
        self.ids.clear();
    }

    /// The key of a route, which is stored if it is new.
    pub(super) fn id(&mut self, db: &Db, route: &Route) -> Rows<RouteId> {
        if let Some(id) = self.ids.get(route) {
            return Ok(*id);
        }
        let [major, minor, patch] = triple_columns(route.pinned);
        let columns = (&route.name, &route.version, major, minor, patch);
        let id = match db.first(FIND, columns, |row| row.get(0))? {
            Some(id) => id,
            None => db.insert(INSERT, columns)?,
        };
        let id = RouteId(unsigned(id));
        self.remember(id, route.clone());
        Ok(id)
    }

    /// The route of a key.
    pub(super) fn get(&mut self, db: &Db, id: RouteId) -> Rows<Option<&Route>> {
        if !self.by_id.contains_key(&id) {
            let load = |row: &rusqlite::Row<'_>| {
                Ok(Route { name: row.get(0)?, version: row.get(1)?, pinned: triple(row, 2)? })
            };
            let Some(route) = db.first(LOAD, [number(id.0)], load)? else { return Ok(None) };
            self.remember(id, route);
        }
        Ok(self.by_id.get(&id))
    }

    fn remember(&mut self, id: RouteId, route: Route) {
        self.by_id.insert(id, route.clone());
        self.ids.insert(route, id);
    }
}
