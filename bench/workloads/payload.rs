//! Large inputs and outputs.

use duroxide::{ActivityContext, OrchestrationContext};

use super::{batch::Batch, outcome::Outcome, scratch::Scratch, setting::Setting};

pub const CARRY: &str = "Carry";
pub const ECHO: &str = "Echo";

pub async fn carry(ctx: OrchestrationContext, load: String) -> Result<String, String> {
    ctx.schedule_activity(ECHO, load).await
}

pub async fn echo(_ctx: ActivityContext, load: String) -> Result<String, String> {
    Ok(load)
}

/// One activity per instance that returns its large input; all instances at once.
#[derive(Debug, clap::Args)]
pub struct Payload {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances.
    #[arg(long, default_value_t = 200)]
    instances: u64,
    /// The size of input and output.
    #[arg(long, default_value_t = 10 << 10)]
    bytes: usize,
}

impl Payload {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let bytes = self.bytes;
        let batch = Batch {
            orchestration: CARRY,
            instances: self.instances,
            input: Box::new(move |number| load(number, bytes)),
            output: Box::new(move |number| load(number, bytes)),
        };
        batch.measure(&self.setting, scratch).await
    }
}

/// Text of this size, different for every number.
fn load(number: u64, bytes: usize) -> String {
    let mut text = number.to_string();
    text += &"x".repeat(bytes.saturating_sub(text.len()));
    text
}
