//! Continue-as-new: nothing falls between two executions (B27), and the second is not read back.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(clippy::indexing_slicing, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

mod fixture;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
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
    intercept::{FullyIntercepted, Intercept, Intercepted},
    node, quick_options, recorded,
};

const CLIENTS: usize = 4;
/// 1,000 executions. Each gets all unread messages (8.3), so most of the time is spent on carrying them.
const MESSAGES_EACH: u32 = 250;
/// Turns and crashes between the starts of two executions, roughly.
const COMMITS_BETWEEN_STARTS: u64 = 4;
/// Each node lives this many steps longer than the one before it; a provider call is two steps. The number is a prime, so
/// that the crash wanders over all calls and over both sides of them.
const STEPS_MORE: u64 = 17;

/// How many messages of each client have been read.
#[derive(Default, Serialize, Deserialize)]
struct Read {
    of: [u32; CLIENTS],
}

#[derive(Serialize, Deserialize)]
struct Message {
    client: usize,
    number: u32,
}

/// Reads one message per execution, and fails if one is missing, repeated or out of order.
async fn reader(ctx: OrchestrationContext, mut read: Read) -> Result<String, String> {
    let message: Message = ctx.dequeue_event_typed("messages").await;
    let expected = read.of.get_mut(message.client).ok_or("no such client")?;
    if message.number != *expected {
        return Err(format!("client {}: expected {expected}, got {}", message.client, message.number));
    }
    *expected += 1;
    if read.of != [MESSAGES_EACH; CLIENTS] {
        return ctx.continue_as_new_typed(&read).await;
    }
    let end = ctx.schedule_wait("end");
    ctx.schedule_activity("Announce", "").await?;
    end.await;
    Ok("all in order".into())
}

/// Which methods the provider has, of those that it need not have.
#[derive(Debug, Clone, Copy)]
enum Methods {
    /// All methods of the store: batches, whole rounds, and nodes. The locks of a dead node end at once.
    All,
    /// None. The locks of a crashed node end with their leases.
    RequiredOnly,
}

impl Methods {
    /// The longest time in milliseconds between the starts of two executions, while there are messages for both.
    fn delay_max(self) -> Option<u64> {
        match self {
            Self::All => Some(1_000),
            Self::RequiredOnly => None,
        }
    }

    fn before_crash(self, store: &Arc<dyn Provider>, crash: Crash) -> Arc<dyn Provider> {
        match self {
            Self::All => FullyIntercepted::new(Arc::clone(store), crash),
            Self::RequiredOnly => Intercepted::new(Arc::clone(store), crash),
        }
    }
}

/// Stops the world at a certain step: before a call reaches the store, or after, when only the answer is lost.
struct Crash {
    steps_left: AtomicU64,
    now: Arc<Notify>,
}

