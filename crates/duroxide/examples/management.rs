//! Management: find and inspect instances, remove old ones, see messages that could not be delivered.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::{
    prelude::*,
    providers::{InstanceQuery, PruneOptions, sqlite::SqliteOptions},
};

/// Each execution is one attempt, with a child. The third attempt is one too many.
async fn import(ctx: OrchestrationContext, attempts: u64) -> Result<String, String> {
    let child = format!("check-{}-of-{}", ctx.execution_id(), ctx.instance_id());
    ctx.schedule_sub_orchestration_with_id("Check", child, "").await?;
    match ctx.execution_id() {
        3 => Err("gave up".into()),
        attempt if attempt < attempts => ctx.continue_as_new_typed(&attempts).await,
        attempt => Ok(format!("attempt {attempt}")),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let orchestrations = OrchestrationRegistry::builder()
        .register_typed("Import", import)
        .register("Check", |_ctx, _input| async { Ok(String::new()) })
        .build();
    let options = SqliteOptions { orphan_message_ttl: Duration::from_millis(20), ..Default::default() };
    let store = Arc::new(SqliteProvider::new_in_memory_with_options(Some(options)).await?);
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await;
    let client = Client::new(store);
    for (instance, attempts) in [("import-a", 1), ("import-b", 3), ("import-c", 2), ("import-d", 1)] {
        client.start_orchestration_typed(instance, "Import", attempts).await?;
        client.wait_for_orchestration(instance, Duration::from_secs(30)).await?;
    }

    list(&client).await?;
    look_into(&client, "import-b").await?;
    clean_up(&client, "import-b").await?;
    dead_letter(&client).await?;
    runtime.shutdown(None).await;
    Ok(())
}

/// Pages go from the newest to the oldest; the cursor of one leads to the next.
async fn list(client: &Client) -> Result<(), ClientError> {
    let mut query = InstanceQuery::default().id_prefix("import-").limit(3);
    loop {
        let page = client.query_instances(&query).await?;
        println!("a page of {}", page.instances.len());
        for info in page.instances {
            println!("  {}: {}, {}", info.instance_id, info.status, info.output.unwrap_or_default());
        }
        let Some(next) = page.next else { return Ok(()) };
        query = query.after(next);
    }
}

async fn look_into(client: &Client, instance: &str) -> Result<(), ClientError> {
    println!("{instance} is in execution {}", client.get_instance_info(instance).await?.current_execution_id);
    for execution in client.list_executions(instance).await? {
        let info = client.get_execution_info(instance, execution).await?;
        println!("  {execution}: {}, {} events", info.status, info.event_count);
    }
    println!("  its tree: {:?}", client.get_instance_tree(instance).await?.all_ids);
    Ok(())
}

async fn clean_up(client: &Client, instance: &str) -> Result<(), ClientError> {
    let options = PruneOptions { keep_last: Some(2), ..Default::default() };
    let pruned = client.prune_executions(instance, options).await?.executions_deleted;
    println!("{pruned} execution pruned, left {:?}", client.list_executions(instance).await?);

    let deleted = client.delete_instance(instance, false).await?.instances_deleted; // the whole tree
    println!("{deleted} instances deleted, left {}", client.list_all_instances().await?.len());
    Ok(())
}

/// A message for an instance that is never started becomes a dead letter, to be retried or discarded.
async fn dead_letter(client: &Client) -> Result<(), ClientError> {
    client.raise_event("imprt-a", "Stop", "").await?;
    let letter = loop {
        match client.list_dead_letters(Some(10)).await?.pop() {
            Some(letter) => break letter,
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    println!("dead letter for {}: {}", letter.instance_id.unwrap_or_default(), letter.reason);
    client.discard_dead_letter(&letter.id).await
}
