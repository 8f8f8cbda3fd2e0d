//! Node rows.

use duroxide_core::Timestamp;
use duroxide_provider::{
    ClaimToken, NodeId,
    rules::{NodeTable, Rows},
    store::{NodeRow, StoredNode},
};

use super::{SqliteTables, activities, instances};
use crate::{
    columns::{columns, insert, update},
    db::{Db, micros, number, time, unsigned},
};

columns!(node as node_columns: id, name, started_at, seen_at, capability);

const ALL: &str = concat!("SELECT ", node_columns!(), " FROM node ORDER BY id");
const FIND: &str = "SELECT id, session_owners FROM node WHERE name = ?1";
const DELETE: &str = "DELETE FROM node WHERE id = ?1";

/// A list of texts: `serde_json` cannot fail.
fn owners(row: &NodeRow) -> String {
    serde_json::to_string(&row.session_owners).unwrap_or_default()
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
        self.db.first(FIND, [name], |row| {
            let owners = serde_json::from_str(&row.get::<_, String>("session_owners")?).unwrap_or_default();
            Ok((NodeId(unsigned(row.get("id")?)), owners))
        })
    }

    fn write_node(&mut self, row: &NodeRow, now: Timestamp) -> Rows<NodeId> {
        let found = self.node(&row.name)?.map(|(node, _)| node);
        if let Some(node) = found {
            update!(self.db, node [id: number(node.0)] {
                started_at: micros(now),
                seen_at: micros(now),
                session_owners: owners(row),
                capability: &row.capability,
            })?;
            return Ok(node);
        }
        insert!(
            self.db,
            node {
                name: &row.name,
                started_at: micros(now),
                seen_at: micros(now),
                session_owners: owners(row),
                capability: &row.capability,
            }
        )?;
        Ok(NodeId(unsigned(self.db.last_inserted())))
    }

    fn touch_node(&mut self, name: &str, now: Timestamp) -> Rows<bool> {
        Ok(update!(self.db, node [name: name] { seen_at: micros(now) })? > 0)
    }

    fn restore_node(&mut self, node: NodeId, row: &NodeRow, now: Timestamp) -> Rows<()> {
        let inserted = insert!(
            self.db,
            node {
                id: number(node.0),
                name: &row.name,
                started_at: micros(now),
                seen_at: micros(now),
                session_owners: owners(row),
                capability: &row.capability,
            }
        );
        inserted.map(|_| ())
    }

    fn nodes(&mut self) -> Rows<Vec<StoredNode>> {
        list(&self.db)
    }

    fn set_node_seen(&mut self, node: NodeId, seen_at: Timestamp) -> Rows<()> {
        update!(self.db, node [id: number(node.0)] { seen_at: micros(seen_at) }).map(|_| ())
    }

    fn delete_node(&mut self, node: NodeId) -> Rows<()> {
        self.db.execute(DELETE, [number(node.0)]).map(|_| ())
    }

    fn claims_of(&mut self, node: NodeId, after: Timestamp) -> Rows<Vec<ClaimToken>> {
        let instances = instances::tokens_of(&self.db, node, after)?.into_iter().map(ClaimToken::Instance);
        let activities = activities::tokens_of(&self.db, node, after)?.into_iter().map(ClaimToken::Activity);
        Ok(instances.chain(activities).collect())
    }
}
