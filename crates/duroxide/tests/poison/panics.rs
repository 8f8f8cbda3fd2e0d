//! Panics in the turn path, outside user code.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use duroxide::{
    Client, Event, EventKind, PoisonMessageType, RuntimeOptions,
    providers::{ExecutionMetadata, Provider},
};

use crate::{
    fixture::{
        File, ended, failure,
        intercept::{Intercept, Intercepted},
        node,
        notes::Notes,
        output,
    },
    handlers::{MAX_ATTEMPTS, activities, options, orchestrations, poison},
};

/// Panics in every round of the instance `doomed` but the one that ends it as poison.
#[derive(Default)]
struct PanicsInRounds(AtomicU32);

#[async_trait]
impl Intercept for PanicsInRounds {
    fn commits_rounds(&self) -> bool {
        true
    }

    fn commit(&self, events: &mut [Event], _metadata: &mut ExecutionMetadata) {
        let doomed = events.iter().any(|event| event.instance_id == "doomed");
        let last = events.last().map(|event| &event.kind);
        if doomed && !matches!(last, Some(EventKind::OrchestrationFailed { .. })) {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic!("this panic belongs to the test");
        }
    }
}

/// S1.31, 21.2: a batch whose turn panics outside user code again and again costs attempts until it is poison. The only
/// slot goes on meanwhile.
#[tokio::test]
async fn a_turn_that_panics_the_dispatcher_is_poisoned() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("doomed", "One", "x").await.unwrap();
    for number in 0..5 {
        client.start_orchestration(&format!("healthy-{number}"), "One", number.to_string()).await.unwrap();
    }
    let panicking = Intercepted::new(store, PanicsInRounds::default());
    let wrapped: Arc<dyn Provider> = panicking.clone();
    let notes = Notes::new(file.folder(), "notes");
    // For one lease a commit is tried again; then the attempt is over.
    let options = RuntimeOptions { orchestrator_lock_timeout: Duration::from_secs(2), ..options() };
    let runtime = node(&wrapped, activities(&notes), orchestrations(&notes), options).await;

    for number in 0..5 {
        assert_eq!(output(ended(&client, &format!("healthy-{number}")).await), number.to_string());
    }
    let (kind, _) = poison(failure(ended(&client, "doomed").await));
    assert_eq!(kind, PoisonMessageType::Orchestration { instance: "doomed".into(), execution_id: 1 });
    // Within one attempt the commit is tried again, as after any error that may pass.
    assert!(panicking.intercept.0.load(Ordering::SeqCst) >= MAX_ATTEMPTS);
    runtime.shutdown(None).await;
}
