//! Versioned handlers: new code for new instances, old code for those that have begun.
//!
//! The handler version is resolved when an execution starts, recorded, and used until it ends. The registry's policy
//! decides for starts that ask for no version.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::{prelude::*, runtime::VersionPolicy};
use semver::Version;

async fn price_v1(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let confirmation = ctx.schedule_wait("Confirm").await;
    Ok(format!("v1: {confirmation}"))
}

async fn price_v2(_ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    Ok("v2: no confirmation needed".into())
}

async fn migrating(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.continue_as_new_versioned("2.0.0", format!("{input} moved")).await
}

async fn migrated(_ctx: OrchestrationContext, input: String) -> Result<String, String> {
    Ok(format!("{input} to v2"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let orchestrations = OrchestrationRegistry::builder()
        .register_versioned("Price", "1.0.0", price_v1)
        .register_versioned("Price", "2.0.0", price_v2)
        .register_versioned("Migrate", "1.0.0", migrating)
        .register_versioned("Migrate", "2.0.0", migrated)
        .set_policy("Price", VersionPolicy::Exact(Version::new(1, 0, 0)))
        .build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let activities = ActivityRegistry::default();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations.clone()).await;
    let client = Client::new(store);
    let timeout = Duration::from_secs(30);

    // Begins under the current policy, and keeps version 1.
    client.start_orchestration("old", "Price", "").await?;
    wait_until_subscribed(&client, "old").await;

    // From now on new instances get the latest version, unless they ask for another.
    orchestrations.set_version_policy("Price", VersionPolicy::Latest);
    client.start_orchestration("new", "Price", "").await?;
    client.start_orchestration_versioned("asked", "Price", "1.0.0", "").await?;
    wait_until_subscribed(&client, "asked").await;
    client.raise_event("old", "Confirm", "confirmed").await?;
    client.raise_event("asked", "Confirm", "confirmed").await?;

    // A running instance moves to another version with continue-as-new.
    client.start_orchestration_versioned("migrate", "Migrate", "1.0.0", "data").await?;

    for instance in ["old", "new", "asked", "migrate"] {
        let output: String = client.wait_for_orchestration_typed(instance, timeout).await??;
        println!("{instance}: {output}");
    }
    runtime.shutdown(None).await;
    Ok(())
}

async fn wait_until_subscribed(client: &Client, instance: &str) {
    let subscribed = |event: &Event| matches!(event.kind, EventKind::ExternalSubscribed { .. });
    while !client
        .read_execution_history(instance, 1)
        .await
        .is_ok_and(|history| history.iter().any(subscribed))
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
