//! Reads that one call of a reader makes for many callers: a database on the network is asked once for all of them.

use std::sync::Arc;

use duroxide_provider::store::{
    FailureClass, StoreFailure, StoreReader, StoredDescriptor, StoredExecution, StoredStatus, caught,
};
use tokio::sync::oneshot;

use crate::log;

/// Where the result of a read will be.
pub(crate) type ReadResult<T> = oneshot::Receiver<Result<T, StoreFailure>>;

/// A kind of read that one call makes for many callers.
pub(crate) trait Subject {
    /// Identifies the value that a caller reads.
    type Key;
    /// The value that a caller reads.
    type Value;
    /// How many callers share a read.
    const CALLERS_MAX: usize;

    /// One value for each key.
    fn read(reader: &mut dyn StoreReader, keys: &[Self::Key]) -> Result<Vec<Self::Value>, StoreFailure>;
}

/// Statuses of instances.
pub(crate) enum Statuses {}
/// Executions, by instance and number.
pub(crate) enum Executions {}
/// Descriptors of instances.
pub(crate) enum Descriptors {}

impl Subject for Statuses {
    type Key = String;
    type Value = Option<StoredStatus>;
    const CALLERS_MAX: usize = 256;

    fn read(reader: &mut dyn StoreReader, keys: &[String]) -> Result<Vec<Self::Value>, StoreFailure> {
        reader.statuses(keys)
    }
}

impl Subject for Executions {
    type Key = (String, u64);
    type Value = StoredExecution;
    /// Histories may be long, and all callers wait for the longest.
    const CALLERS_MAX: usize = 16;

    fn read(reader: &mut dyn StoreReader, keys: &[(String, u64)]) -> Result<Vec<Self::Value>, StoreFailure> {
        reader.load_all(keys)
    }
}

impl Subject for Descriptors {
    type Key = String;
    type Value = Option<StoredDescriptor>;
    const CALLERS_MAX: usize = 64;

    fn read(reader: &mut dyn StoreReader, keys: &[String]) -> Result<Vec<Self::Value>, StoreFailure> {
        reader.descriptors(keys)
    }
}

/// A read for some callers.
pub(crate) struct SharedRead<S: Subject> {
    store: Arc<str>,
    callers: Vec<Caller<S>>,
}

struct Caller<S: Subject> {
    key: S::Key,
    reply: oneshot::Sender<Result<S::Value, StoreFailure>>,
}

impl<S: Subject> SharedRead<S> {
    /// A read for one caller, and where its result will be.
    pub(crate) fn new(store: Arc<str>, key: S::Key) -> (Self, ReadResult<S::Value>) {
        let (reply, result) = oneshot::channel();
        (Self { store, callers: vec![Caller { key, reply }] }, result)
    }

    /// Joins another read into this one. Returns the other if that would be too many callers.
    pub(super) fn join(&mut self, other: Self) -> Option<Self> {
        if self.callers.len() + other.callers.len() > S::CALLERS_MAX {
            return Some(other);
        }
        self.callers.extend(other.callers);
        None
    }

    pub(super) fn run(mut self, reader: &mut dyn StoreReader) {
        // A dropped caller needs no answer.
        self.callers.retain(|caller| !caller.reply.is_closed());
        if self.callers.is_empty() {
            return;
        }
        let (keys, replies): (Vec<_>, Vec<_>) =
            self.callers.into_iter().map(|caller| (caller.key, caller.reply)).unzip();
        let read = |reader: &mut dyn StoreReader, keys: &[S::Key]| {
            caught("read", FailureClass::Permanent, || S::read(reader, keys))
                .inspect_err(|failure| log::panic_in(&self.store, failure))
        };
        match read(reader, &keys) {
            Ok(values) => {
                replies.into_iter().zip(values).for_each(|(reply, value)| _ = reply.send(Ok(value)));
            }
            // One unreadable instance must not fail the reads of the others.
            Err(failure) if failure.class == FailureClass::Permanent && keys.len() > 1 => {
                for (key, reply) in keys.into_iter().zip(replies) {
                    SharedRead::<S> { store: Arc::clone(&self.store), callers: vec![Caller { key, reply }] }
                        .run(reader);
                }
            }
            Err(failure) => {
                replies.into_iter().for_each(|reply| _ = reply.send(Err(failure.clone())));
            }
        }
    }

    pub(super) fn refuse(self, failure: &StoreFailure) {
        for caller in self.callers {
            let _ = caller.reply.send(Err(failure.clone()));
        }
    }

    #[cfg(test)]
    pub(super) fn callers(&self) -> usize {
        self.callers.len()
    }
}
