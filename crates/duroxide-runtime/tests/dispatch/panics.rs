//! Panics in a provider and unexpected items cost at most an attempt, never a slot.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use duroxide_provider::Provider;
use duroxide_runtime::Client;
use duroxide_store::MemoryProvider;

use crate::{
    faults::{Fault, Faults, faulty, plain_faulty},
    scene::{Counter, brisk, callers, echo, run, start},
};

/// B14: each operation panics once, on its second call; after each panic a new instance completes.
#[tokio::test]
async fn a_panic_in_any_provider_call_kills_no_slot() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (batched, batched_faults) = faulty(Arc::clone(&inner));
    panic_once_everywhere(inner, batched, &batched_faults).await;
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (plain, plain_faults) = plain_faulty(Arc::clone(&inner));
    panic_once_everywhere(inner, plain, &plain_faults).await;
}

async fn panic_once_everywhere(inner: Arc<dyn Provider>, store: Arc<dyn Provider>, faults: &Faults) {
    let panicked = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&panicked);
    faults.inject(move |operation, nth| {
        (nth >= 2 && seen.lock().unwrap().insert(operation)).then_some(Fault::Panic)
    });
    let mut options = brisk();
    options.orchestration_concurrency = 1;
    options.worker_concurrency = 1;
    options.orchestrator_lock_timeout = Duration::from_millis(200);
    options.worker_lock_timeout = Duration::from_millis(200);
    options.execution_cache_size = 0;
    let runtime = start(&store, echo(&Counter::default()), callers(), options).await;
    let client = Client::new(inner);
    for number in 0..4 {
        run(&client, &format!("i-{number}"), "three").await;
    }
    assert!(panicked.lock().unwrap().len() >= 4, "{panicked:?}");
    runtime.shutdown(None).await;
}
