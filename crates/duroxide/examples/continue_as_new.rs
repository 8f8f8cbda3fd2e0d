//! Continue-as-new: a loop that may run for years without its history growing.
//!
//! The end of one execution and the start of the next are one commit, so no message is lost between them.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Savings {
    year: u32,
    balance: u32,
}

async fn savings(ctx: OrchestrationContext, state: Savings) -> Result<String, String> {
    if state.year == 5 {
        return Ok(format!("after {} years: {}", state.year, state.balance));
    }
    let interest: u32 = ctx.schedule_activity_typed("Interest", &state.balance).await?;
    let next = Savings { year: state.year + 1, balance: state.balance + interest };
    ctx.continue_as_new_typed(&next).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let activities = ActivityRegistry::builder()
        .register_typed("Interest", |_ctx, balance: u32| async move { Ok(balance / 10) })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register_typed("Savings", savings).build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    let start = Savings { year: 0, balance: 1000 };
    client.start_orchestration_typed("piggy-bank", "Savings", start).await?;
    let output: String = client.wait_for_orchestration_typed("piggy-bank", Duration::from_secs(30)).await??;
    println!("{output}");

    for execution in client.list_executions("piggy-bank").await? {
        let info = client.get_execution_info("piggy-bank", execution).await?;
        println!("execution {execution}: {} with {} events", info.status, info.event_count);
    }

    runtime.shutdown(None).await;
    Ok(())
}
