//! The thread of the session connection: connects, listens, holds locks and checks for dead nodes, until the provider is dropped.

use std::{
    sync::{Arc, mpsc::SyncSender},
    time::Duration,
};

use duroxide_provider::store::{FailureClass, StoreFailure};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::{Instant, sleep_until, timeout},
};
use tokio_postgres::{Client, Error, Row, Statement, types::ToSql};

use super::{
    Command, News, SessionState,
    check_schedule::{ALONE, RotationRank, WITHOUT_NODES},
    held_locks::HeldLocks,
    statements::Statements,
    unavailable,
};
use crate::{PostgresOptions, connection::connect, fault::Trouble, provider::INTAKE_NOTIFICATION};

/// The longest pause between two attempts to connect; the first is a hundredth of it.
const RECONNECT_MAX: Duration = Duration::from_secs(5);
/// A statement that takes longer counts as a lost connection.
const STATEMENT_WITHIN: Duration = Duration::from_secs(10);
/// The notification of a process that has just begun to listen.
const HELLO: &str = "hello ";

/// Why a connection is no longer served.
enum End {
    /// The provider was dropped.
    Closed,
    /// The connection was lost.
    Lost(String),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Lost(error.to_string())
    }
}

/// A connection that is served.
struct Served<'a> {
    client: Client,
    notified: UnboundedReceiver<String>,
    state: &'a SessionState,
    statements: &'a Statements,
    channel: String,
    held: HeldLocks,
    /// Checks for dead nodes. Prepared, because it is repeated for ever.
    check: Option<Statement>,
    /// Whether this process is in the rotation of those that check for dead nodes.
    takes_turns: bool,
    check_at: Instant,
}

/// Serves one connection after the other. Tells `opened` of the first one, and ends if there is none.
pub(super) async fn serve(
    options: PostgresOptions,
    state: Arc<SessionState>,
    mut commands: UnboundedReceiver<Command>,
    opened: SyncSender<Result<(), Trouble>>,
) {
    let mut opened = Some(opened);
    let statements = Statements::new(&options.schema);
    let mut held = HeldLocks::default();
    let mut pause = RECONNECT_MAX / 100;
    loop {
        let (tell, notified) = unbounded_channel();
        let connected = connect(&options, options.session_config(), Some(tell)).await;
        if let Some(opened) = opened.take() {
            let _ = opened.send(connected.as_ref().map(|_| ()).map_err(Clone::clone));
            if connected.is_err() {
                return;
            }
        }
        let end = match connected {
            Ok(client) => {
                let channel = options.schema.to_string();
                let (state, statements) = (&*state, &statements);
                let (check, takes_turns, check_at) = (None, false, Instant::now());
                let mut served = Served {
                    client,
                    notified,
                    state,
                    statements,
                    channel,
                    held,
                    check,
                    takes_turns,
                    check_at,
                };
                let end = served.run(&mut commands).await.err().unwrap_or(End::Closed);
                held = served.held;
                pause = RECONNECT_MAX / 100;
                end
            }
            Err(trouble) => End::Lost(trouble.into_failure().message),
        };
        state.set_listening(false);
        // A process must not end a node after losing its lock: the node may hold it again.
        held.lose();
        state.take_gone();
        match end {
            End::Closed => return,
            End::Lost(error) => {
                tracing::warn!(target: "duroxide::providers::postgres", error, "the session connection is lost");
            }
        }
        if !refuse_until(Instant::now() + pause, &mut commands, &mut held).await {
            return;
        }
        pause = (pause * 2).min(RECONNECT_MAX);
    }
}

