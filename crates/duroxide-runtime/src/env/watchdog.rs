//! [`Watchdog`]: the thread that helps when user code blocks other threads.
//!
//! * Turns: if queued turns wait although enough turn threads are awake, the watchdog wakes one more.
//! * Activities: in a multi-threaded tokio runtime the worker that parks drives the timers. If that worker goes straight
//!   from the timers into code that blocks, no timeout fires until another worker is woken from outside, and blocking
//!   code is never given up. So while activities run, the watchdog wakes a worker periodically.
//!
//! The watchdog is not woken for a single turn or activity, which would cost as much as waking a turn thread. It checks
//! periodically while turns arrive or activities run, and ends when neither has been the case for a while.

use std::{
    fmt, io,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Notify,
};
use tracing::error;

use super::{BoxFuture, lock, turn_threads, wait_for};

/// The check interval while turns are stalled, and so how long a turn waits for one more thread.
const TURN_CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// The check interval while no turn is stalled, so that quick turns do not pay for frequent checks.
const TURN_CHECK_INTERVAL_MAX: Duration = Duration::from_millis(8);
/// Consecutive checks without a turn, after which turns are no longer watched.
const QUIET_CHECKS_MAX: u32 = 128;
/// How often a worker is woken while activities run.
const WORKER_WAKE_INTERVAL: Duration = Duration::from_millis(100);
/// How long the thread waits for something to watch before it ends.
const IDLE_MAX: Duration = Duration::from_secs(1);

/// The watchdog of an environment. Its thread runs while there is something to watch.
#[derive(Clone)]
pub(super) struct Watchdog {
    shared: Arc<Shared>,
}

struct Shared {
    handle: Handle,
    state: Mutex<State>,
    /// Wakes the thread: turns are to be watched, or the watchdog is closed.
    changed: Condvar,
    ended: Notify,
}

#[derive(Default)]
struct State {
    /// Turn threads that the thread is to watch and has not taken yet.
    turns: Option<Arc<turn_threads::Shared>>,
    /// Live tasks of user code.
    activities: usize,
    thread_runs: bool,
    closed: bool,
}

/// A live task of user code. Dropping it ends the need for wake-ups.
pub(super) struct ActivityGuard {
    shared: Arc<Shared>,
}

impl Watchdog {
    pub(super) fn new(handle: Handle) -> Self {
        Self {
            shared: Arc::new(Shared {
                handle,
                state: Mutex::default(),
                changed: Condvar::new(),
                ended: Notify::new(),
            }),
        }
    }

    /// Watches the turn threads until no more turns arrive. Returns `false` if no thread can be started.
    pub(super) fn watch_turns(&self, turns: &Arc<turn_threads::Shared>) -> bool {
        let mut state = lock(&self.shared.state);
        match self.ensure_thread(&mut state) {
            Ok(()) => {
                state.turns = Some(Arc::clone(turns));
                self.shared.changed.notify_one();
                true
            }
            Err(reason) => {
                error!(target: "duroxide::runtime", %reason, "could not start the watchdog of the turn threads");
                false
            }
        }
    }

    /// Wakes workers until the result is dropped. `None` for a single-threaded executor, which has no other worker to
    /// wake.
    pub(super) fn watch_activity(&self) -> Option<ActivityGuard> {
        if self.shared.handle.runtime_flavor() == RuntimeFlavor::CurrentThread {
            return None;
        }
        let mut state = lock(&self.shared.state);
        state.activities += 1;
        if !state.closed
            && let Err(reason) = self.ensure_thread(&mut state)
        {
            error!(target: "duroxide::runtime", %reason, "could not start the thread that keeps timers running");
        }
        Some(ActivityGuard { shared: Arc::clone(&self.shared) })
    }

    fn ensure_thread(&self, state: &mut State) -> io::Result<()> {
        if !state.thread_runs {
            let shared = Arc::clone(&self.shared);
            thread::Builder::new().name("duroxide-watchdog".into()).spawn(move || shared.run())?;
            state.thread_runs = true;
        }
        Ok(())
    }

