//! The tables below the rules: a working set in memory, and the database behind it.

mod activities;
mod dead_letters;
mod delegate;
mod dictionary;
mod executions;
mod instances;
mod key_values;
mod load;
mod mailbox;
pub(crate) mod nodes;
mod prefetch;
mod ready;
mod removals;
mod sessions;
mod working_set;

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use duroxide_core::Timestamp;
use duroxide_provider::{rules::InstanceRow, store::Readies};
use tokio_postgres::Row;

use self::{
    dictionary::Dictionary,
    load::Request,
    ready::ScanStarts,
    working_set::{Numbers, RowCache, WorkingSet},
};
pub(crate) use self::{
    instances::bulk_query,
    load::NamedInstances,
    mailbox::Woken,
    prefetch::{Prefetched, WaitingRows},
    working_set::NextDueTime,
};
use crate::{
    connection::{Connection, Frame, NodeClock, Query, TransactionClock},
    database_error::DatabaseError,
    needs::Needs,
    session::News,
    value::number,
};

/// How many messages of a mailbox are loaded. A longer mailbox is asked by statements.
pub(crate) const MAILBOX_LOADED_MAX: usize = 256;

/// The state of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No transaction is open.
    Closed,
    /// The transaction has begun, and nothing was sent to the database.
    Unsent,
    /// All rows of the batch came from the row cache; the rules have not begun, and nothing was sent to the database.
    Recalled,
    /// The first round trip was made; the rules have not begun.
    Prefetched,
    /// The transaction has begun in the database.
    Sent,
}

/// Rows of one schema of a PostgreSQL database, on one connection.
#[derive(Debug)]
pub struct PostgresTables {
    connection: Connection,
    phase: Phase,
    set: WorkingSet,
    routes: Dictionary<duroxide_provider::rules::Route>,
    lanes: Dictionary<duroxide_provider::rules::Lane>,
    /// Numbers of dead letters that were drawn and not used.
    letter_numbers: std::collections::VecDeque<u64>,
    mailbox_loaded_max: usize,
    optional_reads: OptionalReads,
    scan_starts: ScanStarts,
    row_cache: RowCache,
    /// The working set of the last committed transaction, which the row cache has not taken yet.
    committed: Option<WorkingSet>,
    /// Ready instances that the last committed transaction left to other processes.
    left_to_others: BTreeSet<u64>,
    /// Unused numbers. They were drawn after all rows were loaded that are in memory.
    reserve: Numbers,
    clock: TransactionClock,
    pub(crate) node_clock: Arc<NodeClock>,
    /// Whether the last transaction relied on the row cache.
    relied_on_cache: bool,
    /// The time of the transaction if the caller sets it, as tests do.
    given_time: Option<Timestamp>,
}

/// Which optional statements the first round trip of a batch includes. Every included statement costs every batch, so each is
/// left out until a batch has needed its answer. A batch that needs one that was left out makes one more round trip.
#[derive(Debug)]
struct OptionalReads {
    sessions: bool,
    custom_status: bool,
    key_value_changes: bool,
    /// First events, which starts of existing instances read.
    first_events: bool,
    /// Whether stored instances were ready when that was read last.
    ready_instances: bool,
    ready_activities: bool,
}

impl Default for OptionalReads {
    fn default() -> Self {
        Self {
            sessions: false,
            custom_status: false,
            key_value_changes: false,
            first_events: false,
            ready_instances: true,
            ready_activities: true,
        }
    }
}

impl PostgresTables {
    /// Every answer of the database sets `node_clock` to the time that it contains.
    pub(crate) fn new(connection: Connection, node_clock: Arc<NodeClock>) -> Self {
        Self {
            connection,
            phase: Phase::Closed,
            set: WorkingSet::default(),
            routes: Dictionary::default(),
            lanes: Dictionary::default(),
            letter_numbers: std::collections::VecDeque::new(),
            mailbox_loaded_max: MAILBOX_LOADED_MAX,
            optional_reads: OptionalReads::default(),
            scan_starts: ScanStarts::default(),
            row_cache: RowCache::default(),
            committed: None,
            left_to_others: BTreeSet::new(),
            reserve: Numbers::default(),
            clock: TransactionClock::default(),
            node_clock,
            relied_on_cache: false,
            given_time: None,
        }
    }

