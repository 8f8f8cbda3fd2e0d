//! Arguments of the attributes.

use duroxide::prelude::*;

#[duroxide::activity(version = "2.0.0")]
async fn versioned(_ctx: ActivityContext) -> Result<(), String> {
    Ok(())
}

#[duroxide::orchestration(version = "2")]
async fn half_a_version(_ctx: OrchestrationContext) -> Result<(), String> {
    Ok(())
}

#[duroxide::orchestration(title = "Order")]
async fn titled(_ctx: OrchestrationContext) -> Result<(), String> {
    Ok(())
}

#[duroxide::activity(name = "")]
async fn nameless(_ctx: ActivityContext) -> Result<(), String> {
    Ok(())
}

#[duroxide::activity(name = "a", name = "b")]
async fn two_names(_ctx: ActivityContext) -> Result<(), String> {
    Ok(())
}

fn main() {}
