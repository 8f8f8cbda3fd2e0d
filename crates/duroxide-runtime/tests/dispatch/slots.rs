//! Slots: the right to run user code.

use std::{sync::Arc, time::Duration};

use duroxide_provider::Provider;
use duroxide_runtime::{Client, RuntimeOptions, UnregisteredBackoffConfig};
use duroxide_store::MemoryProvider;

use crate::scene::{Counter, brisk, callers, echo, start};

/// S0.36, decisions 5: a fetch that was made while no slot was free takes nothing that was attempted before. Once
/// slots are free again it must not go on waiting like that.
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
