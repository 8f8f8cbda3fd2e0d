//! Work that a node has no handler for: it rests, comes back, and in the end is poison.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[path = "../../src/fixture/logs.rs"]
mod logs;
mod rolling;
mod spy;

use std::{sync::Arc, time::Duration};

use duroxide_core::{ErrorDetails, EventKind, OrchestrationContext, PoisonMessageType};
use duroxide_provider::Provider;
use duroxide_runtime::{
    ActivityRegistry, Client, OrchestrationRegistry, OrchestrationRegistryBuilder, OrchestrationStatus,
    Runtime, RuntimeOptions, UnregisteredBackoffConfig,
};
use duroxide_store::MemoryProvider;
use logs::Logs;
use spy::{Abandon, Spy};

const PATIENCE: Duration = Duration::from_secs(30);

/// Three attempts, 5 ms apart at first.
fn options() -> RuntimeOptions {
    RuntimeOptions {
        max_attempts: 3,
        dispatcher_min_poll_interval: Duration::from_millis(1),
        unregistered_backoff: UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(5),
            max_delay: Duration::from_millis(12),
        },
        ..Default::default()
    }
}

/// Enough attempts for any number of bounces.
fn patient_options() -> RuntimeOptions {
    RuntimeOptions { max_attempts: 1_000, ..options() }
}

/// What three attempts with [`options`] look like.
fn three_bounces() -> [Abandon; 3] {
    [5, 10, 12].map(|ms| Abandon { delay: Some(Duration::from_millis(ms)), ignore_attempt: false })
}

async fn echo(_ctx: OrchestrationContext, input: String) -> Result<String, String> {
    Ok(input)
}

async fn calls_step(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_activity("Step", input).await
}

fn orchestrations() -> OrchestrationRegistryBuilder {
    OrchestrationRegistry::builder().register("CallsStep", calls_step).register("Echo", echo)
}

fn no_activities() -> ActivityRegistry {
    ActivityRegistry::default()
}

fn step() -> ActivityRegistry {
    ActivityRegistry::builder().register("Step", |_ctx, _input| async { Ok("stepped".to_owned()) }).build()
}

/// A node on the store of `spy`.
async fn node(
    spy: &Arc<Spy>,
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistryBuilder,
    options: RuntimeOptions,
) -> Arc<Runtime> {
    Runtime::start_with_options(store(spy), activities, orchestrations.build(), options).await
}

fn store(spy: &Arc<Spy>) -> Arc<dyn Provider> {
    Arc::clone(spy) as Arc<dyn Provider>
}

async fn failure(client: &Client, instance: &str) -> ErrorDetails {
    match client.wait_for_orchestration(instance, PATIENCE).await.unwrap() {
        OrchestrationStatus::Failed { details, .. } => details,
        other => panic!("{other:?}"),
    }
}

async fn output(client: &Client, instance: &str) -> String {
    client.wait_for_orchestration_typed(instance, PATIENCE).await.unwrap().unwrap()
}

fn poison_of(instance: &str, execution_id: u64) -> PoisonMessageType {
    PoisonMessageType::Orchestration { instance: instance.to_owned(), execution_id }
}

fn assert_poison(details: &ErrorDetails, of: &PoisonMessageType) {
    match details {
        ErrorDetails::Poison { attempt_count: 4, max_attempts: 3, message_type, .. } => {
            assert_eq!(message_type, of);
        }
        other => panic!("{other:?}"),
    }
}

/// S0.1, S0.2, S0.3, S0.7, S0.25, S0.26, S0.27, S0.36, S0.38, S0.43, S1.34
#[tokio::test]
async fn an_unknown_orchestration_rests_longer_each_time_and_is_poison_in_the_end() {
    let spy = Spy::new();
    let client = Client::new(store(&spy));
    client.start_orchestration("ghost", "Missing", "x").await.unwrap();
    let runtime = node(&spy, no_activities(), orchestrations(), options()).await;

    let details = failure(&client, "ghost").await;
    assert_poison(&details, &poison_of("ghost", 1));
    assert_eq!(details.display_message(), "poison: orchestration ghost exceeded 4 attempts (max 3)");
    assert_eq!(spy.abandons(), three_bounces());
    let kinds: Vec<_> = spy.read("ghost").await.unwrap().into_iter().map(|event| event.kind).collect();
    assert!(
        matches!(
            kinds.as_slice(),
            [EventKind::OrchestrationStarted { .. }, EventKind::OrchestrationFailed { .. }]
        ),
        "the bounces left no event: {kinds:?}"
    );
    Arc::clone(&runtime).shutdown(None).await;
    let snapshot = runtime.metrics_snapshot().unwrap();
    assert_eq!((snapshot.unregistered_orch_backoff, snapshot.orch_poison), (3, 1));
}

