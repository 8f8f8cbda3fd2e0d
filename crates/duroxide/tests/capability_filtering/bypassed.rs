//! The runtime's own check, behind a provider that does not filter.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use duroxide::{
    Client, ConfigErrorKind, ErrorDetails, Event, EventKind, OrchestrationContext, OrchestrationRegistry,
    OrchestrationStatus, RuntimeOptions,
    providers::{DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, WorkItem},
};

use crate::{
    Bypass,
    fixture::{
        File, WAIT_MAX, ended, failure, final_snapshot,
        intercept::{Intercept, Intercepted},
        node, output, recorded, until,
    },
    no_activities, pinned, supporting, waiting, waits,
};

const SENTENCE: &str = "work item could not be processed on this node (orchestration not registered here, or execution \
                        history is unsupported)";

/// S3.T12, S3.16 to S3.18, S2.7: it is given back without replay, for one second, and the attempt counts.
#[tokio::test]
async fn runtime_abandons_incompatible_execution() {
    let file = File::new();
    let inner = file.open().await;
    pinned(&inner, "future", "99.0.0").await;
    let provider = Intercepted::new(inner, Bypass::default());
    let store: Arc<dyn Provider> = provider.clone();
    let patient = RuntimeOptions { max_attempts: 10_000, ..supporting("0.0.0", "1.0.0") };
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let counting = OrchestrationRegistry::builder()
        .register("Waits", move |ctx, input| {
            counted.fetch_add(1, Ordering::SeqCst);
            waits(ctx, input)
        })
        .build();
    let runtime = node(&store, no_activities(), counting, patient).await;

    until("it bounces", async || provider.intercept.abandons().len() >= 3).await;

    let client = Client::new(store);
    let status = client.get_orchestration_status("future").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Running { .. }), "{status:?}");
    assert_eq!(client.read_execution_history("future", 1).await.unwrap().len(), 2, "nothing was written");
    let snapshot = final_snapshot(runtime).await;
    assert_eq!(calls.load(Ordering::SeqCst), 0, "nothing was replayed");
    let mut abandons = provider.intercept.abandons();
    abandons.retain(|(delay, _)| delay.is_some()); // what shutdown released has no delay
    assert!(abandons.iter().all(|abandon| *abandon == (Some(Duration::from_secs(1)), false)), "{abandons:?}");
    assert_eq!(snapshot.incompatible_version_abandoned, abandons.len() as u64, "S3.21: once per abandon");
}

/// Ignores the filter, and notes when each attempt was fetched.
#[derive(Default)]
struct Clocked(Mutex<Vec<(u32, Instant)>>);

impl Intercept for Clocked {
    fn filter<'a>(
        &self,
        _: Option<&'a DispatcherCapabilityFilter>,
    ) -> Option<&'a DispatcherCapabilityFilter> {
        None
    }

    fn fetched(&self, _item: &OrchestrationItem, attempt: u32) {
        self.0.lock().unwrap().push((attempt, Instant::now()));
    }
}

