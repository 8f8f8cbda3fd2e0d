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
const BEAT: Duration = Duration::from_millis(100);
/// How long the thread waits for more user code before it ends. Nobody wakes it earlier: that would cost every
/// short activity a system call.
const IDLE_MAX: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Default)]
pub(super) struct Pulse {
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
    beating: bool,
    closed: bool,
}

/// Some user code that is alive.
pub(super) struct Beating {
    shared: Arc<Shared>,
}

impl Pulse {
    /// Beats until the result is dropped. An executor with a single thread has nobody to wake.
    pub(super) fn beat(&self, handle: &Handle) -> Option<Beating> {
        if handle.runtime_flavor() == RuntimeFlavor::CurrentThread {
            return None;
        }
        let mut state = lock(&self.shared.state);
        state.running += 1;
        if !state.beating && !state.closed {
            let (shared, handle) = (Arc::clone(&self.shared), handle.clone());
            let spawned =
                thread::Builder::new().name("duroxide-pulse".into()).spawn(move || shared.run(&handle));
            match spawned {
                Ok(_) => state.beating = true,
                Err(reason) => {
                    error!(target: "duroxide::runtime", %reason, "could not start the pulse thread");
                }
            }
        }
        Some(Beating { shared: Arc::clone(&self.shared) })
    }

    /// Beats no more. Resolves when the thread has ended.
    pub(super) fn close(&self) -> BoxFuture {
        lock(&self.shared.state).closed = true;
        self.shared.changed.notify_all();
        let shared = Arc::clone(&self.shared);
        Box::pin(async move { wait_for(&shared.ended, || !lock(&shared.state).beating).await })
    }
}

impl Shared {
    /// The life of the thread.
    fn run(&self, handle: &Handle) {
        self.beat(handle);
        self.ended.notify_waiters();
    }

    fn beat(&self, handle: &Handle) {
        let mut state = lock(&self.state);
        loop {
            let idle = state.running == 0;
            let wait = if idle { IDLE_MAX } else { BEAT };
            let (woken, timeout) =
                self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if state.closed || idle && timeout.timed_out() && state.running == 0 {
                state.beating = false;
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

impl Drop for Beating {
    fn drop(&mut self) {
        lock(&self.shared.state).running -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_pulse_beats_only_while_something_runs() {
        let pulse = Pulse::default();
        let beating = pulse.beat(&Handle::current());
        assert!(beating.is_some());
        assert!(lock(&pulse.shared.state).beating);
        drop(beating);
        assert_eq!(lock(&pulse.shared.state).running, 0);
    }

    /// 21.1: nothing of a node runs after its end.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_thread_ends_when_the_pulse_is_closed() {
        let pulse = Pulse::default();
        let _beating = pulse.beat(&Handle::current());
        pulse.close().await;
        assert!(!lock(&pulse.shared.state).beating);
        let _late = pulse.beat(&Handle::current());
        assert!(!lock(&pulse.shared.state).beating);
    }

    #[tokio::test]
    async fn a_single_thread_has_nobody_to_wake() {
        assert!(Pulse::default().beat(&Handle::current()).is_none());
    }
}
