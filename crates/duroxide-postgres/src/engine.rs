//! The rules on PostgreSQL tables.

mod delayed_reads;
mod intake;
mod lone_message;
mod next_due;
mod notify;

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use duroxide_core::{Clock as _, Timestamp};
use duroxide_provider::{
    rules::{ReadyIndex, Rules},
    store::{
        Batch, Done, FailureClass, Fault, NextWake, Op, Readies, StoreEngine, StoreFailure, TellOfWrite,
        TransactionSteps,
    },
};

use crate::{
    OpenError, PostgresOptions, PostgresTables,
    connection::{Connection, NodeClock},
    database_error::DatabaseError,
    needs::Needs,
    open::{open, open_existing},
    session::{News, SessionState},
    tables::NextDueTime,
};
use delayed_reads::DelayedReads;
use lone_message::LoneMessages;
use next_due::NextDue;

/// A store engine on one connection to a PostgreSQL database.
///
/// A batch takes one round trip if all rows that it needs are in the row cache, and usually two otherwise. The first use of a
/// statement on a connection costs one more, and so does the first transaction, which reads leases that a clock set back has made
/// too long.
#[derive(Debug)]
pub struct PostgresEngine {
    pub(crate) rules: Rules<PostgresTables>,
    options: PostgresOptions,
    clock: Clock,
    session: Option<Arc<SessionState>>,
    /// When the store was last polled for changes by other processes.
    polled_at: Instant,
    /// Whether the intake may have rows.
    intake_due: bool,
    /// The content of notifications that failed; the next notification includes it.
    unsent_news: Option<News>,
    /// The ready rows that notifications have named since the last call of `may_be_ready`. `None`: the database has to be asked.
    received_news: Option<News>,
    next_due: NextDue,
    delayed_reads: DelayedReads,
    /// When a transaction last claimed activities.
    claimed_activities_at: Option<Instant>,
    opened_at: Instant,
    lone_messages: LoneMessages,
    /// Whether no other node writes: for tests.
    is_only_writer: bool,
}

