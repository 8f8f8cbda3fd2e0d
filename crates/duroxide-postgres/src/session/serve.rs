//! The thread of the session connection: connects, listens, holds locks and checks for dead nodes, until the provider is dropped.

use std::{
    sync::{Arc, mpsc::SyncSender},
    time::Duration,
};

use duroxide_provider::store::{FailureClass, StoreFailure};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::{Instant, sleep_until},
};
use tokio_postgres::{Client, Error, Row, Statement, types::ToSql};

use super::{
    Claimers, Command, News, SessionState,
    check_schedule::{ALONE, RotationRank, WITHOUT_NODES},
    locked_nodes::LockedNodes,
    same_database::refuse_other_database,
    statement_timeout::within,
    statements::Statements,
    unavailable,
    unlocked::{UnlockedAtCheck, UnlockedNodes},
};
use crate::{
    PostgresOptions,
    connection::{connect, connect_timeout},
    database_error::DatabaseError,
    provider::INTAKE_NOTIFICATION,
    value::Columns,
};

/// The first pause between two attempts to connect, and the longest.
const RECONNECT_MIN: Duration = Duration::from_millis(50);
const RECONNECT_MAX: Duration = Duration::from_secs(5);
/// The notification of a process that has just begun to listen.
const HELLO: &str = "hello ";

/// Why a connection is no longer served.
enum End {
    /// The provider was dropped.
    Closed,
    /// The connection was lost.
    Lost(DatabaseError),
}

impl From<DatabaseError> for End {
    fn from(error: DatabaseError) -> Self {
        Self::Lost(error)
    }
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Lost(DatabaseError::of(&error))
    }
}

/// A connection that is served.
struct Served<'a> {
    client: Client,
    notified: UnboundedReceiver<String>,
    state: &'a SessionState,
    statements: &'a Statements,
    channel: String,
    held: &'a mut LockedNodes,
    /// Checks for dead nodes. Prepared, because it is repeated for ever.
    check: Statement,
    /// Whether this process is in the rotation of those that check for dead nodes.
    is_in_rotation: bool,
    check_at: Instant,
    unlocked: UnlockedNodes,
}

/// Serves one connection after the other. Tells `opened` of the first one, and ends if that cannot be used.
pub(super) async fn serve(
    options: PostgresOptions,
    state: Arc<SessionState>,
    mut commands: UnboundedReceiver<Command>,
    opened: SyncSender<Result<(), DatabaseError>>,
) {
    let statements = Statements::new(&options.schema);
    let mut held = LockedNodes::default();
    let mut opened = Some(opened);
    let (mut pause, mut spares_until) = (RECONNECT_MIN, Instant::now());
    loop {
        // Whoever opens the store has compared the databases.
        let compares = opened.is_none() && options.session_config.is_some();
        let begun = Served::begin(&options, &state, &statements, &mut held, spares_until, compares).await;
        if let Some(opened) = opened.take() {
            let _ = opened.send(begun.as_ref().map(|_| ()).map_err(Clone::clone));
            if begun.is_err() {
                return;
            }
        }
        let end = match begun {
            Ok(mut served) => {
                pause = RECONNECT_MIN;
                served.run(&mut commands).await
            }
            Err(error) => End::Lost(error),
        };
        state.set_listening(false);
        // A process must not end a node after losing its lock: the node may hold it again.
        held.lose();
        state.take_gone();
        match end {
            End::Closed => return,
            End::Lost(error) => {
                let error = error.into_failure().message;
                tracing::warn!(target: "duroxide::providers::postgres", error, "the session connection is lost");
            }
        }
        if !refuse_until(Instant::now() + pause, &mut commands, &mut held).await {
            return;
        }
        pause = (pause * 2).min(RECONNECT_MAX);
        spares_until = Instant::now() + returns_within(&options);
    }
}

/// 24.7: how long a process needs at most to come back after a restart of the server, which ends the connections and locks of all
/// processes at the same time.
fn returns_within(options: &PostgresOptions) -> Duration {
    connect_timeout(options.session_config()) + RECONNECT_MAX
}

/// Answers commands while there is no connection. Returns whether to connect again.
async fn refuse_until(
    at: Instant,
    commands: &mut UnboundedReceiver<Command>,
    held: &mut LockedNodes,
) -> bool {
    loop {
        let command = tokio::select! {
            command = commands.recv() => command,
            () = sleep_until(at) => return true,
        };
        match command {
            None | Some(Command::Stop) => return false,
            Some(Command::Hold { reply, .. }) => {
                let _ = reply.send(Err(unavailable("there is no session connection to the database")));
            }
            // Unknown; with `true` nothing is ended.
            Some(Command::HasJoining { reply, .. }) => drop(reply.send(true)),
            Some(Command::Release { node }) => held.remove(&node),
            Some(Command::NoteJoinAttempt { .. } | Command::Discard { .. }) => {}
        }
    }
}

