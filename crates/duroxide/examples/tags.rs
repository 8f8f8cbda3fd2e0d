//! Tags: an activity runs where its hardware is.
//!
//! A worker takes only what its tag filter accepts. The default filter accepts activities without a tag; the second
//! machine here accepts only `gpu`. An activity that no worker accepts waits and blocks nothing.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::{TagFilter, prelude::*};

async fn film(ctx: OrchestrationContext, _input: String) -> Result<Vec<String>, String> {
    let render = ctx.schedule_activity("Render", "the film").with_tag("gpu");

    // Not blocked by the tagged activity, which no machine can run yet.
    let mut log = vec![ctx.schedule_activity("WriteTitles", "the titles").await?];
    ctx.set_custom_status("waiting for a machine with a gpu");

    log.push(render.await?);
    log.push(ctx.schedule_activity("Upload", "the result").await?);
    Ok(log)
}

async fn start(machine: &'static str, filter: TagFilter, store: Arc<dyn Provider>) -> Arc<Runtime> {
    let work = move |ctx: ActivityContext, what: String| async move {
        Ok(format!("{}: {what} on {machine}, tag {:?}", ctx.activity_name(), ctx.tag()))
    };
    // Both machines know all activities: only the filter decides.
    let activities = ActivityRegistry::builder()
        .register("WriteTitles", work)
        .register("Render", work)
        .register("Upload", work)
        .build();
    let orchestrations = OrchestrationRegistry::builder().register_typed("Film", film).build();
    let options = RuntimeOptions { worker_tag_filter: filter, ..Default::default() };
    Runtime::start_with_options(store, activities, orchestrations, options).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let client = Client::new(store.clone());
    let (poll, timeout) = (Duration::from_millis(100), Duration::from_secs(30));

    let office = start("the office machine", TagFilter::default_only(), store.clone()).await;
    client.start_orchestration_typed("film", "Film", "").await?;
    let status = client.wait_for_status_change("film", 0, poll, timeout).await?;
    println!("{status:?}");

    let render_farm = start("the render farm", TagFilter::tags(["gpu"]), store).await;
    let log: Vec<String> = client.wait_for_orchestration_typed("film", timeout).await??;
    for line in log {
        println!("{line}");
    }

    office.shutdown(None).await;
    render_farm.shutdown(None).await;
    Ok(())
}
