//! Routes and lanes: few rows, which are never changed or deleted and are kept in memory.

use std::{collections::HashMap, hash::Hash};

use duroxide_provider::rules::{Lane, LaneId, Route, RouteId};
use serde::{Serialize, de::DeserializeOwned};
use tokio_postgres::Row;

use super::PostgresTables;
use crate::{
    connection::{Query, parameters},
    database_error::DatabaseError,
    value::{Columns, number},
};

pub(super) const ADD_ROUTES: &str =
    "INSERT INTO {s}.route (definition) SELECT DISTINCT unnest($1::text[]) ORDER BY 1
    ON CONFLICT DO NOTHING";
pub(super) const FIND_ROUTES: &str =
    "SELECT id, definition FROM {s}.route WHERE definition = ANY ($1::text[])";
pub(super) const ADD_LANES: &str =
    "INSERT INTO {s}.lane (definition) SELECT DISTINCT unnest($1::text[]) ORDER BY 1
    ON CONFLICT DO NOTHING";
pub(super) const FIND_LANES: &str = "SELECT id, definition FROM {s}.lane WHERE definition = ANY ($1::text[])";
const ROUTE: &str = "SELECT id, definition FROM {s}.route WHERE id = $1";
const LANE: &str = "SELECT id, definition FROM {s}.lane WHERE id = $1";

/// The known rows of one of the two tables, by id and by value.
#[derive(Debug)]
pub(super) struct Dictionary<T> {
    ids: HashMap<T, u64>,
    by_id: HashMap<u64, T>,
    /// Rows that this transaction may have inserted. A rollback forgets them.
    new: Vec<u64>,
}

impl<T> Default for Dictionary<T> {
    fn default() -> Self {
        Self { ids: HashMap::new(), by_id: HashMap::new(), new: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash + Serialize + DeserializeOwned> Dictionary<T> {
    pub(super) fn id(&self, value: &T) -> Option<u64> {
        self.ids.get(value).copied()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (u64, &T)> {
        self.by_id.iter().map(|(id, value)| (*id, value))
    }

    /// Takes rows that were stored before this transaction.
    pub(super) fn learn<'a>(&mut self, rows: impl IntoIterator<Item = &'a Row>) -> Result<(), DatabaseError> {
        for row in rows {
            let id = row.number("id")?;
            if !self.by_id.contains_key(&id) {
                let value: T = serde_json::from_str(&row.column::<String>("definition")?)
                    .map_err(|error| DatabaseError::refused(error.to_string()))?;
                self.ids.insert(value.clone(), id);
                self.by_id.insert(id, value);
            }
        }
        Ok(())
    }

    /// Takes rows that this transaction may have inserted.
    pub(super) fn learn_new(&mut self, rows: &[Row]) -> Result<(), DatabaseError> {
        self.learn(rows)?;
        for row in rows {
            self.new.push(row.number("id")?);
        }
        Ok(())
    }

    /// The transaction was committed.
    pub(super) fn keep(&mut self) {
        self.new.clear();
    }

    /// The transaction was rolled back.
    pub(super) fn drop_new(&mut self) {
        for id in std::mem::take(&mut self.new) {
            if let Some(value) = self.by_id.remove(&id) {
                self.ids.remove(&value);
            }
        }
    }
}

/// A route or a lane as one text. Equal values have equal texts, because fields are written in their order.
pub(super) fn definition<T: Serialize>(value: &T) -> String {
    // Plain data with text keys, for which `serde_json` cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

impl PostgresTables {
    /// A route that was not foreseen is stored inside the transaction. Another node that stores the same one waits for its
    /// end.
    pub(super) fn route_id(&mut self, route: &Route) -> Result<RouteId, DatabaseError> {
        if let Some(id) = self.routes.id(route) {
            return Ok(RouteId(id));
        }
        let rows = self.send(&add(ADD_ROUTES, FIND_ROUTES, vec![definition(route)]))?;
        self.routes.learn_new(&rows.into_iter().flatten().collect::<Vec<_>>())?;
        self.routes.id(route).map(RouteId).ok_or_else(not_stored)
    }

    pub(super) fn lane_id(&mut self, lane: &Lane) -> Result<LaneId, DatabaseError> {
        if let Some(id) = self.lanes.id(lane) {
            return Ok(LaneId(id));
        }
        let rows = self.send(&add(ADD_LANES, FIND_LANES, vec![definition(lane)]))?;
        self.lanes.learn_new(&rows.into_iter().flatten().collect::<Vec<_>>())?;
        self.lanes.id(lane).map(LaneId).ok_or_else(not_stored)
    }

    pub(super) fn route(&mut self, id: RouteId) -> Result<Option<Route>, DatabaseError> {
        if !self.routes.by_id.contains_key(&id.0) {
            let rows = self.send(&[Query::new(ROUTE, parameters![number(id.0)])])?;
            self.routes.learn(&rows.into_iter().flatten().collect::<Vec<_>>())?;
        }
        Ok(self.routes.by_id.get(&id.0).cloned())
    }

    pub(super) fn lane(&mut self, id: LaneId) -> Result<Option<Lane>, DatabaseError> {
        if !self.lanes.by_id.contains_key(&id.0) {
            let rows = self.send(&[Query::new(LANE, parameters![number(id.0)])])?;
            self.lanes.learn(&rows.into_iter().flatten().collect::<Vec<_>>())?;
        }
        Ok(self.lanes.by_id.get(&id.0).cloned())
    }
}

/// Two statements: the second one sees the rows that the first one inserted, or found and waited for.
pub(super) fn add(add: &'static str, find: &'static str, definitions: Vec<String>) -> [Query; 2] {
    [Query::new(add, parameters![definitions.clone()]), Query::new(find, parameters![definitions])]
}

fn not_stored() -> DatabaseError {
    DatabaseError::refused("a route or lane was not stored")
}
