//! More messages for one instance than may wait: refused at the door.

use std::{sync::Arc, time::Duration};

use duroxide::{
    Client, ClientError, OrchestrationContext, OrchestrationRegistry,
    providers::Provider,
    runtime::{RuntimeLimits, registry::ActivityRegistry},
};
use duroxide_store::MemoryProvider;

use crate::fixture::{File, WAIT_MAX, ended, node, output, quick_options};

const LIMIT: u64 = 3;

fn bounded(store: &Arc<dyn Provider>) -> Client {
    let limits = RuntimeLimits { max_mailbox_messages: Some(LIMIT), ..RuntimeLimits::default() };
    Client::with_limits(Arc::clone(store), limits)
}

#[track_caller]
fn refused(result: Result<(), ClientError>) {
    crate::refused(result, "limit of waiting messages (3 messages)");
}

async fn waiting(client: &Client) -> usize {
    client.get_queue_depths().await.unwrap().orchestrator_queue
}

async fn sums(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let mut sum = 0;
    for _ in 0..LIMIT {
        sum += ctx.dequeue_event_typed::<u32>("numbers").await;
    }
    ctx.set_custom_status("drained");
    sum += ctx.dequeue_event_typed::<u32>("numbers").await;
    Ok(sum.to_string())
}

/// 15.3: a refused message is not stored, an accepted one is not lost, and reading messages makes room again.
async fn a_full_mailbox_takes_no_more_until_it_is_drained(store: Arc<dyn Provider>) {
    let client = bounded(&store);
    client.start_orchestration("sum", "Sums", "").await.unwrap();
    for number in 1..=3 {
        client.enqueue_event_typed("sum", "numbers", &number).await.unwrap();
    }
    refused(client.enqueue_event_typed("sum", "numbers", &100).await);
    refused(client.raise_event("sum", "news", "").await);
    assert_eq!(waiting(&client).await, 4, "the start and three messages");
    client.enqueue_event("elsewhere", "numbers", "1").await.unwrap();
    client.start_orchestration("sum", "Sums", "").await.unwrap();

    let orchestrations = OrchestrationRegistry::builder().register("Sums", sums).build();
    let runtime = node(&store, ActivityRegistry::default(), orchestrations, quick_options()).await;
    client.wait_for_status_change("sum", 0, Duration::from_millis(10), WAIT_MAX).await.unwrap();
    client.enqueue_event_typed("sum", "numbers", &10).await.unwrap();
    assert_eq!(output(ended(&client, "sum").await), "16");
    runtime.shutdown(None).await;
}

/// 15.3: an id that was not started has a mailbox too.
async fn an_unknown_instance_is_bounded_as_well(store: Arc<dyn Provider>) {
    let client = bounded(&store);
    for _ in 0..LIMIT {
        client.raise_event("nobody", "news", "").await.unwrap();
    }
    refused(client.raise_event("nobody", "news", "").await);
    client.cancel_instance("nobody", "still accepted").await.unwrap();
    client.start_orchestration("nobody", "Sums", "").await.unwrap();
    assert_eq!(waiting(&client).await, 5);

    let unbounded = RuntimeLimits { max_mailbox_messages: None, ..RuntimeLimits::default() };
    Client::with_limits(store, unbounded).raise_event("nobody", "news", "").await.unwrap();
    assert_eq!(waiting(&client).await, 6, "without a limit everything is accepted");
}

#[tokio::test]
async fn in_memory_a_full_mailbox_takes_no_more() {
    a_full_mailbox_takes_no_more_until_it_is_drained(Arc::new(MemoryProvider::new())).await;
    an_unknown_instance_is_bounded_as_well(Arc::new(MemoryProvider::new())).await;
}

#[tokio::test]
async fn on_sqlite_a_full_mailbox_takes_no_more() {
    let (drained, unknown) = (File::new(), File::new());
    a_full_mailbox_takes_no_more_until_it_is_drained(drained.open().await).await;
    an_unknown_instance_is_bounded_as_well(unknown.open().await).await;
}
