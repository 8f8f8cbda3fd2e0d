//! Opening an existing store without changing it: for tools that read the stores of other programs.

use duroxide_core::Timestamp;
use duroxide_provider::store::{Batch, BatchPart, Done, FailureClass, Fault, StoreEngine, StoreFailure};

use super::{
    Location, SqliteReader, connect,
    identity::{self, Identity, Verdict},
    migrate::SCHEMA_VERSION,
};
use crate::SqliteError;

/// The location of a store in a file with the tables of this build. Nothing is made or changed.
pub(crate) fn existing_store(url: &str) -> Result<Location, SqliteError> {
    let location = match Location::parse(url)?.resolve() {
        Location::File { path, vfs, .. } => Location::File { path, create: false, vfs },
        Location::Memory => {
            return Err(Location::Memory.refused("it ends with the process that made it; name a file"));
        }
    };
    location.check()?;
    identity::check_untouched(&location)?;
    let identity = Identity::read(&connect(&location)?).map_err(|error| location.open_error(&error))?;
    match identity.verdict(&location)? {
        Verdict::Ours(SCHEMA_VERSION) => Ok(location),
        Verdict::Ours(version) => Err(location.refused(&format!(
            "it was written by an older duroxide (schema {version}, this one has {SCHEMA_VERSION}); start a node of \
             this release on it once, which brings it up to date"
        ))),
        Verdict::New => Err(location.refused("it is empty: no node has made a store of it yet")),
    }
}

/// A store that is opened for reading only: every change is refused.
impl StoreEngine for SqliteReader {
    fn transact(&mut self, _batch: &Batch<'_>) -> Result<Done, Fault> {
        let failure = StoreFailure::new(FailureClass::Permanent, "the store was opened for reading only");
        Err(Fault::Broken { part: BatchPart::SomeOperation, failure })
    }

    fn next_wake(&mut self, _now: Timestamp) -> Result<Option<Timestamp>, StoreFailure> {
        Ok(None)
    }

    fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure> {
        self.saw_commits()
    }

    fn reopen(&mut self) -> Result<(), StoreFailure> {
        Ok(())
    }
}
