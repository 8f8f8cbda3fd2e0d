//! The workloads `hello` and `latency` as workflows of durare, which is used through its public API only. A workflow with one
//! step stands for an orchestration with one activity; it runs in the process that starts it, without a queue in between.

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Instant};

use clap::{Parser, Subcommand};
use durare::{DurableContext, DurableEngine, PostgresProvider, Result, WorkflowOptions};
use futures::{StreamExt, stream};
use serde_json::{Value, json};

#[path = "../../workloads/spread.rs"]
#[allow(dead_code, reason = "the other workloads use the rest")]
mod spread;

/// Says where the database is, as a URL.
const POSTGRES_URL: &str = "DUROXIDE_BENCH_POSTGRES";

#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    /// Many workflows at once: how many per second.
    Hello(Setting),
    /// One workflow after another: how long each takes.
    Latency(Setting),
}

/// The same options as the other packages have.
#[derive(Debug, clap::Args)]
struct Setting {
    #[arg(long, default_value_t = 200)]
    instances: u64,
    /// How many workflows are in flight at the same time.
    #[arg(long, default_value_t = 64)]
    slots: usize,
    #[arg(long)]
    store: Option<String>,
    #[arg(long)]
    folder: Option<PathBuf>,
}

#[durare::step]
async fn greet(ctx: &DurableContext, name: String) -> Result<String> {
    Ok(format!("Hello, {name}!"))
}

#[durare::workflow]
async fn hello(ctx: DurableContext, name: String) -> Result<String> {
    greet(&ctx, name).await
}

fn main() -> ExitCode {
    let workload = Cli::parse().workload;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no tokio runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let outcome = runtime.block_on(measure(&workload));
    let failed = outcome.is_err();
    println!("{}", report(&workload, outcome));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Figures, and how many results were wrong.
type Outcome = (Value, u64);

async fn measure(workload: &Workload) -> std::result::Result<Outcome, String> {
    let url = std::env::var(POSTGRES_URL).map_err(|_| format!("{POSTGRES_URL} is not set"))?;
    let schema = format!("durare_{}", std::process::id());
    let provider = PostgresProvider::connect_with_schema(&url, &schema).await.map_err(text)?;
    let engine = DurableEngine::new(Arc::new(provider)).await.map_err(text)?;
    engine.launch().await.map_err(text)?;
    match workload {
        Workload::Hello(setting) => Ok(at_once(&engine, setting).await),
        Workload::Latency(setting) => Ok(one_by_one(&engine, setting).await),
    }
}

async fn at_once(engine: &DurableEngine, setting: &Setting) -> Outcome {
    let begin = Instant::now();
    let runs = stream::iter(0..setting.instances).map(|number| is_right(engine, number));
    let right: u64 =
        runs.buffer_unordered(setting.slots).fold(0, async |sum, right| sum + u64::from(right)).await;
    let per_s = right as f64 / begin.elapsed().as_secs_f64();
    (json!({ "instances_per_s": per_s }), setting.instances - right)
}

async fn one_by_one(engine: &DurableEngine, setting: &Setting) -> Outcome {
    let (mut durations, mut failed) = (Vec::new(), 0);
    for number in 0..setting.instances {
        let begin = Instant::now();
        failed += u64::from(!is_right(engine, number).await);
        durations.push(begin.elapsed());
    }
    let spread = spread::Spread::of(durations);
    (json!({ "p50_ms": spread.percentile(0.5), "p99_ms": spread.percentile(0.99) }), failed)
}

async fn is_right(engine: &DurableEngine, number: u64) -> bool {
    let options = WorkflowOptions::with_id(format!("hello-{number}"));
    match engine.start_with(Hello, number.to_string(), options).await {
        Ok(handle) => handle.await.is_ok_and(|output| output == format!("Hello, {number}!")),
        Err(_) => false,
    }
}

/// The line that `cargo xtask bench` reads.
fn report(workload: &Workload, outcome: std::result::Result<Outcome, String>) -> Value {
    let (Workload::Hello(setting) | Workload::Latency(setting)) = workload;
    let (figures, failed, error) = match outcome {
        Ok((figures, failed)) => (figures, failed, None),
        Err(error) => (json!({}), 0, Some(error)),
    };
    json!({
        "implementation": "durare", "version": "0.5.0", "store": "postgres", "journal_mode": null,
        "synchronous": "as the server is set", "slots": setting.slots,
        "command": std::env::args().skip(1).collect::<Vec<_>>().join(" "),
        "instances": setting.instances, "failed": failed, "problems": [], "figures": figures, "error": error,
    })
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
