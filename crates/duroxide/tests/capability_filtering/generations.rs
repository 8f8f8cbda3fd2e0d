//! Rules of replay that changed: an execution keeps those of the version that started it, and one of a later version is not
//! taken for code that changed.

use std::sync::Arc;

use duroxide::{
    ActivityContext, BackoffStrategy, Client, ConfigErrorKind, ErrorDetails, Event, EventKind,
    OrchestrationContext, OrchestrationRegistry, OrchestrationStatus, RetryPolicy, RuntimeOptions,
    not_retryable,
    providers::{ExecutionMetadata, Provider, WorkItem},
    runtime::registry::ActivityRegistry,
};
use semver::Version;

use crate::{
    Bypass, commit_first_visible,
    fixture::{
        File, ended, failure, final_snapshot, intercept::Intercepted, logs::Logs, node, output, recorded,
    },
    history, named, no_activities, start, stored, supporting, waiting,
};

/// Charges a card, and waits at the end.
async fn pays(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let policy = RetryPolicy::new(2).with_backoff(BackoffStrategy::None);
    let paid = ctx.schedule_activity_with_retry("Charge", input, policy).await;
    Ok(format!("{paid:?}, {}", ctx.schedule_wait("go").await))
}

/// The history that a node of version `stamp` recorded of `Pays`, if it retried an error that is not retried today.
fn retried(instance: &str, stamp: &str) -> Vec<Event> {
    let mut started = history(instance, stamp).remove(0);
    let EventKind::OrchestrationStarted { name, .. } = &mut started.kind else { unreachable!() };
    *name = "Pays".into();
    let scheduled = || EventKind::ActivityScheduled {
        name: "Charge".into(),
        input: String::new(),
        session_id: None,
        tag: None,
    };
    let details = ErrorDetails::Application {
        kind: duroxide::AppErrorKind::ActivityFailed,
        message: not_retryable("declined"),
        retryable: false,
    };
    let event = |event_id, source, kind| Event {
        duroxide_version: stamp.into(),
        ..Event::with_event_id(event_id, instance, 1, source, kind)
    };
    vec![
        started,
        event(2, None, scheduled()),
        event(3, Some(2), EventKind::ActivityFailed { details }),
        event(4, None, scheduled()),
    ]
}

/// S2.16, S2.11, S2.13: from 0.5.0 on an error can end the retries. An execution that an older version started keeps the rule
/// of its record and finishes on the same node. The spread counts both without reading a history.
#[tokio::test]
async fn an_old_execution_keeps_its_rule_and_a_new_one_has_its_own() {
    let file = File::new();
    let store = file.open().await;
    store.enqueue_for_orchestrator(start("old", "Pays", ""), None).await.unwrap();
    let metadata = ExecutionMetadata {
        orchestration_name: Some("Pays".into()),
        pinned_duroxide_version: Some(Version::new(0, 1, 32)),
        ..named()
    };
    commit_first_visible(&store, retried("old", "0.1.32"), vec![], metadata).await;
    let done =
        WorkItem::ActivityCompleted { instance: "old".into(), execution_id: 1, id: 4, result: "paid".into() };
    store.enqueue_for_orchestrator(done, None).await.unwrap();

    let declines = |_ctx: ActivityContext, _input: String| async { Err(not_retryable("declined")) };
    let activities = ActivityRegistry::builder().register("Charge", declines).build();
    let orchestrations = OrchestrationRegistry::builder().register("Pays", pays).build();
    let runtime = node(&store, activities, orchestrations, crate::quick_options()).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("new", "Pays", "").await.unwrap();
    for instance in ["old", "new"] {
        let waits = |event: &Event| matches!(event.kind, EventKind::ExternalSubscribed { .. });
        recorded(&client, instance, waits).await;
    }

    for instance in ["old", "new"] {
        file.overwrite_event(instance, 1, "not even JSON");
    }
    let spread = client.get_running_duroxide_version_spread().await.unwrap();
    assert_eq!(spread, [("0.1.32".to_owned(), 1), (env!("CARGO_PKG_VERSION").to_owned(), 1)].into());

    for instance in ["old", "new"] {
        client.raise_event(instance, "go", "went").await.unwrap();
    }
    assert_eq!(output(ended(&client, "old").await), r#"Ok("paid"), went"#);
    assert_eq!(output(ended(&client, "new").await), r#"Err("[not retryable] declined"), went"#);
    runtime.shutdown(None).await;
}

/// An instance of `Waits` that waits for something else than the code does.
async fn with_other_rules(store: &Arc<dyn Provider>, instance: &str, version: &str) {
    let pin = Version::parse(version).unwrap();
    let metadata = ExecutionMetadata { pinned_duroxide_version: Some(pin), ..named() };
    store.enqueue_for_orchestrator(start(instance, "Waits", ""), None).await.unwrap();
    let mut recorded = history(instance, version);
    recorded[1].kind = EventKind::ExternalSubscribed { name: "by other rules".into() };
    commit_first_visible(store, recorded, vec![], metadata).await;
    let go = WorkItem::ExternalRaised { instance: instance.into(), name: "go".into(), data: String::new() };
    store.enqueue_for_orchestrator(go, None).await.unwrap();
}

/// S3.44: a range that reaches above the build lets executions of later versions in, whose events decode and may mean
/// something else. If one does not replay, it is given back, for a node that knows its rules, and not failed as changed code.
#[tokio::test]
async fn an_execution_of_a_later_version_that_does_not_replay_is_given_back() {
    let (logs, _guard) = Logs::capture();
    let file = File::new();
    let inner = file.open().await;
    with_other_rules(&inner, "later", "99.0.0").await;
    let bypassed = Intercepted::new(inner.clone(), Bypass::default());
    let store: Arc<dyn Provider> = bypassed.clone();
    let options = || RuntimeOptions { max_attempts: 2, ..supporting("0.0.0", "99.9.9") };
    let runtime = node(&store, no_activities(), waiting(), options()).await;
    let client = Client::new(inner.clone());

    assert_eq!(failure(ended(&client, "later").await).category(), "poison", "when all attempts are used");
    assert_eq!(final_snapshot(runtime).await.incompatible_version_abandoned, 2);
    assert_eq!(bypassed.intercept.abandons(), [(Some(std::time::Duration::from_secs(1)), false); 2]);
    let lines = logs.with("Execution of a later version does not replay here, abandoning");
    assert_eq!(lines.len(), 2);
    assert_eq!((lines[0].field("instance"), lines[0].field("pinned_version")), ("later", "99.0.0"));
    assert!(lines[0].field("mismatch").contains("schedule mismatch"), "{lines:?}");

    // An execution of a version that this build knows is failed, and one that replays goes on.
    with_other_rules(&inner, "known", "0.4.0").await;
    stored(
        &inner,
        "fits",
        "99.0.0",
        ExecutionMetadata { pinned_duroxide_version: Some(Version::new(99, 0, 0)), ..named() },
    )
    .await;
    let runtime = node(&store, no_activities(), waiting(), options()).await;
    let details = failure(ended(&client, "known").await);
    assert!(
        matches!(details, ErrorDetails::Configuration { kind: ConfigErrorKind::Nondeterminism, .. }),
        "{details:?}"
    );
    assert!(matches!(ended(&client, "fits").await, OrchestrationStatus::Completed { .. }));
    runtime.shutdown(None).await;
}
