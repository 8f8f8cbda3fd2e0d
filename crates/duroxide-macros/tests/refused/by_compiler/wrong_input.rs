//! An input of another type.

use duroxide::prelude::*;

#[duroxide::activity]
async fn charge(_ctx: ActivityContext, cents: u64) -> Result<String, String> {
    Ok(cents.to_string())
}

#[duroxide::orchestration]
async fn order(ctx: OrchestrationContext) -> Result<String, String> {
    let receipt = ctx.activity::<charge>("twelve").await?;
    Ok(receipt)
}

fn main() {}
