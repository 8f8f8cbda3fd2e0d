//! Lanes: what a worker fetch can filter by. Few rows, kept in memory.

use std::collections::HashMap;

use duroxide_provider::rules::{Lane, LaneId, Rows};

use crate::db::{Db, number, unsigned};

const LOAD: &str = "SELECT tag, activity_name FROM lane WHERE id = ?1";
const FIND: &str = "SELECT id FROM lane WHERE coalesce(tag, 0) = coalesce(?1, 0) AND activity_name = ?2";
const INSERT: &str = "INSERT INTO lane (tag, activity_name) VALUES (?1, ?2)";

/// The lanes met so far.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    by_id: HashMap<LaneId, Lane>,
    ids: HashMap<Lane, LaneId>,
}

impl Lanes {
    /// Forgets everything: a rollback may have undone an insert.
    pub(super) fn clear(&mut self) {
        self.by_id.clear();
        self.ids.clear();
    }

    /// The key of a lane, which is stored if it is new.
    pub(super) fn id(&mut self, db: &Db, lane: &Lane) -> Rows<LaneId> {
        if let Some(id) = self.ids.get(lane) {
            return Ok(*id);
        }
        let columns = (&lane.tag, &lane.name);
        let id = match db.first(FIND, columns, |row| row.get(0))? {
            Some(id) => id,
            None => db.insert(INSERT, columns)?,
        };
        let id = LaneId(unsigned(id));
        self.remember(id, lane.clone());
        Ok(id)
    }

    /// The lane of a key.
    pub(super) fn get(&mut self, db: &Db, id: LaneId) -> Rows<Option<&Lane>> {
        if !self.by_id.contains_key(&id) {
            let load = |row: &rusqlite::Row<'_>| Ok(Lane { tag: row.get(0)?, name: row.get(1)? });
            let Some(lane) = db.first(LOAD, [number(id.0)], load)? else { return Ok(None) };
            self.remember(id, lane);
        }
        Ok(self.by_id.get(&id))
    }

    fn remember(&mut self, id: LaneId, lane: Lane) {
        self.by_id.insert(id, lane.clone());
        self.ids.insert(lane, id);
    }
}
