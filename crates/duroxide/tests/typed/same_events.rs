//! Typed calls record the same events as calls by name, with the JSON of the value as the input.

use std::time::Duration;

use duroxide::{BackoffStrategy, EventKind, Key, OrchestrationRegistry, prelude::*};

use super::store;
use crate::fixture::{WAIT_MAX, until};

#[duroxide::activity]
async fn add(_ctx: ActivityContext, a: u32, b: u32) -> Result<u32, String> {
    if b == 0 { Err("nothing to add".to_owned()) } else { Ok(a + b) }
}

#[duroxide::activity(name = "Greet")]
async fn greet(_ctx: ActivityContext, name: String) -> Result<String, String> {
    Ok(format!("hello {name}"))
}

#[duroxide::orchestration]
async fn ship(_ctx: OrchestrationContext, parcel: String) -> Result<u32, String> {
    Ok(u32::try_from(parcel.len()).unwrap())
}

#[duroxide::orchestration]
async fn newsletter(_ctx: OrchestrationContext) -> Result<(), String> {
    Ok(())
}

#[duroxide::orchestration(version = "2.0.0")]
async fn versioned(_ctx: OrchestrationContext) -> Result<(), String> {
    Ok(())
}

const STOCK: Key<Vec<u8>> = Key::new("stock");

fn policy() -> RetryPolicy {
    RetryPolicy::new(2).with_backoff(BackoffStrategy::Fixed { delay: Duration::from_millis(1) })
}

#[duroxide::orchestration(name = "Typed")]
async fn typed(ctx: OrchestrationContext, round: u32) -> Result<String, String> {
    ctx.activity::<add>((1, 2)).await?;
    ctx.activity::<greet>("Ada".to_owned()).session("s").await?;
    let later = ctx.activity::<add>((3, 4)).start();
    let patient = ctx.activity::<add>((3, 0)).retry(policy()).timeout(Duration::from_secs(60)).await;
    assert_eq!(patient.unwrap_err(), CallError::Failed("nothing to add".to_owned()));
    later.await?;
    ctx.child::<ship>("box".to_owned()).await?;
    ctx.child::<ship>("box".to_owned()).id(format!("ship-{round}-typed")).await?;
    ctx.child::<versioned>(()).await?;
    ctx.detach::<newsletter>("news-typed", ());
    let hurry: bool = ctx.event("hurry").await?;
    let command: String = ctx.queue("commands").await?;
    ctx.set_status(&(hurry, command));
    ctx.set_value(STOCK, &vec![1, 2]);
    ctx.clear_value(STOCK);
    if round == 0 {
        return ctx.continue_as::<typed>(round + 1).await;
    }
    Ok("done".to_owned())
}

async fn by_name(ctx: OrchestrationContext, round: String) -> Result<String, String> {
    ctx.schedule_activity("add", "[1,2]").await?;
    ctx.schedule_activity_on_session("Greet", "\"Ada\"", "s").await?;
    let later = ctx.schedule_activity("add", "[3,4]");
    let patient = policy().with_timeout(Duration::from_secs(60));
    ctx.schedule_activity_with_retry("add", "[3,0]", patient).await.unwrap_err();
    later.await?;
    ctx.schedule_sub_orchestration("ship", "\"box\"").await?;
    ctx.schedule_sub_orchestration_with_id("ship", format!("ship-{round}-by-name"), "\"box\"").await?;
    ctx.schedule_sub_orchestration_versioned("versioned", Some("2.0.0".to_owned()), "null").await?;
    ctx.schedule_orchestration("newsletter", "news-by-name", "null");
    let hurry = ctx.schedule_wait("hurry").await;
    let command = ctx.dequeue_event("commands").await;
    ctx.set_custom_status(format!("[{hurry},{command}]"));
    ctx.set_kv_value("stock", "[1,2]");
    ctx.clear_kv_value("stock");
    if round == "0" {
        return ctx.continue_as_new("1").await;
    }
    Ok("\"done\"".to_owned())
}

/// The recorded calls, without the parts that differ from run to run. Completions and messages arrive in any order.
async fn schedules(client: &Client, id: &str, execution: u64) -> Vec<serde_json::Value> {
    let history = client.read_execution_history(id, execution).await.unwrap();
    let asked_for = history.iter().filter(|event| {
        !matches!(
            event.kind,
            EventKind::OrchestrationStarted { .. }
                | EventKind::ActivityCompleted { .. }
                | EventKind::ActivityFailed { .. }
                | EventKind::SubOrchestrationCompleted { .. }
                | EventKind::TimerFired { .. }
                | EventKind::ExternalEvent { .. }
                | EventKind::QueueEventDelivered { .. }
        )
    });
    let values = asked_for.map(|event| {
        let text = serde_json::to_string(&event.kind).unwrap();
        let mut value = serde_json::from_str(&text.replace("by-name", "X").replace("-typed", "-X")).unwrap();
        without_times(&mut value);
        value
    });
    values.collect()
}

async fn is_waiting(client: &Client, id: &str, execution: u64) -> bool {
    let history = client.read_execution_history(id, execution).await.unwrap_or_default();
    history.iter().any(|event| matches!(event.kind, EventKind::ExternalSubscribed { .. }))
}

fn without_times(value: &mut serde_json::Value) {
    let Some(fields) = value.as_object_mut() else { return };
    for (name, field) in fields {
        if name.ends_with("_ms") {
            *field = 0.into();
        } else {
            without_times(field);
        }
    }
}

#[tokio::test]
async fn typed_calls_record_the_events_of_calls_by_name() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store)
        .activity::<add>()
        .activity::<greet>()
        .orchestration::<ship>()
        .orchestration::<newsletter>()
        .orchestration::<versioned>()
        .orchestration::<typed>()
        .orchestrations(OrchestrationRegistry::builder().register("ByName", by_name).build())
        .build()
        .await
        .unwrap();

    let handle = client.start::<typed>("typed", 0).await.unwrap();
    client.start_orchestration("by-name", "ByName", "0").await.unwrap();
    for id in ["typed", "by-name"] {
        for execution in [1, 2] {
            // An event without an open wait is lost.
            until("it waits", async || is_waiting(&client, id, execution).await).await;
            client.raise_event(id, "hurry", "true").await.unwrap();
            client.enqueue_event(id, "commands", "\"go\"").await.unwrap();
        }
        client.wait_for_orchestration(id, WAIT_MAX).await.unwrap();
    }
    assert_eq!(handle.result().await.unwrap(), Ok("done".to_owned()));
    for execution in [1, 2] {
        let typed = schedules(&client, "typed", execution).await;
        let by_name = schedules(&client, "by-name", execution).await;
        assert_eq!(typed, by_name, "execution {execution}");
        assert_eq!(typed.len(), 18, "{typed:#?}");
    }
    runtime.shutdown(None).await;
}
