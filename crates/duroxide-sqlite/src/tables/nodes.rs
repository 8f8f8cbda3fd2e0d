//! Node rows.

use duroxide_core::Timestamp;
use duroxide_provider::{
    ClaimToken, NodeId,
    rules::{NodeTable, Rows},
    store::{NodeRow, StoredNode},
};

use super::{SqliteTables, activities, instances};
use crate::{
    columns::columns,
    db::{Db, micros, number, time, unsigned},
};

columns!(node as node_columns: id, name, started_at, seen_at, capability);

const ALL: &str = concat!("SELECT ", node_columns!(), " FROM node ORDER BY id");
const FIND: &str = "SELECT id, session_owners FROM node WHERE name = ?1";
const REPLACE: &str = "UPDATE node SET started_at = ?2, seen_at = ?2, session_owners = ?3, capability = ?4
    WHERE name = ?1";
const INSERT: &str = "INSERT INTO node (name, started_at, seen_at, session_owners, capability)
    VALUES (?1, ?2, ?2, ?3, ?4)";
const RESTORE: &str = "INSERT INTO node (id, name, started_at, seen_at, session_owners, capability)
    VALUES (?1, ?2, ?3, ?3, ?4, ?5)";
const TOUCH: &str = "UPDATE node SET seen_at = ?2 WHERE name = ?1";
const SET_SEEN: &str = "UPDATE node SET seen_at = ?2 WHERE id = ?1";
const DELETE: &str = "DELETE FROM node WHERE id = ?1";

pub(super) fn find(db: &Db, name: &str) -> Rows<Option<(NodeId, Vec<String>)>> {
    db.first(FIND, [name], |row| {
        let owners = serde_json::from_str(&row.get::<_, String>(1)?).unwrap_or_default();
        Ok((NodeId(unsigned(row.get(0)?)), owners))
    })
}

pub(super) fn write(db: &Db, row: &NodeRow, now: Timestamp) -> Rows<NodeId> {
    let columns = (&row.name, micros(now), owners(row), &row.capability);
    if db.execute(REPLACE, columns.clone())? == 0 {
        db.insert(INSERT, columns)?;
    }
    Ok(find(db, &row.name)?.map_or(NodeId(0), |(id, _)| id))
}

pub(super) fn touch(db: &Db, name: &str, now: Timestamp) -> Rows<bool> {
    Ok(db.execute(TOUCH, (name, micros(now)))? > 0)
}

pub(super) fn restore(db: &Db, id: NodeId, row: &NodeRow, now: Timestamp) -> Rows<()> {
    let columns = (number(id.0), &row.name, micros(now), owners(row), &row.capability);
    db.execute(RESTORE, columns).map(|_| ())
}

/// A list of texts: `serde_json` cannot fail.
fn owners(row: &NodeRow) -> String {
    serde_json::to_string(&row.session_owners).unwrap_or_default()
}

pub(super) fn set_seen(db: &Db, id: NodeId, seen_at: Timestamp) -> Rows<()> {
    db.execute(SET_SEEN, (number(id.0), micros(seen_at))).map(|_| ())
}

pub(super) fn delete(db: &Db, id: NodeId) -> Rows<()> {
    db.execute(DELETE, [number(id.0)]).map(|_| ())
}

/// The nodes that have joined and not ended.
pub(crate) fn list(db: &Db) -> Rows<Vec<StoredNode>> {
    db.all(ALL, [], |row| {
        Ok(StoredNode {
            id: NodeId(unsigned(row.get(node::id)?)),
            name: row.get(node::name)?,
            started_at: time(row.get(node::started_at)?),
            seen_at: time(row.get(node::seen_at)?),
            capability: row.get(node::capability)?,
        })
    })
}

impl NodeTable for SqliteTables {
    fn node(&mut self, name: &str) -> Rows<Option<(NodeId, Vec<String>)>> {
        find(&self.db, name)
    }

    fn write_node(&mut self, row: &NodeRow, now: Timestamp) -> Rows<NodeId> {
        write(&self.db, row, now)
    }

    fn touch_node(&mut self, name: &str, now: Timestamp) -> Rows<bool> {
        touch(&self.db, name, now)
    }

    fn restore_node(&mut self, node: NodeId, row: &NodeRow, now: Timestamp) -> Rows<()> {
        restore(&self.db, node, row, now)
    }

    fn nodes(&mut self) -> Rows<Vec<StoredNode>> {
        list(&self.db)
    }

    fn set_node_seen(&mut self, node: NodeId, seen_at: Timestamp) -> Rows<()> {
        set_seen(&self.db, node, seen_at)
    }

    fn delete_node(&mut self, node: NodeId) -> Rows<()> {
        delete(&self.db, node)
    }

    fn claims_of(&mut self, node: NodeId, after: Timestamp) -> Rows<Vec<ClaimToken>> {
        let instances = instances::tokens_of(&self.db, node, after)?.into_iter().map(ClaimToken::Instance);
        let activities = activities::tokens_of(&self.db, node, after)?.into_iter().map(ClaimToken::Activity);
        Ok(instances.chain(activities).collect())
    }
}
