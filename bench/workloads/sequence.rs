//! One activity after another.

pub mod steps;

use duroxide::OrchestrationContext;

use super::{
    activity::{incremented, parse},
    batch::Batch,
    outcome::Outcome,
    scratch::Scratch,
    setting::Setting,
};

pub const SEQUENCE: &str = "Sequence";

const ACTIVITIES: u64 = 10;

pub async fn sequence(ctx: OrchestrationContext, first: String) -> Result<String, String> {
    let mut number = parse(&first)?;
    for _ in 0..ACTIVITIES {
        number = incremented(&ctx, number).await?;
    }
    Ok(number.to_string())
}

/// Ten activities per instance, one after another; all instances at once.
#[derive(Debug, clap::Args)]
pub struct Sequence {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances.
    #[arg(long, default_value_t = 500)]
    instances: u64,
}

impl Sequence {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let batch = Batch {
            orchestration: SEQUENCE,
            instances: self.instances,
            input: Box::new(|number| number.to_string()),
            output: Box::new(|number| (number + ACTIVITIES).to_string()),
        };
        batch.measure(&self.setting, scratch).await
    }
}
