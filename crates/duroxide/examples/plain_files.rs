//! A store of plain files, for inspection: one folder per instance, one line per event.
//!
//! Needs the feature `fs`. Stop the program in the middle, read the files, and start it again on the same folder:
//! nothing is lost. One process at a time uses such a store.

use std::{error::Error, fs, path::Path, sync::Arc, time::Duration};

use duroxide::{
    prelude::*,
    providers::fs::{FsError, FsProvider},
};

async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    let reserved = ctx.schedule_activity("Reserve", item).await?;
    ctx.schedule_timer(Duration::from_millis(10)).await;
    ctx.schedule_activity("Ship", reserved).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?; // in a program of yours: "orders"
    let store = Arc::new(FsProvider::open(folder.path(), None).await?);

    let activities = ActivityRegistry::builder()
        .register("Reserve", |_ctx, item| async move { Ok(format!("{item} from shelf 3")) })
        .register("Ship", |_ctx, what| async move { Ok(format!("shipped {what}")) })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("Order", order).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store.clone());
    client.start_orchestration("order-1", "Order", "teapot").await?;
    let result: String = client.wait_for_orchestration_typed("order-1", Duration::from_secs(30)).await??;
    println!("{result}");

    let second = FsProvider::open(folder.path(), None).await;
    println!("a second user: {}", if matches!(second, Err(FsError::InUse { .. })) { "refused" } else { "?" });

    runtime.shutdown(None).await;
    show_history(&folder.path().join("instances/order-1/history-1.jsonl"))?;
    Ok(())
}

/// A part of a line.
#[derive(serde::Deserialize)]
struct Line {
    event_id: u64,
    #[serde(rename = "type")]
    kind: String,
}

/// Every line is an event, as JSON.
fn show_history(path: &Path) -> Result<(), Box<dyn Error>> {
    for line in fs::read_to_string(path)?.lines() {
        let Line { event_id, kind } = serde_json::from_str(line)?;
        println!("{event_id} {kind}");
    }
    Ok(())
}
