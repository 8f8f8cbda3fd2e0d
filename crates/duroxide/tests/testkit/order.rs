//! The program under test: an order that is charged, waits for an approval and is shipped.

use std::time::Duration;

use duroxide::{ActivityContext, Either2, OrchestrationContext, RetryPolicy, typed::Handlers};

/// How long an order waits for its approval.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

#[duroxide::activity]
pub(crate) async fn charge(ctx: ActivityContext, amount: u64) -> Result<String, String> {
    Ok(format!("receipt of {amount} for {}", ctx.instance_id()))
}

#[duroxide::activity]
pub(crate) async fn refund(_ctx: ActivityContext, receipt: String) -> Result<(), String> {
    drop(receipt);
    Ok(())
}

#[duroxide::orchestration]
pub(crate) async fn order(ctx: OrchestrationContext, amount: u64) -> Result<String, String> {
    let receipt = ctx.activity::<charge>(amount).retry(RetryPolicy::new(3)).await?;
    match ctx.select2(ctx.event::<String>("approval"), ctx.schedule_timer(DEADLINE)).await {
        Either2::First(by) => Ok(format!("{receipt}, approved by {}", by?)),
        Either2::Second(()) => {
            ctx.activity::<refund>(receipt).await?;
            Err("nobody approved".to_owned())
        }
    }
}

pub(crate) fn handlers() -> Handlers {
    Handlers::new()
        .activity::<charge>()
        .activity::<refund>()
        .orchestration::<order>()
        .orchestration::<nightly>()
        .orchestration::<fan_out>()
}

/// A loop that ends after the given number of days.
#[duroxide::orchestration]
pub(crate) async fn nightly(ctx: OrchestrationContext, days: u32) -> Result<String, String> {
    if days == 0 {
        return Ok("done".to_owned());
    }
    ctx.schedule_timer(Duration::from_secs(86_400)).await;
    ctx.activity::<charge>(u64::from(days)).await?;
    ctx.continue_as::<nightly>(days - 1).await
}

/// Three charges at the same time, under a random id.
#[duroxide::orchestration]
pub(crate) async fn fan_out(ctx: OrchestrationContext, amount: u64) -> Result<Vec<String>, String> {
    ctx.set_custom_status(ctx.new_guid().await?);
    let charges = (0..3).map(|n| ctx.activity::<charge>(amount + n).start()).collect();
    ctx.join(charges).await.into_iter().map(|receipt| receipt.map_err(|error| error.to_string())).collect()
}
