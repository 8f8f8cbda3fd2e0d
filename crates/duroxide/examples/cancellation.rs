//! Cancellation: of an instance with its children, and of activities that cooperate.
//!
//! A cancelled orchestration ends; its open children are cancelled too; a running activity learns of it through its
//! token and may clean up. Dropping a durable future cancels just that piece of work.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::prelude::*;
use tokio::sync::mpsc::{self, UnboundedSender};

async fn parent(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_sub_orchestration_with_id("Child", "child", input).await
}

async fn child(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_activity("Download", input).await
}

async fn impatient(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let download = ctx.schedule_activity("Download", input);
    let enough = ctx.schedule_wait("Enough");
    // The loser of the race is dropped, and dropping cancels it.
    match ctx.select2(download, enough).await {
        Either2::First(result) => result,
        Either2::Second(reason) => Ok(format!("gave up: {reason}")),
    }
}

/// Prints a line when it begins and when it was asked to stop.
fn activities(report: UnboundedSender<String>) -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Download", move |ctx: ActivityContext, file| {
            let report = report.clone();
            async move {
                report.send(format!("downloading {file}")).map_err(|error| error.to_string())?;
                ctx.cancelled().await;
                report.send(format!("removed the half of {file}")).map_err(|error| error.to_string())?;
                Err("cancelled".to_owned()) // discarded: the cancellation is what counts
            }
        })
        .build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (report, mut reports) = mpsc::unbounded_channel();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Parent", parent)
        .register("Child", child)
        .register("Impatient", impatient)
        .build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::start_with_store(store.clone(), activities(report), orchestrations).await;
    let client = Client::new(store);

    client.start_orchestration("parent", "Parent", "a.iso").await?;
    println!("{}", reports.recv().await.ok_or("no report")?);
    client.cancel_instance("parent", "not needed any more").await?;
    println!("{}", reports.recv().await.ok_or("no report")?);
    for instance in ["parent", "child"] {
        if let OrchestrationStatus::Failed { details, .. } =
            client.wait_for_orchestration(instance, Duration::from_secs(30)).await?
        {
            println!("{instance}: {}", details.display_message());
        }
    }

    client.start_orchestration("impatient", "Impatient", "b.iso").await?;
    println!("{}", reports.recv().await.ok_or("no report")?);
    client.raise_event("impatient", "Enough", "found it elsewhere").await?;
    println!("{}", reports.recv().await.ok_or("no report")?);
    let output: String = client.wait_for_orchestration_typed("impatient", Duration::from_secs(30)).await??;
    println!("impatient: {output}");

    runtime.shutdown(None).await;
    Ok(())
}
