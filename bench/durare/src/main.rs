//! Some of the workloads as workflows of durare, which is used through its public API only. A workflow runs its steps in the
//! process that starts it, without a queue in between: one step stands for one activity, or for one step in place of ours.

mod store;

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::{Parser, Subcommand};
use durare::{DurableContext, DurableEngine, Result, WorkflowOptions};
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::{scratch::Scratch, store::Store};

#[path = "../../workloads/scratch.rs"]
#[allow(dead_code, reason = "the other workloads use the rest")]
mod scratch;
#[path = "../../workloads/spread.rs"]
#[allow(dead_code, reason = "the other workloads use the rest")]
mod spread;

#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    workload: Workload,
}

/// Named as in the other packages.
#[derive(Debug, Subcommand)]
enum Workload {
    /// Many workflows of one step at once: how many per second.
    #[command(alias = "steps-at-once")]
    Hello(Setting),
    /// One workflow of one step after another: how long each takes.
    #[command(alias = "step")]
    Latency(Setting),
    /// Workflows of many steps, one after another: how long each step takes.
    Steps {
        #[command(flatten)]
        setting: Setting,
        /// How many steps each of them has.
        #[arg(long, default_value_t = 100)]
        steps: u32,
    },
}

impl Workload {
    fn setting(&self) -> &Setting {
        match self {
            Self::Hello(setting) | Self::Latency(setting) | Self::Steps { setting, .. } => setting,
        }
    }
}

/// The same options as the other packages have.
#[derive(Debug, clap::Args)]
struct Setting {
    #[arg(long, default_value_t = 200)]
    instances: u64,
    /// How many workflows are in flight at the same time.
    #[arg(long, default_value_t = 64)]
    slots: usize,
    #[arg(long, value_enum, default_value_t = Store::Postgres)]
    store: Store,
    /// Where SQLite files are kept.
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

#[durare::step]
async fn increment(ctx: &DurableContext, number: u32) -> Result<u32> {
    Ok(number + 1)
}

/// Counts from 0 to the input, a step for each number.
#[durare::workflow]
async fn counted(ctx: DurableContext, steps: u32) -> Result<u32> {
    let mut number = 0;
    for _ in 0..steps {
        number = increment(&ctx, number).await?;
    }
    Ok(number)
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
    let setting = workload.setting();
    let scratch = Scratch::below(setting.folder.as_deref()).map_err(text)?;
    let engine = DurableEngine::new(setting.store.open(&scratch).await?).await.map_err(text)?;
    engine.launch().await.map_err(text)?;
    Ok(match workload {
        Workload::Hello(setting) => at_once(&engine, setting).await,
        Workload::Latency(setting) => {
            one_by_one(setting.instances, 1, |number| greets(&engine, number)).await
        }
        Workload::Steps { setting, steps } => {
            one_by_one(setting.instances, *steps, |number| counts(&engine, number, *steps)).await
        }
    })
}

async fn at_once(engine: &DurableEngine, setting: &Setting) -> Outcome {
    let begin = Instant::now();
    let runs = stream::iter(0..setting.instances).map(|number| greets(engine, number));
    let right: u64 =
        runs.buffer_unordered(setting.slots).fold(0, async |sum, right| sum + u64::from(right)).await;
    let per_s = right as f64 / begin.elapsed().as_secs_f64();
    (json!({ "instances_per_s": per_s }), setting.instances - right)
}

/// Runs the workflows; the figures are for each of their steps.
async fn one_by_one(instances: u64, steps: u32, run: impl AsyncFn(u64) -> bool) -> Outcome {
    let (mut durations, mut failed) = (Vec::<Duration>::new(), 0);
    for number in 0..instances {
        let begin = Instant::now();
        failed += u64::from(!run(number).await);
        durations.push(begin.elapsed() / steps.max(1));
    }
    let spread = spread::Spread::of(durations);
    (json!({ "p50_ms": spread.percentile(0.5), "p99_ms": spread.percentile(0.99) }), failed)
}

async fn greets(engine: &DurableEngine, number: u64) -> bool {
    let options = WorkflowOptions::with_id(format!("hello-{number}"));
    match engine.start_with(Hello, number.to_string(), options).await {
        Ok(handle) => handle.await.is_ok_and(|output| output == format!("Hello, {number}!")),
        Err(_) => false,
    }
}

async fn counts(engine: &DurableEngine, number: u64, steps: u32) -> bool {
    let options = WorkflowOptions::with_id(format!("steps-{number}"));
    match engine.start_with(Counted, steps, options).await {
        Ok(handle) => handle.await.is_ok_and(|output| output == steps),
        Err(_) => false,
    }
}

/// The line that `cargo xtask bench` reads.
fn report(workload: &Workload, outcome: std::result::Result<Outcome, String>) -> Value {
    let setting = workload.setting();
    let (figures, failed, error) = match outcome {
        Ok((figures, failed)) => (figures, failed, None),
        Err(error) => (json!({}), 0, Some(error)),
    };
    json!({
        "implementation": "durare", "version": "0.5.0", "store": setting.store.name(), "journal_mode": null,
        "synchronous": setting.store.synchronous(), "slots": setting.slots,
        "command": std::env::args().skip(1).collect::<Vec<_>>().join(" "),
        "instances": setting.instances, "failed": failed, "problems": [], "figures": figures, "error": error,
    })
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
