//! A connection that counts its round trips.

mod answer_timeout;
mod clock;
mod connect;
mod fault;
mod frame;
mod hosts;
mod lookup;
mod parameter;
mod tls;

use std::{borrow::Cow, collections::HashMap, fmt, future::Future, pin::Pin, task::Poll, time::Duration};

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, Error, Row, Statement, types::ToSql};

use self::answer_timeout::AnswerTimeout;
pub use self::tls::Tls;
pub(crate) use self::{
    clock::{NodeClock, TransactionClock},
    connect::{connect, connect_timeout},
    fault::ConnectFault,
    frame::Frame,
    parameter::Parameter,
};
use crate::{
    PostgresOptions, SchemaName,
    database_error::DatabaseError,
    record::{TOGETHER, expand},
    value::{limit, number},
};

/// The rows that a statement returns, or its error.
type Answer = Result<Vec<Row>, Error>;
/// A statement that waits for its answer.
type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + 'a>>;

/// Parameters of a [`Query`].
macro_rules! parameters {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as $crate::connection::Parameter),*]
    };
}
pub(crate) use parameters;

/// A statement with its parameters. The text is a template, see [`expand`].
pub(crate) struct Query {
    pub(crate) sql: Cow<'static, str>,
    pub(crate) parameters: Vec<Parameter>,
    /// Whether the statement reads whole tables. It has a longer time limit.
    is_long: bool,
}

impl Query {
    pub(crate) fn new(sql: impl Into<Cow<'static, str>>, parameters: Vec<Parameter>) -> Self {
        Self { sql: sql.into(), parameters, is_long: false }
    }

    /// A statement that reads whole tables. It may take [`LONG`] times as long.
    pub(crate) fn of_whole_tables(sql: &'static str, parameters: Vec<Parameter>) -> Self {
        Self { is_long: true, ..Self::new(sql, parameters) }
    }

    /// One statement that does what these do, in no particular order. Each statement costs the server a message of its own
    /// to the client, so one of many parts is much cheaper than many. It fails if `unchanged` rows with known revisions were
    /// not found, and draws so many blocks of numbers.
    pub(crate) fn together(queries: Vec<Self>, unchanged: usize, blocks: u64) -> Option<Self> {
        if queries.is_empty() {
            return None;
        }
        let (mut sql, mut parameters) = (String::new(), Vec::new());
        for query in queries {
            sql.push_str(TOGETHER);
            sql.push_str(&query.sql);
            parameters.extend(query.parameters);
        }
        parameters.extend(parameters![limit(unchanged), number(blocks)]);
        Some(Self::new(sql, parameters))
    }
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sql)
    }
}

/// A process that is frozen or cut off between two round trips of a transaction must not keep its rows locked: the server ends
/// its transaction after this time. Between them the rules run in memory, for milliseconds.
///
/// A statement outside of a transaction has the isolation level that its role has by default. Each statement must see what the last
/// holder of a lock has committed that it waited for.
const SETTINGS: &str = "SET idle_in_transaction_session_timeout = '5s';
    SET default_transaction_isolation = 'read committed'";
/// How often the server checks that the connection is open while it runs a statement.
const NOTICE_END: &str = "SET client_connection_check_interval = '5s'";

/// How many times longer a statement may take that looks at whole tables.
const LONG: u32 = 20;

/// One connection, used by one thread, with a runtime of its own.
pub(crate) struct Connection {
    runtime: Runtime,
    client: Client,
    answer_timeout: AnswerTimeout,
    statements: HashMap<Cow<'static, str>, KnownStatement>,
    schema: SchemaName,
    prepares: bool,
    is_pooled: bool,
    round_trips: u64,
}

/// A statement that was used before.
enum KnownStatement {
    Prepared(Statement),
    /// Behind a pooler, where a prepared statement would stay with one of its connections: the text is sent each time.
    Text(String),
}

impl KnownStatement {
    async fn run(&self, client: &Client, parameters: &[Parameter]) -> Answer {
        match self {
            Self::Prepared(statement) => {
                let values: Vec<&(dyn ToSql + Sync)> =
                    parameters.iter().map(|parameter| parameter.value()).collect();
                client.query(statement, &values).await
            }
            Self::Text(text) => {
                let values: Vec<_> =
                    parameters.iter().map(|parameter| (parameter.value(), parameter.sql_type())).collect();
                client.query_typed(text, &values).await
            }
        }
    }
}

