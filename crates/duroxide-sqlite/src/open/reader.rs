//! A connection that only reads.

use duroxide_core::Timestamp;
use duroxide_provider::store::StoreFailure;

use super::{Location, open_reader};
use crate::{
    SqliteError, SqliteOptions,
    db::Db,
    reads::{self, Fullness},
};

/// A connection that only reads. Each call is one short read transaction, so that it never holds a checkpoint up.
#[derive(Debug)]
pub struct SqliteReader {
    db: Db,
    fullness: Fullness,
    data_version: i64,
}

/// Changes with the commits of other connections only.
const DATA_VERSION: &str = "PRAGMA data_version";

impl SqliteReader {
    pub(crate) fn open(location: &Location, options: &SqliteOptions) -> Result<Self, SqliteError> {
        Ok(Self { db: open_reader(location, options)?, fullness: Fullness::default(), data_version: 0 })
    }

    /// The value of a PRAGMA on this connection.
    ///
    /// # Errors
    /// If SQLite does not know the pragma.
    pub fn pragma(&self, name: &str) -> Result<String, SqliteError> {
        self.db.pragma(name)
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// Connection and mailbox counts, for reads.
    pub(crate) fn db_and_fullness(&mut self) -> (&Db, &mut Fullness) {
        (&self.db, &mut self.fullness)
    }

    /// Whether another connection has committed since this was last asked.
    pub(super) fn saw_commits(&mut self) -> Result<bool, StoreFailure> {
        let version = self.db.value(DATA_VERSION, [])?.unwrap_or_default();
        Ok(std::mem::replace(&mut self.data_version, version) != version)
    }

    /// The time of reads: a reader has no clock, and the time of the last write is late enough to judge a lease.
    pub(crate) fn read_at(&self) -> Result<Timestamp, StoreFailure> {
        reads::written_at(&self.db)
    }
}