/// S3.T15, C8: after each abandon it stays hidden for a second, then comes back, until the maximum.
#[tokio::test]
async fn runtime_abandon_uses_short_delay() {
    let file = File::new();
    let inner = file.open().await;
    pinned(&inner, "future", "99.0.0").await;
    let provider = Intercepted::new(inner, Clocked::default());
    let store: Arc<dyn Provider> = provider.clone();
    let options = RuntimeOptions { max_attempts: 2, ..supporting("0.0.0", "1.0.0") };
    let runtime = node(&store, no_activities(), waiting(), options).await;

    let details = failure(ended(&Client::new(store), "future").await);
    runtime.shutdown(None).await;

    assert_eq!(details.category(), "configuration");
    let fetches = provider.intercept.0.lock().unwrap().clone();
    let attempts: Vec<_> = fetches.iter().map(|(attempt, _)| *attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
    for pair in fetches.windows(2) {
        let hidden = pair[1].1.duration_since(pair[0].1);
        assert!(hidden >= Duration::from_millis(990), "visible again after {hidden:?}");
    }
}

/// S3.T14, S3.19, S2.8, C7, B3: three abandons, and the fourth fetch ends it.
#[tokio::test]
async fn runtime_abandon_reaches_max_attempts_and_poisons() {
    let file = File::new();
    let inner = file.open().await;
    pinned(&inner, "future", "99.0.0").await;
    let provider = Intercepted::new(inner, Bypass::default());
    let store: Arc<dyn Provider> = provider.clone();
    let runtime = node(&store, no_activities(), waiting(), supporting("0.0.0", "1.0.0")).await;
    let client = Client::new(store);

    let details = failure(ended(&client, "future").await);

    assert_eq!(provider.intercept.abandons().len(), 3);
    let ErrorDetails::Configuration { kind, resource, message: Some(message) } = &details else {
        panic!("{details:?}")
    };
    assert_eq!((kind, resource.as_str()), (&ConfigErrorKind::UnsupportedVersion, "future"));
    assert!(message.starts_with(SENTENCE), "{message}");
    assert!(message.contains("pinned at 99.0.0") && message.contains("attempt 4 (max 3)"), "{message}");
    assert!(message.contains("0.0.0") && message.contains("1.0.0"), "it names the range: {message}");
    let last = client.read_execution_history("future", 1).await.unwrap().pop().unwrap();
    assert!(last.is_terminal());
    runtime.shutdown(None).await;
}

/// S2.20: the same the other way round, a node that has dropped old versions.
#[tokio::test]
async fn unsupported_pinned_runtime_version_bounces_then_poison() {
    let file = File::new();
    let inner = file.open().await;
    pinned(&inner, "past", "0.1.0").await;
    let store: Arc<dyn Provider> = Intercepted::new(inner, Bypass::default());
    let runtime = node(&store, no_activities(), waiting(), supporting("99.0.0", "99.9.9")).await;
    let client = Client::new(store);

    let details = failure(ended(&client, "past").await);

    // S2.19: the text is stable, and names the pin, the range, the attempt and the maximum.
    let text = format!(
        "unsupported version: {SENTENCE}: execution pinned at 0.1.0, supported >=99.0.0, <=99.9.9, attempt 4 (max 3)"
    );
    assert_eq!(details.display_message(), text);
    let ErrorDetails::Configuration { kind: ConfigErrorKind::UnsupportedVersion, .. } = details else {
        panic!("{details:?}")
    };
    let history = client.read_execution_history("past", 1).await.unwrap();
    let (last, before) = history.split_last().unwrap();
    assert!(matches!(&last.kind, EventKind::OrchestrationFailed { details: stored } if *stored == details));
    assert!(!before.iter().any(Event::is_terminal), "I02: {history:?}");
    let snapshot = final_snapshot(runtime).await;
    assert_eq!((snapshot.orch_configuration_errors, snapshot.orch_poison), (1, 0));
    assert_eq!(snapshot.provider_errors, 0, "S2.15: it is no error of the provider");
}

/// S3.16, 2.14: a node whose range leaves out its own build cannot go on with executions that it started, whether it still has
/// the execution in memory or not.
#[tokio::test]
async fn executions_that_a_node_started_itself_are_checked_too() {
    for execution_cache_size in [RuntimeOptions::default().execution_cache_size, 0] {
        let file = File::new();
        let provider = Intercepted::new(file.open().await, Bypass::default());
        let store: Arc<dyn Provider> = provider.clone();
        let options = RuntimeOptions { execution_cache_size, ..supporting("1.0.0", "2.0.0") };
        let runtime = node(&store, no_activities(), waiting(), options).await;
        let client = Client::new(store);
        client.start_orchestration("own", "Waits", "").await.unwrap();
        recorded(&client, "own", |event| event.event_id == 2).await;
        client.raise_event("own", "go", "went").await.unwrap();

        let details = failure(ended(&client, "own").await);

        let pin = format!("pinned at {}, supported >=1.0.0, <=2.0.0", env!("CARGO_PKG_VERSION"));
        assert!(details.display_message().contains(&pin), "{details:?}");
        assert_eq!(final_snapshot(runtime).await.incompatible_version_abandoned, 3);
    }
}

/// S3.T13 behind a provider that does not filter.
#[tokio::test]
async fn runtime_processes_compatible_execution_normally() {
    let file = File::new();
    let inner = file.open().await;
    pinned(&inner, "present", "1.5.0").await;
    let provider = Intercepted::new(inner, Bypass::default());
    let store: Arc<dyn Provider> = provider.clone();
    let runtime = node(&store, no_activities(), waiting(), supporting("1.0.0", "2.0.0")).await;
    let client = Client::new(store);
    assert_eq!(output(ended(&client, "present").await), "went");
    assert!(provider.intercept.abandons().is_empty());
    runtime.shutdown(None).await;
}

async fn calls_by_id(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.schedule_sub_orchestration_with_id("Waits", "child", "").await
}

async fn calls_unnamed(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.schedule_sub_orchestration("Waits", "").await
}

/// B3, 6.6: the parent gets the outcome of its child, with an automatic id and with one of its own choice.
#[tokio::test]
async fn the_parent_of_an_unsupported_child_fails_with_it() {
    for (parent, child) in [("CallsById", "child"), ("CallsUnnamed", "parent::sub::2")] {
        let file = File::new();
        let inner = file.open().await;
        let orchestrations = OrchestrationRegistry::builder()
            .register("CallsById", calls_by_id)
            .register("CallsUnnamed", calls_unnamed)
            .build();
        // It has no handler for the child, and gives its start back until it stops.
        let patient = RuntimeOptions { max_attempts: 10_000, ..supporting("0.0.0", "1.0.0") };
        let first = node(&inner, no_activities(), orchestrations.clone(), patient).await;
        let client = Client::new(inner.clone());
        client.start_orchestration("parent", parent, "").await.unwrap();
        recorded(&client, "parent", |event| {
            matches!(event.kind, EventKind::SubOrchestrationScheduled { .. })
        })
        .await;
        first.shutdown(None).await;
        start_child_as_a_future_node(&inner, child).await;

        let store: Arc<dyn Provider> = Intercepted::new(inner, Bypass::default());
        let second = node(&store, no_activities(), orchestrations, supporting("0.0.0", "1.0.0")).await;
        let of_child = failure(ended(&client, child).await);
        let of_parent = failure(ended(&client, "parent").await);
        second.shutdown(None).await;

        assert_eq!(of_parent, of_child);
        assert!(of_parent.display_message().contains("pinned at 99.0.0"), "{of_parent:?}");
        let told = |event: &&Event| matches!(event.kind, EventKind::SubOrchestrationFailed { .. });
        let history = client.read_execution_history("parent", 1).await.unwrap();
        assert_eq!(history.iter().filter(told).count(), 1, "told once: {history:?}");
    }
}

/// Commits the first turn of the child as a node of version 99.0.0 would.
async fn start_child_as_a_future_node(store: &Arc<dyn Provider>, child: &str) {
    let lease = Duration::from_secs(30);
    let fetch = async {
        loop {
            let fetched = store.fetch_orchestration_item(lease, Duration::from_secs(1), None).await.unwrap();
            if let Some(fetched) = fetched {
                return fetched;
            }
        }
    };
    let (item, token, _) = tokio::time::timeout(WAIT_MAX, fetch).await.unwrap();
    assert_eq!(item.instance, child);
    let link = |event: Event| match event.kind {
        EventKind::OrchestrationStarted { name, version, input, .. } => Event {
            kind: EventKind::OrchestrationStarted {
                name,
                version,
                input,
                parent_instance: Some("parent".into()),
                parent_id: Some(2),
                parent_execution_id: Some(1),
                carry_forward_events: None,
                initial_custom_status: None,
            },
            ..event
        },
        _ => event,
    };
    let history = crate::history(child, "99.0.0").into_iter().map(link).collect();
    let metadata = ExecutionMetadata {
        parent_instance_id: Some("parent".into()),
        pinned_duroxide_version: Some(semver::Version::new(99, 0, 0)),
        ..crate::named()
    };
    store.ack_orchestration_item(&token, 1, history, vec![], vec![], metadata, vec![]).await.unwrap();
    let go = WorkItem::ExternalRaised { instance: child.into(), name: "go".into(), data: "went".into() };
    store.enqueue_for_orchestrator(go, None).await.unwrap();
}
