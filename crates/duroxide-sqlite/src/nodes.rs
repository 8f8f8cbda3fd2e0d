//! Nodes: who claims, and what becomes free when one of them is gone.

mod files;

use duroxide_provider::{
    NodeId,
    store::{Answer, ApplyError, NodeRow, StoreFailure, StoredNode, bounds::NODE_FORGOTTEN_AFTER},
};

pub(crate) use self::files::NodeFiles;
use crate::{
    SqliteEngine,
    db::{Db, micros, number, time, unsigned},
};

const ALL: &str = "SELECT id, name, started_at, seen_at, capability FROM node ORDER BY id";
const JOIN_AGAIN: &str = "UPDATE node SET started_at = ?2, seen_at = ?2, session_owners = ?3, capability = ?4
    WHERE name = ?1";
const JOIN: &str = "INSERT INTO node (name, started_at, seen_at, session_owners, capability)
    VALUES (?1, ?2, ?2, ?3, ?4)";
const FIND: &str = "SELECT id, session_owners FROM node WHERE name = ?1";
const RENEW: &str = "UPDATE node SET seen_at = ?2 WHERE name = ?1";
const FORGET: &str = "DELETE FROM node WHERE seen_at <= ?1";
const DELETE: &str = "DELETE FROM node WHERE id = ?1";
/// A live lease is what its row waits for, so the index of waiting rows finds it. An index of its own would be written
/// with every claim and every commit, for something that happens once in the life of a node.
const HELD_INSTANCES: &str = "SELECT id FROM instance INDEXED BY instance_wake
    WHERE wake_at IS NOT NULL AND lock_until > ?2 AND node = ?1 AND suspect = 0 ORDER BY id";
const END_INSTANCE: &str = "UPDATE instance SET lock_until = ?2 WHERE id = ?1";
const END_ACTIVITIES: &str =
    "UPDATE activity INDEXED BY activity_wake SET lock_until = ?2, wake_at = NULL, ready = 1
    WHERE wake_at IS NOT NULL AND lock_until > ?2 AND node = ?1 AND attempt_count <= 1";
const END_SESSIONS: &str = "UPDATE session SET lock_until = ?2 WHERE owner = ?1 AND lock_until > ?2";

impl SqliteEngine {
    pub(crate) fn join_node(&mut self, row: &NodeRow) -> Result<Answer, ApplyError> {
        self.make_room_in_log()?;
        // A list of texts: `serde_json` cannot fail.
        let owners = serde_json::to_string(&row.session_owners).unwrap_or_default();
        let columns = (&row.name, micros(self.now), owners, &row.capability);
        if self.db.execute(JOIN_AGAIN, columns.clone())? == 0 {
            self.db.insert(JOIN, columns)?;
        }
        let id: Option<i64> = self.db.first(FIND, [&row.name], |found| found.get(0))?;
        Ok(Answer::Joined(NodeId(unsigned(id.unwrap_or_default()))))
    }

    pub(crate) fn renew_nodes(&self, names: &[String]) -> Result<Answer, ApplyError> {
        for name in names {
            self.db.execute(RENEW, (name, micros(self.now)))?;
        }
        let forgotten = i64::try_from(NODE_FORGOTTEN_AFTER.as_micros()).unwrap_or(i64::MAX);
        self.db.execute(FORGET, [micros(self.now).saturating_sub(forgotten)])?;
        Ok(Answer::Done)
    }

    /// Ends what a node held. The attempts stay counted: it may have died of them. What was attempted before is left to
    /// its lease: it may be what killed the node, and while it rests the others get ahead of it.
    pub(crate) fn end_node(&mut self, name: &str) -> Result<Answer, ApplyError> {
        let found = self.db.first(FIND, [name], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        let Some((id, owners)) = found else { return Ok(Answer::Done) };
        self.end_instances_of(id)?;
        self.kept_activities.clear();
        self.db.execute(END_ACTIVITIES, (id, micros(self.now)))?;
        let owners: Vec<String> = serde_json::from_str(&owners).unwrap_or_default();
        for owner in owners {
            self.db.execute(END_SESSIONS, (owner, micros(self.now)))?;
        }
        self.db.execute(DELETE, [id])?;
        Ok(Answer::Done)
    }

    fn end_instances_of(&mut self, node: i64) -> Result<(), StoreFailure> {
        let now = self.now;
        let held: Vec<i64> = self.db.all(HELD_INSTANCES, (node, micros(now)), |row| row.get(0))?;
        for id in held {
            let Some(mut row) = self.instance(id)? else { continue };
            self.kept.forget(id);
            self.db.execute(END_INSTANCE, (id, micros(now)))?;
            if let Some(lock) = &mut row.lock {
                lock.until = now;
            }
            self.settle(&row)?;
        }
        Ok(())
    }
}

/// The nodes that have joined and not ended.
pub(crate) fn list(db: &Db) -> Result<Vec<StoredNode>, StoreFailure> {
    db.all(ALL, [], |row| {
        Ok(StoredNode {
            id: NodeId(unsigned(row.get(0)?)),
            name: row.get(1)?,
            started_at: time(row.get(2)?),
            seen_at: time(row.get(3)?),
            capability: row.get(4)?,
        })
    })
}

/// The number of a claim's node, as it is stored.
pub(crate) fn column(node: Option<NodeId>) -> Option<i64> {
    node.map(|node| number(node.0))
}