impl Crash {
    async fn step(&self) -> Result<(), ProviderError> {
        if self.steps_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.now.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

#[async_trait]
impl Intercept for Crash {
    async fn before(&self, _method: &'static str) -> Result<(), ProviderError> {
        self.step().await
    }

    async fn after(&self, _method: &'static str) -> Result<(), ProviderError> {
        self.step().await
    }
}

/// Runs one node after the other, each until its crash, until the instance has ended. No call gives anything back.
async fn run_through_crashes(
    file: &File,
    client: &Client,
    methods: Methods,
    activities: ActivityRegistry,
) -> (String, u64) {
    let orchestrations = OrchestrationRegistry::builder().register_typed("Reader", reader).build();
    let options = RuntimeOptions {
        orchestrator_lock_timeout: Duration::from_millis(300),
        max_attempts: 1_000,
        ..quick_options()
    };
    let store = file.open().await;
    let mut crashes = 0;
    loop {
        let now = Arc::new(Notify::new());
        let crash = Crash { steps_left: AtomicU64::new(STEPS_MORE * (crashes + 1)), now: Arc::clone(&now) };
        let provider = methods.before_crash(&store, crash);
        let runtime = node(&provider, activities.clone(), orchestrations.clone(), options.clone()).await;
        let ended = tokio::select! {
            biased;
            result = client.wait_for_orchestration_typed::<String>("reader", fixture::WAIT_MAX * 10) => Some(result),
            () = now.notified() => None,
        };
        runtime.shutdown(Some(0)).await;
        match ended {
            Some(result) => return (result.unwrap().unwrap(), crashes),
            None => crashes += 1,
        }
    }
}

/// Sends messages. Returns how long the slowest call took: each is one commit.
async fn send(client: Client, number_of_client: usize) -> Duration {
    let mut slowest = Duration::ZERO;
    for number in 0..MESSAGES_EACH {
        let message = Message { client: number_of_client, number };
        let begin = Instant::now();
        client.enqueue_event_typed("reader", "messages", &message).await.unwrap();
        slowest = slowest.max(begin.elapsed());
    }
    slowest
}

/// Sends all messages while another task deletes ended instances, and lets the reader end when it has read them. Returns how
/// long the slowest call took.
async fn act_from_outside(client: &Client, announced: &Notify) -> Duration {
    let sending = async {
        let subscribed = |event: &Event| matches!(event.kind, EventKind::QueueSubscribed { .. });
        recorded(client, "reader", subscribed).await;
        let senders = (0..CLIENTS).map(|n| tokio::spawn(send(client.clone(), n)));
        let slowest = futures_util::future::try_join_all(senders).await.unwrap();
        announced.notified().await;
        slowest.into_iter().max().unwrap_or_default()
    };
    let deleting = async {
        loop {
            let deleted = client.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
            assert_eq!(deleted.instances_deleted, 0, "a live workflow was deleted");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let slowest = tokio::select! { biased; slowest = sending => slowest, never = deleting => never };
    client.raise_event("reader", "end", "").await.unwrap();
    slowest
}

fn announcing(announced: Arc<Notify>) -> ActivityRegistry {
    let announce = move |_ctx, _input| {
        announced.notify_one();
        async { Ok(String::new()) }
    };
    ActivityRegistry::builder().register("Announce", announce).build()
}

async fn nothing_falls_between(methods: Methods) {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store);
    client.start_orchestration_typed("reader", "Reader", Read::default()).await.unwrap();

    let announced = Arc::new(Notify::new());
    let run = run_through_crashes(&file, &client, methods, announcing(announced.clone()));
    let ((result, crashes), slowest_call) = tokio::join!(run, act_from_outside(&client, &announced));

    assert_eq!(result, "all in order");
    assert!(crashes > 0, "the test crashed nothing");
    let executions = client.list_executions("reader").await.unwrap();
    let expected = u64::try_from(CLIENTS).unwrap() * u64::from(MESSAGES_EACH);
    assert_eq!(executions, (1..=expected).collect::<Vec<_>>(), "one execution per message, without gaps");
    let mut begun = Vec::new();
    for execution in 1..=expected {
        let info = client.get_execution_info("reader", execution).await.unwrap();
        assert_eq!(info.status, if execution < expected { "ContinuedAsNew" } else { "Completed" });
        begun.push(info.started_at);
    }
    // The first one began before any message was sent.
    let delay = begun[1..].windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap();
    if let Some(delay_max) = methods.delay_max() {
        // On a machine that is busy with other things every commit takes longer; between two starts there are several.
        let commits = u64::try_from(slowest_call.as_millis()).unwrap() * COMMITS_BETWEEN_STARTS;
        assert!(
            delay <= delay_max + commits,
            "an execution began {delay} ms after the one before it; the slowest call took {slowest_call:?}"
        );
    }
}

/// B27, 8.1, I15, I16: with whole rounds, old end and new start are one commit.
#[tokio::test]
async fn every_message_is_read_once_and_in_order_through_crashes() {
    nothing_falls_between(Methods::All).await;
}

/// B27, 8.5, 8.6: the same with a provider that knows nothing of rounds.
#[tokio::test]
async fn the_same_holds_for_a_provider_without_rounds() {
    nothing_falls_between(Methods::RequiredOnly).await;
}

/// Counts executions in three ways: by the input, the key-value store and the queue.
async fn heir(ctx: OrchestrationContext, count: u32) -> Result<String, String> {
    let kept = ctx.get_kv_value("count");
    let message: u32 = ctx.dequeue_event_typed("numbers").await;
    if message != count || kept != (count > 0).then(|| count.to_string()) {
        return Err(format!("{count}: the queue says {message}, the key-value store {kept:?}"));
    }
    if count == 20 {
        return Ok("nothing was lost".into());
    }
    ctx.set_kv_value("count", (count + 1).to_string());
    ctx.continue_as_new_typed(&(count + 1)).await
}

/// Counts how often a history is read.
struct Reads(Arc<AtomicU64>);

#[async_trait]
impl Intercept for Reads {
    async fn before(&self, method: &'static str) -> Result<(), ProviderError> {
        if method == "load_execution" {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

/// Hands 21 messages down a chain of executions and returns how often the node read a history.
async fn reads_of_a_chain(options: RuntimeOptions) -> u64 {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    client.start_orchestration_typed("heirs", "Heir", 0_u32).await.unwrap();
    for number in 0..=20_u32 {
        client.enqueue_event_typed("heirs", "numbers", &number).await.unwrap();
    }
    let reads = Arc::new(AtomicU64::new(0));
    let store: Arc<dyn Provider> = FullyIntercepted::new(store, Reads(Arc::clone(&reads)));
    let orchestrations = OrchestrationRegistry::builder().register_typed("Heir", heir).build();
    let runtime = node(&store, ActivityRegistry::default(), orchestrations, options).await;
    let result = client.wait_for_orchestration_typed::<String>("heirs", fixture::WAIT_MAX).await;
    assert_eq!(result.unwrap().unwrap(), "nothing was lost");
    let counted = fixture::final_snapshot(runtime).await;
    assert_eq!((counted.orch_starts, counted.orch_continue_as_new), (21, 20), "each execution begins once");
    reads.load(Ordering::SeqCst)
}

/// 2.14, 8.1, 8.3: the node that has committed the start of an execution knows it, and gives it to the next turn as it would
/// be read. Commits are answered before the items that they made ready are claimed, so on one thread it is always there in time.
#[tokio::test]
async fn a_successor_is_not_read_back_by_the_node_that_began_it() {
    assert_eq!(reads_of_a_chain(quick_options()).await, 0);
    let cold = RuntimeOptions { execution_cache_size: 0, ..quick_options() };
    assert_eq!(reads_of_a_chain(cold).await, 20, "without a cache, every successor is read");
}
