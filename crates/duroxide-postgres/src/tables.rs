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

use std::time::Instant;

use duroxide_core::Timestamp;
use duroxide_provider::{rules::InstanceRow, store::StoreFailure};
use tokio_postgres::Row;

pub(crate) use self::{
    instances::bulk_query,
    load::Named,
    prefetch::{Prefetched, Waiting},
};
use self::{load::Request, named::Names, ready::Floors, working_set::WorkingSet};
use crate::{
    connection::{Connection, Frame, Query, parameters},
    fault::Trouble,
    needs::Needs,
    session::News,
    value::{Columns, micros, number, time},
};

/// How many messages of a mailbox are loaded. A longer mailbox is asked by statements.
pub(crate) const MAILBOX_LOADED_MAX: usize = 256;

const NEXT_DUE: &str = "SELECT min(due.at) AS at FROM (
    (SELECT wait_until AS at FROM {s}.instance WHERE wait_until >= $2::bigint ORDER BY wait_until LIMIT 1)
    UNION ALL
    (SELECT wait_until FROM {s}.activity WHERE wait_until >= $2::bigint ORDER BY wait_until LIMIT 1)
    UNION ALL
    (SELECT remove_at FROM {s}.removal_task ORDER BY remove_at LIMIT 1)
    UNION ALL
    (SELECT lock_until FROM {s}.session WHERE lock_until > $1
        AND EXISTS (SELECT 1 FROM {s}.activity WHERE activity.session_id = session.id)
        ORDER BY lock_until LIMIT 1)
) AS due";

/// Where a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is none.
    Closed,
    /// It has begun, and the database has not been told.
    Unsent,
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
    /// The last failure, whose class the rules cannot pass on.
    trouble: Option<Trouble>,
    mailbox_loaded_max: usize,
    habits: Habits,
    floors: Floors,
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

/// What is known after a commit.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) due: Looked,
    /// Whether others were notified.
    pub(crate) was_told: bool,
}

/// What a transaction knows of what is due.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Looked {
    /// The database has said when something is due.
    Asked(Option<Timestamp>),
    /// The earliest time that the transaction itself has written.
    Wrote(Option<Timestamp>),
}