/// Answers commands while there is no connection. Returns whether to connect again.
async fn refuse_until(at: Instant, commands: &mut UnboundedReceiver<Command>, held: &mut HeldLocks) -> bool {
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

impl Served<'_> {
    async fn run(&mut self, commands: &mut UnboundedReceiver<Command>) -> Result<(), End> {
        self.set_up().await?;
        self.state.set_listening(true);
        loop {
            tokio::select! {
                payload = self.notified.recv() => match payload {
                    Some(payload) => self.note(&payload),
                    None => return Err(End::Lost("the server has closed it".to_owned())),
                },
                command = commands.recv() => match command {
                    None | Some(Command::Stop) => return Ok(()),
                    Some(command) => self.carry_out(command).await?,
                },
                () = sleep_until(self.check_at) => self.check().await?,
            }
        }
    }

    /// Listens, and takes the locks again that were held on an earlier connection.
    async fn set_up(&mut self) -> Result<(), End> {
        within(self.client.batch_execute(&self.statements.set_up)).await?;
        self.check = Some(within(self.client.prepare(&self.statements.check)).await?);
        self.hold_again().await?;
        let hello = format!("{HELLO}{}", self.state.id());
        within(self.client.execute(self.statements.hello, &[&self.channel, &hello])).await?;
        Ok(())
    }

    /// Takes locks again that were lost with a connection. Another process may have taken such a node for dead meanwhile, so
    /// the store renews its row. While another process ends the node, or while the server has not noticed the end of the old
    /// connection, the lock cannot be taken; the next check tries again.
    async fn hold_again(&mut self) -> Result<(), End> {
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
                let (sender, news) = News::parse(payload);
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
                let lost = held.as_ref().err().and_then(lost_connection);
                let _ = reply.send(held.map_err(Refused::into_failure));
                lost.map_or(Ok(()), Err)
            }
            Command::NoteJoinAttempt { node } => self.touch(&node).await,
            Command::Release { node } => self.release(&node).await,
            Command::Discard { node } => {
                within(self.client.execute(&self.statements.discard, &[&node])).await?;
                Ok(())
            }
            Command::HasJoining { joined, within: time, reply } => {
                let joined: Vec<String> = joined.into_iter().collect();
                let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
                let row = self.first(&self.statements.joining, &[&joined, &micros]).await?;
                let _ = reply.send(row.try_get("joining")?);
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
    async fn release(&mut self, node: &str) -> Result<(), End> {
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

    async fn try_hold(&self, node: &str) -> Result<bool, End> {
        Ok(self.first(&self.statements.hold, &[&node]).await?.try_get("held")?)
    }

    async fn touch(&self, node: &str) -> Result<(), End> {
        within(self.client.execute(&self.statements.touch, &[&node])).await?;
        Ok(())
    }

    /// Finds nodes whose lock has ended, and takes the locks, so that no two processes end the same node.
    async fn check(&mut self) -> Result<(), End> {
        self.hold_again().await?;
        self.join_or_leave_turns().await?;
        let Some(check) = &self.check else { return Ok(()) };
        let row = within(self.client.query_one(check, &[&self.held.nodes()])).await?;
        self.check_at = Instant::now() + self.pause(&row)?;
        self.state.set_peers(row.try_get::<_, i64>("listeners")? > 1);
        let claiming = usize::try_from(row.try_get::<_, i64>("takers")?).unwrap_or(1);
        self.state.set_claiming_processes(claiming.max(1));
        let gone: Vec<String> = row.try_get("gone")?;
        let may_end = self.held.has_own();
        for node in gone {
            if may_end && self.try_hold(&node).await? {
                self.held.add_ending(node.clone());
                self.state.note_gone(node);
            }
        }
        Ok(())
    }

    /// Joins the rotation while this process has nodes.
    async fn join_or_leave_turns(&mut self) -> Result<(), End> {
        if self.held.has_own() != self.takes_turns {
            self.takes_turns = self.held.has_own();
            let change =
                if self.takes_turns { &self.statements.take_turns } else { &self.statements.leave_turns };
            within(self.client.execute(change, &[])).await?;
        }
        Ok(())
    }

    /// How long until the next check.
    fn pause(&self, row: &Row) -> Result<Duration, End> {
        if !self.takes_turns {
            return Ok(WITHOUT_NODES);
        }
        let is_alone = row.try_get::<_, i64>("listeners")? <= 1 && row.try_get::<_, i64>("takers")? <= 1;
        // A check also takes lost locks again.
        if is_alone && self.held.lost().is_empty() {
            return Ok(ALONE);
        }
        let number =
            |name| row.try_get::<_, i64>(name).map(|number| u64::try_from(number).unwrap_or_default());
        let rank = RotationRank { rank: number("rank")?, processes: number("takers")? };
        Ok(rank.next_turn(Duration::from_micros(number("now")?)))
    }

    async fn first(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Row, End> {
        within(self.client.query_one(sql, parameters)).await
    }
}

async fn within<T>(statement: impl Future<Output = Result<T, Error>>) -> Result<T, End> {
    match timeout(STATEMENT_WITHIN, statement).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(End::Lost("the server does not answer".to_owned())),
    }
}

/// Why a node's lock was not taken.
enum Refused {
    HeldElsewhere(String),
    Lost(End),
}

impl Refused {
    fn into_failure(self) -> StoreFailure {
        match self {
            Self::HeldElsewhere(node) => {
                let message = format!("another process runs as node {node}");
                StoreFailure::new(FailureClass::Retryable, message)
            }
            Self::Lost(End::Lost(message)) => unavailable(message),
            Self::Lost(End::Closed) => unavailable("the store is closed"),
        }
    }
}

fn lost_connection(refused: &Refused) -> Option<End> {
    match refused {
        Refused::Lost(End::Lost(message)) => Some(End::Lost(message.clone())),
        Refused::Lost(End::Closed) => Some(End::Closed),
        Refused::HeldElsewhere(_) => None,
    }
}
