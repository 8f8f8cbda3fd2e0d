//! Which pinned versions a node gets to see.

use std::{sync::Arc, time::Duration};

use duroxide::{
    Client, OrchestrationStatus, RuntimeOptions, SemverRange, current_build_version, providers::Provider,
};

use duroxide_provider::store::StoreReader;
use duroxide_sqlite::{SqliteEngine, SqliteOptions};

use crate::{
    fixture::{File, ended, final_snapshot, node, output, quick_options},
    no_activities, pinned, supporting, waiting,
};

/// Runs one node on instances of these pinned versions, and checks that it finishes the expected ones and touches no
/// other.
async fn check(versions: &[&str], options: RuntimeOptions, expected: &[&str]) {
    let file = File::new();
    let store: Arc<dyn Provider> = file.open().await;
    for version in versions {
        pinned(&store, version, version).await;
    }
    let runtime = node(&store, no_activities(), waiting(), options).await;
    let client = Client::new(store);
    for version in expected {
        assert_eq!(output(ended(&client, version).await), "went");
    }
    // Once this one is through, the node has had its chance at everything that was there before it.
    client.start_orchestration("fence", "Fence", "").await.unwrap();
    ended(&client, "fence").await;

    for version in versions.iter().filter(|version| !expected.contains(version)) {
        let status = client.get_orchestration_status(version).await.unwrap();
        assert!(matches!(status, OrchestrationStatus::Running { .. }), "{version}: {status:?}");
        assert_eq!(
            client.read_execution_history(version, 1).await.unwrap().len(),
            2,
            "{version} is untouched"
        );
    }
    // S3.1, S3.22: with a provider that filters, nothing is fetched and bounced.
    assert_eq!(final_snapshot(runtime).await.incompatible_version_abandoned, 0);
    let mut stored = SqliteEngine::open(&file.url(), SqliteOptions::default()).unwrap();
    for instance in stored.snapshot().unwrap().instances {
        let fetched = instance.messages.iter().any(|message| message.attempt_count > 0);
        assert!(!fetched, "{} was fetched", instance.instance);
    }
}

/// S3.T13, S2.21.
#[tokio::test]
async fn supported_pinned_runtime_version_processes_normally() {
    check(&["1.2.3"], supporting("1.0.0", "1.9.9"), &["1.2.3"]).await;
}

/// S3.T26, S3.2, S3.9.
#[tokio::test]
async fn default_supported_range_includes_current_and_older_versions() {
    let versions = ["0.0.1", "0.4.9", env!("CARGO_PKG_VERSION")];
    check(&versions, quick_options(), &versions).await;
    assert_eq!(SemverRange::default_for_current_build().max, current_build_version());
}

/// S3.T27: invisible to this node, and left as it is.
#[tokio::test]
async fn default_supported_range_excludes_future_versions() {
    check(&["99.0.0", "0.0.1"], quick_options(), &["0.0.1"]).await;
}

/// S3.T28, S3.10.
#[tokio::test]
async fn custom_supported_replay_versions_narrows_range() {
    let versions = ["0.9.0", "2.0.0", "1.5.0"];
    check(&versions, supporting("1.0.0", "1.9.999"), &["1.5.0"]).await;
}

/// S3.26, C11: both ends are included, components of any size compare as numbers.
#[tokio::test]
async fn both_ends_are_included_and_components_are_numbers() {
    let versions = ["1.10.1", "0.99.99", "1.1000.0", "1.2.0", "1.10.0"];
    check(&versions, supporting("1.2.0", "1.10.0"), &["1.2.0", "1.10.0"]).await;
}

/// S3.T12, S3.T14 with a provider that filters: it is never fetched, so it stays as it is, however often it could
/// have been tried, and runs when a node comes that can replay it.
#[tokio::test]
async fn an_incompatible_execution_waits_without_being_counted() {
    let file = File::new();
    let store: Arc<dyn Provider> = file.open().await;
    pinned(&store, "future", "99.0.0").await;
    let client = Client::new(store.clone());
    for round in 0..5 {
        let marker = format!("marker-{round}");
        pinned(&store, &marker, "0.1.0").await;
        let runtime = node(&store, no_activities(), waiting(), quick_options()).await;
        assert_eq!(output(ended(&client, &marker).await), "went");
        assert_eq!(final_snapshot(runtime).await.orch_dispatcher_items_fetched, 1);
        let status = client.get_orchestration_status("future").await.unwrap();
        assert!(matches!(status, OrchestrationStatus::Running { .. }), "{status:?}");
    }

    let fetched =
        store.fetch_orchestration_item(Duration::from_secs(30), Duration::ZERO, None).await.unwrap();
    let (item, token, attempt) = fetched.expect("it is visible and not locked");
    assert_eq!((item.instance.as_str(), attempt), ("future", 1), "nobody has fetched it before");
    store.abandon_orchestration_item(&token, None, true).await.unwrap();
    let runtime = node(&store, no_activities(), waiting(), supporting("0.0.0", "99.9.9")).await;
    assert_eq!(output(ended(&client, "future").await), "went");
    runtime.shutdown(None).await;
}

/// S2.6: `extra_replay_versions` are added to the range.
#[tokio::test]
async fn extra_ranges_are_added() {
    let SemverRange { min, max } = supporting("3.0.0", "3.9.9").supported_replay_versions.unwrap();
    let options = RuntimeOptions {
        extra_replay_versions: vec![SemverRange::new(min, max)],
        ..supporting("1.0.0", "1.9.9")
    };
    check(&["2.0.0", "1.5.0", "3.5.0"], options, &["1.5.0", "3.5.0"]).await;
}
