//! From an event's arrival to the line of code that waited for it.

use std::{
    sync::Mutex,
    time::{Duration, Instant, SystemTime},
};

use duroxide::{Client, OrchestrationContext, runtime::OrchestrationStatus};

use super::{
    batch::expect_output, node::Node, outcome::Outcome, process::Sibling, scratch::Scratch, setting::Setting,
    spread::Spread,
};
use crate::adapter;

pub const LISTEN: &str = "Listen";
pub const LISTEN_FOR_OTHERS: &str = "ListenForOthers";

const GO: &str = "go";

/// When the orchestration went on.
static RESUMED: Mutex<Option<Instant>> = Mutex::new(None);

/// Reports that it listens, waits for the event, and records when it goes on.
pub async fn listen(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.set_custom_status("listening");
    let data = ctx.schedule_wait(GO).await;
    if !ctx.is_replaying()
        && let Ok(mut resumed) = RESUMED.lock()
    {
        *resumed = Some(Instant::now());
    }
    Ok(data)
}

/// One waiting instance after another gets its event: how long until it goes on.
#[derive(Debug, clap::Args)]
pub struct Event {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances.
    #[arg(long, default_value_t = 100)]
    instances: u64,
}

impl Event {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let node = Node::start(&self.setting, &scratch.file()).await?;
        let (mut outcome, mut resumed, mut done) = (Outcome::default(), Vec::new(), Vec::new());
        for number in 0..self.instances {
            let result = raise_and_wait(&node.client, number, self.setting.limit()).await;
            outcome.count(result.map(|(until_resumed, until_done)| {
                resumed.push(until_resumed);
                done.push(until_done);
            }));
        }
        node.stop().await;
        let (resumed, done) = (Spread::of(resumed), Spread::of(done));
        Ok(outcome
            .with("resume_p50_ms", resumed.percentile(0.5))
            .with("resume_p99_ms", resumed.percentile(0.99))
            .with("done_p50_ms", done.percentile(0.5)))
    }
}

/// How long from the call that raises the event until the orchestration went on, and until its result was there.
async fn raise_and_wait(
    client: &Client,
    number: u64,
    limit: Duration,
) -> Result<(Duration, Duration), String> {
    let instance = format!("listen-{number}");
    let started = client.start_orchestration(&instance, LISTEN, "").await;
    started.map_err(|error| format!("cannot start {instance}: {error}"))?;
    let listening = client.wait_for_status_change(&instance, 0, Duration::from_millis(2), limit).await;
    listening.map_err(|error| format!("{instance} does not listen: {error}"))?;
    // An implementation that polls is met at any point of its interval, not always right after a poll.
    tokio::time::sleep(Duration::from_millis(number * 37 % 100)).await;

    let data = number.to_string();
    let begin = Instant::now();
    let raised = client.raise_event(&instance, GO, data.clone()).await;
    raised.map_err(|error| format!("cannot raise to {instance}: {error}"))?;
    expect_output(client, &instance, &data, limit).await?;
    let done = begin.elapsed();
    let resumed = RESUMED.lock().ok().and_then(|mut resumed| resumed.take());
    let resumed = resumed.ok_or_else(|| format!("{instance} did not note when it went on"))?;
    Ok((resumed.duration_since(begin), done))
}

/// Like [`listen`], and says when it went on by its result, because another process asks. Processes of one machine share
/// its clock.
pub async fn listen_for_others(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.set_custom_status("listening");
    ctx.schedule_wait(GO).await;
    Ok(since_epoch().as_micros().to_string())
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// One waiting instance after another, in another process, gets its event: how long until it goes on.
#[derive(Debug, clap::Args)]
pub struct EventAcross {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances.
    #[arg(long, default_value_t = 100)]
    instances: u64,
}

impl EventAcross {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let _helper = Sibling::start(&self.setting.sibling_args("helper", scratch))?;
        let client = Client::new(adapter::open(&self.setting.store, &scratch.file()).await?);
        let (mut outcome, mut resumed) = (Outcome::default(), Vec::new());
        for number in 0..self.instances {
            let result = raise_across(&client, number, self.setting.limit()).await;
            outcome.count(result.map(|until_resumed| resumed.push(until_resumed)));
        }
        let resumed = Spread::of(resumed);
        Ok(outcome
            .with("resume_p50_ms", resumed.percentile(0.5))
            .with("resume_p99_ms", resumed.percentile(0.99)))
    }
}

async fn raise_across(client: &Client, number: u64, limit: Duration) -> Result<Duration, String> {
    let instance = format!("across-{number}");
    let started = client.start_orchestration(&instance, LISTEN_FOR_OTHERS, "").await;
    started.map_err(|error| format!("cannot start {instance}: {error}"))?;
    let listening = client.wait_for_status_change(&instance, 0, Duration::from_millis(2), limit).await;
    listening.map_err(|error| format!("{instance} does not listen: {error}"))?;
    tokio::time::sleep(Duration::from_millis(number * 37 % 100)).await;

    let begin = since_epoch();
    let raised = client.raise_event(&instance, GO, "").await;
    raised.map_err(|error| format!("cannot raise to {instance}: {error}"))?;
    match client.wait_for_orchestration(&instance, limit).await {
        Ok(OrchestrationStatus::Completed { output, .. }) => {
            let at = output.parse().map_err(|error| format!("{instance}: no time: {error}"))?;
            Ok(Duration::from_micros(at).saturating_sub(begin))
        }
        Ok(other) => Err(format!("{instance} did not end: {other:?}")),
        Err(error) => Err(format!("{instance} has no result: {error}")),
    }
}
