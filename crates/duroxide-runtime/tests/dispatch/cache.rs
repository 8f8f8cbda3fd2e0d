//! Cached executions: used if they match the stored history, without changing any history.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use duroxide_provider::{
    Provider, ProviderError,
    testing::{FullyIntercepted, Intercept},
};
use duroxide_runtime::Client;
use duroxide_store::MemoryProvider;

use crate::{
    faults::faulty,
    scene::{Counter, brisk, callers, echo, kinds, run, start},
};

/// 2.14: a live execution is only an optimisation.
#[tokio::test]
async fn with_and_without_the_cache_histories_are_the_same() {
    let mut histories = Vec::new();
    for execution_cache_size in [0, 1, 10_000] {
        let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
        let (store, faults) = faulty(Arc::clone(&inner));
        let store: Arc<dyn Provider> = store;
        let mut options = brisk();
        options.execution_cache_size = execution_cache_size;
        let runtime = start(&store, echo(&Counter::default()), callers(), options).await;
        let client = Client::new(Arc::clone(&inner));
        run(&client, "i", "three").await;
        histories.push(kinds(&inner, "i").await);
        let loads = faults.made("load_execution");
        assert_eq!(loads, if execution_cache_size == 0 { 3 } else { 0 }, "size {execution_cache_size}");
        runtime.shutdown(None).await;
    }
    assert!(histories.windows(2).all(|pair| pair[0] == pair[1]));
}

/// 2.2, 4.6: the status shows whether an instance has ended, so a message that comes too late reads no history.
#[tokio::test]
async fn a_late_message_to_an_ended_instance_loads_no_history() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    let runtime = start(&store, echo(&Counter::default()), callers(), brisk()).await;
    let client = Client::new(Arc::clone(&inner));
    run(&client, "i", "three").await;
    let before = kinds(&inner, "i").await;
    let commits = faults.made("commit_round");
    client.raise_event("i", "late", "").await.unwrap();
    faults.until_reached("commit_round", commits + 1).await;
    runtime.shutdown(None).await;
    assert_eq!(faults.made("load_execution"), 0);
    assert_eq!(kinds(&inner, "i").await, before);
}

/// Delays the answer to every commit until the instance's next claim has had time to read the history.
#[derive(Default)]
struct SlowAnswers {
    fetches: Counter,
    commits: Counter,
    loads: Counter,
}

#[async_trait]
impl Intercept for SlowAnswers {
    async fn before(&self, method: &'static str) -> Result<(), ProviderError> {
        if method == "load_execution" {
            self.loads.add();
        }
        Ok(())
    }

    async fn after(&self, method: &'static str) -> Result<(), ProviderError> {
        match method {
            "fetch_orchestration_items" => self.fetches.add(),
            "commit_round" => {
                self.commits.add();
                let next_claim = async {
                    self.fetches.until(self.commits.get() + 1).await;
                    self.loads.until(1).await;
                };
                let _nobody_reads = tokio::time::timeout(Duration::from_millis(50), next_claim).await;
            }
            _ => {}
        }
        Ok(())
    }
}

/// B21: a claim that arrives before the answer to the previous commit waits for that answer, and reads no history.
#[tokio::test]
async fn a_claim_that_overtakes_an_answer_goes_on_with_the_live_execution() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let slow = FullyIntercepted::new(Arc::clone(&inner), SlowAnswers::default());
    let store: Arc<dyn Provider> = Arc::clone(&slow) as Arc<dyn Provider>;
    let runtime = start(&store, echo(&Counter::default()), callers(), brisk()).await;
    run(&Client::new(inner), "i", "three").await;
    slow.intercept.commits.until(4).await;
    assert_eq!(slow.intercept.loads.get(), 0);
    runtime.shutdown(None).await;
}
