//! Nodes: who claims, and what becomes free when one of them is gone.

mod files;
mod note;

use duroxide_provider::{
    ClaimToken, Losses, NodeId,
    store::{Answer, ApplyError, NodeRow, StoreFailure, StoredNode, bounds::NODE_FORGOTTEN_AFTER, token_row},
};

pub(crate) use self::files::NodeFiles;
use crate::{
    SqliteEngine,
    db::{Db, micros, number, time, unsigned},
    instances::read_losses,
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
const HELD_INSTANCES: &str = "SELECT lock_token FROM instance INDEXED BY instance_wake
    WHERE wake_at IS NOT NULL AND lock_until > ?2 AND node = ?1 ORDER BY id";
const HELD_ACTIVITIES: &str = "SELECT lock_token FROM activity INDEXED BY activity_wake
    WHERE wake_at IS NOT NULL AND lock_until > ?2 AND node = ?1 ORDER BY id";
const END_INSTANCE: &str = "UPDATE instance SET lock_until = ?2 WHERE id = ?1";
const COUNT_INSTANCE: &str =
    "UPDATE instance SET lost = ?2, blamed = ?3, suspect = suspect OR ?2 > 0 WHERE id = ?1";
const END_ACTIVITY: &str = "UPDATE activity SET lock_until = ?2, wake_at = NULL, ready = 1 WHERE id = ?1";
const COUNT_ACTIVITY: &str = "UPDATE activity SET lost = ?2, blamed = ?3 WHERE id = ?1";
const LOSSES_OF_ACTIVITY: &str = "SELECT lost, blamed FROM activity WHERE id = ?1";
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

    /// Ends what a node held. Its attempts stay counted, because any of them may have ended the node. If one is known to
    /// have ended it, that one keeps its lease, so that the others get ahead of it, and they get their attempt back.
    pub(crate) fn end_node(&mut self, name: &str, blamed: Option<&ClaimToken>) -> Result<Answer, ApplyError> {
        let found = self.db.first(FIND, [name], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        let Some((id, owners)) = found else { return Ok(Answer::Done) };
        self.kept_activities.clear();
        let held = self.held_by(id)?;
        match blamed.filter(|blamed| held.contains(blamed)) {
            None => {
                for claim in &held {
                    self.end_claim(claim)?;
                }
            }
            Some(blamed) => {
                let killer = self.change_losses(blamed, Losses::blamed_again)?;
                for claim in held.iter().filter(|claim| *claim != blamed) {
                    self.spare(claim, killer)?;
                }
            }
        }
        let owners: Vec<String> = serde_json::from_str(&owners).unwrap_or_default();
        for owner in owners {
            self.db.execute(END_SESSIONS, (owner, micros(self.now)))?;
        }
        self.db.execute(DELETE, [id])?;
        Ok(Answer::Done)
    }

    /// The claims of a node: instances before activities, each in the order of their rows.
    fn held_by(&self, node: i64) -> Result<Vec<ClaimToken>, StoreFailure> {
        let columns = (node, micros(self.now));
        let instances = self.db.all(HELD_INSTANCES, columns, |row| row.get(0).map(ClaimToken::Instance))?;
        let activities = self.db.all(HELD_ACTIVITIES, columns, |row| row.get(0).map(ClaimToken::Activity))?;
        Ok(instances.into_iter().chain(activities).collect())
    }

    fn end_claim(&mut self, claim: &ClaimToken) -> Result<(), StoreFailure> {
        let now = self.now;
        match claim {
            ClaimToken::Activity(token) => self.db.execute(END_ACTIVITY, (row_of(token), micros(now)))?,
            ClaimToken::Instance(token) => {
                let Some(mut row) = self.instance_locked_by(token)? else { return Ok(()) };
                self.kept.forget(row.id);
                self.db.execute(END_INSTANCE, (row.id, micros(now)))?;
                if let Some(lock) = &mut row.lock {
                    lock.until = now;
                }
                return self.settle(&row).map(|_| ());
            }
        };
        Ok(())
    }

    /// Gives back a claim that did not end its node.
    fn spare(&mut self, claim: &ClaimToken, killer: Losses) -> Result<(), ApplyError> {
        self.change_losses(claim, |losses| losses.beside(killer))?;
        match claim {
            ClaimToken::Instance(token) => self.abandon_instance(token, None, true)?,
            ClaimToken::Activity(token) => self.abandon_activity(token, None, true)?,
        };
        Ok(())
    }

    /// Changes what is counted of a claim, and returns it.
    fn change_losses(
        &mut self,
        claim: &ClaimToken,
        change: impl FnOnce(Losses) -> Losses,
    ) -> Result<Losses, StoreFailure> {
        let (id, losses, count) = match claim {
            ClaimToken::Instance(token) => {
                let id = row_of(token);
                self.kept.forget(id);
                (id, self.instance(id)?.map(|row| row.losses), COUNT_INSTANCE)
            }
            ClaimToken::Activity(token) => {
                let id = row_of(token);
                (id, self.db.first(LOSSES_OF_ACTIVITY, [id], |row| read_losses(row, 0))?, COUNT_ACTIVITY)
            }
        };
        let changed = change(losses.unwrap_or_default());
        self.db.execute(count, (id, changed.lost, changed.blamed))?;
        Ok(changed)
    }
}

/// The row of a token that this store made.
fn row_of(token: &str) -> i64 {
    token_row(token).map_or(0, number)
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
