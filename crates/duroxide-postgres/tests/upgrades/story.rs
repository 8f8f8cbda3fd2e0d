//! The instances in the files of earlier schemas: how they are left, and how they go on.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use duroxide_core::{Event, EventKind, OrchestrationContext};
use duroxide_provider::{Provider, TagFilter};
use duroxide_runtime::{
    ActivityRegistry, Client, OrchestrationRegistry, OrchestrationStatus, RuntimeOptions,
};

pub(crate) const HOUR: Duration = Duration::from_secs(60 * 60);
/// The leases in the files, and the time that messages wait for an instance.
pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether the turn of `turn-held` does not end.
pub(crate) static HOLDS_TURN: AtomicBool = AtomicBool::new(false);

/// The options of the node that leaves the instances. It runs neither the handlers that it lacks nor tagged activities.
pub(crate) fn options_before() -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: 4,
        worker_concurrency: 4,
        orchestrator_lock_timeout: DAY,
        worker_lock_timeout: DAY,
        session_lock_timeout: DAY,
        session_idle_timeout: DAY * 2,
        handler_capability_filter: true,
        ..RuntimeOptions::default()
    }
}

/// The options of the node after the upgrade.
pub(crate) fn options_after() -> RuntimeOptions {
    RuntimeOptions { worker_tag_filter: TagFilter::Any, ..RuntimeOptions::default() }
}

/// The orchestrations of both nodes.
pub(crate) fn orchestrations_before() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Activity", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity(name, "tea").await
        })
        .register("Tagged", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity("Echo", "tea").with_tag("gpu").await
        })
        .register("InSession", |ctx: OrchestrationContext, _: String| async move {
            let one = ctx.schedule_activity_on_session("Hang", "tea", "kettle").await?;
            let two = ctx.schedule_activity_on_session("Echo", "cup", "kettle").await?;
            Ok(format!("{one} {two}"))
        })
        .register("Event", event)
        .register("Queue", |ctx: OrchestrationContext, _: String| async move {
            let one = ctx.dequeue_event("orders").await;
            let two = ctx.dequeue_event("orders").await;
            Ok(format!("{one} {two}"))
        })
        .register("Timer", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_timer(HOUR).await;
            Ok("rang".to_owned())
        })
        .register("Turn", |ctx: OrchestrationContext, _: String| async move {
            let first = ctx.schedule_wait("first").await;
            while HOLDS_TURN.load(Ordering::Relaxed) {
                std::thread::park();
            }
            let second = ctx.schedule_wait("second").await;
            Ok(format!("{first} {second}"))
        })
        .register("Parent", |ctx: OrchestrationContext, child: String| async move {
            ctx.schedule_sub_orchestration(child, "").await
        })
        .register("Values", values)
        .register("Fails", |_: OrchestrationContext, _: String| async move { Err("spilled".to_owned()) })
        .build()
}

async fn event(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

async fn values(ctx: OrchestrationContext, execution: String) -> Result<String, String> {
    if execution == "1" {
        for key in ["kept", "cleared", "changed"] {
            ctx.set_kv_value(key, "one");
        }
        return ctx.continue_as_new("2").await;
    }
    ctx.set_kv_value("changed", "two");
    ctx.clear_kv_value("cleared");
    ctx.set_custom_status("filling");
    let go = ctx.schedule_wait("go").await;
    let values = ["kept", "cleared", "changed"].map(|key| ctx.get_kv_value(key).unwrap_or_default());
    Ok(format!("{go}: {}", values.join(",")))
}

/// With the handlers that the node before the upgrade lacked.
pub(crate) fn orchestrations_after() -> OrchestrationRegistry {
    OrchestrationRegistry::builder_from(&orchestrations_before())
        .register_versioned("Event", "2.0.0", event)
        .register("Late", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity("Echo", "late").await
        })
        .build()
}

pub(crate) fn activities_before() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Echo", |_ctx, input: String| async move { Ok(input) })
        .register("Hang", |_ctx, _: String| std::future::pending::<Result<String, String>>())
        .build()
}

pub(crate) fn activities_after() -> ActivityRegistry {
    let echo = |_ctx, input: String| async move { Ok(input) };
    ActivityRegistry::builder()
        .register("Echo", echo)
        .register("Hang", echo)
        .register("Unknown", echo)
        .build()
}

/// The instances that are started, with their orchestration and input.
const STARTS: [(&str, &str, &str); 15] = [
    ("activity-held", "Activity", "Hang"),
    ("activity-queued", "Activity", "Unknown"),
    ("activity-tagged", "Tagged", ""),
    ("activity-in-session", "InSession", ""),
    ("event", "Event", ""),
    ("queue", "Queue", ""),
    ("timer", "Timer", ""),
    ("turn-held", "Turn", ""),
    ("parent", "Parent", "Event"),
    ("parent-of-queued", "Parent", "Late"),
    ("values", "Values", "1"),
    ("done", "Activity", "Echo"),
    ("failed", "Fails", ""),
    ("queued", "Late", ""),
    ("queued-and-cancelled", "Late", ""),
];
/// Instances with the number of events after which they wait.
const WAITING: [(&str, usize); 12] = [
    ("activity-held", 2),
    ("activity-queued", 2),
    ("activity-tagged", 2),
    ("activity-in-session", 2),
    ("event", 2),
    ("queue", 4),
    ("timer", 2),
    ("turn-held", 2),
    ("parent", 2),
    ("parent::sub::2", 2),
    ("parent-of-queued", 2),
    ("values", 5),
];

