//! Many activities at once, joined.

use duroxide::OrchestrationContext;

use super::{
    activity::{incremented, parse},
    batch::Batch,
    outcome::Outcome,
    scratch::Scratch,
    setting::Setting,
};

pub const FAN_OUT: &str = "FanOut";

pub async fn fan_out(ctx: OrchestrationContext, width: String) -> Result<String, String> {
    let width = parse(&width)?;
    let branches = (0..width).map(|number| incremented(&ctx, number)).collect();
    let results: Result<Vec<u64>, String> = ctx.join(branches).await.into_iter().collect();
    Ok(results?.into_iter().sum::<u64>().to_string())
}

/// A hundred activities at once per instance; all instances at once.
#[derive(Debug, clap::Args)]
pub struct FanOut {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances.
    #[arg(long, default_value_t = 50)]
    instances: u64,
    /// How many activities per instance.
    #[arg(long, default_value_t = 100)]
    width: u64,
}

impl FanOut {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let width = self.width;
        let batch = Batch {
            orchestration: FAN_OUT,
            instances: self.instances,
            input: Box::new(move |_| width.to_string()),
            output: Box::new(move |_| (1..=width).sum::<u64>().to_string()),
        };
        batch.measure(&self.setting, scratch).await
    }
}
