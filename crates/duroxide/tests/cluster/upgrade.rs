//! Three processes go from build 1.5.0 to build 2.0.0, one after the other, while orders are open.

use std::{collections::BTreeMap, path::Path};

use duroxide::{
    Client, Event, OrchestrationContext, OrchestrationRegistry, RuntimeOptions, SemverRange,
    providers::{ExecutionMetadata, Provider},
    runtime::registry::ActivityRegistry,
};
use semver::Version;

use crate::{
    fixture::{
        ended,
        intercept::{Intercept, Intercepted},
        node, output,
        process::Process,
        quick_options,
    },
    schema::{Schema, open_in},
    sound::{assert_sound, events},
};

const ORDERS: usize = 20;
const OLD: &str = "1.5.0";
const NEW: &str = "2.0.0";

/// Makes a process one of another build: its commits are stamped and pinned as by that build.
struct Build(Version);

impl Intercept for Build {
    fn commits_rounds(&self) -> bool {
        true
    }

    fn commit(&self, events: &mut [Event], metadata: &mut ExecutionMetadata) {
        for event in events {
            event.duroxide_version = self.0.to_string();
        }
        if let Some(pin) = &mut metadata.pinned_duroxide_version {
            *pin = self.0.clone();
        }
    }
}

/// Takes steps until the message `finish`; returns the handler version that ran.
async fn order(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    while ctx.dequeue_event("steps").await != "finish" {
        ctx.schedule_activity("Pack", input.clone()).await?;
    }
    Ok(ctx.orchestration_version())
}

/// The role of a worker process of this build. The new build brings handler 2.0.0 along, and a new activity.
pub async fn work(folder: &Path, build: &str) {
    let version = Version::parse(build).unwrap();
    let mut orchestrations = OrchestrationRegistry::builder().register_versioned("Order", "1.0.0", order);
    let echo = |_ctx, input: String| async move { Ok(input) };
    let mut activities = ActivityRegistry::builder().register("Pack", echo);
    if build == NEW {
        orchestrations = orchestrations
            .register_versioned("Order", "2.0.0", order)
            .register("Label", |ctx, input| async move { ctx.schedule_activity("Print", input).await });
        activities = activities.register("Print", echo);
    }
    let options = RuntimeOptions {
        supported_replay_versions: Some(SemverRange::new(Version::new(0, 0, 0), version.clone())),
        handler_capability_filter: true,
        max_attempts: 1_000,
        ..quick_options()
    };
    let store: std::sync::Arc<dyn Provider> = Intercepted::new(open_in(folder).await, Build(version));
    let _runtime = node(&store, activities.build(), orchestrations.build(), options).await;
    std::future::pending::<()>().await;
}

async fn send(client: &Client, orders: std::ops::Range<usize>, step: &str) {
    for number in orders {
        client.enqueue_event(&format!("order-{number}"), "steps", step).await.unwrap();
    }
}

async fn open_orders(client: &Client, orders: std::ops::Range<usize>) {
    for number in orders.clone() {
        let id = format!("order-{number}");
        client.start_orchestration_versioned(id, "Order", "1.0.0", "tea").await.unwrap();
    }
    send(client, orders, "pack").await;
}

/// S2.22, S3.14, S3.31: open executions finish wherever they can be replayed; executions that only the new build can
/// run wait for it, and no old process ever changes an execution that a new one has pinned.
#[tokio::test]
async fn processes_are_replaced_by_a_newer_build_while_orders_are_open() {
    let Some(schema) = Schema::new() else { return };
    let client = Client::new(schema.open().await);
    let mut workers: Vec<Process> = (0..3).map(|_| Process::start("build", schema.folder(), OLD)).collect();
    open_orders(&client, 0..ORDERS).await;
    client.start_orchestration_versioned("of the new", "Order", "2.0.0", "tea").await.unwrap();
    client.start_orchestration("labels", "Label", "tea").await.unwrap();
    for step in 0..3 {
        // Killed, not asked: an upgrade must not depend on a process that ends well.
        workers.remove(0).kill();
        workers.push(Process::start("build", schema.folder(), NEW));
        send(&client, 0..ORDERS * (step + 1), "pack").await;
        open_orders(&client, ORDERS * (step + 1)..ORDERS * (step + 2)).await;
    }
    client.enqueue_event("of the new", "steps", "finish").await.unwrap();
    send(&client, 0..4 * ORDERS, "finish").await;
    for number in 0..4 * ORDERS {
        assert_eq!(output(ended(&client, &format!("order-{number}")).await), "1.0.0");
    }
    assert_eq!(output(ended(&client, "of the new").await), "2.0.0");
    assert_eq!(output(ended(&client, "labels").await), "tea");
    workers.into_iter().for_each(Process::kill);
    assert_no_older_build_wrote(&schema);
}

fn assert_no_older_build_wrote(schema: &Schema) {
    let snapshot = schema.snapshot();
    assert_sound(&snapshot);
    let mut first_builds: BTreeMap<Version, usize> = BTreeMap::new();
    for instance in &snapshot.instances {
        for execution in &instance.executions {
            let builds: Vec<Version> = events(execution)
                .iter()
                .map(|event| Version::parse(&event.duroxide_version).unwrap())
                .collect();
            assert!(builds.iter().all(|build| *build >= builds[0]), "{}: {builds:?}", instance.instance);
            *first_builds.entry(builds[0].clone()).or_default() += 1;
        }
    }
    println!("executions by the build that started them: {first_builds:?}");
    assert_eq!(first_builds.len(), 2, "both builds started some");
}
