//! Which pinned versions a node gets to see.

use duroxide::{
    Client, OrchestrationStatus, RuntimeOptions, SemverRange, current_build_version, providers::Provider,
};
use std::sync::Arc;

use crate::{
    fixture::{File, ended, final_snapshot, node, output, quick_options},
    no_activities, pinned, supporting, waiting,
};

/// Runs one node on instances of these pinned versions and gives the versions that completed. The last version must be
/// one the node supports: when it has completed, the node has had its chance at all of them.
async fn completed(versions: &[&'static str], options: RuntimeOptions) -> Vec<&'static str> {
    let file = File::new();
    let store: Arc<dyn Provider> = file.open().await;
    for version in versions {
        pinned(&store, version, version).await;
    }
    let runtime = node(&store, no_activities(), waiting(), options).await;
    let client = Client::new(store);
    let last = versions.last().unwrap();
    assert_eq!(output(ended(&client, last).await), "went");

    let mut completed = Vec::new();
    for version in versions {
        match client.get_orchestration_status(version).await.unwrap() {
            OrchestrationStatus::Completed { .. } => completed.push(*version),
            OrchestrationStatus::Running { .. } => {
                assert_eq!(client.read_execution_history(version, 1).await.unwrap().len(), 2, "untouched");
            }
            other => panic!("{version}: {other:?}"),
        }
    }
    // S3.1, S3.22: with a provider that filters, nothing is fetched and bounced.
    assert_eq!(final_snapshot(runtime).await.incompatible_version_abandoned, 0);
    completed
}

/// S3.T13, S2.21.
#[tokio::test]
async fn supported_pinned_runtime_version_processes_normally() {
    assert_eq!(completed(&["1.2.3"], supporting("1.0.0", "1.9.9")).await, ["1.2.3"]);
}

/// S3.T26, S3.2, S3.9.
#[tokio::test]
async fn default_supported_range_includes_current_and_older_versions() {
    let versions = ["0.0.1", "0.4.9", env!("CARGO_PKG_VERSION")];
    assert_eq!(completed(&versions, quick_options()).await, versions);
    assert_eq!(SemverRange::default_for_current_build().max, current_build_version());
}

/// S3.T27: invisible to this node, and left as it is.
#[tokio::test]
async fn default_supported_range_excludes_future_versions() {
    assert_eq!(completed(&["99.0.0", "0.0.1"], quick_options()).await, ["0.0.1"]);
}

/// S3.T28, S3.10.
#[tokio::test]
async fn custom_supported_replay_versions_narrows_range() {
    let versions = ["0.9.0", "2.0.0", "1.5.0"];
    assert_eq!(completed(&versions, supporting("1.0.0", "1.9.999")).await, ["1.5.0"]);
}

/// S3.26, C11: both ends are included, components of any size compare as numbers.
#[tokio::test]
async fn both_ends_are_included_and_components_are_numbers() {
    let versions = ["1.10.1", "0.99.99", "1.1000.0", "1.2.0", "1.10.0"];
    assert_eq!(completed(&versions, supporting("1.2.0", "1.10.0")).await, ["1.2.0", "1.10.0"]);
}

/// S2.6: `extra_replay_versions` are added to the range.
#[tokio::test]
async fn extra_ranges_are_added() {
    let SemverRange { min, max } = supporting("3.0.0", "3.9.9").supported_replay_versions.unwrap();
    let options = RuntimeOptions {
        extra_replay_versions: vec![SemverRange::new(min, max)],
        ..supporting("1.0.0", "1.9.9")
    };
    assert_eq!(completed(&["2.0.0", "1.5.0", "3.5.0"], options).await, ["1.5.0", "3.5.0"]);
}
