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
    load::{Meaning, NamedInstances, Request, given_time},
};
use crate::{
    connection::{Query, parameters},
    database_error::DatabaseError,
    record::lock_look_micros,
    value::{Columns, micros, number, span},
};

/// A node that ends, and its claims: each claim in a row of its own, and one row without a claim if it has none. The index
/// of waiting rows finds locked instances among the timers of the next minute. Timers that are due later are not read.
const ENDING: &str = concat!(
    "SELECT node.id, node.session_owners, held.is_activity, held.lock_token
    FROM (SELECT id, session_owners FROM {s}.node WHERE name = $1 FOR UPDATE) AS node
    LEFT JOIN LATERAL (
        SELECT false AS is_activity, instance.number, instance.lock_token FROM {s}.instance
        WHERE instance.look_at <= ",
    given_time!("$2"),
    " + $3::bigint AND instance.lock_until > ",
    given_time!("$2"),
    " AND instance.lock_node = node.id
        UNION ALL
        SELECT true, activity.number, activity.lock_token FROM {s}.activity WHERE activity.wait_until > ",
    given_time!("$2"),
    " AND activity.lock_until > ",
    given_time!("$2"),
    " AND activity.lock_node = node.id) AS held ON true
    ORDER BY held.is_activity, held.number"
);
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
const LOCK_LOOK: Duration = Duration::from_micros(lock_look_micros!());

/// A node as it was found, and the tokens of its claims.
#[derive(Debug)]
pub(super) struct EndingNode {
    id: NodeId,
    session_owners: Vec<String>,
    claims: Vec<ClaimToken>,
}

impl Request {
    /// Locks a node that ends, and finds its claims at a time, or now.
    pub(super) fn ending_node(name: &str, at: Option<Timestamp>) -> Self {
        let parameters = parameters![name.to_owned(), at.map(micros), span(LOCK_LOOK)];
        Self::new(Meaning::EndingNode(name.to_owned()), ENDING, parameters)
    }
}

impl PostgresTables {
    pub(super) fn node(&mut self, name: &str) -> Result<Option<(NodeId, Vec<String>)>, DatabaseError> {
        if !self.set.ending_nodes.contains_key(name) {
            self.ask_requests([Request::ending_node(name, self.given_time)])?;
        }
        let found = self.set.ending_nodes.get(name).and_then(Option::as_ref);
        Ok(found.map(|node| (node.id, node.session_owners.clone())))
    }

    pub(super) fn take_ending_node(&mut self, name: String, rows: &[Row]) -> Result<(), DatabaseError> {
        let mut found = None;
        if let Some(row) = rows.first() {
            let owners: String = row.column("session_owners")?;
            let session_owners = serde_json::from_str(&owners).unwrap_or_default();
            found = Some(EndingNode { id: NodeId(row.number("id")?), session_owners, claims: Vec::new() });
        }
        for row in rows {
            let token: Option<String> = row.column("lock_token")?;
            let (Some(node), Some(token)) = (&mut found, token) else { continue };
            let is_activity: bool = row.column("is_activity")?;
            node.claims.push(if is_activity {
                ClaimToken::Activity(token)
            } else {
                ClaimToken::Instance(token)
            });
        }
        self.set.ending_nodes.insert(name, found);
        Ok(())
    }

    pub(super) fn write_node(&mut self, node: &NodeRow, now: Timestamp) -> Result<NodeId, DatabaseError> {
        self.set.ending_nodes.remove(&node.name);
        let parameters = parameters![node.name.clone(), micros(now), owners(node), node.capability.clone()];
        let rows = self.ask(Query::new(WRITE, parameters))?;
        let row = rows.first().ok_or_else(|| DatabaseError::refused("a written node has no number"))?;
        Ok(NodeId(row.number("id")?))
    }

    pub(super) fn touch_node(&mut self, name: &str, now: Timestamp) -> Result<bool, DatabaseError> {
        let rows = self.ask(Query::new(TOUCH, parameters![name.to_owned(), micros(now)]))?;
        Ok(!rows.is_empty())
    }

    pub(super) fn restore_node(
        &mut self,
        node: NodeId,
        row: &NodeRow,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        self.set.ending_nodes.remove(&row.name);
        let (name, capability) = (row.name.clone(), row.capability.clone());
        self.execute(Query::new(
            RESTORE,
            parameters![number(node.0), name, micros(now), owners(row), capability],
        ))
    }

    pub(super) fn nodes(&mut self) -> Result<Vec<StoredNode>, DatabaseError> {
        let rows = self.ask(Query::new(ALL, Vec::new()))?;
        rows.iter().map(stored_node).collect()
    }

    pub(super) fn set_node_seen(&mut self, node: NodeId, seen_at: Timestamp) -> Result<(), DatabaseError> {
        self.execute(Query::new(SET_SEEN, parameters![number(node.0), micros(seen_at)]))
    }

    /// Deletes a node with the next round trip.
    pub(super) fn delete_node(&mut self, node: NodeId) -> Result<(), DatabaseError> {
        self.set.ending_nodes.values_mut().for_each(|found| _ = found.take_if(|found| found.id == node));
        self.set.deleted_nodes.insert(node.0);
        Ok(())
    }

    /// The live claims of a node. Loads their rows and the sessions of the node in one round trip, because ending a node reads each of
    /// them. Leaves out claims that have ended since their tokens were read.
    pub(super) fn claims_of(
        &mut self,
        node: NodeId,
        after: Timestamp,
    ) -> Result<Vec<ClaimToken>, DatabaseError> {
        let found = self.set.ending_nodes.values().flatten().find(|found| found.id == node);
        let (mut claims, owners) =
            found.map(|found| (found.claims.clone(), found.session_owners.clone())).unwrap_or_default();
        self.load_claimed(&claims, owners)?;
        claims.retain(|claim| self.is_claimed(claim, after));
        Ok(claims)
    }

    fn load_claimed(&mut self, claims: &[ClaimToken], owners: Vec<String>) -> Result<(), DatabaseError> {
        let (mut instances, mut activities) = (BTreeSet::new(), BTreeSet::new());
        for claim in claims {
            match claim {
                ClaimToken::Instance(token) => instances.extend(token_row(token)),
                ClaimToken::Activity(token) => activities.extend(token_row(token)),
            }
        }
        instances.retain(|number| !self.set.instances.knows(number));
        activities.retain(|number| !self.set.activities.knows(number));
        let mut requests = Vec::new();
        if !instances.is_empty() {
            let named = NamedInstances { numbers: instances, ..NamedInstances::default() };
            requests.extend(Request::instances(&named, self.mailbox_loaded_max));
        }
        if !activities.is_empty() {
            requests.push(Request::activities(&activities));
        }
        if !owners.is_empty() {
            requests.push(Request::sessions_of_owners(owners, self.given_time));
        }
        if !requests.is_empty() {
            // Numbers are drawn behind the locks.
            requests.push(Request::numbers(1));
            self.load(requests)?;
        }
        Ok(())
    }

    /// Whether the row of a claim, which was loaded, has a lease by this token after a time.
    fn is_claimed(&self, claim: &ClaimToken, after: Timestamp) -> bool {
        let (token, lease) = match claim {
            ClaimToken::Instance(token) => {
                let row = token_row(token).and_then(|number| self.set.instances.get(&number));
                (token, row.and_then(|row| row.lock.as_ref()).map(|lock| &lock.lease))
            }
            ClaimToken::Activity(token) => {
                let row = token_row(token).and_then(|number| self.set.activities.get(&number));
                (token, row.and_then(|row| row.queued.lock.as_ref()))
            }
        };
        lease.is_some_and(|lease| lease.token == *token && lease.until > after)
    }
}

/// A list of texts: `serde_json` cannot fail.
fn owners(row: &NodeRow) -> String {
    serde_json::to_string(&row.session_owners).unwrap_or_default()
}

/// The node of a row.
pub(crate) fn stored_node(row: &Row) -> Result<StoredNode, DatabaseError> {
    Ok(StoredNode {
        id: NodeId(row.number("id")?),
        name: row.column("name")?,
        started_at: row.time("started_at")?,
        seen_at: row.time("seen_at")?,
        capability: row.column("capability")?,
    })
}
