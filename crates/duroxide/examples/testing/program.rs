//! The program under test: an order is charged, waits two minutes for an approval, and is refunded without one.

use std::time::Duration;

use duroxide::{ActivityContext, Either2, OrchestrationContext, RetryPolicy, typed::Handlers};

#[duroxide::activity]
pub(crate) async fn charge(_ctx: ActivityContext, amount: u64) -> Result<String, String> {
    Err(format!("no card reader for {amount} in an example"))
}

#[duroxide::activity]
pub(crate) async fn refund(_ctx: ActivityContext, receipt: String) -> Result<(), String> {
    Err(format!("no card reader for {receipt} in an example"))
}

#[duroxide::orchestration]
pub(crate) async fn order(ctx: OrchestrationContext, amount: u64) -> Result<String, String> {
    let receipt = ctx.activity::<charge>(amount).retry(RetryPolicy::new(3)).await?;
    let deadline = ctx.schedule_timer(Duration::from_secs(120));
    match ctx.select2(ctx.event::<String>("approval"), deadline).await {
        Either2::First(by) => Ok(format!("{receipt}, approved by {}", by?)),
        Either2::Second(()) => {
            ctx.activity::<refund>(receipt).await?;
            Err("nobody approved".to_owned())
        }
    }
}

pub(crate) fn handlers() -> Handlers {
    Handlers::new().activity::<charge>().activity::<refund>().orchestration::<order>()
}
