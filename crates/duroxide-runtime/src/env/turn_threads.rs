//! [`TurnThreads`]: plain threads that run turns.
//!
//! User code may block or loop forever. On a turn thread that costs the thread, never a dispatch loop: a turn that takes
//! too long is given up, another thread replaces its thread, and the result of the stuck turn is dropped.
//!
//! A healthy turn takes microseconds, less than waking a thread. So at most half as many threads as cores are awake,
//! each runs one turn after the other and yields a few times before it sleeps. The other cores are for the dispatch
//! loops and the store. If slow turns stall the queue, the [`Watchdog`] wakes more threads.

use std::{
    collections::VecDeque,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
};

use tokio::{runtime::Handle, sync::Notify};
use tracing::{Dispatch, dispatcher, error, subscriber::NoSubscriber};

use super::{BoxFuture, RunningTurn, TurnJob, lock, wait_for, watchdog::Watchdog};

/// Threads that may be stuck in user code at the same time. Beyond this number a stuck turn keeps its slot.
const GIVEN_UP_MAX: usize = 64;

/// How often an idle thread yields before it sleeps. Under load the next turn arrives meanwhile, and the thread need
/// not be woken, which would preempt the waking thread.
const YIELDS_MAX: usize = 6;

/// Threads for turns, started on demand.
pub(super) struct TurnThreads {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    threads_max: usize,
    /// Threads that are woken for queued turns. Only the watchdog wakes more.
    awake_max: usize,
    handle: Handle,
    watchdog: Watchdog,
    pub(super) state: Mutex<State>,
    work: Condvar,
    ended: Notify,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) queue: VecDeque<Job>,
    /// Sleeping threads, without those that were woken.
    idle: usize,
    /// Sleeping threads that were woken and do not run yet.
    woken: usize,
    /// Turns taken out of the queue so far.
    pub(super) taken: u64,
    /// Whether the watchdog watches the queue.
    pub(super) is_watched: bool,
    /// Live threads, without those of given-up turns.
    alive: usize,
    given_up: usize,
    pub(super) closed: bool,
}

pub(super) struct Job {
    run: TurnJob,
    dispatch: Dispatch,
    phase: Arc<Mutex<Phase>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Queued,
    /// Withdrawn before it began. A thread drops it and takes the next one.
    Withdrawn,
    Running,
    Done,
    /// Began and does not return. Its thread no longer counts, and ends with the turn.
    GivenUp,
}

impl TurnThreads {
    pub(super) fn new(threads_max: usize, handle: Handle, watchdog: Watchdog) -> Self {
        let shared = Shared {
            threads_max: threads_max.max(1),
            awake_max: thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2)),
            handle,
            watchdog,
            state: Mutex::default(),
            work: Condvar::new(),
            ended: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Queues a turn for the next free thread.
    pub(super) fn queue_turn(&self, run: TurnJob) -> TurnHandle {
        let phase = Arc::new(Mutex::new(Phase::Queued));
        let job = Job { run, dispatch: dispatcher::get_default(Clone::clone), phase: Arc::clone(&phase) };
        let mut state = lock(&self.shared.state);
        state.queue.push_back(job);
        Shared::ensure_thread(&self.shared, &mut state);
        TurnHandle { shared: Arc::clone(&self.shared), phase }
    }

    /// Ends the threads after all queued turns. Resolves when all threads have ended, except those of given-up turns.
    pub(super) fn close(&self) -> BoxFuture {
        self.shared.close();
        let shared = Arc::clone(&self.shared);
        Box::pin(async move { wait_for(&shared.ended, || lock(&shared.state).alive == 0).await })
    }
}

