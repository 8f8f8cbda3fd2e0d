use std::{sync::Arc, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::store::{
    Answer, ApplyError, Claimed, DeadLetterNote, FailureClass, Op, Readies, Refusal, StoreEngine,
    StoreFailure, StoreReader, StoredNode, TellOfWrite,
};

use crate::{guard::guarded, order::Order};

/// An engine whose panics are failures. The class of such a failure says what holds afterwards: an operation that
/// panics is rolled back and will not succeed later; a panic around the transaction itself leaves nothing known.
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

    pub(super) fn begin(&mut self, now: Timestamp) -> Result<(), StoreFailure> {
        self.call("begin", FailureClass::OutcomeUnknown, |engine| engine.begin(now))
    }

    pub(super) fn apply(
        &mut self,
        op: &Op,
        handed_in: Timestamp,
    ) -> Result<Result<Answer, Refusal>, StoreFailure> {
        self.call("apply", FailureClass::Permanent, |engine| match engine.apply(op, handed_in) {
            Ok(answer) => Ok(Ok(answer)),
            Err(ApplyError::Refused(refusal)) => Ok(Err(refusal)),
            Err(ApplyError::Broken(failure)) => Err(failure),
        })
    }

    pub(super) fn promote(&mut self) -> Result<Vec<DeadLetterNote>, StoreFailure> {
        self.call("promote", FailureClass::Permanent, |engine| engine.promote())
    }

    pub(super) fn clamp_leases(&mut self) -> Result<(), StoreFailure> {
        self.call("clamp_leases", FailureClass::Permanent, |engine| engine.clamp_leases())
    }

    pub(super) fn move_leases(&mut self, by: Duration) -> Result<(), StoreFailure> {
        self.call("move_leases", FailureClass::Permanent, |engine| engine.move_leases(by))
    }

    pub(super) fn claim<O: Order>(
        &mut self,
        order: &O,
        nonce: u128,
    ) -> Result<Claimed<O::Claim>, StoreFailure> {
        self.call("claim", FailureClass::Permanent, |engine| order.claim(engine, nonce))
    }

    pub(super) fn commit(&mut self) -> Result<(), StoreFailure> {
        self.call("commit", FailureClass::OutcomeUnknown, |engine| engine.commit())
    }

    pub(super) fn rollback(&mut self) -> Result<(), StoreFailure> {
        self.call("rollback", FailureClass::OutcomeUnknown, |engine| {
            engine.rollback();
            Ok(())
        })
    }

    pub(super) fn next_wake(&mut self) -> Result<Option<Timestamp>, StoreFailure> {
        self.call("next_wake", FailureClass::Retryable, |engine| engine.next_wake())
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

    fn call<T>(
        &mut self,
        name: &'static str,
        on_panic: FailureClass,
        run: impl FnOnce(&mut dyn StoreEngine) -> Result<T, StoreFailure>,
    ) -> Result<T, StoreFailure> {
        let engine = &mut *self.engine;
        guarded(&self.name, name, on_panic, || run(engine))
    }
}
