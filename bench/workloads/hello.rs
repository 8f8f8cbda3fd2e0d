//! One activity: the smallest orchestration that does something.

use std::time::{Duration, Instant};

use duroxide::{ActivityContext, Client, OrchestrationContext};

use super::{
    batch::{Batch, expect_output},
    node::Node,
    outcome::Outcome,
    scratch::Scratch,
    setting::Setting,
    spread::Spread,
};

pub const HELLO: &str = "Hello";
pub const GREET: &str = "Greet";

pub async fn hello(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    ctx.schedule_activity(GREET, name).await
}

pub async fn greet(_ctx: ActivityContext, name: String) -> Result<String, String> {
    Ok(greeting(&name))
}

/// The output for a name.
pub fn greeting(name: &str) -> String {
    format!("Hello, {name}!")
}

/// Instances that greet their number.
pub fn greetings(instances: u64) -> Batch {
    Batch {
        orchestration: HELLO,
        instances,
        input: Box::new(|number| number.to_string()),
        output: Box::new(|number| greeting(&number.to_string())),
    }
}

/// All instances at once: how many per second.
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
        greetings(self.instances).measure(&self.setting, scratch).await
    }
}

/// One instance after another: how long each takes from the call that starts it to its result.
#[derive(Debug, clap::Args)]
pub struct OneByOne {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances.
    #[arg(long, default_value_t = 200)]
    instances: u64,
}

impl OneByOne {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let node = Node::start(&self.setting, &scratch.file()).await?;
        let mut outcome = Outcome::default();
        let mut durations = Vec::new();
        for number in 0..self.instances {
            let begin = Instant::now();
            let result = one(&node.client, number, self.setting.limit()).await;
            durations.push(begin.elapsed());
            outcome.count(result);
        }
        node.stop().await;
        let spread = Spread::of(durations);
        Ok(outcome.with("p50_ms", spread.percentile(0.5)).with("p99_ms", spread.percentile(0.99)))
    }
}

async fn one(client: &Client, number: u64, limit: Duration) -> Result<(), String> {
    let (instance, name) = (format!("alone-{number}"), number.to_string());
    let started = client.start_orchestration(&instance, HELLO, name.clone()).await;
    started.map_err(|error| format!("cannot start {instance}: {error}"))?;
    expect_output(client, &instance, &greeting(&name), limit).await
}
