//! The session connection: listens for notifications, and holds the locks of this process's nodes.
//!
//! Transactions may go through a pooler, which gives each of them any connection. Notifications and advisory locks belong
//! to one connection, so they have a connection and a thread of their own. The session connection receives the
//! notifications of other processes, holds an advisory lock for each node of this process, which ends with the process also
//! if that is killed, and finds nodes whose lock has ended. Activity sessions have nothing to do with it.

mod check_schedule;
mod locked_nodes;
mod notification;
mod same_database;
mod serve;
mod statement_timeout;
mod statements;
mod unlocked;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use duroxide_provider::store::{FailureClass, StoreFailure, TellOfWrite};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub(crate) use self::{
    notification::News,
    same_database::{Compared, DatabasesDiffer, compare_databases},
};
use crate::{PostgresOptions, connection::NodeClock, database_error::DatabaseError};

/// How long a caller waits for the thread of the session connection.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The state that the thread of the session connection shares with the store thread.
pub(crate) struct SessionState {
    /// Names this process in the notifications that it sends.
    id: String,
    clock: Arc<NodeClock>,
    /// What other processes have committed since the last [`Self::take_news`].
    news: Mutex<Option<News>>,
    /// Whether the intake may have been written since the last [`Self::take_intake`].
    intake: AtomicBool,
    listening: AtomicBool,
    /// Whether another process listens.
    has_peers: AtomicBool,
    claimers: Mutex<Claimers>,
    tell: Mutex<Option<TellOfWrite>>,
    /// Dead nodes that were found; the session connection holds their locks.
    gone: Mutex<Vec<String>>,
    /// Whether locks of this process's nodes were lost and taken again since the last [`Self::take_interrupted`].
    interrupted: AtomicBool,
}

/// The processes that have nodes, in an order that all of them know. This process may have none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Claimers {
    pub(crate) count: u64,
    /// How many of them stand before this process.
    pub(crate) rank: u64,
}

impl Claimers {
    /// The process that is to claim what this one leaves, in turns.
    pub(crate) fn next_claimer(self, period: u64) -> u64 {
        let others = self.count.saturating_sub(1).max(1);
        (self.rank + 1 + period % others) % self.count.max(1)
    }
}

/// A command to the thread of the session connection.
pub(crate) enum Command {
    /// Take the lock of a node of this process.
    Hold { node: String, reply: SyncSender<Result<(), StoreFailure>> },
    /// A node tries again to join.
    NoteJoinAttempt { node: String },
    /// Release a lock.
    Release { node: String },
    /// Remove the row of a node that has ended. Its lock is released separately.
    Discard { node: String },
    /// Ask whether a node runs that is not among those that joined.
    HasJoining { joined: BTreeSet<String>, within: Duration, reply: SyncSender<bool> },
    /// The provider was dropped.
    Stop,
}

/// The session connection of one provider. Dropping it ends its thread, its connection and its locks.
#[derive(Debug)]
pub(crate) struct Session {
    state: Arc<SessionState>,
    commands: UnboundedSender<Command>,
    thread: Option<JoinHandle<()>>,
}

impl Session {
    /// Starts the thread, which connects, and reconnects by itself. Returns after the first connection is made, because a wrong
    /// address or password would otherwise be retried forever.
    ///
    /// Each check for dead nodes also sets `clock`.
    pub(crate) fn start(options: PostgresOptions, clock: Arc<NodeClock>) -> Result<Self, DatabaseError> {
        let state = Arc::new(SessionState::new(clock));
        let (commands, received) = unbounded_channel();
        let (opened, answer) = sync_channel(1);
        let thread = std::thread::Builder::new().name("duroxide-postgres-session".to_owned()).spawn({
            let state = Arc::clone(&state);
            move || run(options, state, received, opened)
        });
        let failed = |error: &dyn fmt::Display| DatabaseError::unavailable(error.to_string());
        let thread = Some(thread.map_err(|error| failed(&error))?);
        let session = Self { state, commands, thread };
        answer.recv().map_err(|error| failed(&error))??;
        Ok(session)
    }

    pub(crate) fn state(&self) -> Arc<SessionState> {
        Arc::clone(&self.state)
    }