impl Drop for TurnThreads {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl fmt::Debug for TurnThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.shared.state);
        f.debug_struct("TurnThreads")
            .field("alive", &state.alive)
            .field("given_up", &state.given_up)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Makes sure that a thread takes the queued turn.
    fn ensure_thread(shared: &Arc<Self>, state: &mut State) {
        if state.alive - state.idle < shared.awake_max {
            Self::add_thread(shared, state);
        } else if !state.is_watched {
            state.is_watched = shared.watchdog.watch_turns(shared);
            if !state.is_watched {
                Self::add_thread(shared, state);
            }
        }
    }

    /// Wakes or starts a thread.
    pub(super) fn add_thread(shared: &Arc<Self>, state: &mut State) {
        if state.idle > 0 {
            state.idle -= 1;
            state.woken += 1;
            shared.work.notify_one();
        } else if state.alive < shared.threads_max {
            let worker = Arc::clone(shared);
            match thread::Builder::new().name("duroxide-turn".into()).spawn(move || worker.work()) {
                Ok(_) => state.alive += 1,
                Err(reason) => error!(target: "duroxide::runtime", %reason, "could not start a turn thread"),
            }
        }
    }

    fn close(&self) {
        lock(&self.state).closed = true;
        self.work.notify_all();
    }

    /// The body of one thread.
    fn work(&self) {
        // Code that uses tokio by mistake must find a runtime instead of panicking.
        let _entered = self.handle.enter();
        while let Some(job) = self.next_job() {
            let phase = Arc::clone(&job.phase);
            run_catching_panic(job);
            let mut state = lock(&self.state);
            if std::mem::replace(&mut *lock(&phase), Phase::Done) == Phase::GivenUp {
                // Another thread has replaced this one.
                state.given_up -= 1;
                return;
            }
        }
        lock(&self.state).alive -= 1;
        self.ended.notify_waiters();
    }

    fn next_job(&self) -> Option<Job> {
        let mut yields = 0;
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.queue.pop_front() {
                let mut phase = lock(&job.phase);
                if *phase == Phase::Queued {
                    *phase = Phase::Running;
                }
                drop(phase);
                state.taken += 1;
                return Some(job);
            }
            if state.closed {
                return None;
            }
            if yields < YIELDS_MAX && state.alive - state.idle <= self.awake_max {
                yields += 1;
                drop(state);
                thread::yield_now();
                state = lock(&self.state);
                continue;
            }
            state.idle += 1;
            while state.woken == 0 && !state.closed {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            match state.woken.checked_sub(1) {
                Some(woken) => state.woken = woken,
                None => state.idle -= 1,
            }
        }
    }
}

/// Runs a turn under the tracing subscriber of its caller, and catches panics: the caller notices the missing answer.
/// Destructors of dropped values are user code too.
fn run_catching_panic(job: Job) {
    let Job { run, dispatch, phase } = job;
    let withdrawn = *lock(&phase) == Phase::Withdrawn;
    let run = move || if withdrawn { drop(run) } else { run() };
    let _panic = catch_unwind(AssertUnwindSafe(move || {
        if dispatch.is::<NoSubscriber>() { run() } else { dispatcher::with_default(&dispatch, run) }
    }));
}

/// A queued or running turn.
pub(super) struct TurnHandle {
    shared: Arc<Shared>,
    phase: Arc<Mutex<Phase>>,
}

impl RunningTurn for TurnHandle {
    fn withdraw(&self) -> bool {
        let mut phase = lock(&self.phase);
        let has_not_begun = *phase == Phase::Queued;
        if has_not_begun {
            *phase = Phase::Withdrawn;
        }
        has_not_begun
    }

