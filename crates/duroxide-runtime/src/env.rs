//! What the runtime asks of its surroundings: time, sleep, spawn, turns and randomness.
//!
//! Everything the runtime does goes through one [`Env`], so that a simulator can put virtual time and inline turns
//! in its place.

mod real;
mod tasks;
mod thread_sleep;
mod timer_waker;
mod tokio_timer;
mod turn_threads;

use std::{
    fmt,
    future::Future,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use duroxide_core::Clock;
use tokio::sync::Notify;

pub use real::RealEnv;
pub(crate) use tasks::{Task, Tasks};
pub use tokio_timer::TokioTimer;

/// A future that an environment runs.
pub type BoxFuture<T = ()> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A piece of user code that runs where it cannot block the dispatch loops.
pub type TurnJob = Box<dyn FnOnce() + Send>;

/// A point on a monotonic clock: how long after the environment began. Leases and deadlines are measured with it,
/// because the wall clock may jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// The moment `since_begin` after the environment began.
    pub const fn new(since_begin: Duration) -> Self {
        Self(since_begin)
    }

    /// How long after the environment began.
    pub const fn since_begin(self) -> Duration {
        self.0
    }

    /// This moment plus `delay`, saturating.
    #[must_use]
    pub const fn after(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(delay))
    }

    /// How long after `earlier` this moment is; zero if it is not.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Time as it passes: all that a [`Client`](crate::Client) asks of its surroundings.
pub trait Timer: Send + Sync + 'static {
    /// The current moment of the monotonic clock.
    fn moment(&self) -> Moment;

    /// Resolves at `deadline`, never earlier.
    fn sleep_until(&self, deadline: Moment) -> BoxFuture;
}

/// The runtime's surroundings. As a [`Clock`] it tells the wall-clock time that executions see.
pub trait Env: Clock + Timer {
    /// Runs a task beside the caller.
    fn spawn(&self, task: BoxFuture);

    /// Runs a task that is user code. It may block its thread, which must not stop what watches over it.
    fn spawn_user_code(&self, task: BoxFuture) {
        self.spawn(task);
    }

    /// Runs user code where it may block, as soon as a place is free.
    fn run_turn(&self, job: TurnJob) -> Box<dyn RunningTurn>;

    /// Resolves after `delay`, also where nothing drives the timers that [`Timer::sleep_until`] needs. A shutdown
    /// waits by it, which may be woken outside of the executor.
    fn sleep_off_executor(&self, delay: Duration) -> BoxFuture {
        self.sleep_until(self.moment().after(delay))
    }

    /// Takes no more turns. Resolves when no turn runs any more and all threads of the environment have ended, apart
    /// from those of turns that were given up.
    fn close_turns(&self) -> BoxFuture;

    /// Random bits for ids.
    fn random(&self) -> u128;
}

/// A turn handed to [`Env::run_turn`].
pub trait RunningTurn: Send + Sync {
    /// Stops counting on the turn: its place is free for another one, whatever it still does. `false` if too many
    /// turns have been given up already; then the place stays taken.
    fn give_up(&self) -> bool;

    /// Takes the turn back if it has not begun; then it never runs. Returns whether that is so.
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
    /// Resolves after `delay`.
    pub(crate) fn sleep(&self, delay: Duration) -> BoxFuture {
        self.sleep_until(self.moment().after(delay))
    }
}

/// This environment as the clock of executions.
pub(crate) fn clock_of(env: &Arc<dyn Env>) -> Arc<dyn Clock> {
    Arc::clone(env) as Arc<dyn Clock>
}

/// Waits until it is so. Whoever makes it so notifies all who wait.
pub(crate) async fn wait_for(notify: &Notify, condition: impl Fn() -> bool) {
    loop {
        // Listen first, look after: in the other order a change in between would tell nobody.
        let mut notified = pin!(notify.notified());
        notified.as_mut().enable();
        if condition() {
            return;
        }
        notified.await;
    }
}

/// Locks a mutex whose data stays consistent when a holder panics: nothing here runs foreign code under a lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
