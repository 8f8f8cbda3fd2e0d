//! Work without a handler on any node ends as poison, and only so.

use duroxide::{
    AppErrorKind, Client, ErrorDetails, OrchestrationContext, OrchestrationRegistry, PoisonMessageType,
};

use crate::{
    caller, callers, echo,
    fixture::{File, ended, failure, final_snapshot, node, output, quick_options},
    no_activities, no_orchestrations, poison,
};

/// S0.1, S0.2, S0.3, S0.7, S0.43 for a missing name; S1.17.
#[tokio::test]
async fn an_unregistered_orchestration_eventually_poisons() {
    let file = File::new();
    let store = file.open().await;
    let runtime = node(&store, no_activities(), no_orchestrations(), quick_options()).await;
    let client = Client::new(store);

    client.start_orchestration("ghost", "NoSuchOrchestration", "input-of-ghost").await.unwrap();
    let details = failure(ended(&client, "ghost").await);

    assert_eq!(details.category(), "poison");
    assert_eq!(details.display_message(), "poison: orchestration ghost exceeded 4 attempts (max 3)");
    let ErrorDetails::Poison { message, .. } = &details else { panic!("{details:?}") };
    assert!(message.contains("input-of-ghost"), "the error holds the whole message: {message}");
    let (attempt, max, kind) = poison(details);
    assert_eq!((attempt, max), (4, 3));
    assert_eq!(kind, PoisonMessageType::Orchestration { instance: "ghost".into(), execution_id: 1 });
    let snapshot = final_snapshot(runtime).await;
    assert_eq!((snapshot.unregistered_orch_backoff, snapshot.orch_poison), (3, 1), "S0.27, S0.31: each once");
}

/// S0.33, S0.43 for a missing version.
#[tokio::test]
async fn a_missing_version_takes_the_same_path() {
    let file = File::new();
    let store = file.open().await;
    let orchestrations = OrchestrationRegistry::builder().register_versioned("Echo", "1.0.0", echo).build();
    let runtime = node(&store, no_activities(), orchestrations, quick_options()).await;
    let client = Client::new(store);

    client.start_orchestration_versioned("asks-for-2", "Echo", "2.0.0", "x").await.unwrap();
    client.start_orchestration_versioned("asks-for-1", "Echo", "1.0.0", "y").await.unwrap();

    assert_eq!(output(ended(&client, "asks-for-1").await), "y");
    let (attempt, ..) = poison(failure(ended(&client, "asks-for-2").await));
    assert_eq!(attempt, 4);
    runtime.shutdown(None).await;
}

/// S0.28, S0.29, S0.32, S0.44; S1.18.
#[tokio::test]
async fn an_unregistered_activity_eventually_poisons_and_fails_its_orchestration() {
    let file = File::new();
    let store = file.open().await;
    let runtime = node(&store, no_activities(), callers(), quick_options()).await;
    let client = Client::new(store);

    client.start_orchestration("caller", "Caller", "x").await.unwrap();
    let details = failure(ended(&client, "caller").await);

    assert_eq!(details.display_message(), "poison: activity NewActivity#2 exceeded 4 attempts (max 3)");
    let (_, _, kind) = poison(details);
    assert_eq!(
        kind,
        PoisonMessageType::Activity {
            instance: "caller".into(),
            execution_id: 1,
            activity_name: "NewActivity".into(),
            activity_id: 2,
        }
    );
    let snapshot = final_snapshot(runtime).await;
    assert_eq!((snapshot.unregistered_activity_backoff, snapshot.activity_poison), (3, 1));
}

async fn parent(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    match ctx.schedule_sub_orchestration_with_id("NoSuchChild", "child", input).await {
        Ok(output) => Ok(output),
        // A system error never reaches user code, so this line is never reached.
        Err(error) => Ok(format!("caught {error}")),
    }
}

