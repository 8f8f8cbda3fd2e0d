//! B27: nothing falls between two executions.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

mod fixture;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use duroxide::{
    Client, Event, EventKind, InstanceFilter, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    providers::{Provider, ProviderError},
    runtime::registry::ActivityRegistry,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::fixture::{
    File,
    intercept::{Intercept, Intercepted},
    node, quick_options, recorded,
};

const CLIENTS: usize = 4;
const MESSAGES_EACH: u32 = 100;
/// A crash comes this many provider calls after the last one. A prime, so that it wanders over all calls.
const CALLS_BETWEEN_CRASHES: u64 = 61;

/// What has been read of each client.
#[derive(Serialize, Deserialize, Default)]
struct Read([u32; CLIENTS]);

#[derive(Serialize, Deserialize)]
struct Message {
    client: usize,
    number: u32,
}

/// Reads one message per execution, and fails if one is missing, repeated or out of order.
async fn reader(ctx: OrchestrationContext, mut read: Read) -> Result<String, String> {
    let message: Message = ctx.dequeue_event_typed("messages").await;
    let expected = read.0.get_mut(message.client).ok_or("no such client")?;
    if message.number != *expected {
        return Err(format!("client {}: expected {expected}, got {}", message.client, message.number));
    }
    *expected += 1;
    if read.0 != [MESSAGES_EACH; CLIENTS] {
        return ctx.continue_as_new_typed(&read).await;
    }
    let end = ctx.schedule_wait("end");
    ctx.schedule_activity("Announce", "").await?;
    end.await;
    Ok("all in order".into())
}

/// Stops the world at certain calls: before they reach the store, or after, when only the answer is lost.
struct Crashes {
    calls: AtomicU64,
    now: Notify,
    commits_rounds: bool,
}

impl Crashes {
    fn new(calls: u64, commits_rounds: bool) -> Self {
        Self { calls: AtomicU64::new(calls), now: Notify::new(), commits_rounds }
    }

    async fn count(&self) {
        if self.calls.fetch_add(1, Ordering::SeqCst) + 1 == CALLS_BETWEEN_CRASHES * 2 {
            self.now.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl Intercept for Crashes {
    fn commits_rounds(&self) -> bool {
        self.commits_rounds
    }

    async fn before(&self, _method: &'static str) -> Result<(), ProviderError> {
        self.count().await;
        Ok(())
    }

    async fn after(&self, _method: &'static str) -> Result<(), ProviderError> {
        self.count().await;
        Ok(())
    }
}

/// Runs one node after the other, each until its crash, until the instance has ended. Nothing is released by a crash.
async fn run_through_crashes(
    file: &File,
    client: &Client,
    commits_rounds: bool,
    activities: ActivityRegistry,
) -> (String, u32) {
    let orchestrations = OrchestrationRegistry::builder().register_typed("Reader", reader).build();
    let options = RuntimeOptions {
        orchestrator_lock_timeout: Duration::from_millis(300),
        max_attempts: 1_000,
        ..quick_options()
    };
    let store = file.open().await;
    let mut crashes = 0;
    loop {
        // An odd number of crashes shifts the count by one, so that both sides of a call get their turn.
        let provider = Intercepted::new(store.clone(), Crashes::new(u64::from(crashes % 2), commits_rounds));
        let shared: Arc<dyn Provider> = provider.clone();
        let runtime = node(&shared, activities.clone(), orchestrations.clone(), options.clone()).await;
        let ended = tokio::select! {
            biased;
            result = client.wait_for_orchestration_typed::<String>("reader", fixture::PATIENCE * 10) => Some(result),
            () = provider.intercept.now.notified() => None,
        };
        runtime.shutdown(Some(0)).await;
        match ended {
            Some(result) => return (result.unwrap().unwrap(), crashes),
            None => crashes += 1,
        }
    }
}

async fn send(client: Client, number_of_client: usize) {
    for number in 0..MESSAGES_EACH {
        let message = Message { client: number_of_client, number };
        client.enqueue_event_typed("reader", "messages", &message).await.unwrap();
    }
}

/// Sends all messages while somebody deletes whatever has ended, and lets the reader end when it has read them.
async fn act_from_outside(client: &Client, announced: &Notify) {
    let sending = async {
        let subscribed = |event: &Event| matches!(event.kind, EventKind::QueueSubscribed { .. });
        recorded(client, "reader", subscribed).await;
        let senders = (0..CLIENTS).map(|n| tokio::spawn(send(client.clone(), n)));
        futures::future::try_join_all(senders).await.unwrap();
        announced.notified().await;
    };
    let deleting = async {
        loop {
            let deleted = client.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
            assert_eq!(deleted.instances_deleted, 0, "a live workflow was deleted");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! { biased; () = sending => (), never = deleting => never }
    client.raise_event("reader", "end", "").await.unwrap();
}

fn announcing(announced: Arc<Notify>) -> ActivityRegistry {
    let announce = move |_ctx, _input| {
        announced.notify_one();
        async { Ok(String::new()) }
    };
    ActivityRegistry::builder().register("Announce", announce).build()
}

async fn nothing_falls_between(commits_rounds: bool) {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store);
    client.start_orchestration_typed("reader", "Reader", Read::default()).await.unwrap();

    let announced = Arc::new(Notify::new());
    let run = run_through_crashes(&file, &client, commits_rounds, announcing(announced.clone()));
    let ((result, crashes), ()) = tokio::join!(run, act_from_outside(&client, &announced));

    assert_eq!(result, "all in order");
    assert!(crashes > 0, "the test crashed nothing");
    let executions = client.list_executions("reader").await.unwrap();
    let expected = u64::try_from(CLIENTS).unwrap() * u64::from(MESSAGES_EACH);
    assert_eq!(executions, (1..=expected).collect::<Vec<_>>(), "one execution per message, without gaps");
    for execution in 1..expected {
        assert_eq!(client.get_execution_info("reader", execution).await.unwrap().status, "ContinuedAsNew");
    }
}

/// B27, 8.1, I15, I16: with whole rounds, old end and new start are one commit.
#[tokio::test]
async fn every_message_is_read_once_and_in_order_through_crashes() {
    nothing_falls_between(true).await;
}

/// B27, 8.5, 8.6: the same with a provider that knows nothing of rounds.
#[tokio::test]
async fn the_same_holds_for_a_provider_without_rounds() {
    nothing_falls_between(false).await;
}
