//! The orchestration that each of these programs runs.

use std::{error::Error, path::Path, sync::Arc, time::Duration};

use duroxide::prelude::*;

/// Runs an orchestration of one activity on a store in this folder, in the process that also uses another crate's SQLite.
pub(crate) async fn run(folder: &Path) -> Result<(), Box<dyn Error>> {
    let url = format!("sqlite:{}", folder.join("duroxide.db").display());
    let store = Arc::new(SqliteProvider::new(&url, None).await?);
    let greet = |_: ActivityContext, name: String| async move { Ok(format!("Hello, {name}!")) };
    let activities = ActivityRegistry::builder().register("Greet", greet).build();
    let hello =
        |ctx: OrchestrationContext, name: String| async move { ctx.schedule_activity("Greet", name).await };
    let orchestrations = OrchestrationRegistry::builder().register("Hello", hello).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    client.start_orchestration("hello-1", "Hello", "\"neighbour\"").await?;
    let greeting = client.wait_for_orchestration("hello-1", Duration::from_secs(30)).await?;
    runtime.shutdown(None).await;
    match greeting {
        OrchestrationStatus::Completed { output, .. } => println!("duroxide: {output}"),
        other => return Err(format!("not completed: {other:?}").into()),
    }
    Ok(())
}