/// S0.34: the parent waits meanwhile, and then fails with the child's poison.
#[tokio::test]
async fn an_unregistered_child_fails_its_parent_with_its_poison() {
    let file = File::new();
    let store = file.open().await;
    let orchestrations = OrchestrationRegistry::builder().register("Parent", parent).build();
    let runtime = node(&store, no_activities(), orchestrations, quick_options()).await;
    let client = Client::new(store);

    client.start_orchestration("parent", "Parent", "x").await.unwrap();
    let of_parent = failure(ended(&client, "parent").await);
    let of_child = failure(ended(&client, "child").await);

    assert_eq!(of_parent, of_child);
    let (_, _, kind) = poison(of_parent);
    assert_eq!(kind, PoisonMessageType::Orchestration { instance: "child".into(), execution_id: 1 });
    runtime.shutdown(None).await;
}

async fn continues(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.continue_as_new_versioned("2.0.0", format!("{input} again")).await
}

/// S0.A1, 8.6: the execution that ended stays as it is; its successor is created and failed.
#[tokio::test]
async fn continuing_to_a_missing_version_poisons_the_successor() {
    let file = File::new();
    let store = file.open().await;
    let orchestrations =
        OrchestrationRegistry::builder().register_versioned("Continues", "1.0.0", continues).build();
    let runtime = node(&store, no_activities(), orchestrations, quick_options()).await;
    let client = Client::new(store);

    client.start_orchestration("i", "Continues", "x").await.unwrap();
    let (_, _, kind) = poison(failure(ended(&client, "i").await));

    assert_eq!(kind, PoisonMessageType::Orchestration { instance: "i".into(), execution_id: 2 });
    assert_eq!(client.list_executions("i").await.unwrap(), [1, 2]);
    assert_eq!(client.get_execution_info("i", 1).await.unwrap().status, "ContinuedAsNew");
    let successor = client.read_execution_history("i", 2).await.unwrap();
    assert_eq!(successor.len(), 2, "a start and a failure, nothing else: {successor:?}");
    runtime.shutdown(None).await;
}

async fn careful(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    match ctx.schedule_activity("NewActivity", input).await {
        Ok(output) => Ok(output),
        Err(error) => Ok(format!("caught {error}")),
    }
}

/// 2.5: only application errors reach user code; poison of an activity fails the whole orchestration.
#[tokio::test]
async fn code_cannot_catch_the_poison_of_an_activity() {
    let file = File::new();
    let store = file.open().await;
    let orchestrations = OrchestrationRegistry::builder().register("Careful", careful).build();
    let runtime = node(&store, no_activities(), orchestrations, quick_options()).await;
    let client = Client::new(store);

    client.start_orchestration("i", "Careful", "x").await.unwrap();
    let details = failure(ended(&client, "i").await);

    assert!(!matches!(&details, ErrorDetails::Application { kind: AppErrorKind::OrchestrationFailed, .. }));
    assert_eq!(details.category(), "poison");
    runtime.shutdown(None).await;
}

/// S0.35: work whose handler is never deployed ends as poison, and does not block healthy work.
#[tokio::test]
async fn healthy_work_goes_on_meanwhile() {
    let file = File::new();
    let store = file.open().await;
    let orchestrations =
        OrchestrationRegistry::builder().register("Caller", caller).register("Echo", echo).build();
    let fleet = [
        node(&store, no_activities(), orchestrations.clone(), quick_options()).await,
        node(&store, no_activities(), orchestrations, quick_options()).await,
    ];
    let client = Client::new(store);

    client.start_orchestration("ghost", "NoSuchOrchestration", "x").await.unwrap();
    client.start_orchestration("caller", "Caller", "x").await.unwrap();
    for n in 0..20 {
        client.start_orchestration(format!("healthy-{n}"), "Echo", "y").await.unwrap();
    }
    for n in 0..20 {
        assert_eq!(output(ended(&client, &format!("healthy-{n}")).await), "y");
    }
    poison(failure(ended(&client, "ghost").await));
    poison(failure(ended(&client, "caller").await));
    for runtime in fleet {
        runtime.shutdown(None).await;
    }
}