impl<'a> Served<'a> {
    /// Connects, listens, and takes the locks again that were held on an earlier connection.
    async fn begin(
        options: &PostgresOptions,
        state: &'a SessionState,
        statements: &'a Statements,
        held: &'a mut LockedNodes,
        spares_until: Instant,
        compares: bool,
    ) -> Result<Self, DatabaseError> {
        let (tell, notified) = unbounded_channel();
        let client = connect(options, options.session_config(), Some(tell)).await?;
        if compares {
            refuse_other_database(&client, options).await?;
        }
        within(client.batch_execute(&statements.set_up)).await?;
        let check = within(client.prepare(&statements.check)).await?;
        let mut served = Self {
            client,
            notified,
            state,
            statements,
            channel: options.schema.to_string(),
            held,
            check,
            is_in_rotation: false,
            check_at: Instant::now(),
            unlocked: UnlockedNodes::new(spares_until, returns_within(options)),
        };
        served.hold_again().await?;
        let hello = format!("{HELLO}{}", served.state.id());
        within(served.client.execute(served.statements.hello, &[&served.channel, &hello])).await?;
        served.state.set_listening(true);
        Ok(served)
    }

    /// Serves commands and notifications until the connection is lost or the provider is dropped.
    async fn run(&mut self, commands: &mut UnboundedReceiver<Command>) -> End {
        loop {
            let done = tokio::select! {
                payload = self.notified.recv() => match payload {
                    Some(payload) => {
                        self.note(&payload);
                        Ok(())
                    }
                    None => return End::Lost(DatabaseError::unavailable("the server has closed it")),
                },
                command = commands.recv() => match command {
                    None => return End::Closed,
                    Some(command) => self.carry_out(command).await,
                },
                () = sleep_until(self.check_at) => self.check().await.map_err(End::Lost),
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    /// 24.7: takes locks again that were lost with a connection. Another process may have taken such a node for dead meanwhile, so
    /// the store renews its row. While another process ends the node, or while the server has not noticed the end of the old
    /// connection, the lock cannot be taken; the next check tries again.
    async fn hold_again(&mut self) -> Result<(), DatabaseError> {
        for node in self.held.lost() {
            self.touch(&node).await?;
            if self.try_hold(&node).await? {
                self.held.add_own(node);
                self.state.note_interrupted();
            }
        }
        Ok(())
    }

    fn note(&mut self, payload: &str) {
        match payload.strip_prefix(HELLO) {
            Some(id) if id == self.state.id() => {}
            Some(_) => {
                self.state.set_peers(true);
                // A process that was alone has to check more often from now on.
                self.check_at = Instant::now();
            }
            None if payload == INTAKE_NOTIFICATION => self.state.note_intake(),
            None => {
                let (sender, news) = News::parse(payload, self.state.claimers().rank);
                if sender != self.state.id() {
                    self.state.note_change(news);
                }
            }
        }
    }

    async fn carry_out(&mut self, command: Command) -> Result<(), End> {
        match command {
            Command::Hold { node, reply } => {
                let held = self.hold(node).await;
                let lost = held.as_ref().err().and_then(Refused::lost_connection);
                let _ = reply.send(held.map_err(Refused::into_failure));
                lost.map_or(Ok(()), |error| Err(End::Lost(error)))
            }
            Command::NoteJoinAttempt { node } => Ok(self.touch(&node).await?),
            Command::Release { node } => Ok(self.release(&node).await?),
            Command::Discard { node } => {
                within(self.client.execute(&self.statements.discard, &[&node])).await?;
                Ok(())
            }
            Command::HasJoining { joined, within: time, reply } => {
                let joined: Vec<String> = joined.into_iter().collect();
                let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
                let row = self.first(&self.statements.joining, &[&joined, &micros]).await?;
                let _ = reply.send(row.column("joining")?);
                Ok(())
            }
            Command::Stop => Err(End::Closed),
        }
    }

    async fn hold(&mut self, node: String) -> Result<(), Refused> {
        // The row comes first: a check for dead nodes does not see a lock without a row.
        self.touch(&node).await.map_err(Refused::Lost)?;
        if !self.held.has(&node) && !self.try_hold(&node).await.map_err(Refused::Lost)? {
            return Err(Refused::HeldElsewhere(node));
        }
        self.held.add_own(node);
        // Finds nodes that died before this one joined.
        self.check_at = Instant::now();
        Ok(())
    }

    /// Releases a lock. A process without nodes of its own ends no dead nodes, so it releases those that it has found, too.
    async fn release(&mut self, node: &str) -> Result<(), DatabaseError> {
        let mut released = vec![node.to_owned()];
        self.held.remove(node);
        if !self.held.has_own() {
            released.extend(self.state.take_gone());
        }
        for node in released {
            self.held.remove(&node);
            within(self.client.execute(&self.statements.release, &[&node])).await?;
        }
        Ok(())
    }

    async fn try_hold(&self, node: &str) -> Result<bool, DatabaseError> {
        self.first(&self.statements.hold, &[&node]).await?.column("held")
    }

    async fn touch(&self, node: &str) -> Result<(), DatabaseError> {
        within(self.client.execute(&self.statements.touch, &[&node])).await?;
        Ok(())
    }

    /// Finds out who else is there, and which nodes have no lock.
    async fn check(&mut self) -> Result<(), DatabaseError> {
        self.hold_again().await?;
        self.join_or_leave_rotation().await?;
        let asked_at = std::time::Instant::now();
        let row = within(self.client.query_one(&self.check, &[&self.held.nodes()])).await?;
        self.state.clock.learn(asked_at, row.time("now")?);
        self.check_at = Instant::now() + self.pause(&row)?;
        self.state.set_peers(row.column::<i64>("listeners")? > 1);
        self.state.set_claimers(Claimers { count: row.number("claimers")?, rank: row.number("rank")? });
        self.end_dead(UnlockedAtCheck::of(&row)?).await
    }

    /// 24.6: ends the dead ones of these nodes. Takes their locks first, so that no two processes end the same node.
    async fn end_dead(&mut self, unlocked: UnlockedAtCheck) -> Result<(), DatabaseError> {
        if !self.held.has_own() {
            return Ok(());
        }
        let now = Instant::now();
        let dead = self.unlocked.dead_of(unlocked, now);
        let confirm_at = self.unlocked.confirm_at().filter(|at| *at > now);
        self.check_at = confirm_at.map_or(self.check_at, |at| self.check_at.min(at));
        for node in dead {
            if self.try_hold(&node).await? {
                self.held.add_ending(node.clone());
                self.state.note_gone(node);
            }
        }
        Ok(())
    }

    /// Joins the rotation while this process has nodes.
    async fn join_or_leave_rotation(&mut self) -> Result<(), DatabaseError> {
        if self.held.has_own() != self.is_in_rotation {
            self.is_in_rotation = self.held.has_own();
            let change = if self.is_in_rotation {
                &self.statements.join_rotation
            } else {
                &self.statements.leave_rotation
            };
            within(self.client.execute(change, &[])).await?;
        }
        Ok(())
    }

    /// How long until the next check.
    fn pause(&self, row: &Row) -> Result<Duration, DatabaseError> {
        if !self.is_in_rotation {
            return Ok(WITHOUT_NODES);
        }
        let is_alone = row.column::<i64>("listeners")? <= 1 && row.column::<i64>("claimers")? <= 1;
        // A check also takes lost locks again.
        if is_alone && self.held.lost().is_empty() {
            return Ok(ALONE);
        }
        let number = |name| row.column::<i64>(name).map(|number| u64::try_from(number).unwrap_or_default());
        let rank = RotationRank { rank: number("rank")?, processes: number("claimers")? };
        Ok(rank.until_next_check(Duration::from_micros(number("now")?)))
    }

    async fn first(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Row, DatabaseError> {
        within(self.client.query_one(sql, parameters)).await
    }
}

/// Why a node's lock was not taken.
enum Refused {
    HeldElsewhere(String),
    Lost(DatabaseError),
}

impl Refused {
    fn into_failure(self) -> StoreFailure {
        match self {
            Self::HeldElsewhere(node) => {
                let message = format!("another process runs as node {node}");
                StoreFailure::new(FailureClass::Retryable, message)
            }
            Self::Lost(error) => unavailable(error.into_failure().message),
        }
    }

    fn lost_connection(&self) -> Option<DatabaseError> {
        match self {
            Self::Lost(error) => Some(error.clone()),
            Self::HeldElsewhere(_) => None,
        }
    }
}
