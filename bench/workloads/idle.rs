//! Instances that wait, and the cost of waiting.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use duroxide::OrchestrationContext;

use super::{
    batch::Batch,
    node::Node,
    outcome::Outcome,
    process::{self, Usage},
    scratch::Scratch,
    setting::Setting,
    store_calls::StoreCalls,
};

pub const WAIT: &str = "Wait";

const WAKE: &str = "wake";

/// How many instances have come to their wait.
static WAITING: AtomicU64 = AtomicU64::new(0);

pub async fn wait(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let event = ctx.schedule_wait(WAKE);
    if !ctx.is_replaying() {
        WAITING.fetch_add(1, Ordering::Relaxed);
    }
    Ok(event.await)
}

/// Instances that wait for an event: their cost while nothing happens, and how long it takes to wake them all.
#[derive(Debug, clap::Args)]
pub struct Idle {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances; 0 measures an idle node.
    #[arg(long, default_value_t = 10_000)]
    instances: u64,
    /// For how many seconds the cost of waiting is measured.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
}

impl Idle {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let calls = StoreCalls::count()?;
        let node = Node::start(&self.setting, &scratch.file()).await?;
        let batch = Batch {
            orchestration: WAIT,
            instances: self.instances,
            input: Box::new(|_| String::new()),
            output: Box::new(|number| number.to_string()),
        };
        batch.start(&node.client).await;
        self.all_wait().await?;

        let (before, calls_before) = (Usage::now()?, calls.so_far());
        tokio::time::sleep(Duration::from_secs(self.seconds)).await;
        let (after, calls_after) = (Usage::now()?, calls.so_far());
        let resident = process::resident_mib()?;

        let begin = Instant::now();
        batch.raise(&node.client, WAKE).await;
        let outcome = batch.outcome(&node.client, begin, self.setting.limit()).await;
        node.stop().await;
        Ok(outcome
            .with("cpu_percent", after.cpu_percent_since(&before))
            .with("store_calls_per_s", (calls_after - calls_before) as f64 / self.seconds as f64)
            .with("wake_ups_per_s", after.wake_ups_per_s_since(&before))
            .with("resident_mib", resident))
    }

    /// Until every instance waits, and the last turns are committed and the machine is quiet.
    async fn all_wait(&self) -> Result<(), String> {
        let begin = Instant::now();
        while WAITING.load(Ordering::Relaxed) < self.instances {
            if begin.elapsed() > self.setting.limit() {
                return Err(format!("only {} instances wait", WAITING.load(Ordering::Relaxed)));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(())
    }
}