impl Connection {
    /// Connects. Nothing is read or written. Until [`Self::set_limit`] is called each round trip may take as long as connecting.
    pub(crate) fn open(options: &PostgresOptions) -> Result<Self, DatabaseError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| DatabaseError::unavailable(error.to_string()))?;
        let client = runtime.block_on(connect(options, &options.config, None))?;
        let (schema, prepares, is_pooled) =
            (options.schema.clone(), options.prepared_statements, options.is_pooled());
        let (answer_timeout, statements) =
            (AnswerTimeout::new(connect_timeout(&options.config)), HashMap::new());
        let mut connection =
            Self { runtime, client, answer_timeout, statements, schema, prepares, is_pooled, round_trips: 0 };
        if !is_pooled {
            connection.script(SETTINGS)?;
            connection.notice_end();
        }
        Ok(connection)
    }

    /// Makes the server check this connection while it runs a statement, so that statements of ended connections do not pile up at a
    /// lock. Some servers refuse the setting.
    fn notice_end(&mut self) {
        if let Err(error) = self.script(NOTICE_END) {
            tracing::debug!(target: "duroxide::providers::postgres", ?error, "the server looks for no ended connections");
        }
    }

    /// Whether the connection has ended, or was given up.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed() || self.answer_timeout.has_expired()
    }

    /// Gives the connection up when a round trip takes longer.
    pub(crate) fn set_limit(&mut self, limit: Duration) {
        self.answer_timeout.set_limit(limit);
    }

    /// How many round trips were made.
    pub(crate) fn round_trips(&self) -> u64 {
        self.round_trips
    }

    /// Runs statements that need no answers and are not prepared.
    pub(crate) fn script(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.script_within(sql, self.answer_timeout.limit())
    }

    /// Like [`Self::script`], with another time limit.
    pub(crate) fn script_within(&mut self, sql: &str, limit: Duration) -> Result<(), DatabaseError> {
        self.round_trips += 1;
        let answer = self.client.batch_execute(sql);
        self.answer_timeout.wait(&self.runtime, limit, answer)?.map_err(|error| DatabaseError::of(&error))
    }

    /// Sends all statements at once and waits for all answers: one round trip. If one fails, those behind it fail too, and
    /// the first failure is returned.
    pub(crate) fn trip(&mut self, queries: &[Query], frame: Frame) -> Result<Vec<Vec<Row>>, DatabaseError> {
        self.trip_with_ahead(queries, 0, frame)
    }

    /// Like [`Self::trip`], with the first `ahead` statements before the transaction, each committed by itself.
    pub(crate) fn trip_with_ahead(
        &mut self,
        queries: &[Query],
        ahead: usize,
        frame: Frame,
    ) -> Result<Vec<Vec<Row>>, DatabaseError> {
        self.prepare(queries)?;
        let first = self.first(frame);
        let answers = self.send(queries, ahead, frame, &[])?;
        let mut rows =
            if frame.commits() { first_failure_of_commit(answers) } else { first_failure(answers) }?;
        if first.is_some() {
            rows.remove(ahead);
        }
        rows.truncate(queries.len());
        Ok(rows)
    }

    /// Ends a transaction by a round trip of these statements, with one more behind the commit, in a transaction of its own.
    /// Returns whether that one was carried out, too: it may fail alone.
    pub(crate) fn trip_with_behind(
        &mut self,
        queries: &[Query],
        behind: Query,
        frame: Frame,
    ) -> Result<(Vec<Vec<Row>>, bool), DatabaseError> {
        let behind = [behind];
        self.prepare(queries)?;
        self.prepare(&behind)?;
        let first = self.first(frame);
        let mut answers = self.send(queries, 0, frame, &behind)?;
        let followed = answers.pop().is_some_and(|answer| answer.is_ok());
        let mut rows = first_failure_of_commit(answers)?;
        if first.is_some() {
            rows.remove(0);
        }
        rows.truncate(queries.len());
        Ok((rows, followed))
    }

    fn first(&self, frame: Frame) -> Option<&'static str> {
        frame.first(self.is_pooled)
    }

    /// Sends prepared statements, and waits for all answers. A commit without an answer in time has an unknown outcome.
    fn send(
        &mut self,
        queries: &[Query],
        ahead: usize,
        frame: Frame,
        behind: &[Query],
    ) -> Result<Vec<Answer>, DatabaseError> {
        self.round_trips += 1;
        let is_long = queries.iter().any(|query| query.is_long);
        let limit = self.answer_timeout.limit().saturating_mul(if is_long { LONG } else { 1 });
        let (first, last) = (self.first(frame), frame.last(self.is_pooled));
        let Self { runtime, client, statements, answer_timeout, .. } = self;
        let sent = RoundTrip { client, statements, queries, ahead, first, last, behind };
        answer_timeout
            .wait(runtime, limit, sent.answers())
            .map_err(|error| if frame.commits() { error.with_open_outcome() } else { error })
    }

    /// Prepares the statements that are new on this connection, in one round trip.
    fn prepare(&mut self, queries: &[Query]) -> Result<(), DatabaseError> {
        self.answer_timeout.check()?;
        let mut missing: Vec<Cow<'static, str>> = Vec::new();
        for query in queries {
            if !self.statements.contains_key(&query.sql) && !missing.contains(&query.sql) {
                missing.push(query.sql.clone());
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = missing.iter().map(|sql| expand(sql, &self.schema)).collect();
        if !self.prepares {
            self.statements.extend(missing.into_iter().zip(texts.into_iter().map(KnownStatement::Text)));
            return Ok(());
        }
        self.round_trips += 1;
        let client = &self.client;
        let answers = in_order(texts.iter().map(|text| client.prepare(text)).collect());
        let prepared = self.answer_timeout.wait(&self.runtime, self.answer_timeout.limit(), answers)?;
        for (sql, statement) in missing.into_iter().zip(prepared) {
            let statement = statement.map_err(|error| DatabaseError::of(&error))?;
            self.statements.insert(sql, KnownStatement::Prepared(statement));
        }
        Ok(())
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("schema", &self.schema)
            .field("round_trips", &self.round_trips)
            .finish_non_exhaustive()
    }
}

/// The statements of a round trip.
struct RoundTrip<'a> {
    client: &'a Client,
    statements: &'a HashMap<Cow<'static, str>, KnownStatement>,
    queries: &'a [Query],
    /// How many of them stand in front of `first`.
    ahead: usize,
    first: Option<&'static str>,
    last: Option<&'static str>,
    /// Statements that stand behind `last`.
    behind: &'a [Query],
}

