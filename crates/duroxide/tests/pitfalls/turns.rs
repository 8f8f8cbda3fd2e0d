//! Turns that fail without an outcome.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use duroxide::{
    Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions, runtime::registry::ActivityRegistry,
};

use crate::{
    faults::{Fault, Faults},
    fixture::{File, ended, node, output, quick_options},
};

fn options() -> RuntimeOptions {
    RuntimeOptions {
        turn_timeout: Some(Duration::from_millis(300)),
        orchestrator_lock_timeout: Duration::from_secs(1),
        execution_cache_size: 0,
        ..quick_options()
    }
}

fn echo() -> ActivityRegistry {
    ActivityRegistry::builder().register("Echo", |_ctx, input| async move { Ok(input) }).build()
}

/// Of one instance that ended: each message was delivered, each schedule has one completion, nothing is left.
async fn assert_delivered_once(client: &Client) {
    assert_eq!(output(ended(client, "i").await), "x");
    let history = client.read_execution_history("i", 1).await.unwrap();
    let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
    assert_eq!(ids, [1, 2, 3, 4], "start, schedule, completion, end: {history:?}");
    let depths = client.get_queue_depths().await.unwrap();
    assert_eq!((depths.orchestrator_queue, depths.worker_queue), (0, 0));
}

/// S4.35, 2.15: a turn that takes too long abandons its batch. None of its later results is stored; the
/// batch is delivered again, with an attempt counted.
#[tokio::test]
async fn a_turn_that_takes_too_long_gives_its_batch_back() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(Arc::clone(&store));
    let turns = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&turns);
    let slow_at_first = move |ctx: OrchestrationContext, input: String| {
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            thread::sleep(Duration::from_millis(900));
        }
        async move { ctx.schedule_activity("Echo", input).await }
    };
    let orchestrations = OrchestrationRegistry::builder().register("Slow", slow_at_first).build();
    let faults = Faults::default();
    let runtime = node(&faults.around(&store), echo(), orchestrations, options()).await;
    client.start_orchestration("i", "Slow", "x").await.unwrap();
    assert_delivered_once(&client).await;
    runtime.shutdown(None).await;
    // The first turn was run twice; the second one replayed it.
    assert_eq!(turns.load(Ordering::SeqCst), 3);
    assert_eq!(faults.reached("commit_round"), 2);
}

/// S4.35, 21.2: a turn whose path panics, while it loads, runs or commits, abandons its batch, which is delivered again.
#[tokio::test]
async fn a_turn_that_panics_gives_its_batch_back() {
    for method in ["load_execution", "commit_round", "renew_orchestration_item_lock"] {
        let file = File::new();
        let store = file.open().await;
        let client = Client::new(Arc::clone(&store));
        let calls = |ctx: OrchestrationContext, input: String| async move {
            // Longer than a renewal interval of the lock below.
            thread::sleep(Duration::from_millis(250));
            ctx.schedule_activity("Echo", input).await
        };
        let orchestrations = OrchestrationRegistry::builder().register("Calls", calls).build();
        let faults = Faults::default();
        faults.inject(move |called, nth| (called == method && nth == 1).then_some(Fault::Panic));
        let options = RuntimeOptions {
            orchestrator_lock_timeout: Duration::from_millis(400),
            turn_timeout: None,
            ..options()
        };
        let runtime = node(&faults.around(&store), echo(), orchestrations, options).await;
        client.start_orchestration("i", "Calls", "x").await.unwrap();
        assert_delivered_once(&client).await;
        assert!(faults.called(method) > 1, "{method} was called again");
        runtime.shutdown(None).await;
    }
}
