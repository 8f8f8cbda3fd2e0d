//! Orchestrations that run for ever by starting over.

use duroxide::OrchestrationContext;

use super::{
    activity::{incremented, parse},
    batch::Batch,
    outcome::Outcome,
    scratch::Scratch,
    setting::Setting,
};

pub const LOOP: &str = "Loop";

/// One round: an activity, then the next execution. The input is how many rounds were done and how many there are.
pub async fn next_round(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let (done, total) = input.split_once('/').ok_or("no slash in the input")?;
    let done = incremented(&ctx, parse(done)?).await?;
    if done == parse(total)? {
        return Ok(done.to_string());
    }
    ctx.continue_as_new(format!("{done}/{total}")).await
}

/// Instances that continue as new again and again, with one activity per execution.
#[derive(Debug, clap::Args)]
pub struct ContinueAsNew {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances.
    #[arg(long, default_value_t = 10)]
    instances: u64,
    /// How many executions each has.
    #[arg(long, default_value_t = 100)]
    executions: u64,
}

impl ContinueAsNew {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let executions = self.executions;
        let batch = Batch {
            orchestration: LOOP,
            instances: self.instances,
            input: Box::new(move |_| format!("0/{executions}")),
            output: Box::new(move |_| executions.to_string()),
        };
        let outcome = batch.measure(&self.setting, scratch).await?;
        let per_s = outcome.figure("instances_per_s") * executions as f64;
        Ok(outcome.with("executions_per_s", per_s))
    }
}
