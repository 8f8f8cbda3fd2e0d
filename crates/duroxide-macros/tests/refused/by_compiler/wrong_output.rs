//! An output of another type.

use duroxide::prelude::*;

#[duroxide::activity]
async fn charge(_ctx: ActivityContext, cents: u64) -> Result<String, String> {
    Ok(cents.to_string())
}

#[duroxide::orchestration]
async fn order(ctx: OrchestrationContext) -> Result<u64, String> {
    let receipt: u64 = ctx.activity::<charge>(12).await?;
    Ok(receipt)
}

fn main() {}
