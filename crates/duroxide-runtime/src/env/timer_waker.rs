//! Keeps an executor's timers going while user code may block its threads.
//!
//! A multi-threaded tokio has its timers driven by whichever worker parks. A worker that goes straight from them
//! into code that blocks takes them along: until something wakes another worker from outside, no timeout fires, and
//! the code that should be given up is never given up. So while user code runs, a thread of its own wakes one.

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
/// How long the thread waits for more user code before it ends. Nobody wakes it earlier: that would cost every
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
    /// Tasks of user code that are alive.
    running: usize,
    /// Whether the thread is.
    thread_runs: bool,
    closed: bool,
}

/// Some user code that is alive.
pub(super) struct UserCodeGuard {
    shared: Arc<Shared>,
}

impl TimerWaker {
    /// Beats until the result is dropped. An executor with a single thread has nobody to wake.
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
                    error!(target: "duroxide::runtime", %reason, "could not start the timer_waker thread");
                }
            }
        }
        Some(UserCodeGuard { shared: Arc::clone(&self.shared) })
    }

    /// Beats no more. Resolves when the thread has ended.
    pub(super) fn close(&self) -> BoxFuture {
        lock(&self.shared.state).closed = true;
        self.shared.changed.notify_all();
        let shared = Arc::clone(&self.shared);
        Box::pin(async move { wait_for(&shared.ended, || !lock(&shared.state).thread_runs).await })
    }
}

impl Shared {
    /// The life of the thread.
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
                // Handing in a task from outside wakes a worker, which looks after the timers before it parks.
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
    async fn the_pulse_beats_only_while_something_runs() {
        let timer_waker = TimerWaker::default();
        let guard = timer_waker.track(&Handle::current());
        assert!(guard.is_some());
        assert!(lock(&timer_waker.shared.state).thread_runs);
        drop(guard);
        assert_eq!(lock(&timer_waker.shared.state).running, 0);
    }

    /// 21.1: nothing of a node runs after its end.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_thread_ends_when_the_pulse_is_closed() {
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
