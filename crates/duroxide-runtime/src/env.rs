//! [`Env`]: time, sleep, spawn, turn threads and randomness.
//!
//! The runtime uses all of them through one [`Env`], so that a simulator can replace them by virtual time and inline
//! turns.

mod node_name;
mod real;
mod tasks;
mod thread_sleep;
mod tokio_timer;
mod turn_threads;
mod watchdog;

use std::{
    fmt,
    future::Future,
    pin::{Pin, pin},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use duroxide_core::Clock;
use tokio::sync::Notify;

pub use real::RealEnv;
pub(crate) use tasks::{Task, Tasks};
pub use tokio_timer::TokioTimer;

/// A future that an environment runs.
pub type BoxFuture<T = ()> = Pin<Box<dyn Future<Output = T> + Send>>;

/// User code that runs on a turn thread, where it cannot block the dispatch loops.
pub type TurnJob = Box<dyn FnOnce() + Send>;

/// A point on a monotonic clock, as the time since the environment began. Leases and deadlines use it, because the wall
/// clock may jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// The moment `since_begin` after the environment began.
    pub const fn new(since_begin: Duration) -> Self {
        Self(since_begin)
    }

    /// The time since the environment began.
    pub const fn since_begin(self) -> Duration {
        self.0
    }

    /// This moment plus `delay`, saturating.
    #[must_use]
    pub const fn after(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(delay))
    }

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Monotonic time and sleep: all that a [`Client`](crate::Client) needs of an environment.
pub trait Timer: Send + Sync + 'static {
    /// The current moment of the monotonic clock.
    fn moment(&self) -> Moment;

    /// Resolves at `deadline`, never earlier.
    fn sleep_until(&self, deadline: Moment) -> BoxFuture;

    /// The longest pause between two reads of a client whose store notifies it. The reads are for lost notifications;
    /// where none is ever lost, and time jumps, they would only be in the way.
    fn watched_poll_max(&self) -> Duration {
        Duration::from_secs(40)
    }
}

/// The environment of a runtime. As a [`Clock`] it returns the wall-clock time that executions see, unless the store has a
/// clock of its own.
pub trait Env: Clock + Timer {
    /// Spawns a task.
    fn spawn(&self, task: BoxFuture);

    /// Spawns a task that runs user code. The code may block its thread, which must not stop the timers that limit it.
    fn spawn_user_code(&self, task: BoxFuture) {
        self.spawn(task);
    }

    /// Runs user code on a turn thread, as soon as one is free.
    fn run_turn(&self, job: TurnJob) -> Box<dyn RunningTurn>;

    /// Resolves after `delay`, even if no executor drives the timers that [`Timer::sleep_until`] needs. A shutdown uses
    /// it, because it may be awaited outside of the executor.
    fn sleep_off_executor(&self, delay: Duration) -> BoxFuture {
        self.sleep_until(self.moment().after(delay))
    }

    /// Accepts no more turns. Resolves when no turn runs any more and all threads of the environment have ended, except
    /// those of turns that were given up.
    fn close_turns(&self) -> BoxFuture;

    /// Random bits for ids.
    fn random(&self) -> u128;

    /// A name for a node, which no other node has: letters, digits and `-`, with 122 random bits in the last 32 characters.
    fn node_name(&self) -> String {
        format!("{:032x}", self.random())
    }
}

/// A turn that was passed to [`Env::run_turn`].
pub trait RunningTurn: Send + Sync {
    /// Gives up a turn that takes too long: another thread replaces its thread, while the turn may go on. Returns
    /// `false` if too many turns have been given up already; then the turn keeps its thread.
    fn give_up(&self) -> bool;

    /// Withdraws the turn if it has not begun, so that it never runs. Returns whether it was withdrawn.
    fn withdraw(&self) -> bool {
        false
    }
}

impl fmt::Debug for dyn Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Env")
    }
}

impl dyn Env {
    pub(crate) fn sleep(&self, delay: Duration) -> BoxFuture {
        self.sleep_until(self.moment().after(delay))
    }
}

/// Waits until `condition` holds. Each change of the condition must call `notify_waiters`.
pub(crate) async fn wait_for(notify: &Notify, condition: impl Fn() -> bool) {
    loop {
        // Register before checking: in the other order a change in between would be missed.
        let mut notified = pin!(notify.notified());
        notified.as_mut().enable();
        if condition() {
            return;
        }
        notified.await;
    }
}

/// Locks a mutex whose data stays consistent when a holder panics, because no foreign code runs under a lock here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
