//! Where a pin comes from, and that it does not depend on handler versions.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use duroxide::{
    Client, Event, EventKind, OrchestrationContext, OrchestrationRegistry, SemverRange,
    current_build_version,
    providers::{DispatcherCapabilityFilter, Provider},
};
use duroxide_provider::VersionTriple;
use semver::Version;

use crate::{
    fixture::{File, ended, node, output, quick_options, recorded},
    named, no_activities, pinned, stored, supporting, waiting, waits,
};

const BUILD: &str = env!("CARGO_PKG_VERSION");

fn subscribed(event: &Event) -> bool {
    matches!(event.kind, EventKind::ExternalSubscribed { .. })
}

/// S3.T19, S3.6, S3.24, S2.5: stamp and stored triple are those of the build.
#[tokio::test]
async fn execution_metadata_includes_pinned_version_on_new_orchestration() {
    let file = File::new();
    let store = file.open().await;
    let runtime = node(&store, no_activities(), waiting(), quick_options()).await;
    let client = Client::new(store.clone());
    client.start_orchestration("i", "Waits", "").await.unwrap();
    recorded(&client, "i", subscribed).await;
    runtime.shutdown(None).await;
    assert_eq!(client.read_execution_history("i", 1).await.unwrap()[0].duroxide_version, BUILD);

    client.raise_event("i", "go", "x").await.unwrap();
    let build = current_build_version();
    let above =
        SemverRange::new(Version::new(build.major, build.minor, build.patch + 1), Version::new(99, 0, 0));
    assert!(fetches(&store, above).await.is_none(), "the store knows the pin");
    assert_eq!(fetches(&store, SemverRange::new(build.clone(), build)).await.as_deref(), Some("i"));
}

/// S3.8, S3.12: a fetch with one range as its filter.
async fn fetches(store: &Arc<dyn Provider>, range: SemverRange) -> Option<String> {
    let filter = DispatcherCapabilityFilter { supported_duroxide_versions: vec![range] };
    let lease = Duration::from_secs(5);
    let fetched = store.fetch_orchestration_item(lease, Duration::ZERO, Some(&filter)).await.unwrap();
    fetched.map(|(item, ..)| item.instance)
}

/// S3.T20: an execution that was stored before pins existed has none, and every node may take it.
#[tokio::test]
async fn existing_executions_without_pinned_version_remain_fetchable() {
    let file = File::new();
    let store = file.open().await;
    stored(&store, "old", "0.1.0", named()).await;
    let runtime = node(&store, no_activities(), waiting(), quick_options()).await;
    assert_eq!(output(ended(&Client::new(store), "old").await), "went");
    runtime.shutdown(None).await;
}

async fn calls_child(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let signal = ctx.schedule_wait("go").await;
    ctx.schedule_sub_orchestration_with_id("Child", "child", signal).await
}

/// S3.T24: the parent keeps its old pin, the child gets the build's.
#[tokio::test]
async fn sub_orchestration_gets_own_pinned_version() {
    let file = File::new();
    let store = file.open().await;
    pinned(&store, "parent", "0.1.0").await;
    let orchestrations = OrchestrationRegistry::builder()
        .register("Waits", calls_child)
        .register("Child", |_ctx, input| async move { Ok(input) })
        .build();
    let runtime = node(&store, no_activities(), orchestrations, quick_options()).await;
    let client = Client::new(store);
    assert_eq!(output(ended(&client, "parent").await), "went");
    assert_eq!(client.read_execution_history("parent", 1).await.unwrap()[0].duroxide_version, "0.1.0");
    assert_eq!(client.read_execution_history("child", 1).await.unwrap()[0].duroxide_version, BUILD);
    runtime.shutdown(None).await;
    let build = current_build_version();
    let stored: Vec<_> = file
        .snapshot()
        .instances
        .into_iter()
        .map(|instance| (instance.instance, instance.parent, instance.executions[0].pinned))
        .collect();
    let triple = |version: &Version| VersionTriple::from(version);
    assert_eq!(
        stored,
        [
            ("child".to_owned(), Some("parent".to_owned()), Some(triple(&build))),
            ("parent".to_owned(), None, Some(triple(&Version::new(0, 1, 0)))),
        ],
        "the store keeps each pin for itself"
    );
}

/// S2.13, S2.14: only running instances count, by the version of their current execution's start.
#[tokio::test]
async fn the_version_spread_counts_running_instances() {
    let file = File::new();
    let store = file.open().await;
    for (instance, version) in [("a", "2.0.0"), ("b", "2.0.0"), ("c", "3.1.4"), ("done", "1.0.0")] {
        pinned(&store, instance, version).await;
    }
    let runtime = node(&store, no_activities(), waiting(), supporting("1.0.0", "1.9.9")).await;
    let client = Client::new(store);
    ended(&client, "done").await;
    let spread = client.get_running_duroxide_version_spread().await.unwrap();
    assert_eq!(spread, BTreeMap::from([("2.0.0".to_owned(), 2), ("3.1.4".to_owned(), 1)]));
    runtime.shutdown(None).await;
}

/// S3.41, 17.6: the handler's version says nothing about the pin.
#[tokio::test]
async fn handler_version_and_pinned_version_are_independent() {
    let file = File::new();
    let store = file.open().await;
    let orchestrations = OrchestrationRegistry::builder().register_versioned("Waits", "7.1.0", waits).build();
    let runtime = node(&store, no_activities(), orchestrations, quick_options()).await;
    let client = Client::new(store);
    client.start_orchestration("i", "Waits", "").await.unwrap();
    recorded(&client, "i", subscribed).await;
    client.raise_event("i", "go", "went").await.unwrap();
    assert_eq!(output(ended(&client, "i").await), "went");
    assert_eq!(client.get_instance_info("i").await.unwrap().orchestration_version, "7.1.0");
    assert_eq!(client.read_execution_history("i", 1).await.unwrap()[0].duroxide_version, BUILD);
    runtime.shutdown(None).await;
}

/// S3.28, S3.42: a handler version that was taken away sends its stragglers into the unregistered backoff, whatever
/// their pin.
#[tokio::test]
async fn stragglers_of_a_removed_handler_version_bounce_as_unregistered() {
    let file = File::new();
    let store = file.open().await;
    pinned(&store, "straggler", "0.1.0").await; // runs handler 1.0.0
    let newer = OrchestrationRegistry::builder().register_versioned("Waits", "2.0.0", waits).build();
    let runtime = node(&store, no_activities(), newer, quick_options()).await;
    let details = crate::fixture::failure(ended(&Client::new(store), "straggler").await);
    assert_eq!(details.category(), "poison");
    let snapshot = crate::fixture::final_snapshot(runtime).await;
    assert_eq!((snapshot.unregistered_orch_backoff, snapshot.incompatible_version_abandoned), (3, 0));
}