    /// Stops waking workers, and watches turns only until none is queued. Resolves when the thread has ended.
    pub(super) fn close(&self) -> BoxFuture {
        lock(&self.shared.state).closed = true;
        self.shared.changed.notify_one();
        let shared = Arc::clone(&self.shared);
        Box::pin(async move { wait_for(&shared.ended, || !lock(&shared.state).thread_runs).await })
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.shared.state);
        f.debug_struct("Watchdog").field("thread_runs", &state.thread_runs).finish_non_exhaustive()
    }
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        lock(&self.shared.state).activities -= 1;
    }
}

impl Shared {
    /// The body of the thread.
    fn run(&self) {
        let mut turns: Option<WatchedTurns> = None;
        let mut since_wake = Duration::ZERO;
        while let Some(slept) = self.pause(&mut turns) {
            if turns.as_mut().is_some_and(|turns| !turns.check()) {
                turns = None;
            }
            since_wake += slept;
            if since_wake >= WORKER_WAKE_INTERVAL {
                since_wake = Duration::ZERO;
                self.wake_worker();
            }
        }
        self.ended.notify_waiters();
    }

    /// Sleeps until the next check, and takes turns that are to be watched. `None` if the thread is to end.
    fn pause(&self, turns: &mut Option<WatchedTurns>) -> Option<Duration> {
        let mut state = lock(&self.state);
        let is_idle = turns.is_none() && state.activities == 0;
        let interval = match turns {
            Some(turns) => turns.interval,
            None if is_idle => IDLE_MAX,
            None => WORKER_WAKE_INTERVAL,
        };
        let is_over = |state: &State| state.closed && turns.is_none();
        if state.turns.is_none() && !is_over(&state) {
            let woken = self.changed.wait_timeout(state, interval);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Some(found) = state.turns.take() {
            *turns = Some(WatchedTurns::new(found));
        } else if is_over(&state) || is_idle && state.activities == 0 {
            state.thread_runs = false;
            return None;
        }
        Some(interval)
    }

    fn wake_worker(&self) {
        let activities_run = {
            let state = lock(&self.state);
            state.activities > 0 && !state.closed
        };
        if activities_run {
            // Spawning from outside wakes a worker, which drives the timers before it parks.
            self.handle.spawn(async {});
        }
    }
}

/// Turn threads under watch.
struct WatchedTurns {
    threads: Arc<turn_threads::Shared>,
    /// Turns taken out of the queue until the last check.
    taken_before: Option<u64>,
    /// Consecutive checks without a turn.
    quiet_checks: u32,
    interval: Duration,
}

impl WatchedTurns {
    fn new(threads: Arc<turn_threads::Shared>) -> Self {
        Self { threads, taken_before: None, quiet_checks: 0, interval: TURN_CHECK_INTERVAL }
    }

    /// Wakes one more thread if turns are queued and none was taken since the last check. Returns `false` if no more
    /// turns arrive.
    fn check(&mut self) -> bool {
        let mut state = lock(&self.threads.state);
        let none_taken = self.taken_before == Some(state.taken);
        let none_queued = state.queue.is_empty();
        let is_stalled = none_taken && !none_queued;
        if is_stalled {
            turn_threads::Shared::add_thread(&self.threads, &mut state);
        }
        self.interval = interval_after(self.interval, is_stalled);
        self.quiet_checks = if none_taken && none_queued { self.quiet_checks + 1 } else { 0 };
        self.taken_before = Some(state.taken);
        let is_over = none_queued && (state.closed || self.quiet_checks > QUIET_CHECKS_MAX);
        // Set under the lock of the turn threads, so that the next queued turn is watched again.
        state.is_watched = !is_over;
        !is_over
    }
}

fn interval_after(interval: Duration, is_stalled: bool) -> Duration {
    if is_stalled { TURN_CHECK_INTERVAL } else { interval.saturating_mul(2).min(TURN_CHECK_INTERVAL_MAX) }
}

#[cfg(test)]
mod tests;
