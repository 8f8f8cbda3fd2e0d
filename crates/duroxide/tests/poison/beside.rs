//! Poison of every kind, together with healthy work.

use duroxide::{
    Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    providers::{DeadLetterQueue, WorkItem},
    runtime::registry::ActivityRegistry,
};

use crate::{
    fixture::{File, ended, failure, node, output, quick_options},
    queues::{damage_activities, work_for},
};

async fn calls(ctx: OrchestrationContext, activity: String) -> Result<String, String> {
    ctx.schedule_activity(activity, "x").await
}

/// S1.33, S1.36, S1.37, L1: work that cannot be done does not block other work.
#[tokio::test]
async fn poisoned_messages_of_several_kinds_do_not_block() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    client.start_orchestration("no-orchestration", "NoSuchOrchestration", "").await.unwrap();
    client.start_orchestration("no-activity", "Calls", "NoSuchActivity").await.unwrap();
    client.start_orchestration("panics", "Calls", "Panics").await.unwrap();
    let stray = WorkItem::TimerFired { instance: "nobody".into(), execution_id: 1, id: 2, fire_at_ms: 0 };
    store.enqueue_for_orchestrator(stray, None).await.unwrap();
    store.enqueue_for_worker(work_for("misplaced", 7)).await.unwrap();
    let no_activity =
        WorkItem::CancelInstance { instance: "misplaced".into(), reason: "lost its way".into() };
    damage_activities(&file, "misplaced", &serde_json::to_string(&no_activity).unwrap());
    for n in 0..50 {
        client.start_orchestration(format!("healthy-{n}"), "Calls", "Echo").await.unwrap();
    }

    let activities = ActivityRegistry::builder()
        .register("Echo", |_ctx, input| async move { Ok(input) })
        .register("Panics", |_ctx, _input| async move { panic!("on purpose") })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("Calls", calls).build();
    let options = RuntimeOptions { orchestration_concurrency: 1, worker_concurrency: 1, ..quick_options() };
    let runtime = node(&store, activities, orchestrations, options).await;

    for n in 0..50 {
        assert_eq!(output(ended(&client, &format!("healthy-{n}")).await), "x");
    }
    assert_eq!(failure(ended(&client, "no-orchestration").await).category(), "poison");
    assert_eq!(failure(ended(&client, "no-activity").await).category(), "poison");
    let details = failure(ended(&client, "panics").await);
    assert!(
        details.category() == "application" && details.display_message().contains("on purpose"),
        "{details:?}"
    );
    // S1.25: an item that is no activity becomes a dead letter.
    let letters = client.list_dead_letters(None).await.unwrap();
    let of_workers: Vec<&str> = letters
        .iter()
        .filter(|letter| letter.queue == DeadLetterQueue::Worker)
        .map(|letter| letter.reason.as_str())
        .collect();
    assert_eq!(of_workers, ["unexpected work item kind CancelInstance"]);
    runtime.shutdown(None).await;
}
