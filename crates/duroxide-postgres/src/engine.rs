//! The rules on PostgreSQL tables.

use std::time::Duration;

use duroxide_core::Timestamp;
use duroxide_provider::{
    OrchestrationClaim, WorkClaim,
    rules::{Batch, Done, Rules},
    store::{
        ActivityOrder, Answer, ApplyError, Claimed, DeadLetterNote, InstanceOrder, Op, Readies, StoreEngine,
        StoreFailure,
    },
};

use crate::{
    Fault, OpenError, PostgresOptions, PostgresTables,
    fault::{Class, Trouble},
    needs::Needs,
    open::open,
};

/// A store engine on one connection to a PostgreSQL database.
///
/// [`Self::transact`] is the way to use it. As a [`StoreEngine`] it is told one operation at a time, does not know what
/// comes, and needs a round trip for most of them; that is for tests.
#[derive(Debug)]
pub struct PostgresEngine {
    pub(crate) rules: Rules<PostgresTables>,
    options: PostgresOptions,
}

/// What a transaction did, and when.
#[derive(Debug, Clone)]
pub struct Transacted {
    /// What it did.
    pub done: Done,
    /// The time of everything in it, by the database's clock.
    pub at: Timestamp,
    /// The earliest time at which a promotion will have something to do.
    pub next_wake: Option<Timestamp>,
}

impl PostgresEngine {
    /// Connects, and makes the tables if they are missing.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        let tables = PostgresTables::new(open(&options)?);
        Ok(Self { rules: Rules::new(tables, options.rules), options })
    }

    /// Loads at most this many messages of a mailbox into a working set, and leaves longer mailboxes to statements.
    /// Everything is the same for any number, only the costs differ; tests use it to check that.
    #[must_use]
    pub fn with_mailbox_loaded_max(mut self, messages: usize) -> Self {
        self.rules.tables_mut().set_mailbox_loaded_max(messages);
        self
    }

    /// How many round trips the connection has made since it was opened.
    pub fn round_trips(&self) -> u64 {
        self.rules.tables().round_trips()
    }

    /// Carries out a batch as one transaction, at the time of the database's clock. Hand-in times in the batch are times
    /// of that clock.
    ///
    /// Usually this takes two round trips. The first use of a statement on a connection costs one more, and so does the
    /// first transaction, which looks at leases that a clock set back has made too long.
    ///
    /// # Errors
    /// The fault says whether anything happened and what may be tried. After every fault the engine can be used on, except
    /// after [`Fault::Unavailable`] and [`Fault::OutcomeUnknown`], which [`StoreEngine::reopen`] ends.
    pub fn transact(&mut self, batch: &Batch<'_>) -> Result<Transacted, Fault> {
        let done = self.begin_and_run(batch).inspect_err(|_| self.rules.rollback())?;
        let at = self.rules.now();
        let next_wake = self.rules.tables_mut().commit_and_look(at).map_err(|trouble| {
            self.rules.rollback();
            Fault::of(trouble)
        })?;
        self.rules.committed();
        Ok(Transacted { done, at, next_wake })
    }

    fn begin_and_run(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        let prefetched = self.rules.tables_mut().prefetch(&Needs::of(batch)).map_err(Fault::of)?;
        self.rules.begin(prefetched.now).map_err(|failure| self.fault_of(failure))?;
        self.rules.run(batch).map_err(|broken| {
            let trouble = self.rules.tables_mut().take_trouble();
            Fault::of_part(broken.part, broken.failure, trouble)
        })
    }

    /// The fault behind a failure of the tables.
    fn fault_of(&mut self, failure: StoreFailure) -> Fault {
        let trouble = self.rules.tables_mut().take_trouble();
        Fault::of(trouble.unwrap_or_else(|| Trouble::new(Class::Refused, failure.message)))
    }
}

impl StoreEngine for PostgresEngine {
    fn begin(&mut self, now: Timestamp) -> Result<(), StoreFailure> {
        self.rules.begin(now)
    }

    fn apply(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, ApplyError> {
        self.rules.apply(op, handed_in)
    }

    fn promote(&mut self) -> Result<Vec<DeadLetterNote>, StoreFailure> {
        self.rules.promote()
    }

    fn clamp_leases(&mut self) -> Result<(), StoreFailure> {
        self.rules.clamp_leases()
    }

    fn move_leases(&mut self, by: Duration) -> Result<(), StoreFailure> {
        self.rules.move_leases(by)
    }

    fn claim_instances(
        &mut self,
        order: &InstanceOrder,
        nonce: u128,
    ) -> Result<Claimed<OrchestrationClaim>, StoreFailure> {
        self.rules.claim_instances(order, nonce)
    }

    fn claim_activities(
        &mut self,
        order: &ActivityOrder,
        nonce: u128,
    ) -> Result<Claimed<WorkClaim>, StoreFailure> {
        self.rules.claim_activities(order, nonce)
    }

    fn commit(&mut self) -> Result<(), StoreFailure> {
        self.rules.commit()
    }

    fn rollback(&mut self) {
        self.rules.rollback();
    }

    fn next_wake(&mut self) -> Result<Option<Timestamp>, StoreFailure> {
        self.rules.next_wake()
    }

    /// Nobody tells one connection of another's commits yet, so there may always have been one.
    fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure> {
        Ok(true)
    }

    fn may_be_ready(&mut self) -> Result<Readies, StoreFailure> {
        use duroxide_provider::rules::ReadyIndex;
        ReadyIndex::may_be_ready(self.rules.tables_mut())
    }

    fn reopen(&mut self) -> Result<(), StoreFailure> {
        let connection = open(&self.options).map_err(|error| {
            StoreFailure::new(duroxide_provider::store::FailureClass::Retryable, error.to_string())
        })?;
        *self.rules.tables_mut() = PostgresTables::new(connection);
        self.rules.reopened();
        Ok(())
    }
}
