//! System values: random ids and the time of day, recorded so that replay sees the same ones.
//!
//! `Uuid::new_v4()` or `SystemTime::now()` in orchestration code would give other values on every replay. These calls
//! are made once and recorded. The runtime here keeps no live executions, so every turn is a replay.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::prelude::*;

async fn ticket(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let id = ctx.new_guid().await?;
    let issued = ctx.utc_now().await?;
    ctx.schedule_timer(Duration::from_millis(20)).await;
    let used = ctx.utc_now().await?;

    // These values go to an activity, whose recorded input is compared on every replay.
    ctx.schedule_activity("Print", id.clone()).await?;

    let parts: Vec<usize> = id.split('-').map(str::len).collect();
    Ok(format!("id shape {parts:?}, used after it was issued: {}", used > issued))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let activities = ActivityRegistry::builder()
        .register("Print", |_ctx, id: String| async move { Ok(format!("printed {id}")) })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("Ticket", ticket).build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let options = RuntimeOptions { execution_cache_size: 0, ..RuntimeOptions::default() };
    let runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;

    let client = Client::new(store);
    for instance in ["ticket-1", "ticket-2"] {
        client.start_orchestration(instance, "Ticket", "").await?;
        let output: String = client.wait_for_orchestration_typed(instance, Duration::from_secs(30)).await??;
        println!("{instance}: {output}");
    }

    runtime.shutdown(None).await;
    Ok(())
}
