//! Event queues: messages in order, kept until they are read, also over several executions.
//!
//! Unlike an external event, a message may arrive long before the code reads it. Each queue name is first in, first
//! out, and continue-as-new passes unread messages to the next execution.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    cups: u32,
    drink: String,
}

/// A day in the café: two orders, then it closes. The complaints are read on the last day.
async fn cafe(ctx: OrchestrationContext, mut days: Vec<String>) -> Result<Vec<String>, String> {
    let first: Order = ctx.dequeue_event_typed("orders").await;
    let second: Order = ctx.dequeue_event_typed("orders").await;
    let served = format!("{} {}, {} {}", first.cups, first.drink, second.cups, second.drink);
    days.push(format!("day {}: {served}", ctx.execution_id()));
    if days.len() < 3 {
        ctx.continue_as_new_typed(&days).await?; // does not return
    }

    // Reads that wait at the same time get the messages in the order of the calls.
    let complaints = vec![ctx.dequeue_event("complaints"), ctx.dequeue_event("complaints")];
    days.extend(ctx.join(complaints).await);
    Ok(days)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let orchestrations = OrchestrationRegistry::builder().register_typed("Cafe", cafe).build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await;
    let client = Client::new(store);

    client.start_orchestration_typed("cafe", "Cafe", Vec::<String>::new()).await?;
    client.enqueue_event("cafe", "complaints", "complaint: the tea was cold").await?;
    client.enqueue_event("cafe", "complaints", "complaint: the music was loud").await?;
    for (cups, drink) in [(1, "tea"), (2, "coffee"), (3, "mate"), (4, "cocoa"), (5, "milk"), (6, "juice")] {
        client.enqueue_event_typed("cafe", "orders", &Order { cups, drink: drink.into() }).await?;
    }

    let days: Vec<String> = client.wait_for_orchestration_typed("cafe", Duration::from_secs(30)).await??;
    for line in days {
        println!("{line}");
    }
    println!("executions: {:?}", client.list_executions("cafe").await?);

    runtime.shutdown(None).await;
    Ok(())
}
