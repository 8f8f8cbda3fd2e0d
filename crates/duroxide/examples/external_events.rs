//! External events: an orchestration waits for the outside world, with a deadline.
//!
//! An event goes to the oldest open wait of its name; without such a wait it is not kept. So subscribe first,
//! and only then ask for the answer.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

#[derive(Serialize, Deserialize)]
struct Expense {
    what: String,
    timeout: Duration,
}

async fn expense(ctx: OrchestrationContext, expense: Expense) -> Result<String, String> {
    let decision = ctx.schedule_wait("Decision");
    ctx.schedule_activity("AskManager", ctx.instance_id()).await?;

    let deadline = ctx.schedule_timer(expense.timeout);
    match ctx.select2(decision, deadline).await {
        Either2::First(decision) => Ok(format!("{}: {decision}", expense.what)),
        Either2::Second(()) => Ok(format!("{}: nobody answered in time", expense.what)),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (ask, mut asked) = mpsc::unbounded_channel();
    let activities = ActivityRegistry::builder()
        .register("AskManager", move |_ctx, instance| {
            let sent = ask.send(instance).map_err(|error| error.to_string());
            async move { sent.map(|()| String::new()) }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register_typed("Expense", expense).build();

    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);

    let lunch = Expense { what: "lunch".into(), timeout: Duration::from_secs(3600) };
    client.start_orchestration_typed("lunch", "Expense", lunch).await?;
    let instance = asked.recv().await.ok_or("the manager was never asked")?;
    client.raise_event(instance, "Decision", "approved").await?;
    let output: String = client.wait_for_orchestration_typed("lunch", Duration::from_secs(30)).await??;
    println!("{output}");

    let yacht = Expense { what: "yacht".into(), timeout: Duration::from_millis(50) };
    client.start_orchestration_typed("yacht", "Expense", yacht).await?;
    let output: String = client.wait_for_orchestration_typed("yacht", Duration::from_secs(30)).await??;
    println!("{output}");

    runtime.shutdown(None).await;
    Ok(())
}
