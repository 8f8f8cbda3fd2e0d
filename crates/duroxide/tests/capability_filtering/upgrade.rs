//! A fleet of three nodes goes from 1.5.0 to 2.0.0, node by node, while orders are open.

use std::{collections::BTreeMap, sync::Arc};

use duroxide::{
    Client, Event, EventKind, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    providers::{ExecutionMetadata, Provider},
    runtime::Runtime,
};
use semver::Version;

use crate::{
    fixture::{
        File, ended, final_snapshot,
        intercept::{Intercept, Intercepted},
        node, output, until,
    },
    no_activities, supporting,
};

/// Makes a node one of another build: its commits are stamped and pinned with that version.
struct Build {
    version: Version,
    commits_rounds: bool,
}

impl Intercept for Build {
    fn commits_rounds(&self) -> bool {
        self.commits_rounds
    }

    fn commit(&self, events: &mut [Event], metadata: &mut ExecutionMetadata) {
        for event in events {
            event.duroxide_version = self.version.to_string();
        }
        if let Some(pin) = &mut metadata.pinned_duroxide_version {
            *pin = self.version.clone();
        }
    }
}

/// Reads the queue `steps` until a message says to finish; returns the handler version that ran.
async fn order(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    loop {
        match ctx.dequeue_event("steps").await.as_str() {
            "note" => {}
            "again" => return ctx.continue_as_new(input).await,
            _ => return Ok(ctx.orchestration_version()),
        }
    }
}

struct Fleet {
    store: Arc<dyn Provider>,
    client: Client,
    commits_rounds: bool,
}

impl Fleet {
    /// A node of this build, with its default range. Nodes of 2.0.0 bring handler 2.0.0 along.
    async fn node(&self, build: &str) -> Arc<Runtime> {
        let version = Version::parse(build).unwrap();
        let mut orchestrations = OrchestrationRegistry::builder().register_versioned("Order", "1.0.0", order);
        if version.major == 2 {
            orchestrations = orchestrations.register_versioned("Order", "2.0.0", order);
        }
        let intercept = Build { version, commits_rounds: self.commits_rounds };
        let store: Arc<dyn Provider> = Intercepted::new(self.store.clone(), intercept);
        let options = RuntimeOptions { max_attempts: 10_000, ..supporting("0.0.0", build) };
        node(&store, no_activities(), orchestrations.build(), options).await
    }

    async fn send(&self, order: &str, step: &str) {
        self.client.enqueue_event(order, "steps", step).await.unwrap();
    }

    /// Waits until this execution of the order has taken so many steps and waits for the next.
    async fn rests(&self, order: &str, execution_id: u64, steps: usize) {
        let waits = |event: &&Event| matches!(event.kind, EventKind::QueueSubscribed { .. });
        until(&format!("{order} rests in execution {execution_id} after {steps} steps"), async || {
            let history = self.store.read_with_execution(order, execution_id).await.unwrap();
            history.iter().filter(waits).count() == steps + 1
        })
        .await;
    }

    async fn pin(&self, order: &str, execution_id: u64) -> String {
        self.store.read_with_execution(order, execution_id).await.unwrap()[0].duroxide_version.clone()
    }

    async fn spread(&self) -> BTreeMap<String, u64> {
        self.client.get_running_duroxide_version_spread().await.unwrap()
    }
}

fn orders() -> impl Iterator<Item = String> {
    (0..6).map(|n| format!("order-{n}"))
}

/// S3.31, S3.32, S3.41, S3.49, S2.12, S2.14, S3.7.
async fn upgrade_three_nodes(commits_rounds: bool) {
    let file = File::new();
    let store = file.open().await;
    let fleet = Fleet { client: Client::new(store.clone()), store, commits_rounds };
    let mut retired = Vec::new();

    let (a, b, c) = (fleet.node("1.5.0").await, fleet.node("1.5.0").await, fleet.node("1.5.0").await);
    all_of_the_old_build(&fleet).await;

    retired.push(final_snapshot(a).await);
    let a = fleet.node("2.0.0").await;
    one_of_the_new_build(&fleet).await;

    // Without A the new order waits, unchanged. The idle one goes on when it gets an event later.
    retired.push(final_snapshot(a).await);
    fleet.send("new", "note").await;
    fleet.send("idle", "note").await;
    fleet.rests("idle", 1, 1).await;
    fleet.rests("new", 1, 5).await;

    // B is of 2.0.0 now and takes it.
    retired.push(final_snapshot(b).await);
    let b = fleet.node("2.0.0").await;
    fleet.rests("new", 1, 6).await;

    retired.push(final_snapshot(c).await);
    let (a, c) = (fleet.node("2.0.0").await, fleet.node("2.0.0").await);
    all_of_the_new_build(&fleet).await;

    for runtime in [a, b, c] {
        retired.push(final_snapshot(runtime).await);
    }
    let bounced: u64 = retired.iter().map(|node| node.incompatible_version_abandoned).sum();
    assert_eq!(bounced, 0, "S3.1: nothing is fetched and bounced for its version");
}