impl PostgresTables {
    pub(crate) fn new(connection: Connection) -> Self {
        Self {
            connection,
            phase: Phase::Closed,
            set: WorkingSet::default(),
            routes: Names::default(),
            lanes: Names::default(),
            letter_numbers: std::collections::VecDeque::new(),
            trouble: None,
            mailbox_loaded_max: MAILBOX_LOADED_MAX,
            habits: Habits::default(),
            floors: Floors::default(),
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

    pub(crate) fn take_trouble(&mut self) -> Option<Trouble> {
        self.trouble.take()
    }

    /// Remembers the class of a failure, and makes of it what the rules pass on.
    fn remember(&mut self, trouble: Trouble) -> StoreFailure {
        self.trouble = Some(trouble.clone());
        trouble.into_failure()
    }

    // ---- transactions ------------------------------------------------------------------------------------------

    fn begin(&mut self) {
        if self.phase == Phase::Prefetched {
            self.phase = Phase::Sent;
            return;
        }
        self.forget();
        self.phase = Phase::Unsent;
    }

    /// Begins a transaction and loads what a batch needs, in one round trip.
    pub(crate) fn prefetch(&mut self, needs: &Needs<'_>) -> Result<Prefetched, Trouble> {
        self.forget();
        self.phase = Phase::Unsent;
        let prefetched = self.load_needs(needs)?;
        self.phase = Phase::Prefetched;
        Ok(prefetched)
    }

    /// Sends what was written and commits, in one round trip. Nothing is sent if nothing was read or written.
    fn commit(&mut self) -> Result<(), Trouble> {
        self.finish(Vec::new()).map(|_| ())
    }

    /// The same, and in the same round trip notifies others, behind the commit: a transaction that notifies holds a lock of the
    /// whole server while it waits for the disk. Finds out when something is due if that is asked, or if only the database
    /// can tell.
    pub(crate) fn commit_and_look(
        &mut self,
        now: Timestamp,
        asks: bool,
        notification: Option<Query>,
    ) -> Result<Committed, Trouble> {
        let asks = asks || self.set.writes_rare_due();
        let wrote = self.set.earliest_due();
        let from = self.floors.due();
        let questions = if asks { vec![next_due_query(now, from)] } else { Vec::new() };
        let asked_at = Instant::now();
        let (rows, was_told) = self.finish_and_notify(questions, notification)?;
        let due = if asks {
            let next = read_next_due(&rows)?;
            self.floors.learn_due(next, now, asked_at);
            Looked::Asked(next)
        } else {
            Looked::Wrote(wrote)
        };
        self.floors.lower_due(wrote);
        Ok(Committed { due, was_told })
    }

    fn finish(&mut self, questions: Vec<Query>) -> Result<Vec<Row>, Trouble> {
        self.finish_and_notify(questions, None).map(|(rows, _)| rows)
    }

    /// Returns the rows of the first question, and whether the notification was sent.
    fn finish_and_notify(
        &mut self,
        questions: Vec<Query>,
        notification: Option<Query>,
    ) -> Result<(Vec<Row>, bool), Trouble> {
        let mut queries = self.set.unsent();
        let writes = queries.len();
        queries.extend(questions);
        let frame = match self.phase {
            Phase::Unsent if queries.is_empty() => {
                self.forget();
                return Ok((Vec::new(), false));
            }
            Phase::Unsent => Frame::BeginAndCommit,
            Phase::Closed | Phase::Prefetched | Phase::Sent => Frame::Commit,
        };
        // Whatever comes of it, the transaction is over unless `rollback` is called, which is harmless then.
        let (mut answers, was_told) = match notification {
            Some(notification) => self.connection.trip_with_behind(&queries, notification, frame)?,
            None => (self.connection.trip(&queries, frame)?, false),
        };
        self.routes.keep();
        self.lanes.keep();
        self.forget();
        Ok((answers.split_off(writes).into_iter().next().unwrap_or_default(), was_told))
    }

    /// What can be claimed of what this transaction has read or written.
    pub(crate) fn leaves_ready(&mut self) -> News {
        let instances = self.set.instances.rows().filter_map(InstanceRow::ready_number);
        let activities = self.set.activities.rows().map(|activity| &activity.queued);
        let activities = activities.filter(|queued| queued.waits_until.is_none());
        let news = News {
            instances_from: instances.min(),
            activities_from: activities.map(|queued| queued.number).min(),
        };
        self.expect_ready(news);
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

    fn rollback(&mut self) {
        let was_sent = matches!(self.phase, Phase::Prefetched | Phase::Sent);
        self.routes.drop_new();
        self.lanes.drop_new();
        self.forget();
        if was_sent && let Err(trouble) = self.connection.script("ROLLBACK") {
            tracing::debug!(target: "duroxide::providers::postgres", ?trouble, "a rollback was not answered");
        }
    }

    fn forget(&mut self) {
        self.set = WorkingSet::default();
        self.phase = Phase::Closed;
    }

    // ---- round trips -------------------------------------------------------------------------------------------

    /// Sends statements inside the transaction, which begins if the database was not told of it.
    fn send(&mut self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Trouble> {
        self.send_with_ahead(queries, 0)
    }

    /// The same, with the first statements ahead of the transaction that begins.
    fn send_with_ahead(&mut self, queries: &[Query], ahead: usize) -> Result<Vec<Vec<Row>>, Trouble> {
        let frame = if self.phase == Phase::Unsent { Frame::Begin } else { Frame::Plain };
        if frame == Frame::Begin {
            self.phase = Phase::Sent;
        }
        self.connection.trip_with_ahead(queries, ahead, frame)
    }

    /// Sends what was written and asks a question, in one round trip.
    fn ask(&mut self, query: Query) -> Result<Vec<Row>, Trouble> {
        self.ask_all(vec![query]).map(|answers| answers.into_iter().flatten().collect())
    }

    /// Sends what was written and asks questions, in one round trip.
    fn ask_all(&mut self, questions: Vec<Query>) -> Result<Vec<Vec<Row>>, Trouble> {
        let mut queries = self.set.unsent();
        let writes = queries.len();
        queries.extend(questions);
        let mut answers = self.send(&queries)?;
        self.set.sent();
        Ok(answers.split_off(writes))
    }

    /// Sends what was written and a statement that returns nothing.
    fn execute(&mut self, query: Query) -> Result<(), Trouble> {
        self.ask(query).map(|_| ())
    }

    // ---- numbers and times -------------------------------------------------------------------------------------

    fn next_number(&mut self) -> Result<u64, Trouble> {
        if let Some(number) = self.set.numbers.next() {
            return Ok(number);
        }
        self.load(vec![Request::numbers(1)])?;
        self.set.numbers.next().ok_or_else(|| {
            Trouble::new(crate::fault::Class::Refused, "the sequence of numbers gave none".to_owned())
        })
    }

    fn next_due(&mut self, sessions_after: Timestamp) -> Result<Option<Timestamp>, Trouble> {
        let rows = self.ask(next_due_query(sessions_after, 0))?;
        read_next_due(&rows)
    }
}

fn next_due_query(sessions_after: Timestamp, from: i64) -> Query {
    Query::new(NEXT_DUE, parameters![micros(sessions_after), from])
}

fn read_next_due(rows: &[Row]) -> Result<Option<Timestamp>, Trouble> {
    match rows.first() {
        Some(row) => Ok(row.column::<Option<i64>>("at")?.map(time)),
        None => Ok(None),
    }
}

/// Numbers as a statement takes them.
fn numbers<'a>(values: impl IntoIterator<Item = &'a u64>) -> Vec<i64> {
    values.into_iter().map(|value| number(*value)).collect()
}
