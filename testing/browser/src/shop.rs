//! A shop's orchestrations: what the stores of tests, pictures and measurements are filled with.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use duroxide::{
    ActivityContext, OrchestrationContext, OrchestrationRegistry, RetryPolicy,
    runtime::registry::ActivityRegistry,
};

/// The orchestrations.
pub fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Order", order)
        .register_versioned("Order", "2.0.0", order)
        .register("Payment", payment)
        .register("Shipment", shipment)
        .register("Reminder", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_timer(Duration::from_secs(3 * 3_600)).await;
            Ok("reminded".to_owned())
        })
        .register("Hello", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity("Greet", name).await
        })
        .register("Invoice", |_: OrchestrationContext, customer: String| async move {
            Err::<String, _>(format!("customer {customer} has no address"))
        })
        .register("Long", long)
        .build()
}

async fn order(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.set_kv_value("customer", "Ada Lovelace");
    let reserved = ctx.schedule_activity("Reserve", input.clone()).await?;
    ctx.set_kv_value("reserved", reserved);
    let retries = RetryPolicy::new(3);
    let charged = ctx.schedule_activity_with_retry("Charge", input.clone(), retries).await?;
    ctx.schedule_timer(Duration::from_millis(120)).await;
    ctx.set_custom_status("waits for approval");
    let approval = ctx.schedule_wait("Approval").await;
    let shipped = ctx.schedule_sub_orchestration("Shipment", input).await?;
    Ok(format!("{{\"charged\":\"{charged}\",\"approval\":\"{approval}\",\"shipped\":\"{shipped}\"}}"))
}

async fn payment(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_activity("Refuse", input).await
}

async fn shipment(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let packed = ctx.schedule_activity("Pack", input).await?;
    ctx.schedule_activity("Label", packed).await
}

/// 10,000 events: 50 times 100 activities at once.
async fn long(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    for round in 0..50 {
        let calls = (0..100).map(|n| ctx.schedule_activity("Greet", format!("{round}-{n}")));
        ctx.join(calls.collect::<Vec<_>>()).await;
    }
    Ok("done".to_owned())
}

/// Orders that were charged once, in vain.
static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The activities. `Charge` fails the first time for each order.
pub fn activities() -> ActivityRegistry {
    let answer = |text: &'static str| {
        move |_: ActivityContext, input: String| async move { Ok::<_, String>(format!("{text} {input}")) }
    };
    ActivityRegistry::builder()
        .register("Reserve", |_: ActivityContext, input: String| async move {
            tokio::time::sleep(Duration::from_millis(60)).await;
            Ok::<_, String>(format!("shelf 3 for {input}"))
        })
        .register("Charge", |ctx: ActivityContext, input: String| async move {
            tokio::time::sleep(Duration::from_millis(40)).await;
            let is_first =
                SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(ctx.instance_id().to_owned());
            if is_first {
                Err("the bank did not answer".to_owned())
            } else {
                Ok(format!("charged {}", input.len()))
            }
        })
        .register("Refuse", |_: ActivityContext, input: String| async move {
            Err::<String, _>(format!("card {input} was refused by the bank"))
        })
        .register("Pack", answer("packed"))
        .register("Label", answer("labelled"))
        .register("Greet", answer("hello"))
        .build()
}
