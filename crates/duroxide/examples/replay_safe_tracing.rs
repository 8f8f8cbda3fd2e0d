//! Replay-safe tracing: each line is logged once, also if the code is replayed.
//!
//! The runtime here keeps no live executions, so every turn runs the code again from its first line. `println!` would
//! repeat itself; the trace methods of the contexts do not.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use duroxide::prelude::*;

/// How often the orchestration's first line ran.
static RUNS: AtomicU32 = AtomicU32::new(0);

async fn baking(ctx: OrchestrationContext, cake: String) -> Result<String, String> {
    RUNS.fetch_add(1, Ordering::SeqCst);
    ctx.trace_info(format!("baking a {cake}"));
    for step in ["mix", "bake", "decorate"] {
        let result = ctx.schedule_activity("Step", step).await?;
        ctx.trace_info(result);
    }
    ctx.trace_warn("the cake is hot");
    Ok(cake)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt()
        .with_env_filter("off,duroxide::orchestration=info,duroxide::activity=info")
        .with_writer(std::io::stdout)
        .with_ansi(false)
        .without_time()
        .init();

    let activities = ActivityRegistry::builder()
        .register("Step", |ctx: ActivityContext, step: String| async move {
            ctx.trace_info(format!("working on {step}"));
            Ok(format!("{step} is done"))
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("Baking", baking).build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let options = RuntimeOptions { execution_cache_size: 0, ..RuntimeOptions::default() };
    let runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;

    let client = Client::new(store);
    client.start_orchestration("cake-1", "Baking", "lemon cake").await?;
    let _cake: String = client.wait_for_orchestration_typed("cake-1", Duration::from_secs(30)).await??;
    println!("the code ran {} times from its first line", RUNS.load(Ordering::SeqCst));

    runtime.shutdown(None).await;
    Ok(())
}
