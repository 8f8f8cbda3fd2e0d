//! S2 and S3: executions are pinned to the version that started them, and only nodes that can replay it get them.
//!
//! The provider side of it is in `provider_validations::capability_filtering` (S3.47).

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(clippy::indexing_slicing, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

#[path = "../fixture/mod.rs"]
mod fixture;

mod bypassed;
mod fleet;
mod generations;
mod golden;
mod logs;
mod names;
mod pins;
mod ranges;
mod stale_completion;
mod stamps;
mod sweeper;
mod undecodable;
mod upgrade;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use duroxide::{
    Event, EventKind, OrchestrationContext, OrchestrationRegistry, RuntimeOptions, SemverRange,
    providers::{DispatcherCapabilityFilter, ExecutionMetadata, Provider, WorkItem},
    runtime::registry::ActivityRegistry,
};
use semver::Version;

use crate::fixture::{
    intercept::{Intercept, Queue},
    quick_options,
};

/// Waits for the signal `go`, and returns its data.
async fn waits(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

fn waiting() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Waits", waits)
        .register("Fence", |_ctx, input| async move { Ok(input) })
        .build()
}

fn no_activities() -> ActivityRegistry {
    ActivityRegistry::default()
}

/// A node that replays `min` to `max`, both included.
fn supporting(min: &str, max: &str) -> RuntimeOptions {
    let range = SemverRange::new(Version::parse(min).unwrap(), Version::parse(max).unwrap());
    RuntimeOptions { supported_replay_versions: Some(range), ..quick_options() }
}

/// Puts a running instance of `Waits` into the store, as a node of this version would have left it: waiting for `go`,
/// which then arrives.
async fn pinned(store: &Arc<dyn Provider>, instance: &str, version: &str) {
    let pin = Version::parse(version).unwrap();
    stored(store, instance, version, ExecutionMetadata { pinned_duroxide_version: Some(pin), ..named() })
        .await;
}

fn named() -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("Waits".into()),
        orchestration_version: Some("1.0.0".into()),
        ..ExecutionMetadata::default()
    }
}

/// As [`pinned`], with the metadata given.
async fn stored(store: &Arc<dyn Provider>, instance: &str, stamp: &str, metadata: ExecutionMetadata) {
    store.enqueue_for_orchestrator(start(instance, "Waits", ""), None).await.unwrap();
    commit_first_visible(store, history(instance, stamp), vec![], metadata).await;
    let go = WorkItem::ExternalRaised { instance: instance.into(), name: "go".into(), data: "went".into() };
    store.enqueue_for_orchestrator(go, None).await.unwrap();
}

fn start(instance: &str, orchestration: &str, input: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: orchestration.into(),
        input: input.into(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

/// Commits the history of one execution for the first visible instance without a pin.
async fn commit_first_visible(
    store: &Arc<dyn Provider>,
    history: Vec<Event>,
    orchestrator_items: Vec<WorkItem>,
    metadata: ExecutionMetadata,
) {
    // A start has no pin yet, so it passes a filter that no earlier instance of the test passes.
    let nobody = SemverRange::new(Version::new(1000, 0, 0), Version::new(1000, 0, 0));
    let filter = DispatcherCapabilityFilter { supported_duroxide_versions: vec![nobody] };
    let lease = Duration::from_secs(30);
    let fetched = store.fetch_orchestration_item(lease, Duration::ZERO, Some(&filter)).await.unwrap();
    let (item, token, _) = fetched.expect("the start is visible");
    assert_eq!(item.instance, history[0].instance_id);
    let execution_id = history[0].execution_id;
    let commit = store.ack_orchestration_item(
        &token,
        execution_id,
        history,
        vec![],
        orchestrator_items,
        metadata,
        vec![],
    );
    commit.await.unwrap();
}

/// The history that a node of version `stamp` recorded of `Waits` until it waited.
fn history(instance: &str, stamp: &str) -> Vec<Event> {
    let started = EventKind::OrchestrationStarted {
        name: "Waits".into(),
        version: "1.0.0".into(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let subscribed = EventKind::ExternalSubscribed { name: "go".into() };
    let stamped = |(event_id, kind)| Event {
        duroxide_version: stamp.into(),
        ..Event::with_event_id(event_id, instance, 1, None, kind)
    };
    [(1, started), (2, subscribed)].into_iter().map(stamped).collect()
}

/// Ignores the filter, as a provider that does not know it would, and makes every abandoned item visible at once.
#[derive(Default)]
struct Bypass {
    abandons: Mutex<Vec<(Option<Duration>, bool)>>,
}

impl Bypass {
    /// Delay and whether the attempt was taken back, of every abandoned batch.
    fn abandons(&self) -> Vec<(Option<Duration>, bool)> {
        self.abandons.lock().unwrap().clone()
    }
}

impl Intercept for Bypass {
    fn filter<'a>(
        &self,
        _: Option<&'a DispatcherCapabilityFilter>,
    ) -> Option<&'a DispatcherCapabilityFilter> {
        None
    }

    fn abandon(&self, queue: Queue, delay: Option<Duration>, ignore_attempt: bool) -> Option<Duration> {
        if queue == Queue::Orchestrator {
            self.abandons.lock().unwrap().push((delay, ignore_attempt));
        }
        None
    }
}
