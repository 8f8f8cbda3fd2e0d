//! The tables of SQLite, below the storage rules.
//!
//! A file for each table, with its statements next to the functions that run them. [`SqliteTables`] keeps a cache of
//! rows (`row_cache`), which is not visible outside.

pub(crate) mod activities;
pub(crate) mod dead_letters;
pub(crate) mod dictionary;
pub(crate) mod executions;
pub(crate) mod instances;
pub(crate) mod intake;
pub(crate) mod mailboxes;
pub(crate) mod nodes;
pub(crate) mod payloads;
mod readiness;
mod removals;
mod row_cache;
mod sequence;
pub(crate) mod sessions;
pub(crate) mod state;

use duroxide_core::Timestamp;
use duroxide_provider::rules::{Lane, Route, Rows, Transactions};

use self::{
    dictionary::Dictionary, payloads::Payloads, readiness::FirstRoute, row_cache::RowCache,
    sequence::Sequence,
};
use crate::reads::Fullness;
use crate::{
    db::Db,
    error::{commit_failure, failure},
};

/// A transaction that writes takes the write lock at once: one that takes it later can get a busy error that a retry of
/// the statement does not resolve (B20).
pub(crate) const BEGIN: &str = "BEGIN IMMEDIATE";
pub(crate) const COMMIT: &str = "COMMIT";
pub(crate) const ROLLBACK: &str = "ROLLBACK";
const DATA_VERSION: &str = "PRAGMA data_version";

/// The tables of one store, through the connection that writes.
#[derive(Debug)]
pub(crate) struct SqliteTables {
    pub(crate) db: Db,
    sequence: Sequence,
    routes: Dictionary<Route>,
    lanes: Dictionary<Lane>,
    cache: RowCache,
    payloads: Payloads,
    first_route: FirstRoute,
    fullness: Fullness,
    /// Rows changed before the transaction began, to detect whether it wrote.
    changes_before: u64,
    /// The state of the store that cache, payloads and sequence belong to, as SQLite counts the commits of other
    /// connections.
    cached_version: Option<i64>,
}

impl SqliteTables {
    /// Connection and mailbox counts, for reads.
    pub(crate) fn db_and_fullness(&mut self) -> (&Db, &mut Fullness) {
        (&self.db, &mut self.fullness)
    }

    pub(crate) fn new(db: Db) -> Self {
        Self {
            db,
            sequence: Sequence::default(),
            routes: Dictionary::default(),
            lanes: Dictionary::default(),
            cache: RowCache::default(),
            payloads: Payloads::default(),
            first_route: FirstRoute::default(),
            fullness: Fullness::default(),
            changes_before: 0,
            cached_version: None,
        }
    }

    /// How often other connections have changed the store.
    pub(crate) fn data_version(&self) -> Rows<i64> {
        Ok(self.db.value(DATA_VERSION, [])?.unwrap_or_default())
    }
}

impl Transactions for SqliteTables {
    fn begin(&mut self) -> Rows<()> {
        self.db.run(BEGIN).map_err(|error| failure(&error))?;
        self.changes_before = self.db.conn().total_changes();
        let version = Some(self.data_version()?);
        if self.cached_version != version {
            // Another connection has committed: another process, or a SQLite tool.
            self.cache.clear();
            self.payloads.clear();
            self.sequence.read(&self.db)?;
            self.cached_version = version;
        }
        Ok(())
    }

    fn commit(&mut self, now: Timestamp) -> Rows<()> {
        if self.db.conn().total_changes() != self.changes_before {
            self.payloads.delete_unused(&self.db)?;
            self.sequence.write(&self.db, now)?;
        }
        self.db.run(COMMIT).map_err(|error| commit_failure(&error))
    }

    fn rollback(&mut self) {
        if !self.db.conn().is_autocommit()
            && let Err(error) = self.db.run(ROLLBACK)
        {
            tracing::warn!(target: "duroxide::providers::sqlite", %error, "rollback failed");
        }
        self.routes.clear();
        self.lanes.clear();
        self.fullness = Fullness::default();
        self.cached_version = None;
    }

    fn next_number(&mut self) -> Rows<u64> {
        Ok(self.sequence.take())
    }
}
