//! Sub-orchestrations, joined.

use duroxide::OrchestrationContext;

use super::{
    activity::{incremented, parse},
    batch::Batch,
    outcome::Outcome,
    scratch::Scratch,
    setting::Setting,
};

pub const PARENT: &str = "Parent";
pub const CHILD: &str = "Child";

const CHILDREN: u64 = 10;

pub async fn parent(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let children = (0..CHILDREN).map(|number| ctx.schedule_sub_orchestration(CHILD, number.to_string()));
    let mut sum = 0;
    for result in ctx.join(children.collect()).await {
        sum += parse(&result?)?;
    }
    Ok(sum.to_string())
}

pub async fn child(ctx: OrchestrationContext, number: String) -> Result<String, String> {
    Ok(incremented(&ctx, parse(&number)?).await?.to_string())
}

/// Ten children with one activity each per instance; all instances at once.
#[derive(Debug, clap::Args)]
pub struct Children {
    #[command(flatten)]
    pub setting: Setting,
    /// How many parents.
    #[arg(long, default_value_t = 50)]
    instances: u64,
}

impl Children {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let batch = Batch {
            orchestration: PARENT,
            instances: self.instances,
            input: Box::new(|_| String::new()),
            output: Box::new(|_| (1..=CHILDREN).sum::<u64>().to_string()),
        };
        batch.measure(&self.setting, scratch).await
    }
}
