//! Tests of the watchdog.

use std::sync::mpsc;

use super::*;
use crate::env::turn_threads::{TurnHandle, TurnThreads};

fn watchdog() -> Watchdog {
    Watchdog::new(Handle::current())
}

fn thread_runs(watchdog: &Watchdog) -> bool {
    lock(&watchdog.shared.state).thread_runs
}

#[test]
fn the_watchdog_checks_rarely_while_no_turn_is_stalled_and_often_while_one_is() {
    let quick = (0..10).fold(TURN_CHECK_INTERVAL, |interval, _| interval_after(interval, false));
    assert_eq!(quick, TURN_CHECK_INTERVAL_MAX);
    assert_eq!(interval_after(quick, true), TURN_CHECK_INTERVAL);
    assert_eq!(interval_after(TURN_CHECK_INTERVAL, true), TURN_CHECK_INTERVAL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_are_woken_only_while_user_code_runs() {
    let watchdog = watchdog();
    let guard = watchdog.watch_activity();
    assert!(guard.is_some());
    assert!(thread_runs(&watchdog));
    drop(guard);
    assert_eq!(lock(&watchdog.shared.state).activities, 0);
}

/// 21.1: no thread of a node outlives its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_thread_ends_when_the_watchdog_is_closed() {
    let watchdog = watchdog();
    let _guard = watchdog.watch_activity();
    watchdog.close().await;
    assert!(!thread_runs(&watchdog));
    let _late = watchdog.watch_activity();
    assert!(!thread_runs(&watchdog));
}

#[tokio::test]
async fn a_current_thread_runtime_is_not_woken() {
    assert!(watchdog().watch_activity().is_none());
}

/// Turns that wait until the sender is dropped, more of them than threads are awake.
fn slow_turns(threads: &TurnThreads, count: usize) -> (mpsc::Sender<()>, Vec<TurnHandle>) {
    let (release, stuck) = mpsc::channel::<()>();
    let stuck = Arc::new(Mutex::new(stuck));
    let turn = || {
        let stuck = Arc::clone(&stuck);
        threads.queue_turn(Box::new(move || {
            let _ = lock(&stuck).recv();
        }))
    };
    (release, (0..count).map(|_| turn()).collect())
}

/// 2.15: the thread may sleep because only activities run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_turns_are_noticed_although_the_thread_runs_for_activities() {
    let watchdog = watchdog();
    let _guard = watchdog.watch_activity();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = TurnThreads::new(cores + 3, Handle::current(), watchdog.clone());
    let (release, _turns) = slow_turns(&threads, cores + 2);
    let (done, last) = tokio::sync::oneshot::channel();
    let _last = threads.queue_turn(Box::new(move || done.send(()).unwrap()));
    last.await.unwrap();
    drop(release);
    threads.close().await;
    watchdog.close().await;
}

/// 21.1: queued turns are still run, and then the thread ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_watchdog_ends_after_the_last_queued_turn() {
    let watchdog = watchdog();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = TurnThreads::new(cores + 3, Handle::current(), watchdog.clone());
    let (release, _turns) = slow_turns(&threads, cores + 2);
    let (done, last) = tokio::sync::oneshot::channel();
    let _last = threads.queue_turn(Box::new(move || done.send(()).unwrap()));
    let (turns_ended, watchdog_ended) = (threads.close(), watchdog.close());
    last.await.unwrap();
    watchdog_ended.await;
    assert!(!thread_runs(&watchdog));
    drop(release);
    turns_ended.await;
}
