//! Steps in place: one alone, and one after another. An implementation without steps runs activities.

use std::time::Instant;

use duroxide::OrchestrationContext;

use crate::{
    adapter,
    bench::{
        activity::parse,
        batch::{Batch, expect_output},
        node::Node,
        outcome::Outcome,
        scratch::Scratch,
        setting::Setting,
        spread::Spread,
    },
};

pub const STEPS: &str = "Steps";

/// Counts from 0 to the input, a step for each number.
pub async fn steps(ctx: OrchestrationContext, steps: String) -> Result<String, String> {
    let mut number = 0;
    for _ in 0..parse(&steps)? {
        number = adapter::incremented_in_place(&ctx, number).await?;
    }
    Ok(number.to_string())
}

/// One instance of one step after another: how long each takes from the call that starts it to its result.
#[derive(Debug, clap::Args)]
pub struct Alone {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances.
    #[arg(long, default_value_t = 200)]
    instances: u64,
}

impl Alone {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        one_by_one(&self.setting, scratch, self.instances, 1).await
    }
}

/// Instances of many steps, one instance after another: how long each step takes.
#[derive(Debug, clap::Args)]
pub struct InARow {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances.
    #[arg(long, default_value_t = 20)]
    instances: u64,
    /// How many steps each of them has.
    #[arg(long, default_value_t = 100)]
    steps: u32,
}

impl InARow {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        one_by_one(&self.setting, scratch, self.instances, self.steps.max(1)).await
    }
}

/// Instances of one step, all at once: how many per second.
#[derive(Debug, clap::Args)]
pub struct AtOnce {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances.
    #[arg(long, default_value_t = 2_000)]
    instances: u64,
}

impl AtOnce {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let one = |_| "1".to_owned();
        let (input, output) = (Box::new(one), Box::new(one));
        Batch { orchestration: STEPS, instances: self.instances, input, output }
            .measure(&self.setting, scratch)
            .await
    }
}

/// Runs the instances; the figures are for each step.
async fn one_by_one(
    setting: &Setting,
    scratch: &Scratch,
    instances: u64,
    steps: u32,
) -> Result<Outcome, String> {
    let node = Node::start(setting, &scratch.file()).await?;
    let mut outcome = Outcome::default();
    let mut durations = Vec::new();
    for number in 0..instances {
        let instance = format!("steps-{number}");
        let begin = Instant::now();
        let started = node.client.start_orchestration(&instance, STEPS, steps.to_string()).await;
        started.map_err(|error| format!("cannot start {instance}: {error}"))?;
        let result = expect_output(&node.client, &instance, &steps.to_string(), setting.limit()).await;
        durations.push(begin.elapsed() / steps);
        outcome.count(result);
    }
    node.stop().await;
    let spread = Spread::of(durations);
    Ok(outcome.with("p50_ms", spread.percentile(0.5)).with("p99_ms", spread.percentile(0.99)))
}