impl<'a> RoundTrip<'a> {
    /// Sends everything, in this order, and waits for all answers.
    async fn answers(&self) -> Vec<Answer> {
        let (ahead, inside) = self.queries.split_at(self.ahead.min(self.queries.len()));
        let ahead = ahead.iter().filter_map(|query| self.run(query));
        let inside = inside.iter().filter_map(|query| self.run(query));
        let behind = self.behind.iter().filter_map(|query| self.run(query));
        let first = self.first.map(|sql| self.command(sql));
        let last = self.last.map(|sql| self.command(sql));
        in_order(ahead.chain(first).chain(inside).chain(last).chain(behind).collect()).await
    }

    fn command(&self, sql: &'static str) -> Answering<'a> {
        let client = self.client;
        Box::pin(async move { client.batch_execute(sql).await.map(|()| Vec::new()) })
    }

    /// All statements were prepared.
    fn run(&self, query: &'a Query) -> Option<Answering<'a>> {
        let (client, statement) = (self.client, self.statements.get(&query.sql)?);
        Some(Box::pin(statement.run(client, &query.parameters)))
    }
}

/// Waits for all futures. Each sends its request when it is polled for the first time, so the requests leave in this order.
/// Answers come in this order, too, so one after the other is waited for.
async fn in_order<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> =
        futures.into_iter().map(|future| futures_util::future::maybe_done(Box::pin(future))).collect();
    std::future::poll_fn(|context| {
        for future in &mut waiting {
            let _ = Pin::new(future).poll(context);
        }
        Poll::Ready(())
    })
    .await;
    let mut outputs = Vec::with_capacity(waiting.len());
    for mut future in waiting {
        (&mut future).await;
        outputs.extend(Pin::new(&mut future).take_output());
    }
    outputs
}

fn first_failure(answers: Vec<Answer>) -> Result<Vec<Vec<Row>>, DatabaseError> {
    answers.into_iter().map(|answer| answer.map_err(|error| DatabaseError::of(&error))).collect()
}

fn first_failure_of_commit(answers: Vec<Answer>) -> Result<Vec<Vec<Row>>, DatabaseError> {
    let last = answers.len().saturating_sub(1);
    let check = |(index, answer): (usize, Answer)| {
        answer.map_err(|error| DatabaseError::of_commit(&error, index == last))
    };
    answers.into_iter().enumerate().map(check).collect()
}
