//! [`TimerWaker`]: keeps an executor's timers running while user code may block its threads.
//!
//! In a multi-threaded tokio runtime the worker that parks drives the timers. If that worker goes straight from the
//! timers into code that blocks, no timeout fires until another worker is woken from outside, and blocking code is
//! never given up. So while user code runs, a separate thread wakes a worker periodically.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Notify,
};
use tracing::error;

use super::{BoxFuture, lock, wait_for};

/// How often a worker is woken while user code runs.
const WAKE_INTERVAL: Duration = Duration::from_millis(100);
/// How long the thread waits for more user code before it ends. It is not woken earlier, because that would cost every
/// short activity a system call.
const IDLE_MAX: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Default)]
pub(super) struct TimerWaker {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Live tasks of user code.
    running: usize,
    thread_runs: bool,
    closed: bool,
}

/// A live task of user code. Dropping it ends the need for wake-ups.
pub(super) struct UserCodeGuard {
    shared: Arc<Shared>,
}

impl TimerWaker {
    /// Wakes workers until the result is dropped. `None` for a single-threaded executor, which has no other worker to
    /// wake.
    pub(super) fn track(&self, handle: &Handle) -> Option<UserCodeGuard> {
        if handle.runtime_flavor() == RuntimeFlavor::CurrentThread {
            return None;
        }
        let mut state = lock(&self.shared.state);
        state.running += 1;
        if !state.thread_runs && !state.closed {
            let (shared, handle) = (Arc::clone(&self.shared), handle.clone());
            let spawned =
                thread::Builder::new().name("duroxide-timers".into()).spawn(move || shared.run(&handle));
            match spawned {
                Ok(_) => state.thread_runs = true,
                Err(reason) => {
                    error!(target: "duroxide::runtime", %reason, "could not start the thread that keeps timers running");
                }
            }
        }
        Some(UserCodeGuard { shared: Arc::clone(&self.shared) })
    }

    /// Stops waking workers. Resolves when the thread has ended.
    pub(super) fn close(&self) -> BoxFuture {
        lock(&self.shared.state).closed = true;
        self.shared.changed.notify_all();
        let shared = Arc::clone(&self.shared);
        Box::pin(async move { wait_for(&shared.ended, || !lock(&shared.state).thread_runs).await })
    }
}

impl Shared {
    /// The body of the thread.
    fn run(&self, handle: &Handle) {
        self.wake_workers(handle);
        self.ended.notify_waiters();
    }

    fn wake_workers(&self, handle: &Handle) {
        let mut state = lock(&self.state);
        loop {
            let idle = state.running == 0;
            let wait = if idle { IDLE_MAX } else { WAKE_INTERVAL };
            let (woken, timeout) =
                self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if state.closed || idle && timeout.timed_out() && state.running == 0 {
                state.thread_runs = false;
                return;
            }
            if state.running > 0 && timeout.timed_out() {
                drop(state);
                // Spawning from outside wakes a worker, which drives the timers before it parks.
                handle.spawn(async {});
                state = lock(&self.state);
            }
        }
    }
}

impl Drop for UserCodeGuard {
    fn drop(&mut self) {
        lock(&self.shared.state).running -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn workers_are_woken_only_while_user_code_runs() {
        let timer_waker = TimerWaker::default();
        let guard = timer_waker.track(&Handle::current());
        assert!(guard.is_some());
        assert!(lock(&timer_waker.shared.state).thread_runs);
        drop(guard);
        assert_eq!(lock(&timer_waker.shared.state).running, 0);
    }

    /// 21.1: no thread of a node outlives its end.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_thread_ends_when_the_waker_is_closed() {
        let timer_waker = TimerWaker::default();
        let _guard = timer_waker.track(&Handle::current());
        timer_waker.close().await;
        assert!(!lock(&timer_waker.shared.state).thread_runs);
        let _late = timer_waker.track(&Handle::current());
        assert!(!lock(&timer_waker.shared.state).thread_runs);
    }

    #[tokio::test]
    async fn a_single_thread_has_nobody_to_wake() {
        assert!(TimerWaker::default().track(&Handle::current()).is_none());
    }
}
