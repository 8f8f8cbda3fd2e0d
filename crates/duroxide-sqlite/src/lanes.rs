//! Lanes: what a worker fetch can filter by.

use std::collections::HashMap;

use duroxide_provider::store::{ActivityOrder, StoreFailure};

use crate::db::Db;

const LOAD: &str = "SELECT tag, activity_name FROM lane WHERE id = ?1";
const FIND: &str = "SELECT id FROM lane WHERE coalesce(tag, 0) = coalesce(?1, 0) AND activity_name = ?2";
const INSERT: &str = "INSERT INTO lane (tag, activity_name) VALUES (?1, ?2)";

/// Tag and name of an activity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Lane {
    tag: Option<String>,
    activity_name: String,
}

/// The lanes met so far.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    by_id: HashMap<i64, Lane>,
    ids: HashMap<Lane, i64>,
}

impl Lanes {
    /// Forgets everything: a rollback may have undone an insert.
    pub(crate) fn clear(&mut self) {
        self.by_id.clear();
        self.ids.clear();
    }

    /// The number of a lane, which is made if it is new.
    pub(crate) fn id(
        &mut self,
        db: &Db,
        tag: Option<&str>,
        activity_name: &str,
    ) -> Result<i64, StoreFailure> {
        let lane = Lane { tag: tag.map(str::to_owned), activity_name: activity_name.to_owned() };
        if let Some(id) = self.ids.get(&lane) {
            return Ok(*id);
        }
        let columns = (tag, activity_name);
        let id = match db.first(FIND, columns, |row| row.get(0))? {
            Some(id) => id,
            None => db.insert(INSERT, columns)?,
        };
        self.remember(id, lane);
        Ok(id)
    }

    /// Whether an order takes what stands in this lane.
    pub(crate) fn accepts(&mut self, db: &Db, id: i64, order: &ActivityOrder) -> Result<bool, StoreFailure> {
        Ok(self.get(db, id)?.is_some_and(|lane| order.accepts(&lane.activity_name, lane.tag.as_deref())))
    }

    /// Whether an order takes this lane's tag, but has no handler for what stands in it.
    pub(crate) fn holds_back(
        &mut self,
        db: &Db,
        id: i64,
        order: &ActivityOrder,
    ) -> Result<bool, StoreFailure> {
        Ok(self.get(db, id)?.is_some_and(|lane| order.holds_back(&lane.activity_name, lane.tag.as_deref())))
    }

    fn get(&mut self, db: &Db, id: i64) -> Result<Option<&Lane>, StoreFailure> {
        if !self.by_id.contains_key(&id) {
            let load = |row: &rusqlite::Row<'_>| Ok(Lane { tag: row.get(0)?, activity_name: row.get(1)? });
            let Some(lane) = db.first(LOAD, [id], load)? else { return Ok(None) };
            self.remember(id, lane);
        }
        Ok(self.by_id.get(&id))
    }

    fn remember(&mut self, id: i64, lane: Lane) {
        self.by_id.insert(id, lane.clone());
        self.ids.insert(lane, id);
    }
}