/// Starts the instances on a node that runs, and waits until each waits for what it is to wait for.
pub(crate) async fn leave(store: &dyn Provider, client: &Client, is_held: impl AsyncFn() -> bool) {
    for (id, name, input) in STARTS {
        client.start_orchestration(id, name, input).await.unwrap();
    }
    client.start_orchestration_versioned("queued-version", "Event", "2.0.0", "").await.unwrap();
    client.cancel_instance("queued-and-cancelled", "no longer needed").await.unwrap();
    client.enqueue_event("queue", "orders", "tea").await.unwrap();
    // Nobody has started these two.
    client.raise_event("unborn", "go", "early").await.unwrap();
    client.enqueue_event("nobody", "orders", "lost").await.unwrap();
    while client.list_dead_letters(None).await.unwrap().len() != 1 {
        tokio::task::yield_now().await;
    }
    for id in ["done", "failed"] {
        client.wait_for_orchestration(id, HOUR).await.unwrap();
    }
    for (id, events) in WAITING {
        while store.read(id).await.unwrap().len() < events {
            tokio::task::yield_now().await;
        }
    }
    client.raise_event("turn-held", "first", "one").await.unwrap();
    while !is_held().await {
        tokio::task::yield_now().await;
    }
    // The lock of the turn does not hold this one. It is lost in any case: the orchestration does not wait for it yet.
    client.raise_event("turn-held", "second", "too early").await.unwrap();
}

/// The output of each instance in the end.
const OUTPUTS: [(&str, &str); 20] = [
    ("activity-held", "tea"),
    ("activity-queued", "tea"),
    ("activity-tagged", "tea"),
    ("activity-in-session", "tea cup"),
    ("event", "after"),
    ("queue", "tea milk"),
    ("timer", "rang"),
    ("turn-held", "one after"),
    ("parent", "after"),
    ("parent::sub::2", "after"),
    ("parent-of-queued", "late"),
    ("parent-of-queued::sub::2", "late"),
    ("values", "after: one,,two"),
    ("done", "tea"),
    ("failed", "spilled"),
    ("queued", "late"),
    ("queued-and-cancelled", "no longer needed"),
    ("queued-version", "after"),
    ("unborn", "after"),
    ("nobody", "lost milk"),
];

/// Sends what the instances wait for, and waits for the end of each.
pub(crate) async fn finish(store: &dyn Provider, client: &Client) {
    for id in ["event", "parent::sub::2", "values", "queued-version"] {
        raise(store, client, id, "go").await;
    }
    raise(store, client, "turn-held", "second").await;
    client.start_orchestration_versioned("unborn", "Event", "1.0.0", "").await.unwrap();
    raise(store, client, "unborn", "go").await;
    assert!(has_received(store, "unborn", "early").await);
    let letters = client.list_dead_letters(None).await.unwrap();
    assert_eq!(letters.len(), 1, "{letters:?}");
    client.start_orchestration("nobody", "Queue", "").await.unwrap();
    client.retry_dead_letter(&letters[0].id).await.unwrap();
    // The retried message is the first one of the queue.
    while !has_received(store, "nobody", "lost").await {
        tokio::task::yield_now().await;
    }
    for id in ["queue", "nobody"] {
        client.enqueue_event(id, "orders", "milk").await.unwrap();
    }
    for (id, expected) in OUTPUTS {
        assert_output(client, id, expected).await;
    }
}

/// Raises an event once the instance waits for it: it would be lost before.
pub(crate) async fn raise(store: &dyn Provider, client: &Client, id: &str, event: &str) {
    let waits = |row: &Event| matches!(&row.kind, EventKind::ExternalSubscribed { name } if name == event);
    while !store.read(id).await.unwrap().iter().any(waits) {
        tokio::task::yield_now().await;
    }
    client.raise_event(id, event, "after").await.unwrap();
}

/// Whether an event or message with this data is in the history of an instance.
pub(crate) async fn has_received(store: &dyn Provider, id: &str, expected: &str) -> bool {
    let is_it = |row: &Event| match &row.kind {
        EventKind::ExternalEvent { data, .. } | EventKind::QueueEventDelivered { data, .. } => {
            data == expected
        }
        _ => false,
    };
    store.read(id).await.unwrap().iter().any(is_it)
}

pub(crate) async fn assert_output(client: &Client, id: &str, expected: &str) {
    match client.wait_for_orchestration(id, Duration::from_secs(60)).await {
        Ok(OrchestrationStatus::Completed { output, .. }) => assert_eq!(output, expected, "{id}"),
        Ok(OrchestrationStatus::Failed { details, .. }) => {
            let text = details.display_message();
            assert!(
                matches!(id, "failed" | "queued-and-cancelled") && text.contains(expected),
                "{id}: {text}"
            );
        }
        other => panic!("{id}: {other:?}"),
    }
}
