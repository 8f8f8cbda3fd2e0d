//! Messages that are read from queues.

use std::time::Duration;

use duroxide::{Client, OrchestrationContext, OrchestrationRegistry, runtime::registry::ActivityRegistry};

use crate::fixture::{File, WAIT_MAX, ended, failure, node, output, quick_options, recorded};

const MESSAGES: u32 = 5_000;

async fn drains(ctx: OrchestrationContext, count: u32) -> Result<u32, String> {
    ctx.schedule_wait("go").await;
    for expected in 0..count {
        let message: u32 = ctx.dequeue_event_typed("numbers").await;
        if message != expected {
            return Err(format!("expected {expected}, got {message}"));
        }
    }
    Ok(count)
}

/// B24, 2.9: 5,000 messages are read in order in one turn; reading them is no loop that wakes itself.
#[tokio::test]
async fn five_thousand_buffered_messages_are_read_in_one_turn() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    let orchestrations = OrchestrationRegistry::builder().register_typed("Drains", drains).build();
    let runtime = node(&store, ActivityRegistry::default(), orchestrations, quick_options()).await;
    client.start_orchestration_typed("i", "Drains", MESSAGES).await.unwrap();
    recorded(&client, "i", |event| event.event_id == 2).await;
    for number in 0..MESSAGES {
        client.enqueue_event_typed("i", "numbers", &number).await.unwrap();
    }
    client.raise_event("i", "go", "").await.unwrap();
    let ended = client.wait_for_orchestration("i", 4 * WAIT_MAX).await.unwrap();
    assert_eq!(output(ended), MESSAGES.to_string());
    runtime.shutdown(None).await;
}

async fn restless(_ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    std::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await
}

/// B24, 2.9: code that wakes itself for ever fails, with the operation that says why.
#[tokio::test]
async fn code_that_wakes_itself_for_ever_fails() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    let orchestrations = OrchestrationRegistry::builder().register("Restless", restless).build();
    let runtime = node(&store, ActivityRegistry::default(), orchestrations, quick_options()).await;
    client.start_orchestration("i", "Restless", "").await.unwrap();
    let details = failure(ended(&client, "i").await);
    assert_eq!(details.category(), "infrastructure");
    assert!(details.display_message().contains("quiescence_loop"), "{details:?}");
    runtime.shutdown(None).await;
}

/// Reads the second message while an older read is held, gives the older read up, and reads its message anew.
async fn gives_one_up(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if input == "carried" {
        return Ok(ctx.dequeue_event("q").await);
    }
    let held = ctx.dequeue_event("q");
    let second = ctx.dequeue_event("q").await;
    drop(held);
    if input == "continue" {
        if second != "m2" {
            return Err(second);
        }
        return ctx.continue_as_new("carried").await;
    }
    let first = ctx.dequeue_event("q").await;
    let none_left = ctx.schedule_timer(Duration::from_millis(300));
    match ctx.select2(ctx.dequeue_event("q"), none_left).await {
        duroxide::Either2::First(again) => Err(format!("{again} was read twice")),
        duroxide::Either2::Second(()) => Ok(format!("{second}, {first}")),
    }
}

/// B26, 10.1, 10.3: no message is read twice and none is lost, also when the last read is in the next execution.
#[tokio::test]
async fn a_read_that_is_given_up_gives_its_message_back() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    let orchestrations = OrchestrationRegistry::builder().register("GivesOneUp", gives_one_up).build();
    let runtime = node(&store, ActivityRegistry::default(), orchestrations, quick_options()).await;
    for (instance, input) in [("here", "stay"), ("next", "continue")] {
        client.start_orchestration(instance, "GivesOneUp", input).await.unwrap();
        recorded(&client, instance, |event| event.event_id == 3).await;
        client.enqueue_event(instance, "q", "m1").await.unwrap();
        client.enqueue_event(instance, "q", "m2").await.unwrap();
    }
    assert_eq!(output(ended(&client, "here").await), "m2, m1");
    assert_eq!(output(ended(&client, "next").await), "m1");
    runtime.shutdown(None).await;
}
