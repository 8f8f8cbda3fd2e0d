//! Durable timers: a pause that survives a restart.
//!
//! The time at which a timer fires is recorded. Here the runtime that started the timer has ended when it is due,
//! and another one carries on; it could be in another process, a month later.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::prelude::*;

const PAUSE: Duration = Duration::from_millis(500);

async fn reminder(ctx: OrchestrationContext, text: String) -> Result<String, String> {
    let before = ctx.utc_now().await?;
    ctx.schedule_timer(PAUSE).await;
    let after = ctx.utc_now().await?;

    let elapsed = after.duration_since(before).map_err(|error| error.to_string())?;
    // A timer never fires early.
    let verdict = if elapsed >= PAUSE { "not early" } else { "early" };
    Ok(format!("{text} ({verdict})"))
}

async fn start_runtime(store: &Arc<SqliteProvider>) -> Arc<Runtime> {
    let orchestrations = OrchestrationRegistry::builder().register("Reminder", reminder).build();
    Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let client = Client::new(store.clone());

    let first = start_runtime(&store).await;
    client.start_orchestration("tea", "Reminder", "the tea is ready").await?;
    wait_for_timer(&client).await;
    first.shutdown(None).await;
    println!("the first runtime is gone");

    let second = start_runtime(&store).await;
    let output: String = client.wait_for_orchestration_typed("tea", Duration::from_secs(30)).await??;
    println!("{output}");
    second.shutdown(None).await;
    Ok(())
}

async fn wait_for_timer(client: &Client) {
    let created = |event: &Event| matches!(event.kind, EventKind::TimerCreated { .. });
    while !client.read_execution_history("tea", 1).await.is_ok_and(|history| history.iter().any(created)) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