/// Starts and continue-as-new are pinned to the old build.
async fn all_of_the_old_build(fleet: &Fleet) {
    for order in orders().chain(["idle".to_owned()]) {
        fleet.client.start_orchestration(&order, "Order", "").await.unwrap();
        fleet.rests(&order, 1, 0).await;
    }
    for order in orders() {
        fleet.send(&order, "again").await;
        fleet.rests(&order, 2, 0).await;
        assert_eq!(fleet.pin(&order, 2).await, "1.5.0");
    }
    assert_eq!(fleet.spread().await, BTreeMap::from([("1.5.0".to_owned(), 7)]));
}

/// Every node may run orders of the old build. Orders that need the new handler start on the new node, and stay there.
async fn one_of_the_new_build(fleet: &Fleet) {
    for order in orders() {
        fleet.send(&order, "again").await;
    }
    fleet.client.start_orchestration_versioned("new", "Order", "2.0.0", "").await.unwrap();
    fleet.rests("new", 1, 0).await;
    assert_eq!(fleet.pin("new", 1).await, "2.0.0");
    for step in 1..=5 {
        fleet.send("new", "note").await;
        fleet.rests("new", 1, step).await;
    }
    for order in orders() {
        fleet.rests(&order, 3, 0).await;
    }
}

/// As orders continue, the fleet converges. The handler's version does not matter for the pin.
async fn all_of_the_new_build(fleet: &Fleet) {
    fleet.client.start_orchestration_versioned("classic", "Order", "1.0.0", "").await.unwrap();
    fleet.rests("classic", 1, 0).await;
    assert_eq!(fleet.pin("classic", 1).await, "2.0.0");
    fleet.send("idle", "again").await;
    fleet.rests("idle", 2, 0).await;
    for order in orders() {
        fleet.send(&order, "again").await;
        fleet.rests(&order, 4, 0).await;
    }
    assert_eq!(fleet.spread().await, BTreeMap::from([("2.0.0".to_owned(), 9)]));
    for order in orders().chain(["idle", "new", "classic"].map(str::to_owned)) {
        fleet.send(&order, "finish").await;
        let version = if order == "classic" { "1.0.0" } else { "2.0.0" };
        assert_eq!(output(ended(&fleet.client, &order).await), version, "{order}");
        check_executions(fleet, &order).await;
    }
}

/// No event is older than the start of its execution, because no older node ever got it; and a successor is pinned to
/// the node that ended its predecessor, if that node committed both at once.
async fn check_executions(fleet: &Fleet, order: &str) {
    let version = |event: &Event| Version::parse(&event.duroxide_version).unwrap();
    let mut last: Option<Version> = None;
    for execution_id in fleet.client.list_executions(order).await.unwrap() {
        let history = fleet.store.read_with_execution(order, execution_id).await.unwrap();
        let pin = version(&history[0]);
        assert!(history.iter().all(|event| version(event) >= pin), "{order}: {history:?}");
        if fleet.commits_rounds && last.is_some() {
            assert_eq!(last.as_ref(), Some(&pin), "{order} execution {execution_id}");
        }
        last = history.last().map(version);
    }
}

#[tokio::test]
async fn a_fleet_of_three_is_upgraded_under_open_orders() {
    upgrade_three_nodes(true).await;
}

/// With a provider that does not commit whole rounds, the node that takes the `ContinueAsNew` item pins the successor.
#[tokio::test]
async fn a_fleet_of_three_is_upgraded_without_whole_rounds() {
    upgrade_three_nodes(false).await;
}
