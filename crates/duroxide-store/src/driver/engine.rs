//! The engine as the driver calls it: panics are failures.

use std::sync::Arc;

use duroxide_core::Timestamp;
use duroxide_provider::store::{
    Batch, Done, FailureClass, Fault, Readies, StoreEngine, StoreFailure, StoreReader, StoredNode,
    TellOfWrite, caught,
};

use crate::log;

/// An engine whose panics are failures. What panics inside a transaction is told by the engine; a panic around it leaves
/// nothing known.
pub(super) struct GuardedEngine {
    engine: Box<dyn StoreEngine>,
    name: Arc<str>,
}

impl GuardedEngine {
    pub(super) fn new(engine: Box<dyn StoreEngine>, name: Arc<str>) -> Self {
        Self { engine, name }
    }

    /// The engine as a reader. Each [`Read`](crate::submit::Read) guards itself.
    pub(super) fn reader(&mut self) -> &mut dyn StoreReader {
        &mut *self.engine
    }

    pub(super) fn transact(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        let done = self.call("transact", FailureClass::OutcomeUnknown, |engine| Ok(engine.transact(batch)));
        match done {
            Ok(done) => done.inspect_err(|fault| log::panic_in(&self.name, fault.failure())),
            Err(failure) => Err(Fault::OutcomeUnknown { failure, done: None }),
        }
    }

    pub(super) fn next_wake(&mut self, now: Timestamp) -> Result<Option<Timestamp>, StoreFailure> {
        self.call("next_wake", FailureClass::Retryable, |engine| engine.next_wake(now))
    }

    pub(super) fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure> {
        self.call("changed_elsewhere", FailureClass::Retryable, |engine| engine.changed_elsewhere())
    }

    /// An engine that panics tells nothing.
    pub(super) fn tell_of_writes(&mut self, tell: &TellOfWrite) -> bool {
        self.call("tell_of_writes", FailureClass::Retryable, |engine| Ok(engine.tell_of_writes(tell)))
            .unwrap_or(false)
    }

    pub(super) fn may_be_ready(&mut self) -> Result<Readies, StoreFailure> {
        self.call("may_be_ready", FailureClass::Retryable, |engine| engine.may_be_ready())
    }

    pub(super) fn nodes(&mut self) -> Result<Vec<StoredNode>, StoreFailure> {
        self.call("nodes", FailureClass::Retryable, |engine| engine.nodes())
    }

    pub(super) fn reopen(&mut self) -> Result<(), StoreFailure> {
        self.call("reopen", FailureClass::Retryable, |engine| engine.reopen())
    }

    pub(super) fn maintain(&mut self) -> Result<(), StoreFailure> {
        self.call("maintain", FailureClass::Retryable, |engine| engine.maintain())
    }

    /// Makes one call. A panic is logged and becomes a failure of the given class. The engine is used again afterwards: the
    /// driver reopens it if the class says so.
    fn call<T>(
        &mut self,
        name: &'static str,
        on_panic: FailureClass,
        run: impl FnOnce(&mut dyn StoreEngine) -> Result<T, StoreFailure>,
    ) -> Result<T, StoreFailure> {
        let engine = &mut *self.engine;
        caught(name, on_panic, || run(engine)).inspect_err(|failure| log::panic_in(&self.name, failure))
    }
}