/// S0.33, S0.43
#[tokio::test]
async fn an_unknown_version_takes_the_same_path() {
    let spy = Spy::new();
    let client = Client::new(store(&spy));
    client.start_orchestration_versioned("ghost", "Echo", "7.0.0", "x").await.unwrap();
    let runtime = node(&spy, no_activities(), orchestrations(), options()).await;
    assert_poison(&failure(&client, "ghost").await, &poison_of("ghost", 1));
    assert_eq!(spy.abandons(), three_bounces());
    runtime.shutdown(None).await;
}

/// S0.28, S0.29, S0.39, S0.44
#[tokio::test]
async fn an_unknown_activity_ends_as_poison_of_its_orchestration() {
    let spy = Spy::new();
    let client = Client::new(store(&spy));
    client.start_orchestration("order", "CallsStep", "x").await.unwrap();
    let runtime = node(&spy, no_activities(), orchestrations(), options()).await;
    let activity = PoisonMessageType::Activity {
        instance: "order".to_owned(),
        execution_id: 1,
        activity_name: "Step".to_owned(),
        activity_id: 2,
    };
    assert_poison(&failure(&client, "order").await, &activity);
    assert_eq!(spy.abandons(), three_bounces());
    Arc::clone(&runtime).shutdown(None).await;
    let snapshot = runtime.metrics_snapshot().unwrap();
    assert_eq!((snapshot.unregistered_activity_backoff, snapshot.activity_poison), (3, 1));
}

/// S0.34
#[tokio::test]
async fn the_poison_of_an_unknown_child_fails_its_parent() {
    let spy = Spy::new();
    let client = Client::new(store(&spy));
    let orchestrations = orchestrations().register("Parent", |ctx, input| async move {
        ctx.schedule_sub_orchestration("Missing", input).await
    });
    client.start_orchestration("parent", "Parent", "x").await.unwrap();
    let runtime = node(&spy, no_activities(), orchestrations, options()).await;
    assert_poison(&failure(&client, "parent").await, &poison_of("parent::sub::2", 1));
    runtime.shutdown(None).await;
}

/// S0.5, S2.9, S2.10, S2.23
#[tokio::test]
async fn the_last_warning_says_why_nobody_could_run_it() {
    let (logs, _guard) = Logs::capture();
    let spy = Spy::new();
    let client = Client::new(store(&spy));
    client.start_orchestration("ghost", "Missing", "x").await.unwrap();
    let runtime = node(&spy, no_activities(), orchestrations(), options()).await;
    failure(&client, "ghost").await;
    runtime.shutdown(None).await;

    let of_runtime: Vec<_> =
        logs.lines().into_iter().filter(|line| line.target == "duroxide::runtime").collect();
    let bounces: Vec<_> = of_runtime
        .iter()
        .filter(|line| line.message.starts_with("Orchestration not registered"))
        .map(|line| line.fields["remaining_attempts"].clone())
        .collect();
    assert_eq!(bounces, ["3", "2", "1"]);
    let poison = "Orchestration message exceeded max attempts, marking as poison";
    let poisoned: Vec<_> = of_runtime.iter().filter(|line| line.message == poison).collect();
    assert_eq!(poisoned.len(), 1, "{of_runtime:?}");
    assert!(
        poisoned[0].fields["reason"].starts_with(
            "work item could not be processed on this node (orchestration not registered here, or \
             execution history is unsupported)"
        ),
        "{poisoned:?}"
    );
}

/// S0.36, decisions 5: a fetch that was made while no slot was free takes nothing that was attempted before. Once
/// slots are free again it must not go on waiting like that.
#[tokio::test]
async fn work_that_rested_comes_back_to_slots_that_were_busy() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("ghost", "Missing", "x").await.unwrap();
    for n in 0..20 {
        client.start_orchestration(format!("echo-{n}"), "Echo", "x").await.unwrap();
    }
    let one_slot = RuntimeOptions { orchestration_concurrency: 1, ..options() };
    let below_long_poll = one_slot.dispatcher_long_poll_timeout / 2;
    let runtime =
        Runtime::start_with_options(store, no_activities(), orchestrations().build(), one_slot).await;
    client.wait_for_orchestration("ghost", below_long_poll).await.unwrap();
    runtime.shutdown(None).await;
}

