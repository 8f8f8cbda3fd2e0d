//! Slots: the permission to run user code.

use std::{sync::Arc, time::Duration};

use duroxide_provider::Provider;
use duroxide_runtime::{ActivityRegistry, Client, RuntimeOptions, UnregisteredBackoffConfig};
use duroxide_store::MemoryProvider;

use crate::scene::{Counter, brisk, callers, echo, output, start, stuck};

/// S0.36, D5: a fetch that was started while no slot was free returns no item that was attempted before. Once slots are
/// free again, such items must not wait for that fetch to end.
#[tokio::test]
async fn work_that_rested_comes_back_to_slots_that_were_busy() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("ghost", "missing", "x").await.unwrap();
    for n in 0..20 {
        client.start_orchestration(format!("one-{n}"), "one", "x").await.unwrap();
    }
    let options = RuntimeOptions {
        max_attempts: 3,
        orchestration_concurrency: 1,
        unregistered_backoff: UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(5),
            max_delay: Duration::from_millis(12),
        },
        ..brisk()
    };
    let below_long_poll = options.dispatcher_long_poll_timeout / 2;
    let runtime = start(&store, echo(&Counter::default()), callers(), options).await;
    client.wait_for_orchestration("ghost", below_long_poll).await.unwrap();
    runtime.shutdown(None).await;
}

/// 2.15: turns queued behind a turn that never returns go to another node, without being charged an attempt.
#[tokio::test]
async fn healthy_instances_do_not_wait_behind_a_stuck_turn() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (orchestrations, mut stuck) = stuck();
    let one_slot = RuntimeOptions { orchestration_concurrency: 1, max_attempts: 1, ..brisk() };
    let first = start(&store, ActivityRegistry::default(), orchestrations.clone(), one_slot.clone()).await;
    let client = Client::new(Arc::clone(&store));
    // The node learns that turns are quick here, and starts them without a slot.
    client.start_orchestration("before", "quick", "in").await.unwrap();
    output(&client, "before").await;
    client.start_orchestration("stuck", "stuck", "in").await.unwrap();
    stuck.began().await;
    for n in 0..20 {
        client.start_orchestration(&format!("healthy-{n}"), "quick", "in").await.unwrap();
    }
    let second = start(&store, ActivityRegistry::default(), orchestrations, one_slot).await;
    for n in 0..20 {
        assert_eq!(output(&client, &format!("healthy-{n}")).await, "in");
    }
    drop(stuck);
    first.shutdown(Some(20)).await;
    second.shutdown(Some(20)).await;
}
