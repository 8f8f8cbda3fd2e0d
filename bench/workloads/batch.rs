//! Many instances of one orchestration, started at once and checked one by one.

use std::time::{Duration, Instant};

use duroxide::{Client, runtime::OrchestrationStatus};
use futures::{StreamExt, stream};

use super::{node::Node, outcome::Outcome, process::MachineUsage, scratch::Scratch, setting::Setting};

/// How many calls of the client are under way at the same time while instances are started or woken.
const CALLERS: usize = 64;

/// How many results are awaited at the same time. Few, so that clients that poll do not overload the store.
const WAITERS: usize = 16;

/// The input or the output of the instance with this number.
pub type Text = Box<dyn Fn(u64) -> String + Send + Sync>;

/// Instances of one orchestration whose inputs and outputs follow from their number.
pub struct Batch {
    pub orchestration: &'static str,
    pub instances: u64,
    pub input: Text,
    pub output: Text,
}

impl Batch {
    /// Starts a node, runs the batch on it, and stops the node.
    pub async fn measure(&self, setting: &Setting, scratch: &Scratch) -> Result<Outcome, String> {
        let node = Node::start(setting, &scratch.file()).await?;
        let outcome = self.run(&node.client, setting.limit()).await;
        node.stop().await;
        Ok(outcome)
    }

    /// Starts all and waits until each has its result, or `limit` is over.
    pub async fn run(&self, client: &Client, limit: Duration) -> Outcome {
        let (begin, machine) = (Instant::now(), MachineUsage::now());
        self.start(client).await;
        let outcome = self.outcome(client, begin, limit).await;
        match machine.zip(MachineUsage::now()) {
            Some((before, after)) => outcome.with("cores_busy_percent", after.busy_percent_since(&before)),
            None => outcome,
        }
    }

    /// Starts all instances. A refused start shows later as an instance without a result.
    pub async fn start(&self, client: &Client) {
        stream::iter(0..self.instances)
            .for_each_concurrent(CALLERS, |number| async move {
                let (instance, input) = (self.instance(number), (self.input)(number));
                if let Err(error) = client.start_orchestration(&instance, self.orchestration, input).await {
                    eprintln!("cannot start {instance}: {error}");
                }
            })
            .await;
    }

    /// Sends an event to every instance.
    pub async fn raise(&self, client: &Client, event: &str) {
        stream::iter(0..self.instances)
            .for_each_concurrent(CALLERS, |number| async move {
                let instance = self.instance(number);
                if let Err(error) = client.raise_event(&instance, event, number.to_string()).await {
                    eprintln!("cannot wake {instance}: {error}");
                }
            })
            .await;
    }

    /// Waits for every result and compares it. The figures count from `begin` to the last right result: an instance that fails or
    /// hangs is counted, but does not lengthen the time.
    pub async fn outcome(&self, client: &Client, begin: Instant, limit: Duration) -> Outcome {
        let (mut outcome, mut total) = (Outcome::default(), Duration::ZERO);
        let mut results = stream::iter(0..self.instances)
            .map(|number| self.check(client, number, limit.saturating_sub(begin.elapsed())))
            .buffer_unordered(WAITERS);
        while let Some(result) = results.next().await {
            if result.is_ok() {
                total = begin.elapsed();
            }
            outcome.count(result);
        }
        let per_s = outcome.correct() as f64 / total.as_secs_f64();
        outcome.with("total_s", total.as_secs_f64()).with("instances_per_s", per_s)
    }

    pub fn instance(&self, number: u64) -> String {
        format!("{}-{number}", self.orchestration.to_lowercase())
    }

    async fn check(&self, client: &Client, number: u64, limit: Duration) -> Result<(), String> {
        expect_output(client, &self.instance(number), &(self.output)(number), limit).await
    }
}

/// Waits until the instance completed with exactly this output.
pub async fn expect_output(
    client: &Client,
    instance: &str,
    expected: &str,
    limit: Duration,
) -> Result<(), String> {
    match client.wait_for_orchestration(instance, limit).await {
        Ok(OrchestrationStatus::Completed { output, .. }) if output == expected => Ok(()),
        Ok(OrchestrationStatus::Completed { output, .. }) => {
            Err(format!("{instance}: wrong output of {} bytes", output.len()))
        }
        Ok(OrchestrationStatus::Failed { details, .. }) => {
            Err(format!("{instance} failed: {}", details.display_message()))
        }
        Ok(other) => Err(format!("{instance} did not end: {other:?}")),
        Err(error) => Err(format!("{instance} has no result: {error}")),
    }
}