    fn give_up(&self) -> bool {
        let mut state = lock(&self.shared.state);
        let mut phase = lock(&self.phase);
        match *phase {
            Phase::Queued => *phase = Phase::Withdrawn,
            Phase::Running if state.given_up < GIVEN_UP_MAX => {
                *phase = Phase::GivenUp;
                state.given_up += 1;
                state.alive -= 1;
                if !state.queue.is_empty() {
                    Shared::ensure_thread(&self.shared, &mut state);
                }
            }
            Phase::Running => return false,
            Phase::Withdrawn | Phase::Done | Phase::GivenUp => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn threads(max: usize) -> TurnThreads {
        TurnThreads::new(max, Handle::current(), Watchdog::new(Handle::current()))
    }

    #[tokio::test]
    async fn a_stuck_turn_is_given_up_and_another_thread_takes_its_place() {
        let threads = threads(1);
        let (release, stuck) = mpsc::channel::<()>();
        let (began, running) = mpsc::channel();
        let ticket = threads.queue_turn(Box::new(move || {
            began.send(()).unwrap();
            let _ = stuck.recv();
        }));
        running.recv().unwrap();
        let (done, next) = tokio::sync::oneshot::channel();
        let _second = threads.queue_turn(Box::new(move || done.send(()).unwrap()));
        assert!(ticket.give_up());
        next.await.unwrap();
        assert_eq!(lock(&threads.shared.state).given_up, 1);
        drop(release);
        threads.close().await;
    }

    /// 2.15: turns that block delay other turns only until the watchdog notices.
    #[tokio::test]
    async fn more_slow_turns_than_cores_do_not_block_other_turns() {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = threads(cores + 3);
        let (release, stuck) = mpsc::channel::<()>();
        let stuck = Arc::new(Mutex::new(stuck));
        for _ in 0..cores + 2 {
            let stuck = Arc::clone(&stuck);
            let _ticket = threads.queue_turn(Box::new(move || {
                let _ = lock(&stuck).recv();
            }));
        }
        let (done, next) = tokio::sync::oneshot::channel();
        let _last = threads.queue_turn(Box::new(move || done.send(()).unwrap()));
        next.await.unwrap();
        drop(release);
        threads.close().await;
    }

    #[tokio::test]
    async fn no_more_threads_are_woken_than_half_the_cores() {
        let threads = threads(64);
        let awake_max = threads.shared.awake_max;
        // The watchdog is not started, so it wakes no more threads.
        lock(&threads.shared.state).is_watched = true;
        let (release, stuck) = mpsc::channel::<()>();
        let stuck = Arc::new(Mutex::new(stuck));
        for _ in 0..awake_max + 10 {
            let stuck = Arc::clone(&stuck);
            let _ticket = threads.queue_turn(Box::new(move || {
                let _ = lock(&stuck).recv();
            }));
        }
        assert_eq!(lock(&threads.shared.state).alive, awake_max);
        drop(release);
        threads.close().await;
    }

    #[tokio::test]
    async fn a_panic_in_a_turn_costs_neither_the_thread_nor_the_next_turn() {
        let threads = threads(1);
        let _first = threads.queue_turn(Box::new(|| panic!("user code")));
        let (done, next) = tokio::sync::oneshot::channel();
        let _second = threads.queue_turn(Box::new(move || done.send(()).unwrap()));
        next.await.unwrap();
        assert_eq!(lock(&threads.shared.state).alive, 1);
    }

    #[tokio::test]
    async fn a_turn_taken_back_before_it_began_never_runs() {
        let threads = threads(1);
        let (release, stuck) = mpsc::channel::<()>();
        let _first = threads.queue_turn(Box::new(move || {
            let _ = stuck.recv();
        }));
        let (ran, never) = tokio::sync::oneshot::channel::<()>();
        let second = threads.queue_turn(Box::new(move || {
            let _ = ran.send(());
        }));
        assert!(second.withdraw());
        drop(release);
        assert!(never.await.is_err());
    }

    /// A turn that never began occupied no thread: the thread that drops it takes the next one.
    #[tokio::test]
    async fn a_turn_taken_back_before_it_began_costs_no_thread() {
        for take_back in [TurnHandle::withdraw, TurnHandle::give_up] {
            let threads = threads(1);
            let (release, stuck) = mpsc::channel::<()>();
            let _first = threads.queue_turn(Box::new(move || {
                let _ = stuck.recv();
            }));
            let second = threads.queue_turn(Box::new(|| {}));
            assert!(take_back(&second));
            drop(release);
            let (done, next) = tokio::sync::oneshot::channel();
            let _third = threads.queue_turn(Box::new(move || done.send(()).unwrap()));
            next.await.unwrap();
            assert_eq!(lock(&threads.shared.state).given_up, 0);
            threads.close().await;
        }
    }

    #[tokio::test]
    async fn closing_waits_for_queued_turns() {
        let threads = threads(2);
        let (done, count) = mpsc::channel();
        for _ in 0..5 {
            let done = done.clone();
            let _ticket = threads.queue_turn(Box::new(move || done.send(()).unwrap()));
        }
        threads.close().await;
        assert_eq!(count.try_iter().count(), 5);
    }

    /// 21.4: a scoped subscriber receives the log lines of a turn.
    #[tokio::test]
    async fn turns_log_to_the_subscriber_of_the_caller() {
        let subscriber = tracing_subscriber::fmt().with_writer(std::io::sink).finish();
        let dispatch = Dispatch::new(subscriber);
        let threads = threads(1);
        let (seen, inside) = tokio::sync::oneshot::channel();
        let _ticket = dispatcher::with_default(&dispatch, || {
            threads.queue_turn(Box::new(move || {
                let is_no_op = dispatcher::get_default(|current| current.is::<NoSubscriber>());
                seen.send(is_no_op).unwrap();
            }))
        });
        assert!(!inside.await.unwrap());
    }
}
