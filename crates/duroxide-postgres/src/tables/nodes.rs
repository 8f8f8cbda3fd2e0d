//! Nodes. They change seldom, so every call is a statement.

use std::{collections::BTreeSet, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::{
    ClaimToken, NodeId,
    store::{NodeRow, StoredNode, token_row},
};
use tokio_postgres::Row;

use super::{
    PostgresTables,
    load::{Named, Request},
};
use crate::{
    connection::{Query, parameters},
    fault::Trouble,
    value::{Columns, micros, number, span},
};

const NODE: &str = "SELECT id, session_owners FROM {s}.node WHERE name = $1 FOR UPDATE";
const WRITE: &str = "INSERT INTO {s}.node (name, started_at, seen_at, session_owners, capability)
    VALUES ($1, $2, $2, $3, $4)
    ON CONFLICT (name) DO UPDATE SET started_at = excluded.started_at, seen_at = excluded.seen_at,
        session_owners = excluded.session_owners, capability = excluded.capability
    RETURNING id";
const TOUCH: &str = "UPDATE {s}.node SET seen_at = $2 WHERE name = $1 RETURNING id";
const RESTORE: &str = "INSERT INTO {s}.node (id, name, started_at, seen_at, session_owners, capability)
    OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $3, $4, $5)";
pub(crate) const ALL: &str = "SELECT id, name, started_at, seen_at, capability FROM {s}.node ORDER BY id";
const SET_SEEN: &str = "UPDATE {s}.node SET seen_at = $2 WHERE id = $1";
const DELETE: &str = "DELETE FROM {s}.node WHERE id = $1";
/// The index of waiting rows finds the locked ones among the timers of the next minute. Timers that are due later are not read.
const CLAIMED_INSTANCES: &str = "SELECT lock_token FROM {s}.instance
    WHERE look_at <= $2::bigint + $3::bigint AND lock_until > $2 AND lock_node = $1 ORDER BY number";
const CLAIMED_ACTIVITIES: &str = "SELECT lock_token FROM {s}.activity
    WHERE wait_until > $2 AND lock_until > $2 AND lock_node = $1 ORDER BY number";

/// A locked instance is looked at within this time, again and again while its lease lasts. The statements that write `look_at` say the
/// same in microseconds.
const LOCK_LOOK: Duration = Duration::from_secs(60);

impl PostgresTables {
    pub(super) fn node(&mut self, name: &str) -> Result<Option<(NodeId, Vec<String>)>, Trouble> {
        let rows = self.ask(Query::new(NODE, parameters![name.to_owned()]))?;
        let Some(row) = rows.first() else { return Ok(None) };
        let owners: String = row.column("session_owners")?;
        Ok(Some((NodeId(row.number("id")?), serde_json::from_str(&owners).unwrap_or_default())))
    }

    pub(super) fn write_node(&mut self, node: &NodeRow, now: Timestamp) -> Result<NodeId, Trouble> {
        let parameters = parameters![node.name.clone(), micros(now), owners(node), node.capability.clone()];
        let rows = self.ask(Query::new(WRITE, parameters))?;
        let id = rows.first().map(|row| row.number("id")).transpose()?;
        Ok(NodeId(id.unwrap_or_default()))
    }

    pub(super) fn touch_node(&mut self, name: &str, now: Timestamp) -> Result<bool, Trouble> {
        let rows = self.ask(Query::new(TOUCH, parameters![name.to_owned(), micros(now)]))?;
        Ok(!rows.is_empty())
    }

    pub(super) fn restore_node(
        &mut self,
        node: NodeId,
        row: &NodeRow,
        now: Timestamp,
    ) -> Result<(), Trouble> {
        let (name, capability) = (row.name.clone(), row.capability.clone());
        self.execute(Query::new(
            RESTORE,
            parameters![number(node.0), name, micros(now), owners(row), capability],
        ))
    }

    pub(super) fn nodes(&mut self) -> Result<Vec<StoredNode>, Trouble> {
        let rows = self.ask(Query::new(ALL, Vec::new()))?;
        rows.iter().map(stored_node).collect()
    }

    pub(super) fn set_node_seen(&mut self, node: NodeId, seen_at: Timestamp) -> Result<(), Trouble> {
        self.execute(Query::new(SET_SEEN, parameters![number(node.0), micros(seen_at)]))
    }

    pub(super) fn delete_node(&mut self, node: NodeId) -> Result<(), Trouble> {
        self.execute(Query::new(DELETE, parameters![number(node.0)]))
    }

    pub(super) fn claims_of(&mut self, node: NodeId, after: Timestamp) -> Result<Vec<ClaimToken>, Trouble> {
        let (node, after) = (number(node.0), micros(after));
        let instances = Query::new(CLAIMED_INSTANCES, parameters![node, after, span(LOCK_LOOK)]);
        let activities = Query::new(CLAIMED_ACTIVITIES, parameters![node, after]);
        let mut claims = Vec::new();
        let answers = self.ask_all(vec![instances, activities])?;
        for (rows, claim) in answers.iter().zip([ClaimToken::Instance, ClaimToken::Activity]) {
            for row in rows {
                claims.push(claim(row.column("lock_token")?));
            }
        }
        self.load_claimed(&claims)?;
        Ok(claims)
    }

    /// Loads all rows behind claims at once: whoever ends a node asks for each of them.
    fn load_claimed(&mut self, claims: &[ClaimToken]) -> Result<(), Trouble> {
        let (mut instances, mut activities) = (BTreeSet::new(), BTreeSet::new());
        for claim in claims {
            match claim {
                ClaimToken::Instance(token) => instances.extend(token_row(token)),
                ClaimToken::Activity(token) => activities.extend(token_row(token)),
            }
        }
        instances.retain(|number| !self.set.instances.knows(number));
        activities.retain(|number| !self.set.activities.knows(number));
        if !instances.is_empty() {
            self.load_instances(&Named { numbers: instances, ..Named::default() })?;
        }
        if !activities.is_empty() {
            self.load(vec![Request::activities(&activities)])?;
        }
        Ok(())
    }
}

/// A list of texts: `serde_json` cannot fail.
fn owners(row: &NodeRow) -> String {
    serde_json::to_string(&row.session_owners).unwrap_or_default()
}

/// A node as a row says it.
pub(crate) fn stored_node(row: &Row) -> Result<StoredNode, Trouble> {
    Ok(StoredNode {
        id: NodeId(row.number("id")?),
        name: row.column("name")?,
        started_at: row.time("started_at")?,
        seen_at: row.time("seen_at")?,
        capability: row.column("capability")?,
    })
}