/// S0.4, S0.46
#[tokio::test]
async fn an_activity_that_bounced_runs_on_the_node_that_has_it() {
    let spy = Spy::new();
    let client = Client::new(store(&spy));
    client.start_orchestration("order", "CallsStep", "x").await.unwrap();
    let old_node = node(&spy, no_activities(), orchestrations(), patient_options()).await;
    spy.abandoned(4).await;
    let new_node = node(&spy, step(), orchestrations(), patient_options()).await;
    assert_eq!(output(&client, "order").await, "stepped");
    old_node.shutdown(None).await;
    new_node.shutdown(None).await;
}

/// S0.A3
#[tokio::test]
async fn a_new_version_rolls_out_node_by_node() {
    let spy = Spy::new();
    let client = Client::new(store(&spy));
    let old_node = node(&spy, no_activities(), orchestrations(), patient_options()).await;
    client.start_orchestration_versioned("order", "Echo", "2.0.0", "x").await.unwrap();
    spy.abandoned(2).await;
    let with_new_version = orchestrations()
        .register_versioned("Echo", "2.0.0", |_ctx, _input| async { Ok("from 2.0.0".to_owned()) });
    let new_node = node(&spy, no_activities(), with_new_version, patient_options()).await;
    old_node.shutdown(None).await;
    assert_eq!(output(&client, "order").await, "from 2.0.0");
    new_node.shutdown(None).await;
}

/// S0.A1, 8.6
#[tokio::test]
async fn continuing_as_a_missing_version_poisons_the_successor() {
    let spy = Spy::new();
    let client = Client::new(store(&spy));
    let orchestrations = orchestrations()
        .register("Moves", |ctx, input| async move { ctx.continue_as_new_versioned("9.0.0", input).await });
    client.start_orchestration("mover", "Moves", "x").await.unwrap();
    let runtime = node(&spy, no_activities(), orchestrations, options()).await;
    assert_poison(&failure(&client, "mover").await, &poison_of("mover", 2));
    let first = client.read_execution_history("mover", 1).await.unwrap();
    assert!(matches!(first.last().unwrap().kind, EventKind::OrchestrationContinuedAsNew { .. }));
    assert_eq!(client.list_executions("mover").await.unwrap(), [1, 2]);
    runtime.shutdown(None).await;
}

/// S0.A2
#[tokio::test]
async fn a_poisoned_instance_can_be_deleted() {
    let spy = Spy::new();
    let client = Client::new(store(&spy));
    client.start_orchestration("ghost", "Missing", "x").await.unwrap();
    let runtime = node(&spy, no_activities(), orchestrations(), options()).await;
    failure(&client, "ghost").await;
    assert_eq!(client.delete_instance("ghost", false).await.unwrap().instances_deleted, 1);
    assert_eq!(client.get_orchestration_status("ghost").await.unwrap(), OrchestrationStatus::NotFound);
    runtime.shutdown(None).await;
}

/// S0.A4, 6.3
#[tokio::test]
async fn cancelling_while_it_rests_ends_it_without_a_handler() {
    let spy = Spy::new();
    let client = Client::new(store(&spy));
    client.start_orchestration("ghost", "Missing", "x").await.unwrap();
    let runtime = node(&spy, no_activities(), orchestrations(), patient_options()).await;
    spy.abandoned(1).await;
    client.cancel_instance("ghost", "enough").await.unwrap();
    assert_eq!(failure(&client, "ghost").await.display_message(), "canceled: enough");
    runtime.shutdown(None).await;
}

/// S0.A5, 19.1
#[tokio::test]
async fn deleting_while_an_activity_rests_leaves_nothing_behind() {
    let spy = Spy::new();
    let client = Client::new(store(&spy));
    client.start_orchestration("order", "CallsStep", "x").await.unwrap();
    let runtime = node(&spy, no_activities(), orchestrations(), patient_options()).await;
    spy.abandoned(2).await;
    client.delete_instance("order", true).await.unwrap();
    // Another instance goes all the way while the deleted one could come back.
    client.start_orchestration("later", "Echo", "x").await.unwrap();
    assert_eq!(output(&client, "later").await, "x");
    runtime.shutdown(None).await;
    assert_eq!(client.list_all_instances().await.unwrap(), ["later"]);
    let depths = client.get_queue_depths().await.unwrap();
    assert_eq!((depths.orchestrator_queue, depths.worker_queue), (0, 0));
}
