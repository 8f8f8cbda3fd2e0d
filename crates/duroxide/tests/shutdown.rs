//! 21.1: when `shutdown` returns, nothing of the node runs and nothing of it holds the store.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

mod fixture;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry,
    providers::Provider,
    runtime::{Runtime, registry::ActivityRegistry},
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tracing::Level;

use crate::fixture::{File, logs::Logs, node, quick_options};

/// An activity that says when it began, and then blocks until it is released.
struct Blocking {
    activities: ActivityRegistry,
    begins: UnboundedReceiver<()>,
    release: mpsc::Sender<()>,
    returned: Arc<AtomicBool>,
}

impl Blocking {
    /// `spawned` blocks a thread of tokio's pool for blocking code, which cannot be aborted; otherwise the activity's own task
    /// blocks.
    fn new(spawned: bool) -> Self {
        let (began, begins) = unbounded_channel();
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let returned = Arc::new(AtomicBool::new(false));
        let returns = Arc::clone(&returned);
        let block = move |ctx: ActivityContext, input: String| {
            let (began, released, returns) = (began.clone(), Arc::clone(&released), Arc::clone(&returns));
            let code = move || {
                began.send(()).unwrap();
                let _ = released.lock().unwrap().recv();
                returns.store(true, Ordering::SeqCst);
                drop(ctx);
            };
            async move {
                if spawned {
                    tokio::task::spawn_blocking(code).await.unwrap();
                } else {
                    code();
                }
                Ok(input)
            }
        };
        let activities = ActivityRegistry::builder().register("Block", block).build();
        Self { activities, begins, release, returned }
    }
}

async fn one(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_activity("Block", input).await
}

async fn start_blocked(store: &Arc<dyn Provider>, blocking: &mut Blocking) -> Arc<Runtime> {
    let orchestrations = OrchestrationRegistry::builder().register("One", one).build();
    let runtime = node(store, blocking.activities.clone(), orchestrations, quick_options()).await;
    Client::new(Arc::clone(store)).start_orchestration("i", "One", "").await.unwrap();
    blocking.begins.recv().await.unwrap();
    runtime
}

/// An executor of one thread that logs where this thread does: either of them may do the work of a shutdown.
fn logging_executor() -> tokio::runtime::Runtime {
    let here = tracing::dispatcher::get_default(Clone::clone);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all();
    builder.on_thread_start(move || std::mem::forget(tracing::dispatcher::set_default(&here)));
    builder.build().unwrap()
}

/// Shuts a node down on this thread, and has its activity released once the wait for it was logged `reports` times.
fn shut_down_blocked(spawned: bool, timeout_ms: u64, reports: usize) {
    const WAITS: &str = "shutdown waits for an activity";
    let file = File::new();
    let (logs, _guard) = Logs::capture();
    let executor = logging_executor();
    let store = executor.block_on(file.open());
    let mut blocking = Blocking::new(spawned);
    let runtime = executor.block_on(start_blocked(&store, &mut blocking));
    let (seen, release) = (logs.clone(), blocking.release);
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let releaser = thread::spawn(move || {
        while seen.with(WAITS).len() < reports && !is_over.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        drop(release);
    });
    futures_executor::block_on(runtime.shutdown(Some(timeout_ms)));
    let has_returned = blocking.returned.load(Ordering::SeqCst);
    over.store(true, Ordering::SeqCst);
    releaser.join().unwrap();
    assert!(has_returned, "{timeout_ms}");
    assert_eq!(Arc::strong_count(&store), 1, "{timeout_ms}");
    drop(store);
    assert_free(&file);
    let lines = logs.with(WAITS);
    assert!(lines.len() >= reports);
    for line in lines {
        assert_eq!(line.level, Level::WARN);
        assert_eq!((line.field("instance"), line.field("activity_name")), ("i", "Block"));
        assert!(line.field("running_ms").parse::<u64>().is_ok());
    }
}

/// No connection to the file is open: another one may have it to itself.
#[track_caller]
fn assert_free(file: &File) {
    let connection = file.connect();
    connection.busy_timeout(Duration::ZERO).unwrap();
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT").unwrap();
}

/// The one thread of the executor is blocked, so the call itself does the work and keeps the time.
#[test]
fn an_immediate_shutdown_waits_for_an_activity_that_blocks_its_thread_and_says_so_again_and_again() {
    shut_down_blocked(false, 0, 2);
}

#[test]
fn a_shutdown_with_a_timeout_waits_for_an_activity_that_blocks_its_thread_too() {
    shut_down_blocked(false, 1, 1);
}

/// A task that has the context of an activity belongs to the node as well.
#[test]
fn a_shutdown_waits_for_blocking_code_that_holds_the_context_of_its_activity() {
    shut_down_blocked(true, 0, 1);
    shut_down_blocked(true, 1, 1);
}

/// A context may be kept by something that never lets go of it. The wait for it has an end.
#[tokio::test]
async fn a_context_that_is_kept_for_ever_does_not_hold_up_a_shutdown_for_ever() {
    let (logs, _guard) = Logs::capture();
    let store = File::new().open().await;
    let (keep, mut kept) = unbounded_channel();
    let activities = ActivityRegistry::builder()
        .register("Block", move |ctx: ActivityContext, input: String| {
            keep.send(ctx).unwrap();
            async move { Ok(input) }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("One", one).build();
    let runtime = node(&store, activities, orchestrations, quick_options()).await;
    Client::new(Arc::clone(&store)).start_orchestration("i", "One", "").await.unwrap();
    let context = kept.recv().await.unwrap();
    runtime.shutdown(Some(0)).await;
    assert_eq!(logs.with("left behind at shutdown").len(), 1);
    drop(context);
    assert_eq!(Arc::strong_count(&store), 1);
}
