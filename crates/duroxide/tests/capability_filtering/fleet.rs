//! Several nodes with different ranges on one store.

use std::sync::Arc;

use duroxide::{
    ActivityContext, Client, EventKind, OrchestrationRegistry, OrchestrationStatus, RuntimeOptions,
    providers::Provider, runtime::registry::ActivityRegistry,
};

use crate::{
    fixture::{File, ended, final_snapshot, node, output},
    no_activities, pinned, supporting,
};

/// `Waits`, with the node's name in the result.
fn waiting_on(node: &'static str) -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Waits", move |ctx, _input| async move {
            Ok(format!("{} on {node}", ctx.schedule_wait("go").await))
        })
        .build()
}

/// S3.T16, S3.14, S3.31.
#[tokio::test]
async fn two_runtimes_different_version_ranges_route_correctly() {
    let file = File::new();
    let store: Arc<dyn Provider> = file.open().await;
    for n in 0..5 {
        pinned(&store, &format!("old-{n}"), "1.5.0").await;
        pinned(&store, &format!("new-{n}"), "2.5.0").await;
    }
    let a = node(&store, no_activities(), waiting_on("a"), supporting("1.0.0", "1.9.9")).await;
    let b = node(&store, no_activities(), waiting_on("b"), supporting("2.0.0", "2.9.9")).await;
    let client = Client::new(store);
    for n in 0..5 {
        assert_eq!(output(ended(&client, &format!("old-{n}")).await), "went on a");
        assert_eq!(output(ended(&client, &format!("new-{n}")).await), "went on b");
    }
    for runtime in [a, b] {
        assert_eq!(final_snapshot(runtime).await.incompatible_version_abandoned, 0);
    }
}

/// S2.22: A commits nothing, B finishes. Each node opens the file for itself.
#[tokio::test]
async fn e2e_replay_engine_version_bounce_two_nodes() {
    let file = File::new();
    let store_a = file.open().await;
    let store_b = file.open().await;
    pinned(&store_a, "i", "2.0.0").await;
    let a = node(&store_a, no_activities(), waiting_on("a"), supporting("1.0.0", "1.9.9")).await;
    let b = node(&store_b, no_activities(), waiting_on("b"), supporting("2.0.0", "2.9.9")).await;
    assert_eq!(output(ended(&Client::new(store_a), "i").await), "went on b");
    assert_eq!(final_snapshot(a).await.orch_dispatcher_items_fetched, 0);
    b.shutdown(None).await;
}

/// S3.T17, I11: both nodes may take it, one of them does, and the signal is recorded once.
#[tokio::test]
async fn overlapping_version_ranges_both_can_process() {
    let file = File::new();
    let store: Arc<dyn Provider> = file.open().await;
    for n in 0..10 {
        pinned(&store, &format!("i-{n}"), "2.5.0").await;
    }
    let a = node(&store, no_activities(), waiting_on("a"), supporting("1.0.0", "2.9.9")).await;
    let b = node(&store, no_activities(), waiting_on("b"), supporting("2.0.0", "3.0.0")).await;
    let client = Client::new(store);
    for n in 0..10 {
        let instance = format!("i-{n}");
        let result = output(ended(&client, &instance).await);
        assert!(["went on a", "went on b"].contains(&result.as_str()), "{result}");
        let history = client.read_execution_history(&instance, 1).await.unwrap();
        let signals =
            history.iter().filter(|event| matches!(event.kind, EventKind::ExternalEvent { .. })).count();
        assert_eq!((signals, history.len()), (1, 4), "{history:?}");
    }
    a.shutdown(None).await;
    b.shutdown(None).await;
}

/// S3.T18, S3.43: three run, two wait for a node that can replay them; when one comes, they run too.
#[tokio::test]
async fn mixed_cluster_compatible_and_incompatible_items() {
    let file = File::new();
    let store: Arc<dyn Provider> = file.open().await;
    let compatible = ["1.0.0", "1.1.0", "1.2.0"];
    let incompatible = ["2.0.0", "3.0.0"];
    for version in incompatible.iter().chain(&compatible) {
        pinned(&store, version, version).await;
    }
    let narrow = node(&store, no_activities(), waiting_on("narrow"), supporting("1.0.0", "1.9.9")).await;
    let client = Client::new(store.clone());
    for version in compatible {
        assert_eq!(output(ended(&client, version).await), "went on narrow");
    }
    for version in incompatible {
        let status = client.get_orchestration_status(version).await.unwrap();
        assert!(matches!(status, OrchestrationStatus::Running { .. }), "{version}: {status:?}");
    }
    let wide = node(&store, no_activities(), waiting_on("wide"), supporting("1.0.0", "3.9.9")).await;
    for version in incompatible {
        assert_eq!(output(ended(&client, version).await), "went on wide");
    }
    narrow.shutdown(None).await;
    wide.shutdown(None).await;
}

/// S3.49: versions route instances, not activities. A node runs the activities of executions it could not replay.
#[tokio::test]
async fn activities_run_on_any_node_whatever_their_execution_is_pinned_to() {
    let file = File::new();
    let store: Arc<dyn Provider> = file.open().await;
    pinned(&store, "i", "2.0.0").await;
    let orchestrations = OrchestrationRegistry::builder()
        .register("Waits", |ctx, _input| async move {
            let signal = ctx.schedule_wait("go").await;
            ctx.schedule_activity("Works", signal).await
        })
        .build();
    let activities = ActivityRegistry::builder()
        .register(
            "Works",
            |_ctx: ActivityContext, input: String| async move { Ok(format!("{input} and worked")) },
        )
        .build();
    let new = RuntimeOptions { worker_concurrency: 0, ..supporting("2.0.0", "2.9.9") };
    let new = node(&store, no_activities(), orchestrations.clone(), new).await;
    let old = node(&store, activities, orchestrations, supporting("1.0.0", "1.9.9")).await;

    assert_eq!(output(ended(&Client::new(store), "i").await), "went and worked");

    let (old, new) = (final_snapshot(old).await, final_snapshot(new).await);
    assert_eq!((old.activity_success, old.orch_dispatcher_items_fetched), (1, 0));
    assert_eq!((new.activity_success, new.orch_completions), (0, 1));
}
