//! Activities: plain, typed, and with a retry policy and a timeout per attempt.
//!
//! Orchestration code is replayed, so it must have no side effects. Activities have them: they run at least
//! once, and their results are recorded exactly once.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use duroxide::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    item: String,
    quantity: u32,
}

async fn order(ctx: OrchestrationContext, customer: String) -> Result<String, String> {
    let greeting = ctx.schedule_activity("Greet", customer).await?;

    let order = Order { item: "teapot".into(), quantity: 3 };
    let price: u32 = ctx.schedule_activity_typed("Price", &order).await?;

    // Up to three attempts, ten milliseconds apart. The pauses are durable timers.
    let policy =
        RetryPolicy::new(3).with_backoff(BackoffStrategy::Fixed { delay: Duration::from_millis(10) });
    let receipt = ctx.schedule_activity_with_retry("Charge", price.to_string(), policy).await?;

    // An attempt that takes longer than its timeout is cancelled and ends the call.
    let impatient = RetryPolicy::new(3).with_timeout(Duration::from_millis(50));
    let survey = ctx.schedule_activity_with_retry("AskForSurvey", "", impatient).await;

    Ok(format!("{greeting} | price {price} | {receipt} | survey: {survey:?}"))
}

fn activities() -> ActivityRegistry {
    let charges = Arc::new(AtomicU32::new(0));
    ActivityRegistry::builder()
        .register("Greet", |_ctx, name| async move { Ok(format!("hello {name}")) })
        .register_typed("Price", |_ctx, order: Order| async move {
            if order.item == "teapot" { Ok(order.quantity * 20) } else { Err("not sold here".to_owned()) }
        })
        .register("Charge", move |_ctx, amount| {
            let attempt = charges.fetch_add(1, Ordering::SeqCst) + 1;
            async move {
                match attempt {
                    1 | 2 => Err(format!("attempt {attempt}: the bank did not answer")),
                    _ => Ok(format!("charged {amount} in attempt {attempt}")),
                }
            }
        })
        .register("AskForSurvey", |ctx: ActivityContext, _input| async move {
            ctx.cancelled().await; // the customer never answers
            Err("cancelled".to_owned())
        })
        .build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let orchestrations = OrchestrationRegistry::builder().register("Order", order).build();
    let runtime = Runtime::start_with_store(store.clone(), activities(), orchestrations).await;

    let client = Client::new(store);
    client.start_orchestration("order-1", "Order", "Ada").await?;
    let output: String = client.wait_for_orchestration_typed("order-1", Duration::from_secs(30)).await??;
    println!("{output}");

    runtime.shutdown(None).await;
    Ok(())
}
