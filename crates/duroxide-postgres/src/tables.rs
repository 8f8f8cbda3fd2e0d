//! The tables below the rules: a working set in memory, and the database behind it.

mod activities;
mod dead_letters;
mod delegate;
mod executions;
mod instances;
mod key_values;
mod load;
mod mailbox;
mod named;
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

pub(crate) use self::{
    instances::bulk_query,
    load::Named,
    mailbox::Woken,
    prefetch::{Prefetched, Waiting},
    working_set::Looked,
};
use self::{
    load::Request,
    named::Names,
    ready::Floors,
    working_set::{Numbers, RowCache, WorkingSet},
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

/// Where a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is none.
    Closed,
    /// It has begun, and the database has not been told.
    Unsent,
    /// All that it needs was in the row cache; the rules have not begun, and the database has not been told.
    Recalled,
    /// The database was told; the rules have not begun.
    Prefetched,
    /// The database was told.
    Sent,
}

/// Rows of one schema of a PostgreSQL database, on one connection.
#[derive(Debug)]
pub struct PostgresTables {
    connection: Connection,
    phase: Phase,
    set: WorkingSet,
    routes: Names<duroxide_provider::rules::Route>,
    lanes: Names<duroxide_provider::rules::Lane>,
    /// Numbers of dead letters that were drawn and not used.
    letter_numbers: std::collections::VecDeque<u64>,
    mailbox_loaded_max: usize,
    habits: Habits,
    floors: Floors,
    row_cache: RowCache,
    /// What the last committed transaction has left for the row cache.
    committed: Option<WorkingSet>,
    left_to_others: BTreeSet<u64>,
    /// Numbers that were drawn and not used, after everything was loaded that this node has in memory.
    reserve: Numbers,
    clock: TransactionClock,
    pub(crate) node_clock: Arc<NodeClock>,
    relied_on_cache: bool,
    /// The time of the transaction, if the caller has set it.
    given_time: Option<Timestamp>,
}

/// What batches of this store turned out to need beside what all of them need. Each statement costs every batch that
/// sends it, so these are sent once there was a use for them; until then a batch that needs one after all pays a round trip.
#[derive(Debug)]
struct Habits {
    sessions: bool,
    custom_status: bool,
    setting_changes: bool,
    /// Starts of instances that are there.
    first_events: bool,
    /// Whether something could be claimed that was stored before, when that was last known.
    ready_instances: bool,
    ready_activities: bool,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            sessions: false,
            custom_status: false,
            setting_changes: false,
            first_events: false,
            ready_instances: true,
            ready_activities: true,
        }
    }
}

impl PostgresTables {
    /// `node_clock` is set by what the database's clock shows.
    pub(crate) fn new(connection: Connection, node_clock: Arc<NodeClock>) -> Self {
        Self {
            connection,
            phase: Phase::Closed,
            set: WorkingSet::default(),
            routes: Names::default(),
            lanes: Names::default(),
            letter_numbers: std::collections::VecDeque::new(),
            mailbox_loaded_max: MAILBOX_LOADED_MAX,
            habits: Habits::default(),
            floors: Floors::default(),
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

    /// Nobody else writes: for tests.
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

    /// Begins a transaction and finds what a batch needs: in the row cache, or else by one round trip. `is_alone`: no other
    /// node claims work.
    pub(crate) fn prefetch(
        &mut self,
        needs: &Needs<'_>,
        is_alone: bool,
    ) -> Result<Prefetched, DatabaseError> {
        self.forget();
        self.cache_committed();
        self.given_time = needs.now;
        self.relied_on_cache = self.row_cache.is_trusted();
        if let Some(now) = self.recall(needs, is_alone) {
            self.phase = Phase::Recalled;
            return Ok(Prefetched { now });
        }
        self.phase = Phase::Unsent;
        let prefetched = self.load_needs(needs)?;
        self.phase = Phase::Prefetched;
        Ok(prefetched)
    }

    /// What can be claimed of what this transaction has read or written. What it has read and not claimed it leaves to another
    /// process, as it does with new instances: this node has enough to do.
    pub(crate) fn leaves_ready(&mut self) -> News {
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
        self.habits.ready_instances |= news.lowest_instance().is_some();
        news
    }

    /// Something can be claimed that is stored: the next batch looks for it.
    pub(crate) fn expect_ready(&mut self, news: News) {
        let readies = news.readies();
        self.habits.ready_instances |= readies.instances;
        self.habits.ready_activities |= readies.activities;
        self.floors.lower(news);
    }

    pub(crate) fn floors(&mut self) -> &mut Floors {
        &mut self.floors
    }

    /// Whether the last transaction relied on the row cache.
    pub(crate) fn relied_on_cache(&self) -> bool {
        self.relied_on_cache
    }

    /// Others may have made something ready in these queues.
    pub(crate) fn forget_ready(&mut self, queues: Readies) {
        self.cache_committed();
        self.row_cache.forget_ready(queues);
    }

    /// Lets the row cache take what the last transaction has left. That can wait until the callers of the transaction are
    /// answered, and no longer than until the next one begins.
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
            tracing::debug!(target: "duroxide::providers::postgres", trouble = ?error, "a rollback was not answered");
        }
    }

    /// Ends the transaction here, without effect.
    fn forget(&mut self) {
        self.take_set();
    }

    /// Ends the transaction here, after its commit.
    fn close(&mut self) {
        self.cache_committed();
        self.committed = Some(self.take_set());
    }

    /// Numbers that the transaction drew last, or took from the reserve, and did not use are the new reserve.
    fn take_set(&mut self) -> WorkingSet {
        let mut set = std::mem::take(&mut self.set);
        if set.numbers.len() > 0 {
            self.reserve = std::mem::take(&mut set.numbers);
        }
        self.phase = Phase::Closed;
        set
    }

    // ---- round trips -------------------------------------------------------------------------------------------

    /// Sends statements inside the transaction, which begins if the database was not told of it.
    fn send(&mut self, queries: &[Query]) -> Result<Vec<Vec<Row>>, DatabaseError> {
        self.send_with_ahead(queries, 0)
    }

    /// The same, with the first statements ahead of the transaction that begins.
    fn send_with_ahead(&mut self, queries: &[Query], ahead: usize) -> Result<Vec<Vec<Row>>, DatabaseError> {
        let frame = if self.phase == Phase::Unsent { Frame::Begin } else { Frame::Plain };
        if frame == Frame::Begin {
            self.phase = Phase::Sent;
        }
        self.connection.trip_with_ahead(queries, ahead, frame).inspect_err(|_| self.row_cache.distrust())
    }

    /// Sends what was written and asks a question, in one round trip.
    fn ask(&mut self, query: Query) -> Result<Vec<Row>, DatabaseError> {
        self.ask_all(vec![query]).map(|answers| answers.into_iter().flatten().collect())
    }

    /// Sends what was written and asks questions, in one round trip.
    fn ask_all(&mut self, questions: Vec<Query>) -> Result<Vec<Vec<Row>>, DatabaseError> {
        let mut queries = self.unsent(0)?;
        let writes = queries.len();
        queries.extend(questions);
        let mut answers = self.send(&queries)?;
        self.set.sent();
        Ok(answers.split_off(writes))
    }

    /// Sends what was written and a statement that returns nothing.
    fn execute(&mut self, query: Query) -> Result<(), DatabaseError> {
        self.ask(query).map(|_| ())
    }

    // ---- numbers and times -------------------------------------------------------------------------------------

    /// The database was asked at `asked_at` what its clock shows, and has answered.
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
