//! Steps in place for short pieces of work, and an activity for a long one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};

use duroxide::prelude::*;

/// The line is busy the first time.
static CALLS: AtomicU32 = AtomicU32::new(0);

#[duroxide::activity]
async fn print_label(_ctx: ActivityContext, parcel: String) -> Result<String, String> {
    Ok(format!("label for {parcel}"))
}

#[duroxide::orchestration]
async fn order(ctx: OrchestrationContext, items: Vec<String>) -> Result<String, String> {
    // The work of a step is not replayed, so it may use clocks, random numbers and I/O. Its result is recorded.
    let day = ctx
        .step("day", || async {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            since.map(|since| since.as_secs() / 86_400).map_err(|error| error.to_string())
        })
        .await?;

    // The step can use local values.
    let mut cents = 0;
    for item in items.clone() {
        cents += ctx.step("price", move || async move { Ok::<_, String>(100 * item.len()) }).await?;
    }

    let policy =
        RetryPolicy::new(3).with_backoff(BackoffStrategy::Fixed { delay: Duration::from_millis(10) });
    let stock = ctx
        .step("ask the warehouse", || async {
            match CALLS.fetch_add(1, Ordering::SeqCst) {
                0 => Err("the line is busy".to_owned()),
                _ => Ok("in stock".to_owned()),
            }
        })
        .retry(policy)
        .await?;

    // A printer is slow, and may be on another machine.
    let label = ctx.activity::<print_label>(items.join(" and ")).await?;
    assert!(day > 19_000, "the clock is right");
    Ok(format!("{cents} cents, {stock}, {label}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime =
        Runtime::builder(store.clone()).activity::<print_label>().orchestration::<order>().build().await?;
    let client = Client::new(store);
    let items = vec!["teapot".to_owned(), "cup".to_owned()];
    println!("{}", client.start_and_wait::<order>("order-1", items).await??);
    for event in client.read_execution_history("order-1", 1).await? {
        println!("{} {}", event.event_id, event.kind.wire_name());
    }
    runtime.shutdown(None).await;
    Ok(())
}