    /// How many round trips the connection has made.
    pub fn round_trips(&self) -> u64 {
        self.connection.round_trips()
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    pub(crate) fn set_mailbox_loaded_max(&mut self, messages: usize) {
        self.mailbox_loaded_max = messages;
    }

    /// Assumes that no other node writes: for tests.
    pub(crate) fn set_only_writer(&mut self) {
        self.row_cache.is_only_writer = true;
    }

    // ---- transactions ------------------------------------------------------------------------------------------

    fn begin(&mut self) {
        self.phase = match self.phase {
            Phase::Prefetched => Phase::Sent,
            Phase::Recalled => Phase::Unsent,
            Phase::Closed | Phase::Unsent | Phase::Sent => {
                self.forget();
                Phase::Unsent
            }
        };
    }

    /// Begins a transaction with the rows that a batch needs, from the row cache if it has all of them, else by one round trip.
    /// `is_alone`: no other node claims work.
    pub(crate) fn prefetch(
        &mut self,
        needs: &Needs<'_>,
        is_alone: bool,
    ) -> Result<Prefetched, DatabaseError> {
        self.forget();
        self.cache_committed();
        self.given_time = needs.now;
        self.relied_on_cache = self.row_cache.is_in_use();
        if let Some(now) = self.recall(needs, is_alone) {
            self.phase = Phase::Recalled;
            return Ok(Prefetched { now });
        }
        self.phase = Phase::Unsent;
        let prefetched = self.load_needs(needs)?;
        self.phase = Phase::Prefetched;
        Ok(prefetched)
    }

    /// The ready instances and activities that this transaction has read or written. Ready instances that it has read and not claimed
    /// are left to another process, like new ones, because this node has enough to do.
    pub(crate) fn ready_rows_left(&mut self) -> News {
        let is_left = |row: &&InstanceRow| {
            self.left_to_others.contains(&row.number) || !self.set.has_written_instance(row.number)
        };
        let (left, ready): (Vec<_>, Vec<_>) = self.set.instances.rows().partition(is_left);
        let lowest = |rows: Vec<&InstanceRow>| rows.into_iter().filter_map(InstanceRow::ready_number).min();
        let activities = self.set.activities.rows().map(|activity| &activity.queued);
        let activities = activities.filter(|queued| queued.waits_until.is_none());
        let news = News {
            instances_from: lowest(ready),
            activities_from: activities.map(|queued| queued.number).min(),
            left_elsewhere_from: lowest(left),
            ..News::default()
        };
        self.expect_ready(news);
        self.optional_reads.ready_instances |= news.lowest_instance().is_some();
        news
    }

    /// Makes the next batch read the ready rows that `news` names.
    pub(crate) fn expect_ready(&mut self, news: News) {
        let readies = news.readies();
        self.optional_reads.ready_instances |= readies.instances;
        self.optional_reads.ready_activities |= readies.activities;
        self.scan_starts.lower(news);
    }

    pub(crate) fn scan_starts(&mut self) -> &mut ScanStarts {
        &mut self.scan_starts
    }

    /// Whether the last transaction relied on the row cache.
    pub(crate) fn relied_on_cache(&self) -> bool {
        self.relied_on_cache
    }

    /// Other processes may have made rows of these queues ready.
    pub(crate) fn forget_ready(&mut self, queues: Readies) {
        self.cache_committed();
        self.row_cache.forget_ready(queues);
    }

    /// Moves the rows of the last committed transaction into the row cache. This may be done after the callers of the transaction
    /// are answered, and must be done before the next transaction begins.
    pub(crate) fn cache_committed(&mut self) {
        if let Some(set) = self.committed.take() {
            self.row_cache.take(set);
            self.row_cache.forget_instances(std::mem::take(&mut self.left_to_others));
        }
    }

    /// The committed transaction left these ready instances to other processes. The row cache forgets them, so that it need not
    /// be verified for every claim whether they are still there.
    pub(crate) fn leave_to_others(&mut self, instances: BTreeSet<u64>) {
        self.left_to_others = instances;
    }

    fn rollback(&mut self) {
        let was_sent = matches!(self.phase, Phase::Prefetched | Phase::Sent);
        self.routes.drop_new();
        self.lanes.drop_new();
        self.forget();
        if was_sent && let Err(error) = self.connection.script("ROLLBACK") {
            tracing::debug!(target: "duroxide::providers::postgres", error = ?error, "a rollback was not answered");
        }
    }

    /// Drops the working set. The database is not told.
    fn forget(&mut self) {
        self.take_set();
    }

    /// Keeps the working set of a committed transaction for the row cache.
    fn close(&mut self) {
        self.cache_committed();
        self.committed = Some(self.take_set());
    }

    /// Takes the working set out. Its unused numbers become the new reserve.
    fn take_set(&mut self) -> WorkingSet {
        let mut set = std::mem::take(&mut self.set);
        if set.numbers.len() > 0 {
            self.reserve = std::mem::take(&mut set.numbers);
        }
        self.phase = Phase::Closed;
        set
    }

    // ---- round trips -------------------------------------------------------------------------------------------

    /// Sends statements inside the transaction, and begins it in the database if that has not happened.
    fn send(&mut self, queries: &[Query]) -> Result<Vec<Vec<Row>>, DatabaseError> {
        self.send_with_ahead(queries, 0)
    }

    /// Like [`Self::send`], and runs the first `ahead` statements before the transaction begins.
    fn send_with_ahead(&mut self, queries: &[Query], ahead: usize) -> Result<Vec<Vec<Row>>, DatabaseError> {
        let frame = if self.phase == Phase::Unsent { Frame::Begin } else { Frame::Plain };
        if frame == Frame::Begin {
            self.phase = Phase::Sent;
        }
        self.connection.trip_with_ahead(queries, ahead, frame).inspect_err(|_| self.row_cache.suspend())
    }

    /// Sends the unsent writes and a query, in one round trip.
    fn ask(&mut self, query: Query) -> Result<Vec<Row>, DatabaseError> {
        self.ask_all(vec![query]).map(|answers| answers.into_iter().flatten().collect())
    }

    /// Sends the unsent writes and queries, in one round trip.
    fn ask_all(&mut self, questions: Vec<Query>) -> Result<Vec<Vec<Row>>, DatabaseError> {
        let mut queries = self.unsent(0)?;
        let writes = queries.len();
        queries.extend(questions);
        let mut answers = self.send(&queries)?;
        self.set.sent();
        Ok(answers.split_off(writes))
    }

    /// Sends the unsent writes and a statement that returns no rows.
    fn execute(&mut self, query: Query) -> Result<(), DatabaseError> {
        self.ask(query).map(|_| ())
    }

    /// Takes a statement that returns no rows. It is sent with the next question or with the commit, in front of the other unsent
    /// writes.
    fn write_later(&mut self, query: Query) -> Result<(), DatabaseError> {
        self.set.unsent_statements.push(query);
        Ok(())
    }

    // ---- numbers and times -------------------------------------------------------------------------------------

    /// Sets both clocks. A query for the database's time was sent at `asked_at`, and returned `time`.
    fn learn_time(&mut self, asked_at: Instant, time: Timestamp) {
        self.clock.learn(time);
        self.node_clock.learn(asked_at, time);
    }

    fn next_number(&mut self) -> Result<u64, DatabaseError> {
        if let Some(number) = self.set.numbers.next() {
            return Ok(number);
        }
        self.load(vec![Request::numbers(1)])?;
        self.set.numbers.next().ok_or_else(|| DatabaseError::refused("the sequence of numbers gave none"))
    }
}

/// Numbers as a statement takes them.
fn numbers<'a>(values: impl IntoIterator<Item = &'a u64>) -> Vec<i64> {
    values.into_iter().map(|value| number(*value)).collect()
}