/// How often to ask the database for changes although a connection listens: a notification may get lost with it (24.10).
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// Whose clock decides leases and timers: the database's (24.1), except in tests.
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
        Ok(Self::on(open(&options)?, options))
    }

    /// An engine on a connection to a schema that has the tables of this release.
    pub(crate) fn on(connection: Connection, options: PostgresOptions) -> Self {
        let tables = PostgresTables::new(connection, Arc::default());
        let mut rules = Rules::new(tables, options.rules);
        // Leases need no check when the store is opened: the database's clock decides, and is not set back unnoticed.
        rules.committed();
        Self {
            rules,
            options,
            clock: Clock::Database,
            session: None,
            polled_at: Instant::now(),
            intake_due: true,
            unsent_news: None,
            received_news: None,
            next_due: NextDue::default(),
            delayed_reads: DelayedReads::default(),
            claimed_activities_at: None,
            opened_at: Instant::now(),
            lone_messages: LoneMessages::default(),
            is_only_writer: false,
        }
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

    /// Assumes that no other node writes: for tests of one node without a session connection.
    #[doc(hidden)]
    #[must_use]
    pub fn as_only_writer(mut self) -> Self {
        self.is_only_writer = true;
        self.tables().set_only_writer();
        self
    }

    /// Takes the numbers of dead letters that another node has drawn and not used: for tests that compare numbers.
    #[doc(hidden)]
    pub fn take_letter_numbers(&mut self, of: &mut Self) {
        self.tables().take_letter_numbers(of.tables());
    }

    /// Turns run early on this engine.
    #[must_use]
    pub(crate) fn counting_early_turns(mut self) -> Self {
        self.rules.count_early_turns();
        self
    }

    /// Keeps this clock of nodes in step with the database's clock.
    pub(crate) fn with_node_clock(mut self, clock: Arc<NodeClock>) -> Self {
        self.tables().node_clock = clock;
        self
    }

    /// Receives and sends notifications by this session connection.
    #[must_use]
    pub(crate) fn with_session(mut self, session: Option<Arc<SessionState>>) -> Self {
        self.session = session;
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

    /// The time of reads, if the caller's clock decides.
    pub(crate) fn time_of_reads(&self) -> Option<Timestamp> {
        (self.clock == Clock::Caller).then(|| self.rules.now())
    }

    /// Connects again if the connection has ended.
    pub(crate) fn ensure_open(&mut self) -> Result<(), StoreFailure> {
        if self.tables().connection().is_closed() { self.reopen() } else { Ok(()) }
    }

    fn begin_and_carry_out(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        self.ensure_open().map_err(Fault::Unavailable)?;
        let now = (self.clock == Clock::Caller).then_some(batch.now);
        let gets_notifications =
            self.is_only_writer || self.session.as_ref().is_some_and(|session| session.is_listening());
        self.tables().scan_starts().switch(gets_notifications);
        if !gets_notifications {
            self.tables().forget_ready(News::ANYTHING.readies());
        }
        let is_alone = self.session.as_ref().is_none_or(|session| !session.has_peers());
        if batch.operations.iter().any(|submitted| matches!(*submitted.op, Op::EndNode { .. })) {
            self.tables().scan_starts().forget_due();
        }
        let prefetched =
            self.tables().prefetch(&Needs::of(batch, now), is_alone).map_err(DatabaseError::into_fault)?;
        let listening = self.session.as_ref().filter(|session| session.is_listening());
        let claimers = listening.map(|session| session.claimers()).unwrap_or_default();
        self.rules.share_new_instances(claimers.count > 1);
        self.rules.begin(prefetched.now).map_err(Fault::of_transaction)?;
        self.rules.carry_out(batch, prefetched.now).map_err(|fault| match fault {
            Fault::Broken { part, failure } => Fault::of(failure, part, None),
            Fault::LostRace(_) | Fault::Unavailable(_) | Fault::OutcomeUnknown { .. } => fault,
        })
    }

    /// 24.5: a transaction on cached rows fails if another process has changed one of them. It is tried again with rows from the
    /// database.
    fn transact_batch(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        match self.try_batch(batch) {
            Err(Fault::LostRace(_)) if self.tables().relied_on_cache() && !has_handed_over(batch) => {
                self.try_batch(batch)
            }
            result => result,
        }
    }

    fn try_batch(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        let began = Instant::now();
        let result = self.begin_and_carry_out(batch).and_then(|done| self.commit(batch, done, began));
        result.map_err(|fault| self.rules.roll_back_after(fault))
    }

    fn commit(&mut self, batch: &Batch<'_>, mut done: Done, began: Instant) -> Result<Done, Fault> {
        let left: BTreeSet<u64> = self.rules.left_to_others().collect();
        let leaves_new = !left.is_empty();
        self.tables().leave_to_others(left);
        let news = self.news_of(&done);
        // The row cache keeps other ready rows that this node has read, and claims them later.
        if leaves_new {
            self.delayed_reads.leave(news.and_then(|news| news.left_elsewhere_from), began);
        }
        let notification = self.notification(news);
        let asks = self.clock == Clock::Caller || self.next_due.must_be_read_by(batch);
        let committed = match self.tables().commit_and_read_due(done.now, asks, notification) {
            Ok(committed) => committed,
            Err(error) => return Err(Fault::of_commit(error.into_failure(), done)),
        };
        self.rules.committed();
        self.note_notified(committed.was_notified);
        let due = match committed.due {
            NextDueTime::FromDatabase(next) => {
                self.next_due.learn(began, next.map(|at| at.saturating_since(done.now)));
                next.map(|at| on_callers_clock(at, done.now, batch.now))
            }
            NextDueTime::OfThisTransaction(earliest) => {
                self.next_due.add(began, earliest.map(|at| at.saturating_since(done.now)));
                self.next_due.on_clock(began, batch.now)
            }
        };
        done.next_wake = NextWake::Known(due);
        Ok(done)
    }
}

/// Whether claims of a batch have been handed over. The same batch would give their tokens to other claims.
fn has_handed_over(batch: &Batch<'_>) -> bool {
    batch.turns.is_some_and(|turns| turns.have_begun())
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
        if self.clock == Clock::Database && batch.clock_set_forward.is_some() {
            // The caller's clock was set, not the one that decides.
            let batch = Batch { clock_set_forward: None, ..batch.clone() };
            return self.transact(&batch);
        }
        if self.intake_due {
            return self.transact_with_intake(batch);
        }
        match self.transact_lone_message(batch)? {
            Some(done) => Ok(done),
            None => self.transact_batch(batch),
        }
    }

    /// Rows of the intake are due now.
    fn next_wake(&mut self, now: Timestamp) -> Result<Option<Timestamp>, StoreFailure> {
        self.ensure_open()?;
        if self.has_intake()? {
            return Ok(Some(now));
        }
        let asked_at = Instant::now();
        if self.clock == Clock::Database && self.next_due.is_fresh() {
            return Ok(self.next_due.on_clock(asked_at, now));
        }
        let next = self.rules.next_wake()?;
        let here = match self.clock {
            Clock::Database => self.tables().node_clock.now(),
            Clock::Caller => now,
        };
        self.next_due.learn(asked_at, next.map(|at| at.saturating_since(here)));
        Ok(next.map(|at| on_callers_clock(at, here, now)))
    }

    fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure> {
        let session = self.session.as_ref();
        let is_listening = session.is_some_and(|session| session.is_listening());
        let interval = if is_listening { POLL_INTERVAL } else { self.options.poll_interval };
        let now = Instant::now();
        let mut news = session.and_then(|session| session.take_news());
        self.delayed_reads.add_notification(news.unwrap_or_default(), now);
        if let Some(due) = self.delayed_reads.take_due(now) {
            news = Some(news.unwrap_or_default().and(due));
        }
        let is_poll = self.polled_at.elapsed() >= interval;
        self.intake_due |= is_poll || session.is_some_and(|session| session.take_intake());
        if news.is_none() && !is_poll {
            return Ok(false);
        }
        // A poll looks for rows that no notification has named.
        self.received_news = news.filter(|_| !is_poll);
        self.polled_at = Instant::now();
        let told = self.received_news.unwrap_or(News::ANYTHING);
        self.tables().scan_starts().lower(told);
        self.tables().forget_ready(told.readies());
        Ok(true)
    }

    fn tell_of_writes(&mut self, tell: &TellOfWrite) -> bool {
        let Some(session) = &self.session else { return false };
        session.tell_of_write(tell);
        session.is_listening()
    }

    fn may_be_ready(&mut self) -> Result<Readies, StoreFailure> {
        if let Some(told) = self.received_news.take() {
            self.tables().expect_ready(told);
            return Ok(told.readies());
        }
        self.ensure_open()?;
        let ready = ReadyIndex::may_be_ready(self.tables());
        self.rules.rollback();
        ready
    }

    /// Runs after the callers are answered, while they go on.
    fn maintain(&mut self) -> Result<(), StoreFailure> {
        self.tables().cache_committed();
        Ok(())
    }

    /// A server that has no such schema is not the one that was opened, or it has lost its data. To go on with an empty
    /// store would hide that.
    fn reopen(&mut self) -> Result<(), StoreFailure> {
        let connection = open_existing(&self.options)
            .map_err(|error| StoreFailure::new(FailureClass::Retryable, error.to_string()))?;
        let node_clock = Arc::clone(&self.tables().node_clock);
        *self.tables() = PostgresTables::new(connection, node_clock);
        self.intake_due = true;
        self.next_due = NextDue::default();
        Ok(())
    }
}
