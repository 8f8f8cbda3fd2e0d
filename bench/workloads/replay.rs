//! Long histories, read and replayed by a process that has never seen them.

use std::time::{Duration, Instant};

use duroxide::{Client, OrchestrationContext};

use super::{
    activity::{incremented, parse},
    batch::{Batch, expect_output},
    node::Node,
    outcome::Outcome,
    scratch::Scratch,
    setting::Setting,
    spread::Spread,
};

pub const REMEMBER: &str = "Remember";

const RECALL: &str = "recall";

/// How many activities are under way at the same time while the history is made.
const WIDTH: u64 = 100;

/// Runs activities, says that it waits, and ends with the event.
pub async fn remember(ctx: OrchestrationContext, activities: String) -> Result<String, String> {
    let activities = parse(&activities)?;
    for first in (0..activities).step_by(WIDTH as usize) {
        let numbers = first..(first + WIDTH).min(activities);
        for result in ctx.join(numbers.map(|number| incremented(&ctx, number)).collect()).await {
            result?;
        }
    }
    ctx.set_custom_status("waiting");
    Ok(ctx.schedule_wait(RECALL).await)
}

/// Instances with a long history are woken one by one by a runtime that has none of them in memory.
#[derive(Debug, clap::Args)]
pub struct Replay {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances.
    #[arg(long, default_value_t = 5)]
    instances: u64,
    /// How many activities each history has, with two events each.
    #[arg(long, default_value_t = 5_000)]
    activities: u64,
}

impl Replay {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let (limit, activities) = (self.setting.limit(), self.activities);
        let batch = Batch {
            orchestration: REMEMBER,
            instances: self.instances,
            input: Box::new(move |_| activities.to_string()),
            output: Box::new(|number| number.to_string()),
        };
        let node = Node::start(&self.setting, &scratch.file()).await?;
        batch.start(&node.client).await;
        for number in 0..self.instances {
            let waits = node.client.wait_for_status_change(&batch.instance(number), 0, POLL, limit).await;
            waits.map_err(|error| format!("{} does not wait: {error}", batch.instance(number)))?;
        }
        node.stop().await;

        let node = Node::start(&self.setting, &scratch.file()).await?;
        let (mut outcome, mut durations) = (Outcome::default(), Vec::new());
        for number in 0..self.instances {
            let begin = Instant::now();
            let result = recall(&node.client, &batch.instance(number), &number.to_string(), limit).await;
            durations.push(begin.elapsed());
            outcome.count(result);
        }
        node.stop().await;
        let p50_ms = Spread::of(durations).percentile(0.5);
        let events_per_s = (2 * activities) as f64 / p50_ms * 1e3;
        Ok(outcome.with("p50_ms", p50_ms).with("events_per_s", events_per_s))
    }
}

const POLL: Duration = Duration::from_millis(50);

async fn recall(client: &Client, instance: &str, data: &str, limit: Duration) -> Result<(), String> {
    let raised = client.raise_event(instance, RECALL, data).await;
    raised.map_err(|error| format!("cannot raise to {instance}: {error}"))?;
    expect_output(client, instance, data, limit).await
}
