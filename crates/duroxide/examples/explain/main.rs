//! Why does an instance not move? A client explains four instances, which wait for an event under a misspelt name, a timer,
//! an activity without a handler, and a node.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::{
    ActivityState, Client, ClientError, Finding, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    providers::sqlite::SqliteProvider,
    runtime::{Runtime, UnregisteredBackoffConfig, registry::ActivityRegistry},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let client = Client::new(store.clone());

    // No node runs orchestrations yet.
    client.start_orchestration("approval-1", "Approval", "").await?;
    tell(&client, "approval-1", |finding| match finding {
        Finding::NoNode { .. } => Some(format!("waits: {finding}")),
        _ => None,
    })
    .await?;

    let orchestrations = OrchestrationRegistry::builder()
        .register("Approval", |ctx: OrchestrationContext, _| async move {
            Ok(ctx.schedule_wait("Approved").await)
        })
        .register("Reminder", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_timer(Duration::from_secs(3 * 3600)).await;
            Ok(String::new())
        })
        .register("Order", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity("Charge", "42").await
        })
        .build();
    let minute = Duration::from_secs(60);
    let options = RuntimeOptions {
        unregistered_backoff: UnregisteredBackoffConfig { base_delay: minute, max_delay: minute },
        ..RuntimeOptions::default()
    };
    let activities = ActivityRegistry::default();
    let runtime = Runtime::start_with_options(store, activities, orchestrations, options).await;

    client.start_orchestration("reminder-1", "Reminder", "").await?;
    client.start_orchestration("order-1", "Order", "").await?;
    client.raise_event("approval-1", "approved", "yes").await?;
    // People read `explanation.to_string()`; a program reads the findings.
    tell(&client, "approval-1", |finding| match finding {
        Finding::Event { name, last_raised: Some(raised), .. } => {
            Some(format!("waits for `{name}`, and somebody raised `{raised}`"))
        }
        _ => None,
    })
    .await?;
    tell(&client, "reminder-1", |finding| match finding {
        Finding::Timer { due_ms, since_ms } => {
            Some(format!("sleeps for {} h", (due_ms - since_ms) / 3_600_000))
        }
        _ => None,
    })
    .await?;
    tell(&client, "order-1", |finding| match finding {
        Finding::Activity { name, state: ActivityState::Hidden { lacking_nodes, .. }, .. } => {
            Some(format!("waits for `{name}`, which {} node has no handler for", lacking_nodes.len()))
        }
        _ => None,
    })
    .await?;
    runtime.shutdown(None).await;
    Ok(())
}

/// Explains the instance until `say` returns a line for a finding, and prints the line.
async fn tell(
    client: &Client,
    instance: &str,
    say: impl Fn(&Finding) -> Option<String>,
) -> Result<(), ClientError> {
    loop {
        if let Some(text) = client.explain(instance).await?.findings.iter().find_map(&say) {
            println!("{instance} {text}");
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
