//! B13: code that never returns, in processes of their own, so that its threads end with them.

use std::{path::Path, time::Duration};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::registry::ActivityRegistry,
};

use crate::{
    fixture::{File, ended, failure, node, open_in, output, process::Process},
    handlers::{one, options},
};

const HEALTHY: usize = 20;

/// B13, S1.2, 2.15: a turn that loops for ever costs its attempts and a thread each, never its slot.
#[tokio::test]
async fn a_turn_that_never_returns_is_poisoned() {
    let file = File::new();
    Process::start("stuck turn", file.folder(), "").succeeded().await;
}

/// B13, 7.4: the same for an activity that blocks its thread.
#[tokio::test]
async fn an_activity_that_never_returns_is_poisoned() {
    let file = File::new();
    Process::start("stuck activity", file.folder(), "").succeeded().await;
}

pub async fn turn(folder: &Path) {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Stuck", |_ctx: OrchestrationContext, _input: String| async move { never_return() })
        .register("One", one)
        .build();
    let activities = ActivityRegistry::builder().register("Echo", echo).build();
    let options = RuntimeOptions { turn_timeout: Some(Duration::from_secs(1)), ..impatient() };
    stuck_among_healthy(folder, activities, orchestrations, options).await;
}

pub async fn activity(folder: &Path) {
    let activities = ActivityRegistry::builder()
        .register("Block", |_ctx: ActivityContext, _input: String| async move { never_return() })
        .register("Echo", echo)
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Stuck", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Block", input).await
        })
        .register("One", one)
        .build();
    let options = RuntimeOptions {
        activity_execution_timeout: Some(Duration::from_secs(1)),
        activity_cancellation_grace_period: Duration::from_millis(100),
        ..impatient()
    };
    stuck_among_healthy(folder, activities, orchestrations, options).await;
}

/// A turn that is given up is free for the next attempt when its lease ends.
fn impatient() -> RuntimeOptions {
    RuntimeOptions { max_attempts: 2, orchestrator_lock_timeout: Duration::from_secs(2), ..options() }
}

/// Keeps its thread for ever, but leaves the machine to others.
fn never_return() -> ! {
    loop {
        std::thread::sleep(Duration::from_millis(1));
    }
}

async fn echo(_ctx: ActivityContext, input: String) -> Result<String, String> {
    Ok(input)
}

/// The healthy ones are started behind the stuck one, and end while it is being attempted, before it or after it.
async fn stuck_among_healthy(
    folder: &Path,
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
    options: RuntimeOptions,
) {
    let store = open_in(folder).await;
    let client = Client::new(store.clone());
    client.start_orchestration("stuck", "Stuck", "").await.unwrap();
    for number in 0..HEALTHY {
        client.start_orchestration(&format!("healthy-{number}"), "One", number.to_string()).await.unwrap();
    }
    let _runtime = node(&store, activities, orchestrations, options).await;
    for number in 0..HEALTHY {
        assert_eq!(output(ended(&client, &format!("healthy-{number}")).await), number.to_string());
    }
    let details = failure(ended(&client, "stuck").await);
    assert_eq!(details.category(), "poison", "{details:?}");
    assert!(details.display_message().ends_with("exceeded 3 attempts (max 2)"), "{details:?}");
}