    /// Sends a command to the thread. After the thread has ended, this does nothing.
    pub(crate) fn send(&self, command: Command) {
        let _ = self.commands.send(command);
    }

    pub(crate) fn sender(&self) -> UnboundedSender<Command> {
        self.commands.clone()
    }

    /// Sends a command to the thread, and waits for its answer.
    pub(crate) fn ask<T>(&self, command: impl FnOnce(SyncSender<T>) -> Command) -> Result<T, StoreFailure> {
        let (reply, answer) = sync_channel(1);
        self.send(command(reply));
        answer.recv_timeout(ANSWER_WITHIN).map_err(|_| unavailable("the session connection does not answer"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.send(Command::Stop);
        self.state.close();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread leaves nothing to do here.
            let _ = thread.join();
        }
    }
}

fn run(
    options: PostgresOptions,
    state: Arc<SessionState>,
    commands: UnboundedReceiver<Command>,
    opened: SyncSender<Result<(), DatabaseError>>,
) {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(serve::serve(options, state, commands, opened)),
        Err(error) => {
            tracing::warn!(target: "duroxide::providers::postgres", %error, "cannot start the session runtime");
        }
    }
}

pub(crate) fn unavailable(message: impl Into<String>) -> StoreFailure {
    StoreFailure::new(FailureClass::Retryable, message)
}

impl SessionState {
    fn new(clock: Arc<NodeClock>) -> Self {
        Self {
            clock,
            id: format!("{:032x}", duroxide_store::random_nonce()),
            news: Mutex::new(None),
            intake: AtomicBool::new(false),
            listening: AtomicBool::new(false),
            has_peers: AtomicBool::new(false),
            claimers: Mutex::default(),
            tell: Mutex::new(None),
            gone: Mutex::new(Vec::new()),
            interrupted: AtomicBool::new(false),
        }
    }

    /// The name of this process in notifications.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.listening.load(Ordering::SeqCst)
    }

    /// Whether another process receives notifications.
    pub(crate) fn has_peers(&self) -> bool {
        self.has_peers.load(Ordering::SeqCst)
    }

    /// The processes that have nodes.
    pub(crate) fn claimers(&self) -> Claimers {
        *lock(&self.claimers)
    }

    /// What other processes have committed since the last call.
    pub(crate) fn take_news(&self) -> Option<News> {
        lock(&self.news).take()
    }

    /// Whether the intake may have been written since the last call.
    pub(crate) fn take_intake(&self) -> bool {
        self.intake.swap(false, Ordering::SeqCst)
    }

    /// Calls `tell` at the next notification, once.
    pub(crate) fn tell_of_write(&self, tell: &TellOfWrite) {
        *lock(&self.tell) = Some(Arc::clone(tell));
    }

    /// The dead nodes that were found since the last call.
    pub(crate) fn take_gone(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.gone))
    }

    /// Whether other processes may have taken nodes of this process for dead since the last call.
    pub(crate) fn take_interrupted(&self) -> bool {
        self.interrupted.swap(false, Ordering::SeqCst)
    }

    fn note_interrupted(&self) {
        self.interrupted.store(true, Ordering::SeqCst);
    }

    fn note_change(&self, news: News) {
        let mut untaken = lock(&self.news);
        *untaken = Some(untaken.unwrap_or_default().and(news));
        drop(untaken);
        let tell = lock(&self.tell).take();
        tell.iter().for_each(|tell| tell());
    }

    fn note_intake(&self) {
        self.intake.store(true, Ordering::SeqCst);
        self.note_change(News::ANYTHING);
    }

    fn set_listening(&self, listening: bool) {
        self.listening.store(listening, Ordering::SeqCst);
        // 24.10: notifications sent in between are lost.
        self.note_intake();
    }

    fn set_peers(&self, has_peers: bool) {
        self.has_peers.store(has_peers, Ordering::SeqCst);
    }

    fn set_claimers(&self, claimers: Claimers) {
        *lock(&self.claimers) = claimers;
    }

    fn note_gone(&self, node: String) {
        lock(&self.gone).push(node);
    }

    fn close(&self) {
        *lock(&self.tell) = None;
    }
}

impl fmt::Debug for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionState")
            .field("id", &self.id)
            .field("listening", &self.listening)
            .field("has_peers", &self.has_peers)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
