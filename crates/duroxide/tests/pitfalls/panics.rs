//! Panics in a provider cost an attempt at most, never a slot.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use duroxide::{
    Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    providers::{Provider, WorkItem},
    runtime::registry::ActivityRegistry,
};
use tracing::Level;

use crate::{
    faults::{Fault, Faults},
    fixture::{File, ended, logs::Logs, node, output, quick_options, until},
};

/// The methods that a runtime calls when it runs, renews, gives back and moves to the dead letters.
const METHODS: [&str; 12] = [
    "fetch_orchestration_items",
    "load_execution",
    "commit_round",
    "renew_orchestration_item_lock",
    "abandon_orchestration_item",
    "fetch_work_items",
    "ack_work_item",
    "renew_work_item_lock",
    "abandon_work_item",
    "dead_letter_work_item",
    "renew_session_lock",
    "cleanup_orphaned_sessions",
];

/// Longer than a renewal interval of the locks below.
const LONG: Duration = Duration::from_millis(150);

async fn calls(ctx: OrchestrationContext, activity: String) -> Result<String, String> {
    thread::sleep(LONG);
    let first = ctx.schedule_activity(activity, "done").await?;
    ctx.schedule_activity_on_session("Works", first, "session").await
}

/// One slot for each queue: if a panic ended it, nothing would run any more.
fn options() -> RuntimeOptions {
    let lock = Duration::from_millis(300);
    RuntimeOptions {
        orchestration_concurrency: 1,
        worker_concurrency: 1,
        orchestrator_lock_timeout: lock,
        worker_lock_timeout: lock,
        session_lock_timeout: lock,
        session_cleanup_interval: Duration::from_millis(50),
        execution_cache_size: 0,
        max_attempts: 5,
        ..quick_options()
    }
}

fn works() -> ActivityRegistry {
    let works = |_ctx, input| async move {
        tokio::time::sleep(LONG).await;
        Ok(input)
    };
    ActivityRegistry::builder().register("Works", works).build()
}

/// Work that makes the runtime call every method.
async fn start_one_of_each(file: &File, store: &Arc<dyn Provider>, client: &Client, name: &str) {
    client.start_orchestration(&format!("healthy-{name}"), "Calls", "Works").await.unwrap();
    client.start_orchestration(&format!("unknown-{name}"), "NoSuchOrchestration", "").await.unwrap();
    client.start_orchestration(&format!("calls-nobody-{name}"), "Calls", "NoSuchActivity").await.unwrap();
    misplace(file, store, name).await;
}

/// B14, S1.25: puts an item that is no activity into the worker queue, behind the store's back.
async fn misplace(file: &File, store: &Arc<dyn Provider>, name: &str) {
    let instance = format!("misplaced-{name}");
    let activity = WorkItem::ActivityExecute {
        instance: instance.clone(),
        execution_id: 1,
        id: 2,
        name: "NobodyHasThis".into(),
        input: String::new(),
        session_id: None,
        tag: None,
    };
    store.enqueue_for_worker(activity).await.unwrap();
    let odd = WorkItem::CancelInstance { instance: instance.clone(), reason: "lost its way".into() };
    // If a worker was faster, the row has an attempt more, or is locked; it is damaged all the same.
    let sql =
        "UPDATE activity SET data = ?1 WHERE instance = (SELECT id FROM instance WHERE instance_id = ?2)";
    let damaged = file.connect().execute(sql, [&serde_json::to_string(&odd).unwrap(), &instance]);
    assert_eq!(damaged.unwrap(), 1);
}

/// B14, 21.2: each method panics once; after each panic a new instance completes, and the panic is logged as an ERROR.
#[tokio::test]
async fn a_panic_in_any_call_kills_no_slot() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(Arc::clone(&store));
    let faults = Faults::default();
    let orchestrations = OrchestrationRegistry::builder().register("Calls", calls).build();
    let (logs, _guard) = Logs::capture();
    let runtime = node(&faults.around(&store), works(), orchestrations, options()).await;
    for method in METHODS {
        let panicked = Arc::new(AtomicBool::new(false));
        let once = Arc::clone(&panicked);
        faults.inject(move |called, _| {
            (called == method && !once.swap(true, Ordering::SeqCst)).then_some(Fault::Panic)
        });
        start_one_of_each(&file, &store, &client, method).await;
        until(method, async || panicked.load(Ordering::SeqCst)).await;
        let after = format!("after-{method}");
        client.start_orchestration(&after, "Calls", "Works").await.unwrap();
        assert_eq!(output(ended(&client, &after).await), "done", "after a panic in {method}");
        assert_eq!(output(ended(&client, &format!("healthy-{method}")).await), "done", "{method}");
    }
    for method in METHODS {
        let lines = logs.with("provider panicked");
        let of_method: Vec<Level> =
            lines.iter().filter(|line| line.field("operation") == method).map(|line| line.level).collect();
        assert_eq!(of_method, [Level::ERROR], "{method}");
    }
    runtime.shutdown(Some(0)).await;
}

/// B14, S1.25, 16.10: an item that is no activity becomes a dead letter, with an ERROR; the one slot goes on.
#[tokio::test]
async fn an_item_that_is_no_activity_becomes_a_dead_letter() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(Arc::clone(&store));
    misplace(&file, &store, "item").await;
    let orchestrations = OrchestrationRegistry::builder().register("Calls", calls).build();
    let (logs, _guard) = Logs::capture();
    let runtime = node(&store, works(), orchestrations, options()).await;
    client.start_orchestration("after", "Calls", "Works").await.unwrap();
    assert_eq!(output(ended(&client, "after").await), "done");
    let letters = client.list_dead_letters(None).await.unwrap();
    let reasons: Vec<&str> = letters.iter().map(|letter| letter.reason.as_str()).collect();
    assert_eq!(reasons, ["unexpected work item kind CancelInstance"]);
    let lines = logs.with("unexpected WorkItem in Worker dispatcher");
    assert_eq!(lines.iter().map(|line| line.level).collect::<Vec<_>>(), [Level::ERROR]);
    runtime.shutdown(None).await;
}
