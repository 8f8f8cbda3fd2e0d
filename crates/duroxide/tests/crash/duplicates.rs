//! B10: completions that come more than once, as a store without our guarantees could deliver them.

use std::time::Duration;

use duroxide::{
    ActivityContext, AppErrorKind, Client, ErrorDetails, EventKind, OrchestrationContext,
    OrchestrationRegistry, providers::WorkItem, runtime::registry::ActivityRegistry,
};

use crate::fixture::{File, ended, node, output, quick_options, recorded, until};

/// An activity fails, a timer fires, a child returns; then it waits.
async fn survivor(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let failed = ctx.schedule_activity("Fails", "").await.unwrap_err();
    ctx.schedule_timer(Duration::from_millis(1)).await;
    let child = ctx.schedule_sub_orchestration("Child", "c").await?;
    let signal = ctx.schedule_wait("signal").await;
    Ok(format!("{failed} {child} {signal}"))
}

/// B10, S4.12, S4.21, S4.39, I05: for each schedule that is completed, every other completion is dropped: the same one,
/// the opposite one, in one batch and in batches of their own.
#[tokio::test]
async fn only_the_first_completion_counts() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    let activities = ActivityRegistry::builder()
        .register("Fails", |_ctx: ActivityContext, _input: String| async move { Err("no".to_owned()) })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Survivor", survivor)
        .register("Child", |_ctx: OrchestrationContext, input: String| async move { Ok(input) })
        .build();
    let runtime = node(&store, activities.clone(), orchestrations.clone(), quick_options()).await;
    client.start_orchestration("i", "Survivor", "").await.unwrap();
    recorded(&client, "i", |event| matches!(event.kind, EventKind::ExternalSubscribed { .. })).await;

    for duplicate in duplicates() {
        store.enqueue_for_orchestrator(duplicate, None).await.unwrap();
    }
    drained(&client).await;
    runtime.shutdown(None).await;
    // All of them in one batch, and the signal behind them.
    for duplicate in duplicates() {
        store.enqueue_for_orchestrator(duplicate, None).await.unwrap();
    }
    client.raise_event("i", "signal", "go").await.unwrap();
    let runtime = node(&store, activities, orchestrations, quick_options()).await;

    assert_eq!(output(ended(&client, "i").await), "no c go");
    let history = client.read_execution_history("i", 1).await.unwrap();
    for schedule in [2, 4, 6] {
        let completions = history.iter().filter(|event| event.source_event_id == Some(schedule));
        assert_eq!(completions.count(), 1, "schedule {schedule}: {history:#?}");
    }
    runtime.shutdown(None).await;
}

/// Further completions of the schedules 2 (activity), 4 (timer) and 6 (child).
fn duplicates() -> Vec<WorkItem> {
    let (instance, execution_id) = (String::from("i"), 1);
    let details = ErrorDetails::Application {
        kind: AppErrorKind::ActivityFailed,
        message: "again".into(),
        retryable: false,
    };
    let failed = WorkItem::ActivityFailed {
        instance: instance.clone(),
        execution_id,
        id: 2,
        details: details.clone(),
    };
    let result = String::from("again");
    vec![
        failed.clone(),
        WorkItem::ActivityCompleted {
            instance: instance.clone(),
            execution_id,
            id: 2,
            result: result.clone(),
        },
        failed,
        WorkItem::TimerFired { instance: instance.clone(), execution_id, id: 4, fire_at_ms: 1 },
        WorkItem::SubOrchCompleted {
            parent_instance: instance.clone(),
            parent_execution_id: execution_id,
            parent_id: 6,
            result,
        },
        WorkItem::SubOrchFailed {
            parent_instance: instance,
            parent_execution_id: execution_id,
            parent_id: 6,
            details,
        },
    ]
}

/// Waits until the instance has taken every message.
async fn drained(client: &Client) {
    let is_empty = async || client.get_queue_depths().await.unwrap().orchestrator_queue == 0;
    until("every message is taken", is_empty).await;
}
