//! The activity that counts, for workloads that only need some activity.

use duroxide::{ActivityContext, OrchestrationContext};

pub const INCREMENT: &str = "Increment";

pub async fn increment(_ctx: ActivityContext, number: String) -> Result<String, String> {
    Ok((parse(&number)? + 1).to_string())
}

/// Runs the activity and reads its result.
pub async fn incremented(ctx: &OrchestrationContext, number: u64) -> Result<u64, String> {
    parse(&ctx.schedule_activity(INCREMENT, number.to_string()).await?)
}

/// Reads a number that an orchestration or activity was given.
pub fn parse(text: &str) -> Result<u64, String> {
    text.parse().map_err(|error| format!("not a number: {error}"))
}
