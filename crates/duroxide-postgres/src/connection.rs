//! A connection that counts its round trips.

mod clock;
mod connect;
mod frame;
mod hosts;
mod parameter;
mod patience;
mod tls;

use std::{borrow::Cow, collections::HashMap, fmt, future::Future, pin::Pin, task::Poll, time::Duration};

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, Error, Row, Statement, types::ToSql};

use self::patience::Patience;
pub use self::tls::Tls;
pub(crate) use self::{
    clock::{NodeClock, TransactionClock},
    connect::{connect, connect_timeout},
    frame::Frame,
    parameter::Parameter,
};
use crate::{
    PostgresOptions, SchemaName,
    database_error::DatabaseError,
    record::{TOGETHER, expand},
    value::{limit, number},
};

/// What the database says to a statement.
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
    /// Whether it looks at whole tables, so that the server may take long for it.
    is_long: bool,
}

impl Query {
    pub(crate) fn new(sql: impl Into<Cow<'static, str>>, parameters: Vec<Parameter>) -> Self {
        Self { sql: sql.into(), parameters, is_long: false }
    }

    /// A statement that looks at whole tables, however large they are.
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
/// How soon the server looks again whether the connection is there while it works for it.
const NOTICE_END: &str = "SET client_connection_check_interval = '5s'";

/// How many times longer a statement may take that looks at whole tables.
const LONG: u32 = 20;

/// One connection, used by one thread, with a runtime of its own.
pub(crate) struct Connection {
    runtime: Runtime,
    client: Client,
    patience: Patience,
    statements: HashMap<Cow<'static, str>, Known>,
    schema: SchemaName,
    prepares: bool,
    is_pooled: bool,
    round_trips: u64,
}

/// A statement that was used before.
enum Known {
    Prepared(Statement),
    /// Behind a pooler, where a prepared statement would stay with one of its connections: the text is sent each time.
    Text(String),
}

impl Known {
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
        let (patience, statements) = (Patience::new(connect_timeout(&options.config)), HashMap::new());
        let mut connection =
            Self { runtime, client, patience, statements, schema, prepares, is_pooled, round_trips: 0 };
        if !is_pooled {
            connection.script(SETTINGS)?;
            connection.notice_end();
        }
        Ok(connection)
    }

    /// Lets the server notice the end of this connection although it works for it, so that what waits for a lock does not pile
    /// up there. Not every server can do that.
    fn notice_end(&mut self) {
        if let Err(error) = self.script(NOTICE_END) {
            tracing::debug!(target: "duroxide::providers::postgres", trouble = ?error, "the server looks for no ended connections");
        }
    }

    /// Whether the connection has ended, or was given up.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed() || self.patience.is_exhausted()
    }

    /// Gives the connection up when a round trip takes longer.
    pub(crate) fn set_limit(&mut self, limit: Duration) {
        self.patience.set_limit(limit);
    }

    /// How many round trips were made.
    pub(crate) fn round_trips(&self) -> u64 {
        self.round_trips
    }

    /// Runs statements that need no answers and are not prepared.
    pub(crate) fn script(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.script_within(sql, self.patience.limit())
    }

    /// The same, with a time limit of its own.
    pub(crate) fn script_within(&mut self, sql: &str, limit: Duration) -> Result<(), DatabaseError> {
        self.round_trips += 1;
        let answer = self.client.batch_execute(sql);
        self.patience.wait(&self.runtime, limit, answer)?.map_err(|error| DatabaseError::of(&error))
    }

    /// Sends all statements at once and waits for all answers: one round trip. If one fails, those behind it fail too, and
    /// the first failure is returned.
    pub(crate) fn trip(&mut self, queries: &[Query], frame: Frame) -> Result<Vec<Vec<Row>>, DatabaseError> {
        self.trip_with_ahead(queries, 0, frame)
    }

    /// The same, with the first statements ahead of the transaction, each committed by itself.
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

    /// Sends prepared statements, and waits for all answers. Nobody knows what became of a commit that was not answered in time.
    fn send(
        &mut self,
        queries: &[Query],
        ahead: usize,
        frame: Frame,
        behind: &[Query],
    ) -> Result<Vec<Answer>, DatabaseError> {
        self.round_trips += 1;
        let is_long = queries.iter().any(|query| query.is_long);
        let limit = self.patience.limit().saturating_mul(if is_long { LONG } else { 1 });
        let (first, last) = (self.first(frame), frame.last(self.is_pooled));
        let Self { runtime, client, statements, patience, .. } = self;
        let sent = Sent { client, statements, queries, ahead, first, last, behind };
        patience
            .wait(runtime, limit, sent.answers())
            .map_err(|error| if frame.commits() { error.with_open_outcome() } else { error })
    }

    /// Prepares what was never used on this connection, in a round trip of its own.
    fn prepare(&mut self, queries: &[Query]) -> Result<(), DatabaseError> {
        self.patience.check()?;
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
            self.statements.extend(missing.into_iter().zip(texts.into_iter().map(Known::Text)));
            return Ok(());
        }
        self.round_trips += 1;
        let client = &self.client;
        let answers = in_order(texts.iter().map(|text| client.prepare(text)).collect());
        let prepared = self.patience.wait(&self.runtime, self.patience.limit(), answers)?;
        for (sql, statement) in missing.into_iter().zip(prepared) {
            let statement = statement.map_err(|error| DatabaseError::of(&error))?;
            self.statements.insert(sql, Known::Prepared(statement));
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
struct Sent<'a> {
    client: &'a Client,
    statements: &'a HashMap<Cow<'static, str>, Known>,
    queries: &'a [Query],
    /// How many of them stand in front of `first`.
    ahead: usize,
    first: Option<&'static str>,
    last: Option<&'static str>,
    /// Statements that stand behind `last`.
    behind: &'a [Query],
}

impl<'a> Sent<'a> {
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
