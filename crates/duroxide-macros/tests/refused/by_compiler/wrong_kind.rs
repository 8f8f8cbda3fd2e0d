//! An orchestration is not an activity.

use duroxide::prelude::*;

#[duroxide::orchestration]
async fn ship(_ctx: OrchestrationContext) -> Result<(), String> {
    Ok(())
}

#[duroxide::orchestration]
async fn order(ctx: OrchestrationContext) -> Result<(), String> {
    ctx.activity::<ship>(()).await?;
    Ok(())
}

fn main() {}
