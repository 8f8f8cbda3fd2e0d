//! Custom status: a running instance shows its progress, and watching clients are notified.
//!
//! Each round that changes the status raises its version. A watcher passes the version it has seen and gets the newest
//! status as soon as there is another one. Both belong to the instance, so they outlive continue-as-new.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::prelude::*;

async fn backup(ctx: OrchestrationContext, disk: u32) -> Result<String, String> {
    let before = ctx.get_custom_status().unwrap_or("saved".into()); // what the execution before has left
    ctx.set_custom_status(format!("{before} disk-{disk}"));
    ctx.dequeue_event("go on").await;
    if disk < 3 {
        return ctx.continue_as_new_typed(&(disk + 1)).await;
    }
    ctx.reset_custom_status();
    Ok(format!("{disk} disks saved"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let orchestrations = OrchestrationRegistry::builder().register_typed("Backup", backup).build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await;
    let client = Client::new(store);
    let (poll, timeout) = (Duration::from_millis(100), Duration::from_secs(30));

    client.start_orchestration_typed("nightly", "Backup", 1).await?;
    let mut seen = 0;
    loop {
        match client.wait_for_status_change("nightly", seen, poll, timeout).await? {
            OrchestrationStatus::Running { custom_status, custom_status_version } => {
                println!("version {custom_status_version}: {}", custom_status.unwrap_or_default());
                seen = custom_status_version;
                client.enqueue_event("nightly", "go on", "").await?;
            }
            OrchestrationStatus::Completed { output, custom_status, custom_status_version } => {
                println!("version {custom_status_version}: {custom_status:?}, {output}");
                break;
            }
            other => return Err(format!("unexpected: {other:?}").into()),
        }
    }

    runtime.shutdown(None).await;
    Ok(())
}
