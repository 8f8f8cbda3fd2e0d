//! The rules on PostgreSQL tables.

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{ReadyIndex, Rules},
    store::{Batch, Done, FailureClass, Fault, Readies, StoreEngine, StoreFailure, TransactionSteps},
};

use crate::{
    OpenError, PostgresOptions, PostgresTables,
    fault::{Class, Trouble, fault_of, fault_of_part},
    needs::Needs,
    open::open,
};

/// A store engine on one connection to a PostgreSQL database.
///
/// Usually a batch takes two round trips. The first use of a statement on a connection costs one more, and so does the
/// first transaction, which looks at leases that a clock set back has made too long.
#[derive(Debug)]
pub struct PostgresEngine {
    pub(crate) rules: Rules<PostgresTables>,
    options: PostgresOptions,
    clock: Clock,
}

/// Whose clock decides leases and timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clock {
    Database,
    Caller,
}

impl PostgresEngine {
    /// Connects, and makes the tables if they are missing.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        let tables = PostgresTables::new(open(&options)?);
        Ok(Self { rules: Rules::new(tables, options.rules), options, clock: Clock::Database })
    }

    /// Loads at most this many messages of a mailbox into a working set, and leaves longer mailboxes to statements.
    /// Everything is the same for any number, only the costs differ; tests use it to check that.
    #[doc(hidden)]
    #[must_use]
    pub fn with_mailbox_loaded_max(mut self, messages: usize) -> Self {
        self.rules.tables_mut().set_mailbox_loaded_max(messages);
        self
    }

    /// Lets the caller's clock decide, which may be a virtual one: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_callers_clock(mut self) -> Self {
        self.clock = Clock::Caller;
        self
    }

    /// The steps of a transaction, for tests that look at a store while one is open.
    #[doc(hidden)]
    pub fn steps(&mut self) -> &mut (impl TransactionSteps + use<>) {
        &mut self.rules
    }

    /// How many round trips the connection has made since it was opened.
    pub fn round_trips(&self) -> u64 {
        self.rules.tables().round_trips()
    }

    pub(crate) fn tables(&mut self) -> &mut PostgresTables {
        self.rules.tables_mut()
    }

    fn begin_and_carry_out(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        let now = (self.clock == Clock::Caller).then_some(batch.now);
        let prefetched =
            self.tables().prefetch(&Needs::of(batch, now)).map_err(|trouble| fault_of(trouble, None))?;
        self.rules.begin(prefetched.now).map_err(|failure| {
            let trouble = self.tables().take_trouble();
            fault_of(trouble.unwrap_or_else(|| Trouble::new(Class::Refused, failure.message)), None)
        })?;
        self.rules.carry_out(batch, prefetched.now).map_err(|fault| match fault {
            Fault::Broken { part, failure } => fault_of_part(part, failure, self.tables().take_trouble()),
            Fault::LostRace(_) | Fault::Unavailable(_) | Fault::OutcomeUnknown { .. } => fault,
        })
    }

    fn commit(&mut self, batch: &Batch<'_>, mut done: Done) -> Result<Done, Fault> {
        match self.tables().commit_and_look(done.now) {
            Ok(next) => {
                self.rules.committed();
                done.next_wake = Ok(next.map(|at| on_callers_clock(at, done.now, batch.now)));
                Ok(done)
            }
            Err(trouble) => Err(fault_of(trouble, Some(done))),
        }
    }
}

/// A time of the database's clock, which shows `here`, on the caller's clock, which shows `there`.
fn on_callers_clock(at: Timestamp, here: Timestamp, there: Timestamp) -> Timestamp {
    if at < here {
        there.saturating_sub(here.saturating_since(at))
    } else {
        there.saturating_add(at.saturating_since(here))
    }
}

impl StoreEngine for PostgresEngine {
    fn transact(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        let result = self.begin_and_carry_out(batch).and_then(|done| self.commit(batch, done));
        result.map_err(|fault| self.rules.roll_back_after(fault))
    }

    fn next_wake(&mut self, now: Timestamp) -> Result<Option<Timestamp>, StoreFailure> {
        let next = self.rules.next_wake()?;
        let here = match self.clock {
            Clock::Database => self.tables().database_time()?,
            Clock::Caller => now,
        };
        Ok(next.map(|at| on_callers_clock(at, here, now)))
    }

    /// Nobody tells one connection of another's commits yet, so there may always have been one.
    fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure> {
        Ok(true)
    }

    fn may_be_ready(&mut self) -> Result<Readies, StoreFailure> {
        ReadyIndex::may_be_ready(self.tables())
    }

    fn reopen(&mut self) -> Result<(), StoreFailure> {
        let connection = open(&self.options)
            .map_err(|error| StoreFailure::new(FailureClass::Retryable, error.to_string()))?;
        *self.tables() = PostgresTables::new(connection);
        self.rules.reopened();
        Ok(())
    }
}
