//! The code that runs today.

use duroxide::{ActivityContext, OrchestrationContext, typed::Handlers};

#[duroxide::activity]
pub(crate) async fn charge(_ctx: ActivityContext, amount: u64) -> Result<String, String> {
    Ok(format!("receipt of {amount}"))
}

#[duroxide::orchestration]
pub(crate) async fn order(ctx: OrchestrationContext, amount: u64) -> Result<String, String> {
    let receipt = ctx.activity::<charge>(amount).await?;
    ctx.set_status(&"charged");
    let by: String = ctx.event("approval").await?;
    Ok(format!("{receipt}, approved by {by}"))
}

pub(crate) fn handlers() -> Handlers {
    Handlers::new().activity::<charge>().orchestration::<order>()
}
